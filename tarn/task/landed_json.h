// LandedJson: landed rows as JSON text, for the dead letters of rows that a mapping rejected.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/format/field_type.h"
#include "tarn/storage/object_store.h"
#include "tarn/task/landed_batch.h"

namespace tarn::format {
class ParquetReader;
}

namespace tarn::task {

/// Reads the files of a batch forward, besides whoever else reads them. One owner thread.
/// Memory: one read batch.
class LandedJson {
 public:
  /// `fields`: the landed columns in their widest types. Store and batch outlive this.
  LandedJson(storage::ObjectStore& store, const LandedBatch& batch,
             const std::vector<format::Field>& fields);
  ~LandedJson();
  LandedJson(const LandedJson&) = delete;
  LandedJson& operator=(const LandedJson&) = delete;

  /// The columns of one row as a JSON object, written as row_writer.h does. Rows are asked for in
  /// the order of tarn_row; one may be asked for again.
  /// Errors: kInternal for a row that goes back or that the batch does not have; those of the
  /// store; kCorruption for a broken file. Cost: reads each row group with such rows once.
  Result<std::string> Read(int64_t row);

 private:
  Status MoveTo(int64_t row);
  Status OpenFile(size_t file);
  Status FindGroup(int64_t position);

  storage::ObjectStore& store_;
  const LandedBatch& batch_;
  const std::vector<format::Field>& fields_;
  std::unique_ptr<format::ParquetReader> reader_;
  size_t file_ = 0;
  int group_ = -1;          // Row group that is read; -1 before the first.
  int64_t group_end_ = 0;   // Positions in the file: end of that group,
  int64_t rows_begin_ = 0;  // and of what was read of it last.
  int64_t rows_end_ = 0;
  std::shared_ptr<arrow::RecordBatch> rows_;
  int64_t newest_ = -1;  // Row that was asked for last, and its text.
  std::string text_;
};

}  // namespace tarn::task
