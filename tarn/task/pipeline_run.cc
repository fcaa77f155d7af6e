#include "tarn/task/pipeline_run.h"

#include <algorithm>

#include <fmt/format.h>

#include "tarn/base/log.h"
#include "tarn/base/thread_name.h"
#include "tarn/task/task_lease.h"

namespace tarn::task {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTransformWait{1000};  // A landing commit wakes earlier.
constexpr milliseconds kSourceLookEvery{5000};
constexpr milliseconds kRetryFirst{100};
constexpr milliseconds kRetryMax{10'000};
constexpr int kOnceAttemptsMax = 5;

using DatasetList = std::vector<dataset::DatasetRid>;

// The check of a lease, and that what is written to is not in the trash.
metastore::SqlFunction FenceOf(metastore::SqlFunction lease,
                               std::shared_ptr<const DatasetList> written) {
  return [lease = std::move(lease),
          written = std::move(written)](metastore::SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(lease(sql));
    for (const dataset::DatasetRid& dataset : *written) {
      TARN_RETURN_IF_ERROR(CheckNotInTrash(sql, dataset));
    }
    return Status::Ok();
  };
}

}  // namespace

Status RunsElsewhere() {
  return Status::Unavailable("another server runs the pipelines now: ask that one");
}

struct PipelineRun::TaskRun {
  std::thread thread;
  // Guarded by the mutex of the run.
  bool stop = false;
  bool ended = false;
  landing::LandingTask* landing = nullptr;  // While it is open.
  TransformTask* transform = nullptr;
  // Of the task's thread.
  bool was_open = false;  // Its source was there.

  void Cancel() const {
    if (landing != nullptr) {
      landing->Cancel();
    }
    if (transform != nullptr) {
      transform->Cancel();
    }
  }
};

PipelineRun::PipelineRun(pipeline::PipelineSpec spec, RunPlace place, RunMode mode,
                         pipeline::Variables variables, const ControlDeps& deps)
    : spec_(std::move(spec)),
      place_(std::move(place)),
      mode_(mode),
      variables_(std::move(variables)),
      deps_(deps) {}

PipelineRun::~PipelineRun() {
  RequestStop();
  Wait();
}

TaskReporter::Deps PipelineRun::ReporterDeps() const {
  return {deps_.database, deps_.catalog.deps().clock, variables_, deps_.may_run};
}

bool PipelineRun::IsStopping(const TaskRun& run) const { return stop_ || run.stop; }

void PipelineRun::Start(const std::vector<std::string>& tasks, bool patient) {
  ReadLandedTimes();
  const auto is_named = [&](const std::string& name) {
    return std::find(tasks.begin(), tasks.end(), name) != tasks.end() && !IsRunning(name);
  };
  std::vector<const landing::LandingSpec*> landings;
  for (const landing::LandingSpec& landing : spec_.landings) {
    if (is_named(landing.name)) {
      landings.push_back(&landing);
    }
  }
  std::vector<const pipeline::TransformSpec*> transforms;
  for (const pipeline::TransformSpec& transform : spec_.transforms) {
    if (is_named(transform.name)) {
      transforms.push_back(&transform);
    }
  }
  const auto renew = [&](const std::string& name) -> TaskRun& {
    StopTask(name);  // It has ended: only its thread is joined.
    auto run = std::make_unique<TaskRun>();
    run->was_open = patient;
    const std::lock_guard lock(mutex_);
    return *(tasks_[name] = std::move(run));
  };
  {
    const std::lock_guard lock(mutex_);
    landings_running_ += landings.size();
  }
  for (const landing::LandingSpec* landing : landings) {
    TaskRun& run = renew(landing->name);
    run.thread = std::thread([this, landing, &run] {
      NameThisThread("land " + landing->name);
      RunLanding(*landing, run);
    });
  }
  for (const pipeline::TransformSpec* transform : transforms) {
    TaskRun& run = renew(transform->name);
    run.thread = std::thread([this, transform, &run] {
      NameThisThread("into " + transform->name);
      RunTransform(*transform, run);
    });
  }
}

bool PipelineRun::IsRunning(const std::string& task) {
  const std::lock_guard lock(mutex_);
  const auto found = tasks_.find(task);
  return found != tasks_.end() && !found->second->ended;
}

void PipelineRun::StopTask(const std::string& task) {
  std::unique_ptr<TaskRun> run;
  {
    const std::lock_guard lock(mutex_);
    const auto found = tasks_.find(task);
    if (found == tasks_.end()) {
      return;
    }
    found->second->stop = true;
    found->second->Cancel();
    changed_.notify_all();
    run = std::move(found->second);
    tasks_.erase(found);
  }
  run->thread.join();
}

void PipelineRun::RequestStop() {
  const std::lock_guard lock(mutex_);
  stop_ = true;
  for (const auto& [name, run] : tasks_) {
    run->Cancel();
  }
  changed_.notify_all();
}

bool PipelineRun::was_stopped() {
  const std::lock_guard lock(mutex_);
  return stop_;
}

RunOutcome PipelineRun::Wait() {
  std::vector<TaskRun*> runs;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, run] : tasks_) {
      runs.push_back(run.get());
    }
  }
  for (TaskRun* run : runs) {
    if (run->thread.joinable()) {
      run->thread.join();
    }
  }
  const std::lock_guard lock(mutex_);
  return first_failure_;
}

