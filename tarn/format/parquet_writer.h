// ParquetWriter: record batches into one Parquet object, with the numbers a catalog keeps of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/format/file_statistics.h"
#include "tarn/storage/object_store.h"

namespace tarn::format {

enum class ParquetCompression : uint8_t { kZstd, kSnappy, kNone };

struct ParquetWriterOptions {
  ParquetCompression compression = ParquetCompression::kZstd;
  int compression_level = 1;              // kZstd only.
  int64_t row_group_rows = 1'000'000;     // A row group ends at whichever comes first.
  int64_t row_group_bytes = 128LL << 20;  // Of values in memory.
  int64_t page_bytes = 1LL << 20;
  std::vector<std::pair<std::string, std::string>> footer;  // Key-value metadata of the file.
  std::vector<std::string> bloom_filter_columns;            // Dotted paths of leaf columns.
  bool use_threads = false;  // Encode the columns of a row group in parallel.
};

/// Writes one object. One owner thread. Memory: one row group. Destroying it without Close aborts.
///
/// Field ids come from the Arrow fields' metadata key PARQUET:field_id, at every level.
/// Which leaf columns get a dictionary is decided from the first batch: those whose values repeat.
class ParquetWriter {
 public:
  /// Takes `object`. Errors: kInvalidArgument when the schema cannot be written as Parquet.
  static Result<std::unique_ptr<ParquetWriter>> Open(std::unique_ptr<storage::ObjectWriter> object,
                                                     std::shared_ptr<arrow::Schema> schema,
                                                     ParquetWriterOptions options = {});
  ~ParquetWriter();
  ParquetWriter(const ParquetWriter&) = delete;
  ParquetWriter& operator=(const ParquetWriter&) = delete;

  /// `batch` has exactly the schema of Open (metadata aside); else kInvalidArgument.
  Status Write(const arrow::RecordBatch& batch);
  /// Bytes given to the object so far, plus an estimate of what is buffered.
  [[nodiscard]] int64_t size_bytes() const;
  [[nodiscard]] int64_t row_count() const;

  /// Finishes the file and the object. A file without rows is valid.
  Result<FileStatistics> Close();
  /// Leaves nothing behind.
  void Abort();

 private:
  class File;
  explicit ParquetWriter(std::unique_ptr<File> file);
  std::unique_ptr<File> file_;
};

}  // namespace tarn::format
