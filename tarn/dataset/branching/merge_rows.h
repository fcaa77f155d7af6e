// Writing the rows of a merge: puts and removals in one OPEN UPDATE transaction. Private to the
// room.
#pragma once

#include <span>
#include <string>

#include "tarn/dataset/ids.h"
#include "tarn/dataset/upload.h"
#include "tarn/metastore/database.h"

namespace tarn::dataset {

struct MergeRows {
  std::span<const StoredFile> puts;
  std::span<const std::string> removals;  // The view has them; paths of no put.
  Timestamp now{};
};

/// Errors: TransactionNotOpen; InvalidTransactionType in a DELETE.
Status WriteMergeRows(metastore::SqlTransaction& sql, const DatasetRid& dataset,
                      const TransactionRid& rid, const MergeRows& rows);

}  // namespace tarn::dataset
