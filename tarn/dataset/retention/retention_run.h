// Retention runs: marking the transactions that policies select, and taking their files out of
// latest views where a policy says so.
//
// A mark is a promise to sweep after the policy's grace; until then it can be taken off. A run
// that finds a mark no longer deserved takes it off itself. Every run may be repeated, stopped or
// killed anywhere: each page of marks and each DELETE transaction is one write.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/dataset/ids.h"
#include "tarn/metastore/database.h"

namespace tarn::dataset::retention {

enum class RunMode : uint8_t { kDo, kDryRun };

struct RunOptions {
  RunMode mode = RunMode::kDo;
  size_t entries_max = 1000;        // Listed in the report; all are counted.
  std::function<bool()> stop = {};  // Asked between pages; true ends the run early.
  std::string by = "retention";
};

/// All must outlive what is run with them.
struct RetentionDeps {
  metastore::Database& database;
  DatasetStore& datasets;
  const Clock& clock;
};

enum class MarkChange : uint8_t {
  kMarked,    // Selected for the first time.
  kWaiting,   // Was marked before; still selected.
  kUnmarked,  // Was marked before; no longer selected.
};

struct MarkEntry {
  DatasetRid dataset;
  TransactionRid transaction;
  std::string policy;  // Empty for kUnmarked.
  MarkChange change = MarkChange::kMarked;
  Timestamp sweep_at{};
};

/// Files taken out of a latest view, or that would be.
struct RemovalEntry {
  DatasetRid dataset;
  std::string branch;
  std::string policy;
  int64_t files = 0;
  bool busy = false;  // The branch has an OPEN transaction: nothing was done, the next run tries.
};

struct RetentionReport {
  int64_t datasets = 0;      // That some policy applies to.
  int64_t transactions = 0;  // Looked at.
  int64_t marked = 0;
  int64_t waiting = 0;
  int64_t unmarked = 0;
  int64_t files_removed = 0;
  bool stopped = false;
  std::vector<MarkEntry> marks;  // The first entries_max.
  std::vector<RemovalEntry> removals;
};

/// Errors: those of the metastore; the first ends the run, what was done stays done.
Result<RetentionReport> RunRetention(const RetentionDeps& deps, const RunOptions& options);

/// Takes the mark off and keeps the transaction from being marked again.
/// Errors: TransactionNotFound; kFailedPrecondition when its data is already gone.
struct UnmarkRequest {
  DatasetRid dataset;
  TransactionRid transaction;
  Timestamp now{};
  std::string by;
};
Status Unmark(metastore::SqlTransaction& sql, const UnmarkRequest& request);

}  // namespace tarn::dataset::retention
