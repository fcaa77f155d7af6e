// VersionRows: rows of Current and Prior, put together from user columns and header values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/lakehouse/fold.h"

namespace tarn::lakehouse {

/// No value, where a header column is NULL.
inline constexpr int64_t kNoTimeMicros = INT64_MIN;

/// One row to write: which row of a batch gives the values, and the header around them.
struct VersionRow {
  int64_t source_row = 0;  // In the batch of values.
  char operation = 'I';
  int64_t from_micros = 0;
  int64_t to_micros = kNoTimeMicros;                // Prior only.
  int64_t inserted_micros = kNoTimeMicros;          // Current only.
  int64_t modified_micros = kNoTimeMicros;          // Current only.
  int64_t was_current_from_micros = kNoTimeMicros;  // Prior only.
  int64_t was_current_to_micros = kNoTimeMicros;    // Prior only.
};

/// `values`: hdr__key_hash and the user columns; its other header columns are left out.
/// Result columns: those of Current (or Prior) in table order, then the user columns.
/// Cost: one copy of the rows taken; none when every row is taken in order.
Result<std::shared_ptr<arrow::RecordBatch>> MakeCurrentRows(const arrow::RecordBatch& values,
                                                            const std::vector<VersionRow>& rows);
Result<std::shared_ptr<arrow::RecordBatch>> MakePriorRows(const arrow::RecordBatch& values,
                                                          const std::vector<VersionRow>& rows);

/// timestamp[us, UTC] of microseconds; kNoTimeMicros is NULL.
Result<std::shared_ptr<arrow::Array>> MakeTimes(const std::vector<int64_t>& micros);

/// Rows of `batch` by index, in that order; the batch itself when they are all of it.
Result<std::shared_ptr<arrow::RecordBatch>> TakeRows(
    const std::shared_ptr<arrow::RecordBatch>& batch, const std::vector<int64_t>& rows);

}  // namespace tarn::lakehouse
