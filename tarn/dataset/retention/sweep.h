// Sweeping: removing bytes that no readable view needs.
//
// First every marked transaction whose grace is over is condemned: from then on its view is
// refused, and nothing can be started from it. What is reachable can only shrink after that, so the
// objects of a dataset that no kept view, OPEN transaction or other owner names may go, whoever
// reads and writes meanwhile. That covers what retention took, aborted transactions, uploads that
// were overwritten or never registered, and deleted datasets.
//
// Marks nothing in memory but a hash per live file, a bounded number at a time. A sweep may be
// stopped or killed anywhere and run again.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/dataset/ids.h"
#include "tarn/dataset/retention/retention_run.h"
#include "tarn/storage/object_store.h"

namespace tarn::dataset::retention {

/// Names the objects below a dataset's folder that something outside of this room needs, e.g. a
/// table that shares its files. A failure ends the sweep before anything of the dataset is removed.
using OtherOwner =
    std::function<Status(const DatasetRid&, const std::function<void(std::string_view key)>&)>;

struct SweepOptions {
  RunMode mode = RunMode::kDo;
  /// Younger objects stay: an upload may be about to be registered. At least an hour.
  std::chrono::milliseconds age_min = std::chrono::hours(24);
  size_t hashes_max = size_t{1} << 22;  // Live files held at once; 8 bytes each. From 1024.
  size_t entries_max = 1000;            // Listed in the report; all are counted.
  std::function<bool()> stop = {};      // Asked between pages; true ends the sweep early.
  std::vector<OtherOwner> other_owners = {};
};

struct SweepEntry {
  std::string key;
  int64_t size_bytes = 0;
};

struct SweepReport {
  int64_t condemned = 0;  // Transactions whose grace was over.
  int64_t unmarked = 0;   // Of those, ones that a branch or tag stands on again.
  int64_t datasets = 0;
  int64_t datasets_elsewhere = 0;  // Not looked at: their files are in another store.
  int64_t objects = 0;             // Looked at.
  int64_t too_young = 0;           // Of those not needed.
  int64_t removed = 0;             // Or that would be.
  int64_t removed_bytes = 0;
  bool stopped = false;
  std::vector<SweepEntry> entries;  // Of `removed`, the first entries_max.
};

/// Errors: those of the metastore and of `store`; the first ends the sweep.
Result<SweepReport> RunSweep(const RetentionDeps& deps, storage::ObjectStore& store,
                             const SweepOptions& options);

}  // namespace tarn::dataset::retention
