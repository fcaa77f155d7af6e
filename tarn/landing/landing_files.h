// LandingFiles: batches of rows into Parquet objects of a landing dataset.
//
// Parsing the next rows and encoding the last ones run side by side (BackgroundWriter). A batch
// whose columns differ from those of the open file starts another file: files of one dataset may
// have different columns.
#pragma once

#include <memory>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/base/uuid.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/storage/object_store.h"

namespace tarn::landing {

struct LandingFilesOptions {
  dataset::DatasetRid dataset;
};

/// One owner thread. Memory: the queued batches and one row group.
class LandingFiles {
 public:
  LandingFiles(LandingFilesOptions options, storage::ObjectStore& store, UuidGenerator& uuids);
  ~LandingFiles();
  LandingFiles(const LandingFiles&) = delete;
  LandingFiles& operator=(const LandingFiles&) = delete;

  /// Queues a batch; waits while the queue is full. Errors: of an earlier batch.
  Status Write(std::shared_ptr<arrow::RecordBatch> batch);
  /// Waits for all batches and finishes the files, which are durable then.
  Result<std::vector<dataset::StoredFile>> Close();
  /// Leaves no file behind.
  void Abort();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tarn::landing
