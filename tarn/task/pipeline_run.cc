#include "tarn/task/pipeline_run.h"

#include <algorithm>

#include <fmt/format.h>

#include "tarn/base/log.h"
#include "tarn/metastore/lease.h"

namespace tarn::task {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kReportEvery{500};
constexpr milliseconds kTransformWait{1000};  // A landing commit wakes earlier.
constexpr milliseconds kRetryFirst{100};
constexpr milliseconds kRetryMax{10'000};
constexpr int kOnceAttemptsMax = 5;
constexpr std::chrono::hours kLeaseDuration{24};

TaskTotals TotalsOf(const landing::LandingProgress& progress) {
  const landing::LandingCounts& counts = progress.counts;
  TaskTotals totals{.rows_in = counts.rows + counts.rejected + counts.skipped + counts.filtered,
                    .rows_out = counts.rows,
                    .rejected = counts.rejected,
                    .filtered = counts.filtered + counts.skipped,
                    .counts = {}};
  totals.counts["files"] = counts.files;
  totals.counts["bytes"] = counts.bytes;
  totals.counts["repeated_members"] = static_cast<int64_t>(progress.json_counters.repeated_members);
  totals.counts["renamed_columns"] = static_cast<int64_t>(progress.json_counters.renamed_columns);
  totals.counts["nulled_values"] = static_cast<int64_t>(progress.json_counters.nulled_values);
  return totals;
}

TaskTotals TotalsOf(const TransformCounts& counts) {
  TaskTotals totals{.rows_in = counts.rows_in,
                    .rows_out = counts.rows_out,
                    .rejected = counts.rejected,
                    .filtered = counts.filtered,
                    .counts = {}};
  totals.counts["noop_deletes"] = counts.noop_deletes;
  totals.counts["null_checks"] = counts.null_checks;
  totals.counts["null_casts"] = counts.null_casts;
  totals.counts["applies"] = counts.applies;
  return totals;
}

}  // namespace

struct PipelineRun::Reporter {
  Reporter(const std::string& pipeline, const std::string& task, TaskKind kind,
           metastore::Database& metastore)
      : database(metastore) {
    status.pipeline = pipeline;
    status.task = task;
    status.kind = kind;
    status.state = TaskState::kRunning;
    const Status read = database.Read([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(const std::vector<TaskStatus> known, ReadTaskStatuses(sql, pipeline));
      for (const TaskStatus& one : known) {
        if (one.task == task) {
          before = one.totals;
          status.data_updated_to = one.data_updated_to;
          status.unapplied = one.unapplied;
        }
      }
      return Status::Ok();
    });
    if (!read.ok()) {
      Log(LogLevel::kWarning, "task", read.ToString());
    }
  }

  // Keeps the numbers of a finished attempt when the next one counts from zero.
  void NextAttempt() {
    before = Sum(before, attempt);
    attempt = {};
  }

  void Write(bool now) {
    const auto time = std::chrono::steady_clock::now();
    if (!now && time - written < kReportEvery) {
      return;
    }
    written = time;
    status.totals = Sum(before, attempt);
    const Status done =
        database.Write([&](metastore::SqlTransaction& sql) { return WriteTaskStatus(sql, status); },
                       metastore::Durability::kLazy);
    if (!done.ok()) {
      Log(LogLevel::kWarning, "task", "status of " + status.full_name() + ": " + done.ToString());
    }
  }

  metastore::Database& database;
  TaskStatus status;
  TaskTotals before;   // Of earlier runs and attempts.
  TaskTotals attempt;  // Of the one under way.
  std::chrono::steady_clock::time_point written{};
};

PipelineRun::PipelineRun(pipeline::PipelineSpec spec, RunPlace place, RunMode mode,
                         const ControlDeps& deps)
    : spec_(std::move(spec)), place_(std::move(place)), mode_(mode), deps_(deps) {}

PipelineRun::~PipelineRun() {
  RequestStop();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) {
      thread.join();
    }
  }
}

void PipelineRun::Start() {
  landings_running_ = spec_.landings.size();
  for (const landing::LandingSpec& landing : spec_.landings) {
    threads_.emplace_back([this, &landing] { RunLanding(landing); });
  }
  for (const pipeline::TransformSpec& transform : spec_.transforms) {
    threads_.emplace_back([this, &transform] { RunTransform(transform); });
  }
}

