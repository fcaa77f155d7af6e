// TransformTask: from landing datasets to one target table: reads what landed, maps it, appends it
// as changes, and applies changes when they are due.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tarn/base/status.h"
#include "tarn/catalog/catalog.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/engine/engine.h"
#include "tarn/lakehouse/target_table.h"
#include "tarn/pipeline/pipeline_spec.h"
#include "tarn/task/landed_batch.h"
#include "tarn/task/transform_counts.h"
#include "tarn/transform/outcome.h"

namespace tarn::task {

/// Reason (Status::reason) of a failure that asks for a decision: a change of the source's columns
/// whose policy is suspend_table.
inline constexpr std::string_view kTableSuspended = "TableSuspended";

/// A landing task that the transform reads, and its datasets.
struct TransformInput {
  landing::LandingSpec landing;
  dataset::DatasetRid dataset;
  dataset::DatasetRid rejected;
  // Of a reload of a range: what lies before it counts as read, and what lies behind is left.
  std::optional<dataset::TransactionRid> after{};
  std::optional<dataset::TransactionRid> until{};
};

struct TransformDeps {
  metastore::Database& database;
  dataset::DatasetStore& datasets;
  catalog::Catalog& catalog;
  engine::Engine& engine;
  /// Checks in a commit's SQL transaction that the task may still commit; may be empty.
  metastore::SqlFunction fence;
  /// Called in the SQL transaction of each append and apply with what is counted once it is done.
  /// Its failure is that of the commit. May be empty.
  std::function<Status(metastore::SqlTransaction&, const TransformCounts&)> on_commit{};
};

struct TransformProgress {
  TransformCounts counts;
  int64_t unapplied = 0;
  Timestamp data_updated_to{};  // Commit time of the newest landing transaction read.
  bool caught_up = false;
};

/// How the landing tasks that a transform reads stand to their sources.
enum class Sources : uint8_t {
  kCaughtUp,
  kBehind,  // Much more waits there than has landed.
};

/// One owner thread.
class TransformTask {
 public:
  /// Errors: those of TargetTable::Open.
  static Result<std::unique_ptr<TransformTask>> Open(pipeline::TransformSpec spec,
                                                     std::vector<TransformInput> inputs,
                                                     lakehouse::TargetPlace place,
                                                     TransformDeps deps);
  ~TransformTask();
  TransformTask(const TransformTask&) = delete;
  TransformTask& operator=(const TransformTask&) = delete;

  /// Appends at most one batch, of all inputs in the order in which their transactions were
  /// committed, then applies if that is due; while something is behind, later. Errors: with the
  /// reason kTableSuspended, as schema_evolution says; no row of the batch is committed then.
  Result<TransformProgress> Step(Sources sources = Sources::kCaughtUp);
  /// Applies everything that is unapplied.
  Result<TransformProgress> ApplyNow();
  /// Stops a running query soon; later calls fail with kCancelled. Threads: any.
  void Cancel();

  [[nodiscard]] lakehouse::TargetTable& table();

 private:
  struct State;
  explicit TransformTask(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tarn::task
