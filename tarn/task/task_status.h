// TaskStatus: what a user sees of a task, and the rows that keep it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"
#include "tarn/metastore/database.h"
#include "tarn/pipeline/variables.h"

namespace tarn::task {

std::vector<metastore::Migration> Migrations();

enum class TaskKind : uint8_t { kLanding = 0, kTransform = 1 };
/// Values are stored; never renumber.
enum class TaskState : uint8_t {
  kQueued = 0,
  kRunning = 1,
  kError = 2,
  kStopped = 3,
  kSuspended = 4,
};

/// "landing", "transform".
std::string_view TaskKindName(TaskKind kind);
/// "QUEUED", "RUNNING", "ERROR", "STOPPED", "SUSPENDED".
std::string_view TaskStateName(TaskState state);

/// Numbers over the life of a task. Value.
struct TaskTotals {
  int64_t rows_in = 0;
  int64_t rows_out = 0;
  int64_t rejected = 0;
  int64_t filtered = 0;
  std::map<std::string, int64_t> counts;  // noop_deletes, repeated_members, null_checks, …
  friend bool operator==(const TaskTotals&, const TaskTotals&) = default;
};
TaskTotals Sum(const TaskTotals& a, const TaskTotals& b);

/// Something that a person should look at, e.g. {"overwritten", "/in/a.json", when}. Value.
struct TaskWarning {
  std::string code;
  std::string object;
  Timestamp at{};
  friend bool operator==(const TaskWarning&, const TaskWarning&) = default;
};
inline constexpr size_t kWarningsMax = 20;  // The newest of a task.

/// How far a landing task is in one partition of a topic. Value.
struct TaskPartition {
  std::string topic;
  int32_t partition = 0;
  int64_t next_offset = 0;          // Read next.
  int64_t end_offset = 0;           // Of what the broker has, as far as known.
  int64_t lag_rows = 0;             // Messages between them, holes included.
  std::optional<Timestamp> newest;  // Time of the newest message that was read.
  std::string error;                // Why it is not read at the moment.
  friend bool operator==(const TaskPartition&, const TaskPartition&) = default;

  /// Seconds since the newest message; 0 when nothing waits.
  [[nodiscard]] double LagSeconds(Timestamp now) const;
};
inline constexpr size_t kPartitionsMax = 200;  // Those furthest behind.

struct TaskStatus {
  std::string pipeline;
  std::string task;
  TaskKind kind = TaskKind::kLanding;
  TaskState state = TaskState::kStopped;
  bool wanted = false;  // Started and not stopped by anyone: goes on after a restart. SetWanted.
  TaskTotals totals;
  int64_t unapplied = 0;
  int64_t lag_rows = 0;                   // Of a landing task estimated from the bytes that wait.
  int64_t lag_bytes = 0;                  // Of a task over topics estimated from the rows.
  std::optional<Timestamp> behind_since;  // Since when something waits for the task.
  std::optional<Timestamp> data_updated_to;  // Newest source time that it has taken in.
  std::optional<Timestamp> last_commit;
  std::optional<Timestamp> last_apply;
  std::vector<TaskWarning> warnings;      // Oldest first.
  std::vector<TaskPartition> partitions;  // Furthest behind first.
  double rows_per_second = 0;             // Read, over the last seconds.
  std::string last_error;

  /// "PIPELINE.TASK".
  [[nodiscard]] std::string full_name() const { return pipeline + "." + task; }
  /// Seconds since something waits; 0 when nothing does.
  [[nodiscard]] double LagSeconds(Timestamp now) const;
  /// Keeps the newest kWarningsMax; one of an object that is there already only moves its time.
  void Warn(TaskWarning warning);
};

/// Adds a task or replaces what is kept of it, but for `wanted` of one that is there.
Status WriteTaskStatus(metastore::SqlTransaction& sql, const TaskStatus& status);
/// Only the numbers of a task that is there, and the newest source time unless there is none: for
/// the SQL transaction of the commit that they count.
Status WriteTaskTotals(metastore::SqlTransaction& sql, const TaskStatus& status);
/// All tasks (of one pipeline unless empty), by name.
Result<std::vector<TaskStatus>> ReadTaskStatuses(metastore::SqlTransaction& sql,
                                                 std::string_view pipeline);

/// Marks a task (all of the pipeline when `task` is empty) as started or stopped by a person.
Status SetWanted(metastore::SqlTransaction& sql, std::string_view pipeline, std::string_view task,
                 bool wanted);
/// QUEUED, without the error of an earlier run.
Status QueueTask(metastore::SqlTransaction& sql, std::string_view pipeline, std::string_view task);
Status ForgetTask(metastore::SqlTransaction& sql, std::string_view pipeline, std::string_view task);
/// For a server that starts: tasks that are QUEUED or RUNNING though nobody wants them were in a
/// run that the end of the last server cut short; they are STOPPED, and say so.
Status StopAbandonedTasks(metastore::SqlTransaction& sql);
/// ERROR with its reason, for the wanted tasks of a pipeline that could not be started.
Status FailWantedTasks(metastore::SqlTransaction& sql, std::string_view pipeline,
                       const std::string& error);

/// A pipeline as it was applied last.
struct StoredPipeline {
  std::string name;
  std::string project;
  std::string yaml;
  std::string by;  // User id.
  Timestamp applied{};
  pipeline::Variables variables;  // What the client sent for `${NAME}`; secret.
  bool running = false;           // Some task is wanted. Not written by WritePipeline.
};

Status WritePipeline(metastore::SqlTransaction& sql, const StoredPipeline& pipeline);
/// Errors: kNotFound naming the pipeline.
Result<StoredPipeline> ReadPipeline(metastore::SqlTransaction& sql, std::string_view name);
Result<std::vector<StoredPipeline>> ReadPipelines(metastore::SqlTransaction& sql);
/// Removes the pipeline and its tasks; datasets and tables stay. Errors: kNotFound.
Status DeletePipeline(metastore::SqlTransaction& sql, std::string_view name);

}  // namespace tarn::task