void PipelineRun::RequestStop() {
  const std::lock_guard lock(mutex_);
  stop_ = true;
  for (landing::LandingTask* task : open_landings_) {
    task->Cancel();
  }
  for (TransformTask* task : open_transforms_) {
    task->Cancel();
  }
  changed_.notify_all();
}

Status PipelineRun::Wait() {
  for (std::thread& thread : threads_) {
    if (thread.joinable()) {
      thread.join();
    }
  }
  const std::lock_guard lock(mutex_);
  return first_failure_;
}

void PipelineRun::NotifyLanded() {
  const std::lock_guard lock(mutex_);
  ++landed_;
  changed_.notify_all();
}

void PipelineRun::WaitForLanded(uint64_t seen, milliseconds at_most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, at_most, [&] { return stop_ || landed_ != seen; });
}

bool PipelineRun::WaitForStop(milliseconds at_most) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, at_most, [this] { return stop_; });
}

void PipelineRun::Fail(const Status& status) {
  const std::lock_guard lock(mutex_);
  if (first_failure_.ok()) {
    first_failure_ = status;
  }
}

// A home is one process by its lock, so its owner is always the same and a restart takes over at
// once; the epoch still fences an attempt of this process that was given up.
Result<metastore::SqlFunction> PipelineRun::TakeLease(const std::string& task) {
  const std::string name = "task/" + spec_.name + "." + task;
  std::optional<metastore::Lease> lease;
  TARN_RETURN_IF_ERROR(deps_.database.Write([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(lease,
                          metastore::TryAcquireLease(sql, {.name = name,
                                                           .owner = "home",
                                                           .now = deps_.catalog.deps().clock.Now(),
                                                           .duration = kLeaseDuration}));
    return Status::Ok();
  }));
  if (!lease) {
    return Status::Unavailable(fmt::format("{} is run by another server", name));
  }
  return metastore::SqlFunction([name, epoch = lease->epoch](metastore::SqlTransaction& sql) {
    return metastore::CheckEpoch(sql, name, epoch);
  });
}

void PipelineRun::Supervise(Reporter& reporter, const std::function<Status()>& follow) {
  milliseconds wait = kRetryFirst;
  reporter.status.last_error.clear();
  reporter.Write(true);
  for (int attempt = 1;; ++attempt) {
    const Status status = follow();
    bool stopping = false;
    {
      const std::lock_guard lock(mutex_);
      stopping = stop_;
    }
    if (status.ok() || stopping || status.code() == ErrorCode::kCancelled) {
      reporter.status.state = TaskState::kStopped;
      break;
    }
    reporter.status.last_error = status.ToString();
    const bool passes = IsRetryable(status.code()) || status.code() == ErrorCode::kConflict;
    if (!passes || (mode_ == RunMode::kOnce && attempt >= kOnceAttemptsMax)) {
      Log(LogLevel::kError, "task", reporter.status.full_name() + ": " + status.ToString());
      reporter.status.state = TaskState::kError;
      Fail(status.WithContext(reporter.status.full_name()));
      break;
    }
    Log(LogLevel::kWarning, "task",
        fmt::format("{}: tries again in {} ms: {}", reporter.status.full_name(), wait.count(),
                    status.ToString()));
    reporter.NextAttempt();
    reporter.Write(true);
    WaitForStop(wait);
    wait = std::min(wait * 2, kRetryMax);
  }
  reporter.Write(true);
}

void PipelineRun::RunLanding(const landing::LandingSpec& spec) {
  Reporter reporter(spec_.name, spec.name, TaskKind::kLanding, deps_.database);
  Supervise(reporter, [&] { return FollowLanding(spec, reporter); });
  const std::lock_guard lock(mutex_);
  --landings_running_;
  ++landed_;
  changed_.notify_all();
}

