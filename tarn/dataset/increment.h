// Increments and comparisons: what changed between two states of a dataset.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/dataset/file_view.h"
#include "tarn/dataset/ids.h"

namespace tarn::dataset {

/// Why a consumer that only knows how to add files must start over.
enum class IncrementReason : uint8_t {
  kNone,       // Files were only added, or removed by retention.
  kSnapshot,   // A SNAPSHOT replaced the file set.
  kOverwrite,  // A file that was there has other content now.
  kDelete,     // A file was removed, not by retention.
  kDiverged,   // `since` is not an ancestor of the branch's head.
};

/// "none", "snapshot", "overwrite", "delete", "diverged".
std::string_view IncrementReasonName(IncrementReason reason);

struct IncrementOptions {
  int page_size = 1000;    // Changes per page, 1–50,000.
  std::string page_token;  // Pins the head that the first page saw.
};

/// One page of an increment: the net effect of the transactions after `since`, each path once, in
/// commit order. On kSnapshot and kDiverged the lists stay empty: read the whole view.
struct IncrementPage {
  bool incremental = true;
  IncrementReason reason = IncrementReason::kNone;
  std::optional<TransactionRid> head;  // What the next call gives as `since`.
  std::vector<File> added;
  std::vector<File> changed;
  std::vector<File> removed;               // As they were at `since`.
  std::vector<File> removed_by_retention;  // Likewise.
  std::optional<std::string> next_page_token;
};

/// One path that differs between two views. `before` is empty for an added file, `after` for a
/// removed one.
struct FileDifference {
  std::optional<File> before;
  std::optional<File> after;

  [[nodiscard]] const std::string& path() const { return before ? before->path : after->path; }
  friend bool operator==(const FileDifference&, const FileDifference&) = default;
};

struct ComparePage {
  std::vector<FileDifference> differences;
  std::optional<std::string> next_page_token;
};

}  // namespace tarn::dataset
