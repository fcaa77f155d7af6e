// DirectRows: the rows of a batch that a direct mapping takes, read without the engine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/format/field_type.h"
#include "tarn/storage/object_store.h"
#include "tarn/task/landed_batch.h"
#include "tarn/transform/direct_mapping.h"

namespace tarn::format {
class ParquetReader;
}

namespace tarn::task {

/// One owner thread. Memory: the largest of one read batch.
class DirectRows {
 public:
  /// Null when the statistics of a file leave it open whether its rows need the statement: see
  /// null_columns() and full_columns() of the mapping. `batch` and `mapping` outlive the result.
  /// `fields`: the landed columns in their widest types.
  /// Errors: those of the store; kCorruption for a broken file. Cost: one footer a file.
  static Result<std::unique_ptr<DirectRows>> Open(storage::ObjectStore& store,
                                                  const LandedBatch& batch,
                                                  const transform::DirectMapping& mapping,
                                                  const std::vector<format::Field>& fields);
  ~DirectRows();

  /// Good rows in the order of tarn_row; null at the end.
  Result<std::shared_ptr<arrow::RecordBatch>> Next();

 private:
  DirectRows(storage::ObjectStore& store, const LandedBatch& batch,
             const transform::DirectMapping& mapping);
  Status OpenFile();

  storage::ObjectStore& store_;
  const LandedBatch& batch_;
  const transform::DirectMapping& mapping_;
  std::vector<format::Field> fields_;  // Of the mapping's landed columns.
  std::unique_ptr<format::ParquetReader> reader_;
  size_t file_ = 0;
  int64_t position_ = 0;
};

}  // namespace tarn::task
