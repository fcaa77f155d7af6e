// LandingTask: from a source to a landing dataset, exactly once.
//
// Each commit is one SQL transaction: the APPEND transaction of the dataset with its files, the
// dead letters, the ledger of files or the offsets of topics, and the columns found so far. A crash
// at any point leaves the whole batch or nothing; on start the task goes on from what the newest
// commit recorded.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tarn/base/memory_budget.h"
#include "tarn/base/status.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/landing/landing_rows.h"
#include "tarn/landing/landing_spec.h"
#include "tarn/metastore/database.h"
#include "tarn/storage/object_store.h"

namespace tarn::landing {

/// Datasets of a task; made by whoever prepares it.
struct LandingDatasets {
  dataset::DatasetRid landing;
  dataset::DatasetRid rejected;
  std::string by;  // User id, for what the task commits.
};

struct LandingProgress;

struct LandingDeps {
  metastore::Database& database;
  dataset::DatasetStore& datasets;
  storage::ObjectStore& warehouse;
  UuidGenerator& uuids;
  const Clock& clock;
  MemoryBudget& budget;
  /// Checks in the commit's SQL transaction that the task may still commit; may be empty.
  metastore::SqlFunction fence;
  /// Whether a task over topics ends where they end now. Files are read until there is nothing
  /// more.
  source::kafka::ReadUntil until = source::kafka::ReadUntil::kStopped;
  /// Finds or makes the dataset of one topic, for a task that has one for each.
  std::function<Result<LandingDatasets>(const std::string& name)> topic_datasets{};
  /// Called in the SQL transaction of each commit with what is counted once it is done: `counts`,
  /// `json_counters`, `bad_names`, `newest_event` and `restarted`, no more. Its failure is that of
  /// the commit. May be empty.
  std::function<Status(metastore::SqlTransaction&, const LandingProgress&)> on_commit{};
};

/// What people should hear of, e.g. {"overwritten", "a/b.json"}.
struct LandingWarning {
  std::string code;
  std::string object;  // Name of the file.
};

/// What one call of RunUntilIdle or Step did.
struct LandingProgress {
  LandingCounts counts;  // Since the task was opened.
  format::JsonCounters json_counters;
  std::optional<dataset::TransactionRid> newest;  // Of the last commit of this call.
  int64_t commits = 0;                            // Of this call.
  bool caught_up = false;                         // Nothing more was there.
  bool restarted = false;  // A file spoiled the batch; the counts start anew.
  /// Newest hdr__event_timestamp that was committed since the task was opened.
  std::optional<Timestamp> newest_event;
  uint64_t waiting_bytes = 0;            // Found in the source and not read yet.
  std::vector<LandingWarning> warnings;  // Of this call.
  int64_t bad_names = 0;  // Files left out for their names, since the task was opened.
  /// How far the partitions of topics are; empty in most calls, and over files.
  std::vector<source::kafka::PartitionLag> lags;
  std::optional<int64_t> lag_rows;  // Over topics: messages that are not landed.
  /// Over topics: time of the newest message taken in of the partition that is furthest behind.
  std::optional<Timestamp> behind_since;
  /// Over topics: what waits at the brokers takes seconds to take in, at the present pace.
  bool behind = false;
};

class LandingRun;

/// One owner thread; Cancel from any thread.
class LandingTask {
 public:
  /// Reads the state that earlier commits left, or records the first start.
  /// Errors: kNotFound when the source is not there; kInvalidArgument for bad patterns; over topics
  /// those of KafkaSource::Open.
  static Result<std::unique_ptr<LandingTask>> Open(LandingSpec spec, LandingDatasets datasets,
                                                   LandingDeps deps);
  ~LandingTask();
  LandingTask(const LandingTask&) = delete;
  LandingTask& operator=(const LandingTask&) = delete;

  /// Reads and commits at most one batch; over topics a batch may take several calls, each of at
  /// most a second or so. Errors: kCancelled; those of the source, the store and
  /// the metastore: open the task anew and go on. kFailedPrecondition with on_bad_record: stop.
  Result<LandingProgress> Step();
  /// Steps until the source has nothing more.
  Result<LandingProgress> RunUntilIdle();
  /// Makes a running Step end soon.
  void Cancel();

 private:
  LandingTask(std::string name, std::unique_ptr<LandingRun> run);
  const std::string name_;
  std::unique_ptr<LandingRun> run_;
};

}  // namespace tarn::landing
