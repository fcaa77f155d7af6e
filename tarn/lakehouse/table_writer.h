// TableWriter: rows of one partition of an internal table into Parquet files.
//
// Rows are routed by the user's partition fields, sorted when the table has a sort order, and cut
// into files of about the target size. Nothing is visible before a commit names the files; those of
// an abandoned writer are deleted, or left to orphan clean-up after a crash.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/base/uuid.h"
#include "tarn/format/parquet_writer.h"
#include "tarn/iceberg/manifest.h"
#include "tarn/iceberg/table_metadata.h"
#include "tarn/storage/object_store.h"

namespace tarn::lakehouse {

enum class SortRows : uint8_t { kNo, kByTableOrder };

struct TableWriterOptions {
  const iceberg::TableMetadata* metadata = nullptr;  // Outlives the writer.
  int32_t spec_id = 0;
  std::string partition;  // Value of hdr__partition, empty in append mode.
  SortRows sort = SortRows::kNo;
  int64_t target_bytes = 256LL << 20;
  int64_t sort_buffer_bytes = 128LL << 20;  // Rows sorted together, over all open partitions.
  size_t open_files_max = 64;               // Beyond it the largest open file is finished first.
  format::ParquetCompression compression = format::ParquetCompression::kZstd;
};

struct TableWriterDeps {
  storage::ObjectStore& store;
  UuidGenerator& uuids;
};

/// One owner thread; each open file is encoded on a thread of its own. Memory: one row group and a
/// few batches per open file, and the sort buffer.
class TableWriter {
 public:
  TableWriter(TableWriterOptions options, TableWriterDeps deps);
  ~TableWriter();
  TableWriter(const TableWriter&) = delete;
  TableWriter& operator=(const TableWriter&) = delete;

  /// Adds rows. Columns are top-level columns of the table's schema by name, of its types; the same
  /// ones in every call; hdr__partition is added when the table has it.
  Status Write(const std::shared_ptr<arrow::RecordBatch>& rows);

  /// Finishes all files. Files without rows are not made.
  Result<std::vector<iceberg::DataFile>> Close();
  [[nodiscard]] int64_t row_count() const { return row_count_; }

 private:
  struct OpenFile;
  struct Group;  // Rows of one combination of the user's partition values.

  Status AddToGroup(Group& group, std::shared_ptr<arrow::RecordBatch> rows);
  Status FlushGroup(Group& group);
  Status WriteRows(Group& group, const std::shared_ptr<arrow::RecordBatch>& rows);
  Status OpenFileOf(Group& group, const arrow::Schema& rows);
  Status FinishFile(Group& group);
  Status LimitOpenFiles();
  Result<Group*> GroupOf(const arrow::RecordBatch& rows, int64_t row);
  Result<std::shared_ptr<arrow::RecordBatch>> WithPartitionColumn(
      const std::shared_ptr<arrow::RecordBatch>& rows);

  TableWriterOptions options_;
  TableWriterDeps deps_;
  std::map<std::string, std::unique_ptr<Group>> groups_;  // By partition path.
  std::vector<iceberg::DataFile> finished_;
  std::shared_ptr<arrow::Array> partition_column_;  // Reused while batches have its length.
  int64_t row_count_ = 0;
};

/// Removes data files that no commit names. Failures are logged; orphan clean-up gets the rest.
void RemoveFiles(storage::ObjectStore& store, const std::vector<iceberg::DataFile>& files);

}  // namespace tarn::lakehouse
