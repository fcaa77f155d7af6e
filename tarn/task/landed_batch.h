// LandedBatch: the landing transactions that one append takes in, and their files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/pipeline/pipeline_spec.h"

namespace tarn::task {

/// A landing dataset that a table is made of, and how far it was read.
struct LandedInput {
  dataset::DatasetRid dataset;
  std::optional<dataset::TransactionRid> consumed;  // The newest one read; empty = none.
  std::optional<dataset::TransactionRid> until{};   // The last one to read; empty = the newest.
};

/// One file of a landing transaction.
struct LandedFile {
  std::string location;  // Key in the warehouse.
  Timestamp committed;   // Of its transaction.
  int64_t row_count = 0;
  size_t input = 0;  // Whose file it is: place in the list of inputs.
};

/// Files in the order in which their transactions were committed, over all inputs.
struct LandedBatch {
  std::vector<LandedFile> files;
  std::map<size_t, dataset::TransactionRid> newest{};  // By input; those with nothing are missing.
  int64_t rows = 0;
};

/// A committed transaction that was not read yet.
struct WaitingTransaction {
  size_t input = 0;
  int64_t order = 0;  // Number in the order of commits; within an input the given order wins.
  dataset::Transaction transaction;
};

/// Transactions of several inputs, each oldest first, as one list in the order of commits. That
/// order does not depend on where earlier batches were cut, so a replay takes the same one.
std::vector<WaitingTransaction> MergeWaiting(std::vector<std::vector<WaitingTransaction>> inputs);

/// The transactions after what was consumed, over all inputs in the order of their commits, cut at
/// the limits; at least one. Looks at all inputs in one read: none that was committed before
/// another is missing.
/// Errors: kFailedPrecondition when a dataset was changed by anything but APPEND and retention:
/// the table has to be recreated from it. Cost: O(transactions not consumed).
Result<LandedBatch> ReadLandedBatch(dataset::DatasetStore& datasets, metastore::Database& database,
                                    const std::vector<LandedInput>& inputs,
                                    const pipeline::BatchLimits& limits);

/// The batch in parts, in order: `group_of` gives each input a number, and a part has files of
/// inputs of one number only.
std::vector<LandedBatch> SplitByGroup(const LandedBatch& batch,
                                      const std::vector<size_t>& group_of);

/// True when a transaction was committed after `consumed`. Cost: one row.
Result<bool> HasLandedSince(dataset::DatasetStore& datasets, metastore::Database& database,
                            const LandedInput& input);

}  // namespace tarn::task
