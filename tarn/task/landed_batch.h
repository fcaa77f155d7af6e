// LandedBatch: the landing transactions that one append takes in, and their files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/pipeline/pipeline_spec.h"

namespace tarn::task {

/// One file of a landing transaction.
struct LandedFile {
  std::string location;  // Key in the warehouse.
  Timestamp committed;   // Of its transaction.
  int64_t row_count = 0;
};

/// Transactions in order of their commits.
struct LandedBatch {
  std::vector<LandedFile> files;
  std::optional<dataset::TransactionRid> newest;  // Empty: there is nothing to take in.
  int64_t rows = 0;
  int64_t transactions_left = 0;  // Committed ones behind this batch.
  int64_t rows_left = 0;
};

/// The transactions after `consumed` (empty = from the first), cut at the limits; at least one.
/// Errors: kFailedPrecondition when the dataset was changed by anything but APPEND and retention:
/// the table has to be recreated from it. Cost: O(transactions not consumed).
Result<LandedBatch> ReadLandedBatch(dataset::DatasetStore& datasets, metastore::Database& database,
                                    const dataset::DatasetRid& landing,
                                    const std::optional<dataset::TransactionRid>& consumed,
                                    const pipeline::BatchLimits& limits);

/// True when a transaction was committed after `consumed`. Cost: one row.
Result<bool> HasLandedSince(dataset::DatasetStore& datasets, metastore::Database& database,
                            const dataset::DatasetRid& landing,
                            const std::optional<dataset::TransactionRid>& consumed);

}  // namespace tarn::task
