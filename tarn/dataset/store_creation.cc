// DatasetStore: a dataset with its name in the tree.
#include "tarn/dataset/dataset_store.h"
#include "tarn/dataset/in_sql.h"
#include "tarn/tree/tree.h"

namespace tarn::dataset {

using metastore::Durability;
using metastore::SqlTransaction;

Result<Dataset> DatasetStore::CreateDataset(SqlTransaction& sql,
                                            const CreateDatasetOptions& options) {
  const DatasetRid rid{.uuid = uuids_.NextV4()};
  tree::Tree tree(uuids_, clock_);
  TARN_RETURN_IF_ERROR(tree.Create(sql, {.rid = rid.ToRid(),
                                         .parent = options.parent_folder,
                                         .name = options.name,
                                         .type = tree::NodeType::kDataset,
                                         .description = {},
                                         .by = options.by}));
  return InitializeDataset(sql, rid, options.base_uri, options.by);
}

Result<Dataset> DatasetStore::CreateDataset(const CreateDatasetOptions& options) {
  return InWrite(database_, Durability::kDurable,
                 [&](SqlTransaction& sql) { return CreateDataset(sql, options); });
}

}  // namespace tarn::dataset
