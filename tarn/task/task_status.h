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

struct TaskStatus {
  std::string pipeline;
  std::string task;
  TaskKind kind = TaskKind::kLanding;
  TaskState state = TaskState::kStopped;
  TaskTotals totals;
  int64_t unapplied = 0;
  int64_t lag_rows = 0;
  double lag_seconds = 0;
  std::optional<Timestamp> data_updated_to;
  std::string last_error;

  /// "PIPELINE.TASK".
  [[nodiscard]] std::string full_name() const { return pipeline + "." + task; }
};

/// Adds a task or replaces what is kept of it.
Status WriteTaskStatus(metastore::SqlTransaction& sql, const TaskStatus& status);
/// All tasks (of one pipeline unless empty), by name.
Result<std::vector<TaskStatus>> ReadTaskStatuses(metastore::SqlTransaction& sql,
                                                 std::string_view pipeline);

Status ForgetTask(metastore::SqlTransaction& sql, std::string_view pipeline, std::string_view task);

/// A pipeline as it was applied last.
struct StoredPipeline {
  std::string name;
  std::string project;
  std::string yaml;
  std::string by;  // User id.
  Timestamp applied{};
  bool running = false;  // Started and not stopped by anyone: goes on after a restart.
};

Status WritePipeline(metastore::SqlTransaction& sql, const StoredPipeline& pipeline);
/// Errors: kNotFound naming the pipeline.
Result<StoredPipeline> ReadPipeline(metastore::SqlTransaction& sql, std::string_view name);
Result<std::vector<StoredPipeline>> ReadPipelines(metastore::SqlTransaction& sql);
/// Removes the pipeline and its tasks; datasets and tables stay. Errors: kNotFound.
Status DeletePipeline(metastore::SqlTransaction& sql, std::string_view name);
Status SetRunning(metastore::SqlTransaction& sql, std::string_view name, bool running);

}  // namespace tarn::task
