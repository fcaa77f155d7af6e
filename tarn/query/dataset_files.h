// DatasetFiles: the files of a dataset's view that queries read.
#pragma once

#include <string>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/query/dataset_relation.h"
#include "tarn/storage/object_store.h"

namespace tarn::query {

/// A file to read, by its key in the store.
struct StoreFile {
  std::string path;
  std::string key;
  bool empty = false;
};

struct DatasetFiles {
  dataset::FileView view;
  std::vector<StoreFile> files;  // In path order, without hidden ones ('_' or '.' in front).
};

/// Errors: kInvalidArgument for a snapshot id; kUnimplemented for files outside of the store;
/// kNotFound for the branch or transaction. Cost: O(files).
Result<DatasetFiles> ListDatasetFiles(dataset::DatasetStore& datasets, storage::ObjectStore& store,
                                      const DatasetRelation& relation);

}  // namespace tarn::query
