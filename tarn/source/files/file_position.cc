#include "tarn/source/files/file_position.h"

#include <array>

namespace tarn::source::files {

namespace {
constexpr std::array<std::string_view, 6> kOutcomeNames = {
    "loaded", "changed_while_read", "empty", "unreadable", "changed_ignored", "touched"};
}  // namespace

std::string_view FileOutcomeName(FileOutcome outcome) {
  return kOutcomeNames.at(static_cast<size_t>(outcome));
}

Result<FileOutcome> ParseFileOutcome(std::string_view name) {
  for (size_t i = 0; i < kOutcomeNames.size(); ++i) {
    if (kOutcomeNames.at(i) == name) {
      return static_cast<FileOutcome>(i);
    }
  }
  return Status::InvalidArgument("not an outcome of a file: \"" + std::string(name) + "\"");
}

}  // namespace tarn::source::files
