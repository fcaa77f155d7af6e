// BackgroundWriter: a ParquetWriter that encodes on a thread of its own.
//
// Encoding and compressing take about as long as making the rows; side by side they take half.
#pragma once

#include <memory>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/format/parquet_writer.h"

namespace tarn::format {

/// One owner thread. Memory: what ParquetWriter holds and a few batches. Destroying it without
/// Close aborts the file.
class BackgroundWriter {
 public:
  /// Takes `writer`. Starts the thread.
  explicit BackgroundWriter(std::unique_ptr<ParquetWriter> writer);
  ~BackgroundWriter();
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  /// Queues the batch; waits while too many are queued. An error of an earlier batch comes back
  /// from here or from Close.
  Status Write(std::shared_ptr<arrow::RecordBatch> batch);
  /// As ParquetWriter::size_bytes, of the batches encoded so far.
  [[nodiscard]] int64_t size_bytes() const;
  /// Waits for all batches and finishes the file.
  Result<FileStatistics> Close();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tarn::format
