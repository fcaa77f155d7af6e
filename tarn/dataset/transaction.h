// Transaction: the only way the files of a dataset change.
//
// OPEN → COMMITTED or ABORTED, both final. Files are written while it is OPEN. At most one is OPEN
// per branch, and it is always the branch's newest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/dataset/ids.h"

namespace tarn::dataset {

/// Values are stored; never renumber.
enum class TransactionType : uint8_t {
  kSnapshot = 0,  // A whole new file set.
  kAppend = 1,    // Only paths that the view does not have; checked at commit.
  kUpdate = 2,    // New paths and overwrites.
  kDelete = 3,    // Takes paths out of the view; bytes stay.
};

/// Values are stored; never renumber.
enum class TransactionState : uint8_t { kOpen = 0, kCommitted = 1, kAborted = 2 };

/// "SNAPSHOT", "APPEND", "UPDATE", "DELETE".
std::string_view TransactionTypeName(TransactionType type);
/// Errors: kInvalidArgument for any other text.
Result<TransactionType> ParseTransactionType(std::string_view name);
/// "OPEN", "COMMITTED", "ABORTED".
std::string_view TransactionStateName(TransactionState state);

/// Value, as it was when read.
struct Transaction {
  TransactionRid rid;
  DatasetRid dataset;
  TransactionType type = TransactionType::kUpdate;
  TransactionState state = TransactionState::kOpen;
  std::optional<TransactionRid> parent;  // The committed one it was started on.
  Timestamp created_at{};
  std::optional<Timestamp> closed_at;  // Grows along every line of parents.
  std::string created_by;
  std::optional<std::string> record_json;      // Free-form, given at commit.
  std::optional<std::string> provenance_json;  // Inputs with transaction ranges.
  bool by_retention = false;                   // A DELETE that retention wrote.
  int64_t file_count = 0;                      // Rows it wrote, removals included.
  int64_t overwritten_count = 0;               // Of them, paths that its parent's view had.
  int64_t removed_count = 0;                   // Of them, removals.
  int64_t size_bytes = 0;                      // Of the files it wrote.

  friend bool operator==(const Transaction&, const Transaction&) = default;
};

struct StartOptions {
  TransactionType type = TransactionType::kUpdate;
  std::string by;  // Principal; free text here.
};

struct CommitOptions {
  std::optional<std::string> record_json;
  std::optional<std::string> provenance_json;
  bool by_retention = false;
  std::string by;
};

struct TransactionPage {
  std::vector<Transaction> transactions;  // Newest first.
  std::optional<std::string> next_page_token;
};

}  // namespace tarn::dataset
