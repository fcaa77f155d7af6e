#include "tarn/task/control.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <arrow/api.h>
#include <fmt/format.h>

#include "tarn/base/log.h"
#include "tarn/task/landing_preview.h"
#include "tarn/task/pipeline_place.h"
#include "tarn/task/pipeline_plan.h"
#include "tarn/task/pipeline_run.h"
#include "tarn/task/task_lag.h"
#include "tarn/task/transform_failure.h"
#include "tarn/task/transform_preview.h"
#include "tarn/transform/mapping_syntax.h"

namespace tarn::task {

namespace {

using metastore::SqlTransaction;

std::vector<std::string> TasksOf(const pipeline::PipelineSpec& spec) {
  std::vector<std::string> names;
  for (const landing::LandingSpec& landing : spec.landings) {
    names.push_back(landing.name);
  }
  for (const pipeline::TransformSpec& transform : spec.transforms) {
    names.push_back(transform.name);
  }
  return names;
}

bool Contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// What a landing task reads on the server: its files, or the certificates and keys of its client.
std::vector<std::string> PlacesRead(const landing::LandingSpec& landing) {
  if (!landing.kafka) {
    return {landing.source_uri};
  }
  std::vector<std::string> places;
  for (const std::string& file : source::kafka::FilesOf(landing.kafka->source.client)) {
    places.push_back("file://" + file);
  }
  return places;
}

// As long as the metastore is away, nothing is wrong with a pipeline.
bool MayPass(const Status& failure) {
  return IsRetryable(failure.code()) || failure.code() == ErrorCode::kConflict ||
         failure.code() == ErrorCode::kCommitStateUnknown;
}
constexpr std::chrono::milliseconds kResumeWaits[] = {std::chrono::milliseconds(200),
                                                      std::chrono::milliseconds(1000)};

Status NoSuchTask(std::string_view pipeline, std::string_view task) {
  return Status::NotFound(fmt::format("pipeline {} has no task {}", pipeline, task));
}

}  // namespace

Control::Control(ControlDeps deps) : deps_(std::move(deps)) {}
Control::~Control() { Shutdown(); }

pipeline::Variables Control::VariablesOf(const pipeline::Variables& sent) const {
  pipeline::Variables variables = deps_.secrets;
  for (const auto& [name, value] : sent) {
    variables[name] = value;
  }
  return variables;
}

Result<pipeline::PipelineSpec> Control::Validate(const PipelineText& text) const {
  const pipeline::Variables variables = VariablesOf(text.variables);
  TARN_ASSIGN_OR_RETURN(pipeline::PipelineSpec spec, pipeline::ParsePipeline(text.yaml, variables));
  for (const landing::LandingSpec& landing : spec.landings) {
    for (const std::string& place : {landing.source_uri, landing.move_to}) {
      if (deps_.is_source_own && deps_.is_source_own(place)) {
        return Status::PermissionDenied(pipeline::HideValues(
            fmt::format("landing {}: {} holds, or is held by, the server's own files (its home, "
                        "metastore or warehouse): name another folder",
                        landing.name, place),
            variables));
      }
    }
    for (const std::string& place : PlacesRead(landing)) {
      if (deps_.is_source_allowed && !deps_.is_source_allowed(place)) {
        return Status::PermissionDenied(pipeline::HideValues(
            fmt::format("landing {}: {} may not be read: add it to sources.allow_paths of the "
                        "server's configuration",
                        landing.name, place),
            variables));
      }
    }
  }
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<engine::Session> session, deps_.engine.OpenSession());
  for (const pipeline::TransformSpec& transform : spec.transforms) {
    TARN_RETURN_IF_ERROR(transform::CheckMappingSyntax(*session, transform.mapping));
  }
  return spec;
}

Result<pipeline::PipelineSpec> Control::Parse(const StoredPipeline& stored) const {
  return Validate({.yaml = stored.yaml, .variables = stored.variables});
}

