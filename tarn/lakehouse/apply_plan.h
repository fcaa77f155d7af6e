// What an apply decides before and after it reads rows. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "tarn/base/clock.h"
#include "tarn/lakehouse/table_spec.h"

namespace tarn::lakehouse {

/// What is unapplied, and how large the table is.
struct UnappliedWork {
  int64_t rows = 0;
  int64_t bytes = 0;
  int64_t files = 0;
  std::optional<Timestamp> oldest;  // When the oldest unapplied change was appended.
  int64_t current_rows = 0;
};

/// The thresholds while more rows wait to be appended: an apply rewrites much of Current for any
/// number of changes that are spread over it, so fewer and larger ones catch up sooner. Rows: the
/// half of Current and at least a million; bytes and files: eightfold; the age stays.
ApplyThresholds WhileBehind(const ApplyThresholds& thresholds);

/// True when one of the thresholds is reached. Nothing unapplied: false.
bool IsApplyDue(const UnappliedWork& work, const ApplyThresholds& thresholds, Timestamp now);

/// How a data file of Current loses rows.
enum class FileAction : uint8_t {
  kKeep,          // It loses none.
  kWriteDeletes,  // A position delete file names its dead rows.
  kRewrite,       // More than a fifth would be dead: its live rows move to a new file.
  kRemove,        // No live row is left.
};

/// `dead_before`, `dead_after`: deleted rows before and after this apply.
FileAction ChooseFileAction(int64_t row_count, int64_t dead_before, int64_t dead_after);

/// In how many passes the changes are folded so that one pass fits the memory; keys are split
/// among the passes by hash.
int64_t PassCount(int64_t change_rows, int64_t key_bytes_per_row, uint64_t memory_bytes);

}  // namespace tarn::lakehouse
