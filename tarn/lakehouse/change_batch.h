// ChangeBatch: change rows on their way into the Changes partition.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/lakehouse/fold.h"

namespace tarn::lakehouse {

/// Rows in the order of their source. The vectors have one entry per row.
struct ChangeBatch {
  /// User columns by name, of the table's types.
  std::shared_ptr<arrow::RecordBatch> rows;
  std::vector<Operation> operations;
  std::vector<int64_t> timestamps_micros;  // When the change happened: hdr__timestamp.
  std::vector<int64_t> landed_micros;      // Commit time of the row's landing transaction.
  std::vector<int64_t> source_micros;      // Commit time in the source (CDC), else landed_micros.
};

}  // namespace tarn::lakehouse