// Those that can be read: one that lost a variable needs no name at the moment.
Result<std::vector<pipeline::PipelineSpec>> Control::ParseOthers(std::string_view name) {
  TARN_ASSIGN_OR_RETURN(const std::vector<StoredPipeline> pipelines, ListPipelines());
  std::vector<pipeline::PipelineSpec> others;
  for (const StoredPipeline& stored : pipelines) {
    if (stored.name == name) {
      continue;
    }
    Result<pipeline::PipelineSpec> spec =
        pipeline::ParsePipeline(stored.yaml, VariablesOf(stored.variables));
    if (spec.ok()) {
      others.push_back(*std::move(spec));
    }
  }
  return others;
}

Result<const pipeline::TransformSpec*> Control::FindTransform(const pipeline::PipelineSpec& spec,
                                                              std::string_view task) const {
  for (const pipeline::TransformSpec& transform : spec.transforms) {
    if (transform.name == task) {
      return &transform;
    }
  }
  return Status::NotFound(fmt::format("pipeline {} has no transform task {}", spec.name, task));
}

Result<std::shared_ptr<PipelineRun>> Control::Open(const StoredPipeline& stored, bool once) {
  TARN_ASSIGN_OR_RETURN(pipeline::PipelineSpec spec, Parse(stored));
  TARN_ASSIGN_OR_RETURN(RunPlace place, MakePlace(deps_, spec, stored.by));
  return std::make_shared<PipelineRun>(std::move(spec), std::move(place),
                                       once ? RunMode::kOnce : RunMode::kFollow,
                                       VariablesOf(stored.variables), deps_);
}

std::shared_ptr<PipelineRun> Control::FindRun(std::string_view pipeline) {
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(pipeline);
  return found == runs_.end() ? nullptr : found->second;
}

std::shared_ptr<PipelineRun> Control::TakeRun(std::string_view pipeline) {
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(pipeline);
  if (found == runs_.end()) {
    return nullptr;
  }
  std::shared_ptr<PipelineRun> run = std::move(found->second);
  runs_.erase(found);
  return run;
}

std::shared_ptr<std::mutex> Control::TurnOf(std::string_view pipeline) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<std::mutex>& turn = turns_[std::string(pipeline)];
  if (turn == nullptr) {
    turn = std::make_shared<std::mutex>();
  }
  return turn;
}

Status Control::RequireOpen() {
  const std::lock_guard lock(mutex_);
  return closing_ ? Status::Unavailable("the server is stopping: try again when it is back")
                  : Status::Ok();
}

Result<std::vector<std::string>> Control::ListWanted(std::string_view pipeline) {
  TaskNames wanted;
  TARN_RETURN_IF_ERROR(deps_.database.Read([&](SqlTransaction& sql) -> Status {
    wanted.clear();
    TARN_ASSIGN_OR_RETURN(const std::vector<TaskStatus> tasks, ReadTaskStatuses(sql, pipeline));
    for (const TaskStatus& task : tasks) {
      if (task.wanted) {
        wanted.push_back(task.task);
      }
    }
    return Status::Ok();
  }));
  return wanted;
}

Status Control::Resume() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = false;
  }
  Status resumed = ResumeWanted();
  for (const std::chrono::milliseconds wait : kResumeWaits) {
    if (!MayPass(resumed)) {
      break;
    }
    Log(LogLevel::kWarning, "task",
        fmt::format("pipelines: tries again in {} ms: {}", wait.count(), resumed.ToString()));
    std::this_thread::sleep_for(wait);
    resumed = ResumeWanted();
  }
  return resumed;
}

