// ChangesWriter: change rows into files of the Changes partition, or in append mode of the table.
//
// Adds the header columns: key hash, operation, times, and in merge mode the change identifier that
// fixes each row's place in the order of changes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"
#include "tarn/lakehouse/change_batch.h"
#include "tarn/lakehouse/change_identifier.h"
#include "tarn/lakehouse/table_spec.h"
#include "tarn/lakehouse/table_writer.h"

namespace tarn::lakehouse {

struct ChangesWriterOptions {
  const TableSpec* spec = nullptr;                   // Outlives the writer.
  const iceberg::TableMetadata* metadata = nullptr;  // Outlives the writer.
  ChangeIdentifier last;                             // Numbering goes on after it.
  Timestamp now;                                     // hdr__inserted_timestamp.
};

/// What was written, to be committed.
struct WrittenChanges {
  std::vector<iceberg::DataFile> files;
  ChangeIdentifier last;
  int64_t row_count = 0;
};

/// One owner thread.
class ChangesWriter {
 public:
  ChangesWriter(ChangesWriterOptions options, TableWriterDeps deps);

  /// Errors: kInvalidArgument naming a column that the table does not have.
  Status Write(const ChangeBatch& batch);
  Result<WrittenChanges> Close();

 private:
  Result<std::shared_ptr<arrow::RecordBatch>> MergeRows(const ChangeBatch& batch);
  Result<std::shared_ptr<arrow::RecordBatch>> AppendRows(const ChangeBatch& batch) const;
  Result<std::shared_ptr<arrow::Array>> MakeIdentifiers(const ChangeBatch& batch);
  Result<std::shared_ptr<arrow::Array>> MakeKeyHashes(const arrow::RecordBatch& rows) const;

  ChangesWriterOptions options_;
  ChangeNumbering numbering_;
  TableWriter writer_;
};

}  // namespace tarn::lakehouse
