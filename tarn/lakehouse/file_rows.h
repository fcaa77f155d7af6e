// FileRows: the rows of one data file as columns of the table's schema of today.
//
// Columns are found by field id; one that the file lacks is NULL, a narrower one is widened.
// Row numbers are positions in the file, as position deletes count them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/iceberg/schema.h"
#include "tarn/storage/object_store.h"

namespace tarn::lakehouse {

struct FileRowsRequest {
  std::string file_path;                    // URI.
  const iceberg::Schema* schema = nullptr;  // Of the result; outlives the reader.
  std::vector<std::string> columns;         // Top-level names of `schema`, in the order wanted.
};

struct FileRowsBatch {
  std::shared_ptr<arrow::RecordBatch> rows;
  int64_t first_position = 0;  // Of the batch's first row in the file.
};

/// One owner thread. Memory: one batch.
class FileRows {
 public:
  /// Errors: kNotFound; kCorruption naming the file; kInvalidArgument for an unknown column.
  static Result<std::unique_ptr<FileRows>> Open(storage::ObjectStore& store,
                                                FileRowsRequest request);
  ~FileRows();
  FileRows(const FileRows&) = delete;
  FileRows& operator=(const FileRows&) = delete;

  [[nodiscard]] const std::shared_ptr<arrow::Schema>& schema() const;
  /// The next rows; `rows` is null at the end.
  Result<FileRowsBatch> Next();

 private:
  struct State;
  explicit FileRows(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Rows of `batch` whose positions are not in `deleted` (ascending), as indexes into the batch.
std::vector<int64_t> LiveRows(const FileRowsBatch& batch, const std::vector<int64_t>& deleted);

}  // namespace tarn::lakehouse