// What does not pass by itself is in the statuses of the tasks; another failure is the caller's.
Status Control::ResumeWanted() {
  TARN_RETURN_IF_ERROR(deps_.database.Write([&](SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(RequireHere(sql));
    return StopAbandonedTasks(sql);
  }));
  TARN_ASSIGN_OR_RETURN(const std::vector<StoredPipeline> pipelines, ListPipelines());
  for (const StoredPipeline& stored : pipelines) {
    const std::shared_ptr<std::mutex> turn = TurnOf(stored.name);
    const std::lock_guard lock(*turn);
    TARN_ASSIGN_OR_RETURN(const TaskNames wanted, ListWanted(stored.name));
    if (wanted.empty()) {
      continue;
    }
    const Status started = StartLocked(stored, wanted, /*patient=*/true);
    if (MayPass(started)) {
      return started;  // An ERROR would last: nobody starts a task again.
    }
    if (!started.ok()) {
      const std::string error =
          pipeline::HideValues(started.ToString(), VariablesOf(stored.variables));
      Log(LogLevel::kError, "task", "pipeline " + stored.name + ": " + error);
      TARN_RETURN_IF_ERROR(deps_.database.Write([&](SqlTransaction& sql) -> Status {
        TARN_RETURN_IF_ERROR(RequireHere(sql));
        return FailWantedTasks(sql, stored.name, error);
      }));
    }
  }
  return Status::Ok();
}

void Control::Shutdown() {
  std::map<std::string, std::shared_ptr<PipelineRun>, std::less<>> runs;
  std::vector<std::string> reloading;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    for (const auto& [name, run] : once_) {
      run->RequestStop();  // RunOnce waits for it.
    }
    for (auto& [name, reload] : reloads_) {
      reload.stop.request_stop();
      reloading.push_back(name);
    }
    runs.swap(runs_);
  }
  for (const auto& [name, run] : runs) {
    run->RequestStop();
  }
  for (const auto& [name, run] : runs) {
    const std::shared_ptr<std::mutex> turn = TurnOf(name);  // Somebody may be stopping a task.
    const std::lock_guard lock(*turn);
    run->Wait();
  }
  for (const std::string& name : reloading) {
    const std::shared_ptr<std::mutex> turn = TurnOf(name);
    const std::lock_guard lock(*turn);
  }
}

// Stores the file and the tasks that it names; tasks that it no longer has are forgotten.
Status Control::StoreApplied(const pipeline::PipelineSpec& spec, StoredPipeline& stored) {
  const TaskNames names = TasksOf(spec);
  return deps_.database.Write([&](SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(EnsurePlace(sql, deps_, spec, stored.by));
    TARN_RETURN_IF_ERROR(WritePipeline(sql, stored));
    TARN_ASSIGN_OR_RETURN(const std::vector<TaskStatus> known, ReadTaskStatuses(sql, spec.name));
    TaskNames kept;
    bool all_wanted = !known.empty();
    for (const TaskStatus& status : known) {
      all_wanted = all_wanted && status.wanted;
      const bool is_landing = spec.FindLanding(status.task) != nullptr;
      if (Contains(names, status.task) && is_landing == (status.kind == TaskKind::kLanding)) {
        kept.push_back(status.task);
      } else {
        TARN_RETURN_IF_ERROR(ForgetTask(sql, spec.name, status.task));
      }
    }
    for (const std::string& name : names) {
      if (!Contains(kept, name)) {
        TARN_RETURN_IF_ERROR(WriteTaskStatus(
            sql,
            {.pipeline = spec.name,
             .task = name,
             .kind = spec.FindLanding(name) != nullptr ? TaskKind::kLanding : TaskKind::kTransform,
             .wanted = all_wanted}));
      }
    }
    return Status::Ok();
  });
}