void PipelineRun::NoteLanded(const std::string& landing, const landing::LandingProgress& progress) {
  const std::lock_guard lock(mutex_);
  ++landed_;
  if (progress.newest_event) {
    Timestamp& until = landed_until_[landing];
    until = std::max(until, *progress.newest_event);
  }
  changed_.notify_all();
}

void PipelineRun::NoteBehind(const std::string& landing, bool behind) {
  const std::lock_guard lock(mutex_);
  if (behind) {
    behind_.insert(landing);
  } else {
    behind_.erase(landing);
  }
}

Sources PipelineRun::SourcesOf(const pipeline::TransformSpec& spec) {
  const std::lock_guard lock(mutex_);
  const bool behind = std::any_of(spec.from.begin(), spec.from.end(), [&](const std::string& from) {
    const std::optional<pipeline::LandingInput> input = spec_.FindInput(from);
    return behind_.contains(input ? input->task->name : from);
  });
  return behind ? Sources::kBehind : Sources::kCaughtUp;
}

// Transforms may run where landing tasks do not: what those reached is in their statuses.
void PipelineRun::ReadLandedTimes() {
  const Status read = deps_.database.Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const std::vector<TaskStatus> known, ReadTaskStatuses(sql, spec_.name));
    const std::lock_guard lock(mutex_);
    for (const TaskStatus& status : known) {
      if (status.kind == TaskKind::kLanding && status.data_updated_to) {
        Timestamp& until = landed_until_[status.task];
        until = std::max(until, *status.data_updated_to);
      }
    }
    return Status::Ok();
  });
  if (!read.ok()) {
    Log(LogLevel::kWarning, "task", read.ToString());
  }
}

std::optional<Timestamp> PipelineRun::LandedUntil(const pipeline::TransformSpec& spec) {
  const std::lock_guard lock(mutex_);
  std::optional<Timestamp> newest;
  for (const std::string& from : spec.from) {
    const std::optional<pipeline::LandingInput> input = spec_.FindInput(from);
    const auto found = landed_until_.find(input ? input->task->name : from);
    if (found != landed_until_.end()) {
      newest = std::max(newest, std::optional(found->second));
    }
  }
  return newest;
}

void PipelineRun::WaitForLanded(TaskRun& run, uint64_t seen, milliseconds at_most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, at_most, [&] {
    return IsStopping(run) || landed_ != seen ||
           (mode_ == RunMode::kOnce && landings_running_ == 0);
  });
}

bool PipelineRun::WaitForStop(TaskRun& run, milliseconds at_most) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, at_most, [&] { return IsStopping(run); });
}

Result<metastore::SqlFunction> PipelineRun::TakeLease(TaskReporter& reporter) {
  TARN_ASSIGN_OR_RETURN(metastore::SqlFunction lease,
                        TakeTaskLease(deps_.database, reporter.name(),
                                      deps_.catalog.deps().clock.Now(), deps_.may_run));
  reporter.WriteUnder(lease);
  return lease;
}

