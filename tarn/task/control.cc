#include "tarn/task/control.h"

#include <algorithm>

#include <fmt/format.h>

#include "tarn/base/log.h"
#include "tarn/lakehouse/target_table.h"
#include "tarn/task/pipeline_run.h"
#include "tarn/tree/tree.h"

namespace tarn::task {

namespace {

using metastore::SqlTransaction;

// The project of a pipeline, made in space Default when it is missing.
Result<Rid> EnsureProject(SqlTransaction& sql, tree::Tree& tree, const std::string& name,
                          const std::string& by) {
  const Result<tree::Node> known = tree::GetByPath(sql, "/Default/" + name);
  if (known.ok()) {
    return known->rid;
  }
  if (known.status().code() != ErrorCode::kNotFound) {
    return known.status();
  }
  TARN_ASSIGN_OR_RETURN(const tree::Node space, tree::GetByPath(sql, "/Default"));
  TARN_ASSIGN_OR_RETURN(const tree::Node project,
                        tree.Create(sql, {.rid = {},
                                          .parent = space.rid,
                                          .name = name,
                                          .type = tree::NodeType::kProject,
                                          .description = {},
                                          .by = by}));
  return project.rid;
}

Result<dataset::DatasetRid> EnsureDataset(SqlTransaction& sql, dataset::DatasetStore& datasets,
                                          const Rid& folder, const std::string& name,
                                          const std::string& by) {
  TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> node, tree::FindChild(sql, folder, name));
  if (!node) {
    TARN_ASSIGN_OR_RETURN(
        const dataset::Dataset made,
        datasets.CreateDataset(sql,
                               {.parent_folder = folder, .name = name, .base_uri = {}, .by = by}));
    return made.rid;
  }
  if (node->type != tree::NodeType::kDataset) {
    return Status::AlreadyExists(
        fmt::format("{} exists and is a {}, not a dataset", name, tree::NodeTypeName(node->type)));
  }
  return dataset::DatasetRid::Parse(node->rid.ToString());
}

Result<RunPlace> EnsurePlace(SqlTransaction& sql, const ControlDeps& deps,
                             const pipeline::PipelineSpec& spec, const std::string& by) {
  tree::Tree& tree = deps.catalog.deps().tree;
  RunPlace place;
  place.by = by;
  TARN_ASSIGN_OR_RETURN(place.project, EnsureProject(sql, tree, spec.project, by));
  for (const landing::LandingSpec& landing : spec.landings) {
    TARN_ASSIGN_OR_RETURN(const tree::Node folder,
                          tree.EnsureFolder(sql, place.project, landing.schema, by));
    landing::LandingDatasets datasets;
    datasets.by = by;
    TARN_ASSIGN_OR_RETURN(datasets.landing,
                          EnsureDataset(sql, deps.datasets, folder.rid, landing.name, by));
    TARN_ASSIGN_OR_RETURN(datasets.rejected, EnsureDataset(sql, deps.datasets, folder.rid,
                                                           landing.rejected_name(), by));
    place.datasets[landing.name] = datasets;
  }
  return place;
}

// Tasks that the file no longer has leave the status, too.
Status ForgetOtherTasks(SqlTransaction& sql, const pipeline::PipelineSpec& spec) {
  TARN_ASSIGN_OR_RETURN(const std::vector<TaskStatus> known, ReadTaskStatuses(sql, spec.name));
  for (const TaskStatus& status : known) {
    const bool stays =
        spec.FindLanding(status.task) != nullptr ||
        std::any_of(spec.transforms.begin(), spec.transforms.end(),
                    [&](const pipeline::TransformSpec& one) { return one.name == status.task; });
    if (!stays) {
      TARN_RETURN_IF_ERROR(ForgetTask(sql, spec.name, status.task));
    }
  }
  return Status::Ok();
}

}  // namespace

Control::Control(ControlDeps deps) : deps_(std::move(deps)) {}
Control::~Control() { Shutdown(); }

Result<pipeline::PipelineSpec> Control::Parse(std::string_view yaml) const {
  TARN_ASSIGN_OR_RETURN(pipeline::PipelineSpec spec, pipeline::ParsePipeline(yaml));
  for (const landing::LandingSpec& landing : spec.landings) {
    if (deps_.is_source_allowed && !deps_.is_source_allowed(landing.source_uri)) {
      return Status::PermissionDenied(fmt::format(
          "landing {}: {} may not be read: add it to sources.allow_paths of the server's "
          "configuration",
          landing.name, landing.source_uri));
    }
  }
  return spec;
}

