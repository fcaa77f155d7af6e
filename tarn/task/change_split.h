// Mapped rows into change rows: operations, times, and key changes as a delete and an insert.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/lakehouse/change_batch.h"
#include "tarn/lakehouse/table_spec.h"
#include "tarn/landing/dead_letter.h"
#include "tarn/task/landed_batch.h"
#include "tarn/transform/mapping.h"
#include "tarn/transform/outcome.h"

namespace tarn::task {

/// tarn_row of a row: its file in the batch and its position in the file.
inline constexpr int kRowPositionBits = 40;
constexpr int64_t InputRow(int64_t file, int64_t position) {
  return file << kRowPositionBits | position;
}

struct ChangeSplitOptions {
  const transform::CompiledMapping* mapping = nullptr;
  const LandedBatch* landed = nullptr;
  lakehouse::Mode mode = lakehouse::Mode::kMerge;
  bool tombstones_delete = false;        // Messages without value, in mode merge.
  std::shared_ptr<arrow::Schema> table;  // User columns of the table, in its order and types.
};

struct ChangeSplit {
  lakehouse::ChangeBatch changes;
  int64_t truncates = 0;  // Of the source's table: no rows of ours.
  int64_t filtered = 0;   // Updates that neither image of which `where` wants.
  /// Rows whose source left values out, without their landed row: ReadLanded fills it in.
  std::vector<transform::RejectedRow> rejected;
};

/// Rows must come in the order of tarn_row; the image before an update stands behind it.
/// Columns that the mapping lacks become NULL.
/// Errors: kInternal when rows are out of order; kInvalidArgument naming a column whose values do
/// not fit the table.
Result<ChangeSplit> SplitChanges(const ChangeSplitOptions& options, const arrow::RecordBatch& good);

/// The dead letter of a row that the mapping or SplitChanges rejected, after ReadLanded.
landing::DeadLetter MakeDeadLetter(const transform::RejectedRow& row, const std::string& task);

}  // namespace tarn::task