void PipelineRun::Supervise(TaskRun& run, TaskReporter& reporter,
                            const std::function<Status()>& follow) {
  milliseconds wait = kRetryFirst;
  TaskState end = TaskState::kStopped;
  reporter.Started();
  for (int attempt = 1;; ++attempt) {
    if (attempt > 1 && WaitForStop(run, milliseconds(0))) {
      break;  // A stop that came while it waited.
    }
    const auto started = std::chrono::steady_clock::now();
    const Status status = follow();
    {
      const std::lock_guard lock(mutex_);
      if (status.ok() || IsStopping(run) || status.code() == ErrorCode::kCancelled) {
        break;
      }
    }
    if (WasTaken(status)) {
      Log(LogLevel::kWarning, "task", reporter.name() + ": another server runs it now");
      const std::lock_guard lock(mutex_);
      if (first_failure_.status.ok()) {
        first_failure_ = {.status = RunsElsewhere(), .task = reporter.name()};
      }
      break;  // The status is what that one says.
    }
    // A source that was there once may come back; one that never was is a wrong name.
    const bool is_away = status.code() == ErrorCode::kNotFound && run.was_open;
    const bool passes = IsRetryable(status.code()) || status.code() == ErrorCode::kConflict ||
                        (mode_ == RunMode::kFollow && is_away);
    const std::string shown = reporter.Failed(status);
    if (!passes || (mode_ == RunMode::kOnce && attempt >= kOnceAttemptsMax)) {
      Log(LogLevel::kError, "task", reporter.name() + ": " + shown);
      end = status.reason() == kTableSuspended ? TaskState::kSuspended : TaskState::kError;
      const std::lock_guard lock(mutex_);
      if (first_failure_.status.ok()) {
        first_failure_ = {.status = reporter.Shown(status), .task = reporter.name()};
      }
      break;
    }
    if (std::chrono::steady_clock::now() - started > kRetryMax) {
      wait = kRetryFirst;  // It went well for a while.
    }
    Log(LogLevel::kWarning, "task",
        fmt::format("{}: tries again in {} ms: {}", reporter.name(), wait.count(), shown));
    WaitForStop(run, wait);
    wait = std::min(wait * 2, kRetryMax);
  }
  reporter.Ended(end);
}

bool PipelineRun::WasTaken(const Status& status) {
  return status.reason() == "LeaseLost" ||
         (deps_.may_run && deps_.database.Read(deps_.may_run).reason() == "LeaseLost");
}

void PipelineRun::RunLanding(const landing::LandingSpec& spec, TaskRun& run) {
  TaskReporter reporter(spec_.name, spec.name, TaskKind::kLanding, ReporterDeps());
  Supervise(run, reporter, [&] { return FollowLanding(spec, run, reporter); });
  const std::lock_guard lock(mutex_);
  run.ended = true;
  --landings_running_;
  ++landed_;
  changed_.notify_all();
}

// Waits until the source is looked at again. Errors: kCancelled when the task is to stop;
// kUnavailable when the source went away meanwhile.
Status PipelineRun::WaitForPoll(TaskRun& run, const SourceWatch& watch, milliseconds poll) {
  for (milliseconds left = poll; left.count() > 0;) {
    const milliseconds now = std::min(left, kSourceLookEvery);
    if (WaitForStop(run, now)) {
      return Status(ErrorCode::kCancelled, "stopped");
    }
    left -= now;
    TARN_RETURN_IF_ERROR(watch.Check());
  }
  return Status::Ok();
}

Status PipelineRun::StepLanding(const landing::LandingSpec& spec, TaskRun& run,
                                landing::LandingTask& task, TaskReporter& reporter) {
  const SourceWatch watch(spec.source_uri);
  while (true) {
    TARN_ASSIGN_OR_RETURN(const landing::LandingProgress progress, task.Step());
    // More files than one batch took, or messages for seconds.
    const bool more_files = !spec.kafka && !progress.caught_up && progress.waiting_bytes > 0;
    NoteBehind(spec.name, progress.behind || more_files);
    if (progress.commits > 0) {
      NoteLanded(spec.name, progress);  // Before the report: someone waits for the rows.
    }
    reporter.Report(progress);
    if (!progress.caught_up) {
      continue;
    }
    if (mode_ == RunMode::kOnce) {
      return Status::Ok();
    }
    if (!spec.kafka) {  // Topics are waited for inside the step.
      TARN_RETURN_IF_ERROR(WaitForPoll(run, watch, spec.poll));
    }
  }
}