Result<StoredPipeline> Control::ApplyPipeline(const PipelineText& text, std::string_view by) {
  TARN_ASSIGN_OR_RETURN(const pipeline::PipelineSpec spec, Validate(text));
  const std::shared_ptr<std::mutex> turn = TurnOf(spec.name);
  const std::lock_guard lock(*turn);
  TARN_ASSIGN_OR_RETURN(const std::vector<pipeline::PipelineSpec> others, ParseOthers(spec.name));
  TARN_RETURN_IF_ERROR(CheckOtherPipelines(spec, others));
  std::optional<Rid> project;
  TARN_RETURN_IF_ERROR(deps_.database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(project, FindProject(sql, spec.project));
    return Status::Ok();
  }));
  for (const landing::LandingSpec& landing : spec.landings) {
    TARN_RETURN_IF_ERROR(CheckLandingDataset(deps_, project, landing));
  }
  for (const pipeline::TransformSpec& transform : spec.transforms) {
    // A table that was made for another key or mode is the business of recreate.
    const Status target = project ? CheckTarget(deps_, *project, transform) : Status::Ok();
    if (target.code() == ErrorCode::kAlreadyExists) {
      return OfTransform(transform.name, target);
    }
  }
  StoredPipeline stored{.name = spec.name,
                        .project = spec.project,
                        .yaml = text.yaml,
                        .by = std::string(by),
                        .applied = deps_.catalog.deps().clock.Now(),
                        .variables = text.variables};
  TARN_RETURN_IF_ERROR(StoreApplied(spec, stored));
  if (const std::shared_ptr<PipelineRun> run = TakeRun(spec.name)) {
    run->RequestStop();
    run->Wait();
    TARN_ASSIGN_OR_RETURN(const TaskNames wanted, ListWanted(spec.name));
    TARN_RETURN_IF_ERROR(StartLocked(stored, wanted, /*patient=*/false));
  }
  return GetPipeline(spec.name);
}

Result<std::vector<PlannedChange>> Control::PlanPipeline(const PipelineText& text) {
  TARN_ASSIGN_OR_RETURN(const pipeline::PipelineSpec spec, Validate(text));
  Result<StoredPipeline> known = GetPipeline(spec.name);
  if (!known.ok() && known.status().code() != ErrorCode::kNotFound) {
    return known.status();
  }
  PlanRequest request{.yaml = text.yaml, .spec = spec, .before = {}, .others = {}};
  if (known.ok()) {
    request.before = *std::move(known);
  }
  TARN_ASSIGN_OR_RETURN(request.others, ParseOthers(spec.name));
  TARN_ASSIGN_OR_RETURN(std::vector<PlannedChange> changes, task::PlanPipeline(deps_, request));
  for (PlannedChange& change : changes) {
    change.effect = pipeline::HideValues(change.effect, VariablesOf(text.variables));
  }
  return changes;
}

Result<std::vector<StoredPipeline>> Control::ListPipelines() {
  std::vector<StoredPipeline> pipelines;
  TARN_RETURN_IF_ERROR(deps_.database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(pipelines, ReadPipelines(sql));
    return Status::Ok();
  }));
  return pipelines;
}

Result<StoredPipeline> Control::GetPipeline(std::string_view name) {
  StoredPipeline pipeline;
  TARN_RETURN_IF_ERROR(deps_.database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(pipeline, ReadPipeline(sql, name));
    return Status::Ok();
  }));
  return pipeline;
}

Status Control::DeletePipeline(std::string_view name) {
  TARN_RETURN_IF_ERROR(Stop(name));
  return deps_.database.Write([&](SqlTransaction& sql) { return task::DeletePipeline(sql, name); });
}

