// TaskReporter: the status of one running task on its way to the metastore. Only for pipeline_run.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "tarn/base/clock.h"
#include "tarn/landing/landing_task.h"
#include "tarn/metastore/database.h"
#include "tarn/pipeline/variables.h"
#include "tarn/task/task_status.h"
#include "tarn/task/transform_task.h"

namespace tarn::task {

/// One owner thread: that of the task. Statuses are written lazily, and a crash may lose the
/// newest; counters are written by the commits that they count.
class TaskReporter {
 public:
  struct Deps {
    metastore::Database& database;
    const Clock& clock;
    const pipeline::Variables& variables;  // Never shown.
    /// Fails where another server runs the pipelines, whose statuses these would replace: see
    /// ControlDeps. Empty: there is no other.
    metastore::SqlFunction may_write{};
  };

  /// Goes on from what is kept of the task; the first report says RUNNING.
  TaskReporter(std::string pipeline, std::string task, TaskKind kind, Deps deps);

  /// From now on a status is only written while `lease` holds. One that is not written is not
  /// missed: whoever took the lease writes its own.
  void WriteUnder(metastore::SqlFunction lease);

  [[nodiscard]] std::string name() const { return status_.full_name(); }

  /// For LandingDeps::on_commit and TransformDeps::on_commit: writes the counters as they are after
  /// the commit. Any thread, while that of the task waits for the commit.
  Status OnCommit(metastore::SqlTransaction& sql, const landing::LandingProgress& counted) const;
  Status OnCommit(metastore::SqlTransaction& sql, const TransformCounts& counted) const;

  void Started();
  /// A step went well: the error of an earlier attempt is over.
  void Report(const landing::LandingProgress& progress);
  /// `updated_to`: newest source time of what had landed before the step.
  void Report(const TransformProgress& progress, std::optional<Timestamp> updated_to);
  /// An attempt failed; the next one counts on from what is committed. Returns the failure as
  /// people may see it.
  std::string Failed(const Status& failure);
  /// The task has ended in this state.
  void Ended(TaskState state);

  /// The failure as people may see it.
  [[nodiscard]] Status Shown(const Status& failure) const;

 private:
  Status WriteTotals(metastore::SqlTransaction& sql, TaskTotals totals,
                     std::optional<Timestamp> updated_to) const;
  Result<std::optional<TaskStatus>> ReadKept() const;
  void CountFrom(const TaskTotals& totals);
  void NextAttempt();
  void TakeLags(const landing::LandingProgress& progress);
  void TakeRate();
  void Write(bool now);

  Deps deps_;
  TaskStatus status_;
  TaskTotals before_;   // Of earlier runs and attempts.
  TaskTotals attempt_;  // Of the one under way.
  std::chrono::steady_clock::time_point written_{};
  std::chrono::steady_clock::time_point rated_{};  // When the rate was taken, and rows_in then.
  int64_t rated_rows_ = 0;
};

}  // namespace tarn::task