Status PipelineRun::FollowLanding(const landing::LandingSpec& spec, TaskRun& run,
                                  TaskReporter& reporter) {
  TARN_ASSIGN_OR_RETURN(metastore::SqlFunction lease, TakeLease(reporter));
  const landing::LandingDatasets& datasets = place_.datasets.at(spec.name);
  const auto written =
      std::make_shared<DatasetList>(DatasetList{datasets.landing, datasets.rejected});
  metastore::SqlFunction fence = FenceOf(std::move(lease), written);
  TARN_RETURN_IF_ERROR(deps_.database.Read(fence));
  const catalog::CatalogDeps& deps = deps_.catalog.deps();
  const auto topic_datasets = [&](const std::string& name) -> Result<landing::LandingDatasets> {
    landing::LandingDatasets made;
    TARN_RETURN_IF_ERROR(deps_.database.Write([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(made, EnsureTopicDataset(sql, deps_, place_, spec, name));
      return Status::Ok();
    }));
    written->push_back(made.landing);
    return made;
  };
  TARN_ASSIGN_OR_RETURN(
      const std::unique_ptr<landing::LandingTask> task,
      landing::LandingTask::Open(
          spec, datasets,
          {deps.database, deps_.datasets, deps.warehouse, deps.uuids, deps.clock, deps_.budget,
           std::move(fence),
           mode_ == RunMode::kOnce ? source::kafka::ReadUntil::kEnd
                                   : source::kafka::ReadUntil::kStopped,
           topic_datasets,
           [&reporter](metastore::SqlTransaction& sql, const landing::LandingProgress& counted) {
             return reporter.OnCommit(sql, counted);
           }}));
  run.was_open = true;
  {
    const std::lock_guard lock(mutex_);
    run.landing = task.get();
    if (IsStopping(run)) {
      task->Cancel();
    }
  }
  const Status status = StepLanding(spec, run, *task, reporter);
  NoteBehind(spec.name, false);
  const std::lock_guard lock(mutex_);
  run.landing = nullptr;
  return status;
}

void PipelineRun::RunTransform(const pipeline::TransformSpec& spec, TaskRun& run) {
  TaskReporter reporter(spec_.name, spec.name, TaskKind::kTransform, ReporterDeps());
  Supervise(run, reporter, [&] { return FollowTransform(spec, run, reporter); });
  const std::lock_guard lock(mutex_);
  run.ended = true;
}

// One step; true when the task has nothing more to do for ever.
Result<bool> PipelineRun::StepTransform(const pipeline::TransformSpec& spec, TaskRun& run,
                                        TransformTask& task, TaskReporter& reporter) {
  uint64_t seen = 0;
  bool landings_ended = false;
  {
    const std::lock_guard lock(mutex_);
    if (IsStopping(run)) {
      return true;
    }
    seen = landed_;
    landings_ended = landings_running_ == 0;
  }
  const std::optional<Timestamp> landed_until = LandedUntil(spec);
  TARN_ASSIGN_OR_RETURN(const TransformProgress progress, task.Step(SourcesOf(spec)));
  reporter.Report(progress, landed_until);
  if (!progress.caught_up) {
    return false;
  }
  if (mode_ == RunMode::kOnce && landings_ended) {
    TARN_ASSIGN_OR_RETURN(const TransformProgress applied, task.ApplyNow());
    reporter.Report(applied, landed_until);
    return true;
  }
  WaitForLanded(run, seen, kTransformWait);
  return false;
}

Status PipelineRun::FollowTransform(const pipeline::TransformSpec& spec, TaskRun& run,
                                    TaskReporter& reporter) {
  TARN_ASSIGN_OR_RETURN(metastore::SqlFunction lease, TakeLease(reporter));
  const auto written = std::make_shared<DatasetList>();  // Dead letters.
  std::vector<TransformInput> inputs = InputsOf(spec_, place_, spec);
  for (const TransformInput& input : inputs) {
    written->push_back(input.rejected);
  }
  TARN_ASSIGN_OR_RETURN(
      const std::unique_ptr<TransformTask> task,
      TransformTask::Open(
          spec, std::move(inputs), {.project = place_.project, .by = place_.by},
          {deps_.database, deps_.datasets, deps_.catalog, deps_.engine,
           FenceOf(std::move(lease), written),
           [&reporter](metastore::SqlTransaction& sql, const TransformCounts& counted) {
             return reporter.OnCommit(sql, counted);
           }}));
  {
    const std::lock_guard lock(mutex_);
    run.transform = task.get();
    if (IsStopping(run)) {
      task->Cancel();
    }
  }
  Status status;
  while (status.ok()) {
    const Result<bool> ended = StepTransform(spec, run, *task, reporter);
    if (!ended.ok()) {
      status = ended.status();
    } else if (*ended) {
      break;
    }
  }
  {
    const std::lock_guard lock(mutex_);
    run.transform = nullptr;
  }
  const bool apply = mode_ == RunMode::kFollow && spec.table.at_stop == lakehouse::AtStop::kApply;
  if (apply && (status.ok() || status.code() == ErrorCode::kCancelled)) {
    TARN_ASSIGN_OR_RETURN(const TransformProgress applied, task->ApplyNow());
    reporter.Report(applied, std::nullopt);
  }
  return status;
}

}  // namespace tarn::task
