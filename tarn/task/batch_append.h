// BatchAppend: the rows of a batch on their way through their mappings into change files and files
// of dead letters. Only for transform_task.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/base/uuid.h"
#include "tarn/engine/engine.h"
#include "tarn/format/field_type.h"
#include "tarn/lakehouse/changes_writer.h"
#include "tarn/lakehouse/table_spec.h"
#include "tarn/landing/dead_letter_file.h"
#include "tarn/storage/object_store.h"
#include "tarn/task/change_split.h"
#include "tarn/task/landed_batch.h"
#include "tarn/task/transform_counts.h"
#include "tarn/transform/mapping.h"

namespace tarn::task {

/// How the rows of an input become rows of the table.
struct InputMapping {
  std::vector<format::Field> fields;  // Landed columns in their widest types.
  transform::CompiledMapping mapping;
  bool tombstones_delete = false;
};

struct BatchAppendOptions {
  std::string task;
  lakehouse::Mode mode = lakehouse::Mode::kMerge;
  std::shared_ptr<arrow::Schema> table;       // Its user columns.
  std::vector<dataset::DatasetRid> rejected;  // Dataset of dead letters of each input.
  Timestamp now;
};

/// All outlive the append.
struct BatchAppendDeps {
  engine::Session& session;
  storage::ObjectStore& store;
  UuidGenerator& uuids;
  lakehouse::ChangesWriter& writer;
  TransformCounts& counts;
  const std::atomic<bool>& cancelled;
};

/// One owner thread. Memory: a few batches of rows; dead letters are written in pieces.
class BatchAppend {
 public:
  BatchAppend(BatchAppendOptions options, BatchAppendDeps deps);
  ~BatchAppend();
  BatchAppend(const BatchAppend&) = delete;
  BatchAppend& operator=(const BatchAppend&) = delete;

  /// Rows of files that are mapped alike, behind those of earlier calls.
  /// Errors: kCancelled; kFailedPrecondition when an expectation asks to stop; kInternal when rows
  /// come out of order; those of the store and of the engine. Nothing can be committed then.
  Status Write(const LandedBatch& part, const InputMapping& how);
  /// The objects of dead letters, one for each input that has some, and where they belong.
  Result<std::vector<landing::DeadLetterCommit>> CloseDeadLetters();
  [[nodiscard]] int64_t rejected() const { return rejected_rows_; }

 private:
  struct Part;  // What one Write works on.

  Status WriteMapped(Part& part);
  Result<bool> WriteDirectly(Part& part);
  Result<std::shared_ptr<arrow::RecordBatch>> TakeOutcome(Part& part,
                                                          const arrow::RecordBatch& mapped);
  Status WriteGood(Part& part, std::shared_ptr<arrow::RecordBatch> good);
  Status WriteChanges(Part& part, const arrow::RecordBatch& good);
  Status WriteCarried(Part& part);
  Status WriteRejected(Part& part);

  const BatchAppendOptions options_;
  BatchAppendDeps deps_;
  std::vector<std::unique_ptr<landing::DeadLetterFile>> letters_;  // By input; null without any.
  int64_t rejected_rows_ = 0;
};

}  // namespace tarn::task
