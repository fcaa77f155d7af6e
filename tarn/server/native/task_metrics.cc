#include "tarn/server/native/task_metrics.h"

#include <chrono>

#include "tarn/base/log.h"

namespace tarn::server::native {

namespace {

using task::TaskState;
using task::TaskStatus;

constexpr TaskState kStates[] = {TaskState::kQueued, TaskState::kRunning, TaskState::kError,
                                 TaskState::kStopped, TaskState::kSuspended};

double SecondsOf(Timestamp time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

double CountOf(const task::TaskTotals& totals, const char* name) {
  const auto found = totals.counts.find(name);
  return found == totals.counts.end() ? 0 : static_cast<double>(found->second);
}

// The samples of one task.
class TaskSamples {
 public:
  TaskSamples(const TaskStatus& task, std::vector<MetricSample>& samples)
      : labels_{{"pipeline", task.pipeline},
                {"task", task.task},
                {"kind", std::string(task::TaskKindName(task.kind))}},
        samples_(samples) {}

  void Add(const char* name, const char* help, double value, const Labels& more = {}) {
    Labels labels = labels_;
    labels.insert(labels.end(), more.begin(), more.end());
    const std::string full = std::string("tarn_task_") + name;
    samples_.push_back({.name = full,
                        .type = full.ends_with("_total") ? "counter" : "gauge",
                        .help = help,
                        .labels = std::move(labels),
                        .value = value});
  }
  void AddTime(const char* name, const char* help, const std::optional<Timestamp>& time) {
    if (time) {
      Add(name, help, SecondsOf(*time));
    }
  }

 private:
  const Labels labels_;
  std::vector<MetricSample>& samples_;
};

void AddTask(const TaskStatus& task, Timestamp now, std::vector<MetricSample>& samples) {
  TaskSamples add(task, samples);
  const auto count = [](int64_t value) { return static_cast<double>(value); };
  add.Add("rows_in_total", "Rows that the task has read.", count(task.totals.rows_in));
  add.Add("rows_out_total", "Rows that the task has written.", count(task.totals.rows_out));
  add.Add("rows_rejected_total", "Records and rows that became dead letters.",
          count(task.totals.rejected));
  add.Add("rows_filtered_total", "Rows left out by filters.", count(task.totals.filtered));
  add.Add("unapplied_rows", "Changes that views still merge while reading.", count(task.unapplied));
  add.Add("lag_rows", "Rows that wait for the task.", count(task.lag_rows));
  add.Add("lag_bytes", "Bytes that wait for the task.", count(task.lag_bytes));
  add.Add("lag_seconds", "Since when rows wait for the task; 0 when none does.",
          task.LagSeconds(now));
  add.Add("rows_per_second", "Rows that the task has read, over the last seconds.",
          task.rows_per_second);
  for (const task::TaskPartition& one : task.partitions) {
    const Labels where = {{"topic", one.topic}, {"partition", std::to_string(one.partition)}};
    add.Add("partition_lag_rows", "Messages that wait, of the partitions furthest behind.",
            count(one.lag_rows), where);
    add.Add("partition_lag_seconds", "Since the newest message read; 0 when none waits.",
            one.LagSeconds(now), where);
    add.Add("partition_next_offset", "Offset that is read next.", count(one.next_offset), where);
  }
  for (const TaskState state : kStates) {
    add.Add("state", "1 for the state that the task is in.", task.state == state ? 1 : 0,
            {{"state", std::string(task::TaskStateName(state))}});
  }
  if (task.kind == task::TaskKind::kTransform) {
    add.Add("applies_total", "Applies that the task has committed.",
            CountOf(task.totals, "applies"));
  } else {
    add.Add("bytes_total", "Bytes that the task has read.", CountOf(task.totals, "bytes"));
  }
  for (const auto& [name, value] : task.totals.counts) {
    if (name != "applies" && name != "bytes") {
      add.Add("events_total", "What else the task has counted.", count(value), {{"event", name}});
    }
  }
  add.Add("warnings", "Warnings that the status of the task shows.",
          static_cast<double>(task.warnings.size()));
  add.AddTime("last_commit_timestamp_seconds", "Time of the newest commit.", task.last_commit);
  add.AddTime("last_apply_timestamp_seconds", "Time of the newest apply.", task.last_apply);
  add.AddTime("data_updated_to_timestamp_seconds", "Newest source time that is taken in.",
              task.data_updated_to);
}

}  // namespace

std::vector<MetricSample> CollectTaskMetrics(task::Control& control, Timestamp now) {
  std::vector<MetricSample> samples;
  const Result<std::vector<TaskStatus>> tasks = control.ReadStatus();
  if (!tasks.ok()) {
    Log(LogLevel::kWarning, "metrics", "numbers of tasks: " + tasks.status().ToString());
    return samples;
  }
  for (const TaskStatus& task : *tasks) {
    AddTask(task, now, samples);
  }
  return samples;
}

}  // namespace tarn::server::native
