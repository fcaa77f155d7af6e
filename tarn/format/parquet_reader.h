// ParquetReader: batches of one Parquet object, with constant memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/format/file_statistics.h"
#include "tarn/storage/object_store.h"

namespace tarn::format {

struct ParquetScan {
  std::optional<std::vector<int>> columns;     // Top-level column indexes, in order; absent = all.
  std::optional<std::vector<int>> row_groups;  // Absent = all.
  int64_t batch_rows = 64 * 1024;
};

/// One open file. One owner thread. All errors of the file's content are kCorruption naming it.
class ParquetReader {
 public:
  static Result<std::unique_ptr<ParquetReader>> Open(std::shared_ptr<storage::ObjectReader> object);
  /// The object of that key. Errors: those of the store, too.
  static Result<std::unique_ptr<ParquetReader>> Open(storage::ObjectStore& store,
                                                     const std::string& key);
  ~ParquetReader();
  ParquetReader(const ParquetReader&) = delete;
  ParquetReader& operator=(const ParquetReader&) = delete;

  /// With PARQUET:field_id in the fields' metadata where the file has ids.
  [[nodiscard]] const std::shared_ptr<arrow::Schema>& schema() const;
  [[nodiscard]] int64_t row_count() const;
  [[nodiscard]] int row_group_count() const;
  [[nodiscard]] int64_t row_group_rows(int row_group) const;
  /// Value of a key in the footer's metadata.
  [[nodiscard]] std::optional<std::string> footer(const std::string& key) const;
  /// Null-free statistics of the whole file; nan_count is never known.
  [[nodiscard]] Result<FileStatistics> ReadStatistics() const;

  /// Starts a scan; Next gives its batches.
  Status Scan(const ParquetScan& scan);
  /// The next batch; null at the end.
  Result<std::shared_ptr<arrow::RecordBatch>> Next();
  /// Everything in one go, for small files and tests. Errors: kResourceExhausted over `rows_max`.
  Result<std::shared_ptr<arrow::Table>> ReadAll(int64_t rows_max = 10'000'000);

 private:
  class File;
  explicit ParquetReader(std::unique_ptr<File> file);
  std::unique_ptr<File> file_;
};

}  // namespace tarn::format