Result<std::vector<PreviewedFile>> Control::PreviewFiles(const PipelineText& text,
                                                         std::string_view landing) {
  TARN_ASSIGN_OR_RETURN(const pipeline::PipelineSpec spec, Validate(text));
  if (!landing.empty() && spec.FindLanding(landing) == nullptr) {
    return Status::NotFound(fmt::format("the file has no landing task {}", landing));
  }
  std::optional<Rid> project;
  TARN_RETURN_IF_ERROR(deps_.database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(project, FindProject(sql, spec.project));
    return Status::Ok();
  }));
  std::vector<PreviewedFile> files;
  const bool any_files = std::any_of(spec.landings.begin(), spec.landings.end(),
                                     [](const auto& one) { return !one.kafka; });
  for (const landing::LandingSpec& one : spec.landings) {
    if (landing.empty() ? one.kafka && any_files : one.name != landing) {
      continue;
    }
    const Result<source::files::FilesPreview> preview = PreviewLanding(deps_, project, one);
    if (!preview.ok()) {
      return Status(preview.status().code(),
                    pipeline::HideValues(preview.status().message(), VariablesOf(text.variables)))
          .WithContext("landing " + one.name);
    }
    for (const source::files::IncludedFile& file : preview->included) {
      files.push_back({.landing = one.name,
                       .path = file.path,
                       .size_bytes = file.size_bytes,
                       .date = file.date});
    }
    for (const source::files::ExcludedFile& file : preview->excluded) {
      files.push_back({.landing = one.name, .path = file.path, .excluded_because = file.reason});
    }
  }
  return files;
}

Result<std::shared_ptr<arrow::RecordBatch>> Control::SampleRows(const PipelineText& text,
                                                                std::string_view landing,
                                                                int64_t rows_max) {
  TARN_ASSIGN_OR_RETURN(const pipeline::PipelineSpec spec, Validate(text));
  const landing::LandingSpec* one = spec.FindLanding(landing);
  if (landing.empty() && spec.landings.size() == 1) {
    one = &spec.landings.front();
  }
  if (one == nullptr) {
    return landing.empty()
               ? Status::InvalidArgument(
                     fmt::format("the file has {} landing tasks: name one", spec.landings.size()))
               : Status::NotFound(fmt::format("the file has no landing task {}", landing));
  }
  Result<std::shared_ptr<arrow::RecordBatch>> rows = SampleLanding(deps_, *one, rows_max);
  if (!rows.ok()) {
    return Status(rows.status().code(),
                  pipeline::HideValues(rows.status().message(), VariablesOf(text.variables)))
        .WithContext("landing " + one->name);
  }
  return rows;
}

// In the SQL transaction of everything that is written about tasks.
Status Control::RequireHere(SqlTransaction& sql) const {
  const Status here = deps_.may_run ? deps_.may_run(sql) : Status::Ok();
  return here.reason() == "LeaseLost" ? RunsElsewhere() : here;
}

Status Control::Prepare(std::string_view pipeline) {
  TARN_ASSIGN_OR_RETURN(const StoredPipeline stored, GetPipeline(pipeline));
  TARN_ASSIGN_OR_RETURN(const pipeline::PipelineSpec spec, Parse(stored));
  TARN_ASSIGN_OR_RETURN(const RunPlace place, MakePlace(deps_, spec, stored.by));
  for (const landing::LandingSpec& landing : spec.landings) {
    TARN_RETURN_IF_ERROR(CheckLandingDataset(deps_, place.project, landing));
  }
  for (const pipeline::TransformSpec& transform : spec.transforms) {
    TARN_RETURN_IF_ERROR(OfTransform(transform.name, CheckTarget(deps_, place.project, transform)));
    TARN_RETURN_IF_ERROR(
        OfTransform(transform.name, CheckMapping(deps_, place.project, spec, transform)));
  }
  return Status::Ok();
}

Status Control::StartLocked(const StoredPipeline& stored, const TaskNames& tasks, bool patient) {
  TARN_RETURN_IF_ERROR(RequireOpen());
  std::shared_ptr<PipelineRun> run = FindRun(stored.name);
  if (run == nullptr) {
    TARN_ASSIGN_OR_RETURN(run, Open(stored, /*once=*/false));
  }
  TaskNames idle = tasks;
  std::erase_if(idle, [&](const std::string& task) { return run->IsRunning(task); });
  TARN_RETURN_IF_ERROR(deps_.database.Write([&](SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(RequireHere(sql));
    for (const std::string& task : tasks) {
      TARN_RETURN_IF_ERROR(SetWanted(sql, stored.name, task, true));
    }
    for (const std::string& task : idle) {
      TARN_RETURN_IF_ERROR(QueueTask(sql, stored.name, task));
    }
    return Status::Ok();
  }));
  const std::lock_guard lock(mutex_);
  if (closing_) {
    return Status::Unavailable("the server is stopping: try again when it is back");
  }
  run->Start(idle, patient);
  runs_[stored.name] = run;
  return Status::Ok();
}

