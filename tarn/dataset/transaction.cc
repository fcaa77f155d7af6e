#include "tarn/dataset/transaction.h"

#include <array>

#include "tarn/base/json_text.h"

namespace tarn::dataset {

namespace {
constexpr std::array<std::string_view, 4> kTypeNames = {"SNAPSHOT", "APPEND", "UPDATE", "DELETE"};
constexpr std::array<std::string_view, 3> kStateNames = {"OPEN", "COMMITTED", "ABORTED"};
}  // namespace

std::string_view TransactionTypeName(TransactionType type) {
  return kTypeNames.at(static_cast<size_t>(type));
}

std::string_view TransactionStateName(TransactionState state) {
  return kStateNames.at(static_cast<size_t>(state));
}

Result<TransactionType> ParseTransactionType(std::string_view name) {
  for (size_t i = 0; i < kTypeNames.size(); ++i) {
    if (kTypeNames[i] == name) {
      return static_cast<TransactionType>(i);
    }
  }
  return Status::InvalidArgument("unknown transaction type " + JsonString(name) +
                                 ": use SNAPSHOT, APPEND, UPDATE or DELETE");
}

}  // namespace tarn::dataset