Result<std::shared_ptr<PipelineRun>> Control::Open(const StoredPipeline& stored) {
  TARN_ASSIGN_OR_RETURN(pipeline::PipelineSpec spec, Parse(stored.yaml));
  RunPlace place;
  TARN_RETURN_IF_ERROR(deps_.database.Write([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(place, EnsurePlace(sql, deps_, spec, stored.by));
    return Status::Ok();
  }));
  return std::make_shared<PipelineRun>(std::move(spec), std::move(place), RunMode::kFollow, deps_);
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

Status Control::Resume() {
  TARN_ASSIGN_OR_RETURN(const std::vector<StoredPipeline> pipelines, ListPipelines());
  for (const StoredPipeline& pipeline : pipelines) {
    if (!pipeline.running) {
      continue;
    }
    const Status started = Start(pipeline.name);
    if (!started.ok()) {
      Log(LogLevel::kError, "task", "pipeline " + pipeline.name + ": " + started.ToString());
    }
  }
  return Status::Ok();
}

void Control::Shutdown() {
  std::map<std::string, std::shared_ptr<PipelineRun>, std::less<>> runs;
  {
    const std::lock_guard lock(mutex_);
    runs.swap(runs_);
  }
  for (const auto& [name, run] : runs) {
    run->RequestStop();
  }
  for (const auto& [name, run] : runs) {
    const Status ended = run->Wait();
    if (!ended.ok()) {
      Log(LogLevel::kWarning, "task", ended.ToString());
    }
  }
}

Result<StoredPipeline> Control::ApplyPipeline(std::string_view yaml, std::string_view by) {
  TARN_ASSIGN_OR_RETURN(const pipeline::PipelineSpec spec, Parse(yaml));
  const std::shared_ptr<std::mutex> turn = TurnOf(spec.name);
  const std::lock_guard lock(*turn);
  StoredPipeline stored{.name = spec.name,
                        .project = spec.project,
                        .yaml = std::string(yaml),
                        .by = std::string(by),
                        .applied = deps_.catalog.deps().clock.Now()};
  TARN_RETURN_IF_ERROR(deps_.database.Write([&](SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(EnsurePlace(sql, deps_, spec, stored.by));
    TARN_RETURN_IF_ERROR(WritePipeline(sql, stored));
    TARN_RETURN_IF_ERROR(ForgetOtherTasks(sql, spec));
    TARN_ASSIGN_OR_RETURN(const std::vector<TaskStatus> known, ReadTaskStatuses(sql, spec.name));
    const auto add = [&](const std::string& task, TaskKind kind) -> Status {
      const bool there = std::any_of(known.begin(), known.end(),
                                     [&](const TaskStatus& one) { return one.task == task; });
      return there ? Status::Ok()
                   : WriteTaskStatus(sql, {.pipeline = spec.name, .task = task, .kind = kind});
    };
    for (const landing::LandingSpec& landing : spec.landings) {
      TARN_RETURN_IF_ERROR(add(landing.name, TaskKind::kLanding));
    }
    for (const pipeline::TransformSpec& transform : spec.transforms) {
      TARN_RETURN_IF_ERROR(add(transform.name, TaskKind::kTransform));
    }
    return Status::Ok();
  }));
  if (const std::shared_ptr<PipelineRun> run = TakeRun(spec.name)) {
    run->RequestStop();
    const Status ended = run->Wait();
    if (!ended.ok()) {
      Log(LogLevel::kWarning, "task", ended.ToString());
    }
    TARN_RETURN_IF_ERROR(StartLocked(stored));
  }
  return GetPipeline(spec.name);
}

Result<std::vector<std::string>> Control::PlanPipeline(std::string_view yaml) {
  TARN_ASSIGN_OR_RETURN(const pipeline::PipelineSpec spec, Parse(yaml));
  std::vector<std::string> steps;
  const Result<StoredPipeline> known = GetPipeline(spec.name);
  if (!known.ok() && known.status().code() != ErrorCode::kNotFound) {
    return known.status();
  }
  std::optional<pipeline::PipelineSpec> before;
  if (known.ok()) {
    TARN_ASSIGN_OR_RETURN(before, pipeline::ParsePipeline(known->yaml));
  } else {
    steps.push_back("create pipeline " + spec.name + " in project " + spec.project);
  }
  for (const landing::LandingSpec& landing : spec.landings) {
    if (!before || before->FindLanding(landing.name) == nullptr) {
      steps.push_back(fmt::format("create landing dataset {}.{} and {}.{}", landing.schema,
                                  landing.name, landing.schema, landing.rejected_name()));
    }
  }
  for (const pipeline::TransformSpec& task : spec.transforms) {
    const bool known_task =
        before && std::any_of(before->transforms.begin(), before->transforms.end(),
                              [&](const auto& one) { return one.name == task.name; });
    steps.push_back(known_task
                        ? fmt::format("transform {}: changes apply to future rows", task.name)
                        : fmt::format("create table {}.{} and view {}.{} with the first rows",
                                      task.table.internal_schema, task.table.internal_name(),
                                      task.table.external_schema, task.table.name));
  }
  return steps;
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

Status Control::Prepare(std::string_view pipeline) {
  TARN_ASSIGN_OR_RETURN(const StoredPipeline stored, GetPipeline(pipeline));
  return StatusOf(Open(stored));
}

Status Control::StartLocked(const StoredPipeline& stored) {
  {
    const std::lock_guard lock(mutex_);
    if (runs_.contains(stored.name)) {
      return Status::Ok();
    }
  }
  TARN_ASSIGN_OR_RETURN(const std::shared_ptr<PipelineRun> run, Open(stored));
  TARN_RETURN_IF_ERROR(deps_.database.Write(
      [&](SqlTransaction& sql) { return SetRunning(sql, stored.name, true); }));
  run->Start();
  const std::lock_guard lock(mutex_);
  runs_[stored.name] = run;
  return Status::Ok();
}

Status Control::Start(std::string_view pipeline) {
  const std::shared_ptr<std::mutex> turn = TurnOf(pipeline);
  const std::lock_guard lock(*turn);
  TARN_ASSIGN_OR_RETURN(const StoredPipeline stored, GetPipeline(pipeline));
  return StartLocked(stored);
}

Status Control::Stop(std::string_view pipeline) {
  const std::shared_ptr<std::mutex> turn = TurnOf(pipeline);
  const std::lock_guard lock(*turn);
  TARN_RETURN_IF_ERROR(GetPipeline(pipeline));
  TARN_RETURN_IF_ERROR(
      deps_.database.Write([&](SqlTransaction& sql) { return SetRunning(sql, pipeline, false); }));
  const std::shared_ptr<PipelineRun> run = TakeRun(pipeline);
  if (run != nullptr) {
    run->RequestStop();
    const Status ended = run->Wait();
    if (!ended.ok()) {
      Log(LogLevel::kWarning, "task", ended.ToString());
    }
  }
  return Status::Ok();
}

Status Control::RunOnce(std::string_view pipeline) {
  const std::shared_ptr<std::mutex> turn = TurnOf(pipeline);
  const std::lock_guard lock(*turn);
  TARN_ASSIGN_OR_RETURN(const StoredPipeline stored, GetPipeline(pipeline));
  const std::shared_ptr<PipelineRun> following = TakeRun(pipeline);
  if (following != nullptr) {
    following->RequestStop();
    const Status ended = following->Wait();
    if (!ended.ok()) {
      Log(LogLevel::kWarning, "task", ended.ToString());
    }
  }
  TARN_ASSIGN_OR_RETURN(pipeline::PipelineSpec spec, Parse(stored.yaml));
  RunPlace place;
  TARN_RETURN_IF_ERROR(deps_.database.Write([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(place, EnsurePlace(sql, deps_, spec, stored.by));
    return Status::Ok();
  }));
  PipelineRun run(std::move(spec), std::move(place), RunMode::kOnce, deps_);
  run.Start();
  const Status ended = run.Wait();
  if (following != nullptr) {
    TARN_RETURN_IF_ERROR(StartLocked(stored));
  }
  return ended;
}

Status Control::ApplyTask(std::string_view pipeline, std::string_view task) {
  const std::shared_ptr<std::mutex> turn = TurnOf(pipeline);
  const std::lock_guard lock(*turn);
  TARN_ASSIGN_OR_RETURN(const StoredPipeline stored, GetPipeline(pipeline));
  TARN_ASSIGN_OR_RETURN(const pipeline::PipelineSpec spec, Parse(stored.yaml));
  const auto found = std::find_if(spec.transforms.begin(), spec.transforms.end(),
                                  [&](const auto& one) { return one.name == task; });
  if (found == spec.transforms.end()) {
    return Status::NotFound(fmt::format("pipeline {} has no transform task {}", pipeline, task));
  }
  const std::shared_ptr<PipelineRun> following = TakeRun(pipeline);
  if (following != nullptr) {
    following->RequestStop();
    TARN_RETURN_IF_ERROR(following->Wait());
  }
  RunPlace place;
  TARN_RETURN_IF_ERROR(deps_.database.Write([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(place, EnsurePlace(sql, deps_, spec, stored.by));
    return Status::Ok();
  }));
  TARN_ASSIGN_OR_RETURN(
      const std::unique_ptr<lakehouse::TargetTable> table,
      lakehouse::TargetTable::Open(found->table, {.project = place.project, .by = place.by},
                                   deps_.catalog));
  TARN_RETURN_IF_ERROR(table->Apply(deps_.catalog.deps().clock.Now()));
  return following == nullptr ? Status::Ok() : StartLocked(stored);
}

Result<std::vector<TaskStatus>> Control::ReadStatus() {
  std::vector<TaskStatus> statuses;
  TARN_RETURN_IF_ERROR(deps_.database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(statuses, ReadTaskStatuses(sql, ""));
    return Status::Ok();
  }));
  return statuses;
}

}  // namespace tarn::task