Status Control::Start(std::string_view pipeline) {
  const std::shared_ptr<std::mutex> turn = TurnOf(pipeline);
  const std::lock_guard lock(*turn);
  TARN_ASSIGN_OR_RETURN(const StoredPipeline stored, GetPipeline(pipeline));
  TARN_ASSIGN_OR_RETURN(const pipeline::PipelineSpec spec, Parse(stored));
  return StartLocked(stored, TasksOf(spec), /*patient=*/false);
}

Status Control::StartTask(std::string_view pipeline, std::string_view task) {
  const std::shared_ptr<std::mutex> turn = TurnOf(pipeline);
  const std::lock_guard lock(*turn);
  TARN_ASSIGN_OR_RETURN(const StoredPipeline stored, GetPipeline(pipeline));
  TARN_ASSIGN_OR_RETURN(const pipeline::PipelineSpec spec, Parse(stored));
  if (!Contains(TasksOf(spec), task)) {
    return NoSuchTask(pipeline, task);
  }
  return StartLocked(stored, {std::string(task)}, /*patient=*/false);
}

void Control::StopOnce(std::string_view pipeline) {
  const std::lock_guard lock(mutex_);
  const auto once = once_.find(pipeline);
  if (once != once_.end()) {
    once->second->RequestStop();
  }
}

void Control::StopReload(std::string_view pipeline, std::string_view task) {
  const std::lock_guard lock(mutex_);
  const auto found = reloads_.find(pipeline);
  if (found != reloads_.end() && (task.empty() || found->second.task == task)) {
    found->second.stop.request_stop();
  }
}

Status Control::Stop(std::string_view pipeline) {
  StopOnce(pipeline);  // These have the turn.
  StopReload(pipeline, "");
  const std::shared_ptr<std::mutex> turn = TurnOf(pipeline);
  const std::lock_guard lock(*turn);
  TARN_RETURN_IF_ERROR(GetPipeline(pipeline));
  TARN_RETURN_IF_ERROR(deps_.database.Write(
      [&](SqlTransaction& sql) { return SetWanted(sql, pipeline, "", false); }));
  if (const std::shared_ptr<PipelineRun> run = TakeRun(pipeline)) {
    run->RequestStop();
    run->Wait();
  }
  return Status::Ok();
}

Status Control::StopTask(std::string_view pipeline, std::string_view task) {
  StopReload(pipeline, task);  // It has the turn.
  const std::shared_ptr<std::mutex> turn = TurnOf(pipeline);
  const std::lock_guard lock(*turn);
  TARN_ASSIGN_OR_RETURN(const StoredPipeline stored, GetPipeline(pipeline));
  TARN_RETURN_IF_ERROR(deps_.database.Write([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const std::vector<TaskStatus> tasks, ReadTaskStatuses(sql, pipeline));
    const bool known = std::any_of(tasks.begin(), tasks.end(),
                                   [&](const TaskStatus& one) { return one.task == task; });
    return known ? SetWanted(sql, pipeline, task, false) : NoSuchTask(pipeline, task);
  }));
  if (const std::shared_ptr<PipelineRun> run = FindRun(pipeline)) {
    run->StopTask(std::string(task));
  }
  return Status::Ok();
}