Status PipelineRun::FollowLanding(const landing::LandingSpec& spec, Reporter& reporter) {
  TARN_ASSIGN_OR_RETURN(metastore::SqlFunction fence, TakeLease(spec.name));
  const catalog::CatalogDeps& deps = deps_.catalog.deps();
  TARN_ASSIGN_OR_RETURN(
      const std::unique_ptr<landing::LandingTask> task,
      landing::LandingTask::Open(spec, place_.datasets.at(spec.name),
                                 {deps.database, deps_.datasets, deps.warehouse, deps.uuids,
                                  deps.clock, deps_.budget, std::move(fence)}));
  {
    const std::lock_guard lock(mutex_);
    open_landings_.push_back(task.get());
    if (stop_) {
      task->Cancel();
    }
  }
  Status status;
  while (status.ok()) {
    const Result<landing::LandingProgress> progress = task->Step();
    if (!progress.ok()) {
      status = progress.status();
      break;
    }
    if (progress->restarted) {
      reporter.NextAttempt();
    }
    reporter.attempt = TotalsOf(*progress);
    reporter.Write(progress->caught_up);
    if (progress->commits > 0) {
      NotifyLanded();
    }
    if (progress->caught_up && (mode_ == RunMode::kOnce || WaitForStop(spec.poll))) {
      break;
    }
  }
  const std::lock_guard lock(mutex_);
  std::erase(open_landings_, task.get());
  return status;
}

void PipelineRun::RunTransform(const pipeline::TransformSpec& spec) {
  Reporter reporter(spec_.name, spec.name, TaskKind::kTransform, deps_.database);
  Supervise(reporter, [&] { return FollowTransform(spec, reporter); });
}

// One step; true when the task has nothing more to do for ever.
Result<bool> PipelineRun::StepTransform(TransformTask& task, Reporter& reporter) {
  uint64_t seen = 0;
  bool landings_ended = false;
  {
    const std::lock_guard lock(mutex_);
    seen = landed_;
    landings_ended = landings_running_ == 0;
  }
  const auto report = [&](const TransformProgress& progress) {
    reporter.attempt = TotalsOf(progress.counts);
    reporter.status.unapplied = progress.unapplied;
    reporter.status.lag_rows = progress.lag_rows;
    if (progress.data_updated_to != Timestamp{}) {
      reporter.status.data_updated_to = progress.data_updated_to;
    }
    reporter.Write(progress.caught_up);
  };
  TARN_ASSIGN_OR_RETURN(const TransformProgress progress, task.Step());
  report(progress);
  if (!progress.caught_up) {
    return false;
  }
  if (mode_ == RunMode::kOnce && landings_ended) {
    TARN_ASSIGN_OR_RETURN(const TransformProgress applied, task.ApplyNow());
    report(applied);
    return true;
  }
  WaitForLanded(seen, kTransformWait);
  const std::lock_guard lock(mutex_);
  return stop_;
}

Status PipelineRun::FollowTransform(const pipeline::TransformSpec& spec, Reporter& reporter) {
  TARN_ASSIGN_OR_RETURN(metastore::SqlFunction fence, TakeLease(spec.name));
  std::vector<TransformInput> inputs;
  for (const std::string& from : spec.from) {
    const landing::LandingDatasets& datasets = place_.datasets.at(from);
    inputs.push_back({.landing = *spec_.FindLanding(from),
                      .dataset = datasets.landing,
                      .rejected = datasets.rejected});
  }
  TARN_ASSIGN_OR_RETURN(
      const std::unique_ptr<TransformTask> task,
      TransformTask::Open(
          spec, std::move(inputs), {.project = place_.project, .by = place_.by},
          {deps_.database, deps_.datasets, deps_.catalog, deps_.engine, std::move(fence)}));
  {
    const std::lock_guard lock(mutex_);
    open_transforms_.push_back(task.get());
    if (stop_) {
      task->Cancel();
    }
  }
  Status status;
  while (status.ok()) {
    const Result<bool> ended = StepTransform(*task, reporter);
    if (!ended.ok()) {
      status = ended.status();
    } else if (*ended) {
      break;
    }
  }
  {
    const std::lock_guard lock(mutex_);
    std::erase(open_transforms_, task.get());
  }
  const bool apply = mode_ == RunMode::kFollow && spec.table.at_stop == lakehouse::AtStop::kApply;
  if (apply && (status.ok() || status.code() == ErrorCode::kCancelled)) {
    TARN_RETURN_IF_ERROR(task->ApplyNow());
  }
  return status;
}

}  // namespace tarn::task