RunOutcome Control::RunOnce(std::string_view pipeline) {
  const std::shared_ptr<std::mutex> turn = TurnOf(pipeline);
  const std::lock_guard lock(*turn);
  std::shared_ptr<PipelineRun> run;
  StoredPipeline stored;
  TaskNames wanted;
  const Status opened = [&]() -> Status {
    TARN_RETURN_IF_ERROR(RequireOpen());
    TARN_ASSIGN_OR_RETURN(stored, GetPipeline(pipeline));
    TARN_ASSIGN_OR_RETURN(run, Open(stored, /*once=*/true));
    TARN_ASSIGN_OR_RETURN(wanted, ListWanted(pipeline));
    return deps_.database.Write([&](SqlTransaction& sql) -> Status {
      TARN_RETURN_IF_ERROR(RequireHere(sql));
      for (const std::string& task : TasksOf(run->spec())) {
        TARN_RETURN_IF_ERROR(QueueTask(sql, stored.name, task));
      }
      return Status::Ok();
    });
  }();
  if (!opened.ok()) {
    return {.status = opened};
  }
  const std::shared_ptr<PipelineRun> following = TakeRun(pipeline);
  if (following != nullptr) {
    following->RequestStop();
    following->Wait();
  }
  {
    const std::lock_guard running(mutex_);
    once_[stored.name] = run;
    if (closing_) {
      run->RequestStop();
    }
  }
  run->Start(TasksOf(run->spec()), /*patient=*/false);
  RunOutcome outcome = run->Wait();
  {
    const std::lock_guard running(mutex_);
    once_.erase(stored.name);
  }
  if (outcome.status.ok() && run->was_stopped()) {
    outcome.status = RequireOpen();
    if (outcome.status.ok()) {
      outcome.status = Status(ErrorCode::kCancelled,
                              fmt::format("pipeline {} was stopped before its end", pipeline));
    }
  }
  if (following != nullptr && RequireOpen().ok()) {
    const Status started = StartLocked(stored, wanted, /*patient=*/true);
    if (outcome.status.ok()) {
      outcome.status = started;
    }
  }
  return outcome;
}

Result<MappedRows> Control::PreviewTask(std::string_view pipeline, std::string_view task,
                                        int64_t rows_max) {
  TARN_ASSIGN_OR_RETURN(const StoredPipeline stored, GetPipeline(pipeline));
  TARN_ASSIGN_OR_RETURN(const pipeline::PipelineSpec spec, Parse(stored));
  TARN_ASSIGN_OR_RETURN(const pipeline::TransformSpec* transform, FindTransform(spec, task));
  std::optional<Rid> project;
  TARN_RETURN_IF_ERROR(deps_.database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(project, FindProject(sql, spec.project));
    return Status::Ok();
  }));
  return PreviewTransform(deps_, project, spec, *transform, rows_max);
}

Result<std::vector<TaskStatus>> Control::ReadStatus() {
  TARN_ASSIGN_OR_RETURN(const std::vector<StoredPipeline> pipelines, ListPipelines());
  std::vector<TaskStatus> statuses;
  for (const StoredPipeline& stored : pipelines) {
    const Result<pipeline::PipelineSpec> spec =
        pipeline::ParsePipeline(stored.yaml, VariablesOf(stored.variables));
    TARN_RETURN_IF_ERROR(deps_.database.Read([&](SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(std::vector<TaskStatus> tasks, ReadTaskStatuses(sql, stored.name));
      for (TaskStatus& status : tasks) {
        if (status.kind == TaskKind::kTransform && spec.ok()) {
          const Result<const pipeline::TransformSpec*> transform =
              FindTransform(*spec, status.task);
          if (transform.ok()) {
            TARN_ASSIGN_OR_RETURN(const TransformLag lag,
                                  ReadTransformLag(sql, deps_, *spec, **transform));
            status.lag_rows = lag.rows;
            status.lag_bytes = lag.bytes;
            status.behind_since = lag.since;
          }
        }
        statuses.push_back(std::move(status));
      }
      return Status::Ok();
    }));
  }
  return statuses;
}

}  // namespace tarn::task
