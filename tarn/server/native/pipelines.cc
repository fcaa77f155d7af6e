// /tarn/v1/pipelines and /tarn/v1/runs.
#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/pipeline/pipeline_schema.h"
#include "tarn/pipeline/pipeline_spec.h"
#include "tarn/query/resource_name.h"
#include "tarn/server/http_error.h"
#include "tarn/server/native/native_api.h"
#include "tarn/server/native/task_json.h"
#include "tarn/tree/permission.h"

namespace tarn::server::native {

namespace {

using metastore::SqlTransaction;
using nlohmann::json;
using task::StoredPipeline;
using task::TaskState;
using task::TaskStatus;

constexpr std::string_view kFollowPrefix = "pipeline:";  // Run ids of pipelines that were started.

// The tasks of one pipeline.
Result<std::vector<TaskStatus>> TasksOf(NativeApi& api, std::string_view pipeline) {
  TARN_ASSIGN_OR_RETURN(std::vector<TaskStatus> tasks, api.deps.control.ReadStatus());
  std::erase_if(tasks, [&](const TaskStatus& task) { return task.pipeline != pipeline; });
  return tasks;
}

std::string_view StateOf(const StoredPipeline& pipeline, const std::vector<TaskStatus>& tasks) {
  const bool failed = std::ranges::any_of(
      tasks, [](const TaskStatus& task) { return task.state == TaskState::kError; });
  return failed ? "ERROR" : pipeline.running ? "RUNNING" : "STOPPED";
}

json ToJson(const StoredPipeline& pipeline, const std::vector<TaskStatus>& tasks, Timestamp now) {
  json list = json::array();
  for (const TaskStatus& task : tasks) {
    list.push_back(TaskToJson(task, now));
  }
  return {{"name", pipeline.name},
          {"project", pipeline.project},
          {"state", StateOf(pipeline, tasks)},
          {"appliedTime", FormatTimestamp(pipeline.applied)},
          {"appliedBy", pipeline.by},
          {"tasks", std::move(list)}};
}

Result<http::Response> ApplyPipeline(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const task::PipelineText text, ReadPipelineText(context));
  TARN_ASSIGN_OR_RETURN(const pipeline::PipelineSpec spec, ValidateText(api, text));
  TARN_RETURN_IF_ERROR(RequireApply(api, context, spec.project));
  // The name may be taken by a pipeline of another project.
  const Result<StoredPipeline> before = api.deps.control.GetPipeline(spec.name);
  if (before.ok() && before->project != spec.project) {
    return Status::AlreadyExists(fmt::format(
        "pipeline {} is in project \"{}\": delete it there first", spec.name, before->project));
  }
  TARN_ASSIGN_OR_RETURN(const StoredPipeline stored,
                        api.deps.control.ApplyPipeline(text, context.principal.user_id));
  TARN_ASSIGN_OR_RETURN(const std::vector<TaskStatus> tasks, TasksOf(api, stored.name));
  return JsonResponse(ToJson(stored, tasks, api.clock().Now()));
}

Result<http::Response> ValidatePipeline(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const task::PipelineText text, ReadPipelineText(context));
  TARN_ASSIGN_OR_RETURN(const pipeline::PipelineSpec spec, ValidateText(api, text));
  return JsonResponse({{"name", spec.name}, {"project", spec.project}, {"valid", true}});
}

Result<http::Response> PlanPipeline(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const task::PipelineText text, ReadPipelineText(context));
  TARN_ASSIGN_OR_RETURN(const pipeline::PipelineSpec spec, ValidateText(api, text));
  TARN_RETURN_IF_ERROR(RequireApply(api, context, spec.project));
  TARN_ASSIGN_OR_RETURN(const std::vector<task::PlannedChange> changes,
                        api.deps.control.PlanPipeline(text));
  json data = json::array();
  for (const task::PlannedChange& change : changes) {
    data.push_back({{"object", change.object},
                    {"change", change.change},
                    {"effect", change.effect},
                    {"refused", change.refused}});
  }
  return JsonResponse({{"data", std::move(data)}});
}

Result<http::Response> ListPipelines(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const std::vector<StoredPipeline> pipelines,
                        api.deps.control.ListPipelines());
  TARN_ASSIGN_OR_RETURN(const std::vector<TaskStatus> all, api.deps.control.ReadStatus());
  json data = json::array();
  for (const StoredPipeline& pipeline : pipelines) {
    TARN_ASSIGN_OR_RETURN(const bool visible, MaySee(api, context, pipeline.project));
    if (!visible) {
      continue;
    }
    std::vector<TaskStatus> tasks = all;
    std::erase_if(tasks, [&](const TaskStatus& task) { return task.pipeline != pipeline.name; });
    data.push_back({{"name", pipeline.name},
                    {"project", pipeline.project},
                    {"state", StateOf(pipeline, tasks)}});
  }
  return JsonResponse({{"data", std::move(data)}});
}

Result<http::Response> GetPipeline(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(
      const StoredPipeline stored,
      FindPipeline(api, context, context.Path("pipeline"), access::Role::kViewer));
  TARN_ASSIGN_OR_RETURN(const std::vector<TaskStatus> tasks, TasksOf(api, stored.name));
  return JsonResponse(ToJson(stored, tasks, api.clock().Now()));
}

Result<http::Response> ExportPipeline(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(
      const StoredPipeline stored,
      FindPipeline(api, context, context.Path("pipeline"), access::Role::kEditor));
  http::Response response;
  response.headers.Set("Content-Type", "application/yaml");
  response.body = stored.yaml;
  return response;
}

Result<http::Response> DeletePipeline(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(
      const StoredPipeline stored,
      FindPipeline(api, context, context.Path("pipeline"), access::Role::kEditor));
  TARN_RETURN_IF_ERROR(api.deps.control.DeletePipeline(stored.name));
  return NoContent();
}

Result<http::Response> StartPipeline(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(
      const StoredPipeline stored,
      FindPipeline(api, context, context.Path("pipeline"), access::Role::kEditor));
  TARN_RETURN_IF_ERROR(api.deps.control.Start(stored.name));
  return JsonResponse({{"runId", std::string(kFollowPrefix) + stored.name}});
}

Result<http::Response> StopPipeline(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(
      const StoredPipeline stored,
      FindPipeline(api, context, context.Path("pipeline"), access::Role::kEditor));
  TARN_RETURN_IF_ERROR(api.deps.control.Stop(stored.name));
  return GetPipeline(api, context);
}

Result<http::Response> RunOnce(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(
      const StoredPipeline stored,
      FindPipeline(api, context, context.Path("pipeline"), access::Role::kEditor));
  const std::string id = api.uuids().NextV7().ToString();
  TARN_RETURN_IF_ERROR(api.runs.Start(
      id, stored.name,
      [&control = api.deps.control, name = stored.name] { return control.RunOnce(name); }));
  return JsonResponse({{"runId", id}});
}

struct RunView {
  std::string id;
  std::string_view state;
  task::RunOutcome outcome{};
};

json RunToJson(const RunView& view, const StoredPipeline& pipeline,
               const std::vector<TaskStatus>& tasks, Timestamp now) {
  json run = {{"runId", view.id},
              {"pipeline", pipeline.name},
              {"state", view.state},
              {"tasks", ToJson(pipeline, tasks, now)["tasks"]}};
  const Status& failure = view.outcome.status;
  if (!failure.ok()) {
    run["error"] = {{"task", view.outcome.task.empty() ? json() : json(view.outcome.task)},
                    {"name", ErrorNameOf(failure, Family::kNative)},
                    {"code", ErrorCodeName(failure.code())},
                    {"message", failure.message()}};
  }
  return run;
}

// A pipeline that was started: it runs until it is stopped or a task fails.
Result<http::Response> GetFollowed(NativeApi& api, RequestContext& context, const std::string& id) {
  TARN_ASSIGN_OR_RETURN(
      const StoredPipeline stored,
      FindPipeline(api, context, id.substr(kFollowPrefix.size()), access::Role::kViewer));
  TARN_ASSIGN_OR_RETURN(const std::vector<TaskStatus> tasks, TasksOf(api, stored.name));
  RunView view{.id = id, .state = stored.running ? "RUNNING" : "SUCCEEDED"};
  for (const TaskStatus& task : tasks) {
    // One that nobody wants to run keeps its error, which is not of this run.
    if (task.state == TaskState::kError && task.wanted && view.outcome.task.empty()) {
      view.state = "FAILED";
      view.outcome = {.status = Status::Internal(task.last_error).WithReason("TaskFailed"),
                      .task = task.full_name()};
    }
  }
  return JsonResponse(RunToJson(view, stored, tasks, api.clock().Now()));
}

Result<http::Response> GetRun(NativeApi& api, RequestContext& context) {
  const std::string& id = context.Path("run");
  if (id.starts_with(kFollowPrefix)) {
    return GetFollowed(api, context, id);
  }
  const std::optional<RunState> state = api.runs.Find(id);
  if (!state) {
    return Status::NotFound(
        fmt::format("run {} does not exist: it ended long ago, or the server was restarted", id));
  }
  TARN_ASSIGN_OR_RETURN(const StoredPipeline stored,
                        FindPipeline(api, context, state->pipeline, access::Role::kViewer));
  const std::string_view name = state->running               ? "RUNNING"
                                : state->outcome.status.ok() ? "SUCCEEDED"
                                                             : "FAILED";
  TARN_ASSIGN_OR_RETURN(const std::vector<TaskStatus> tasks, TasksOf(api, stored.name));
  return JsonResponse(RunToJson({.id = id, .state = name, .outcome = state->outcome}, stored, tasks,
                                api.clock().Now()));
}

Result<http::Response> GetSchema(NativeApi&, RequestContext&) {
  http::Response response;
  response.headers.Set("Content-Type", "application/schema+json");
  response.body = std::string(pipeline::PipelineSchema());
  return response;
}

constexpr NativeRoute kRoutes[] = {
    {.method = "GET",
     .pattern = "/pipelines:schema",
     .scope = access::Scope::kPipelinesRead,
     .handler = &GetSchema,
     .summary = "The JSON schema of pipeline files.",
     .answer = "application/schema+json"},
    {.method = "POST",
     .pattern = "/pipelines",
     .scope = access::Scope::kPipelinesWrite,
     .handler = &ApplyPipeline,
     .summary = "Makes the server's pipeline as in the file; a running one goes on with it.",
     .request = "application/yaml",
     .audit = "pipeline.apply"},
    {.method = "POST",
     .pattern = "/pipelines:validate",
     .scope = access::Scope::kPipelinesRead,
     .handler = &ValidatePipeline,
     .summary = "Checks a pipeline file.",
     .request = "application/yaml",
     .effect = RouteEffect::kReadOnly},
    {.method = "POST",
     .pattern = "/pipelines:plan",
     .scope = access::Scope::kPipelinesRead,
     .handler = &PlanPipeline,
     .summary = "What applying a file would do: {data: [{object, change, effect, refused}]}.",
     .request = "application/yaml",
     .effect = RouteEffect::kReadOnly},
    {.method = "GET",
     .pattern = "/pipelines",
     .scope = access::Scope::kPipelinesRead,
     .handler = &ListPipelines,
     .summary = "Pipelines of the projects that the caller may view."},
    {.method = "GET",
     .pattern = "/pipelines/{pipeline}",
     .scope = access::Scope::kPipelinesRead,
     .handler = &GetPipeline,
     .summary = "A pipeline and its tasks."},
    {.method = "GET",
     .pattern = "/pipelines/{pipeline}:export",
     .scope = access::Scope::kPipelinesRead,
     .handler = &ExportPipeline,
     .summary = "The pipeline file.",
     .answer = "application/yaml"},
    {.method = "DELETE",
     .pattern = "/pipelines/{pipeline}",
     .scope = access::Scope::kPipelinesWrite,
     .handler = &DeletePipeline,
     .summary = "Stops and forgets a pipeline; its datasets and tables stay.",
     .answer = "",
     .audit = "pipeline.delete"},
    {.method = "POST",
     .pattern = "/pipelines/{pipeline}:start",
     .scope = access::Scope::kPipelinesWrite,
     .handler = &StartPipeline,
     .summary = "Starts all tasks; gives {runId} to follow.",
     .audit = "pipeline.start"},
    {.method = "POST",
     .pattern = "/pipelines/{pipeline}:stop",
     .scope = access::Scope::kPipelinesWrite,
     .handler = &StopPipeline,
     .summary = "Stops all tasks and waits for them.",
     .audit = "pipeline.stop"},
    {.method = "POST",
     .pattern = "/pipelines/{pipeline}:runOnce",
     .scope = access::Scope::kPipelinesWrite,
     .handler = &RunOnce,
     .summary = "Drains the sources, appends, applies; gives {runId} to follow.",
     .audit = "pipeline.run"},
    {.method = "GET",
     .pattern = "/runs/{run}",
     .scope = access::Scope::kPipelinesRead,
     .handler = &GetRun,
     .summary = "A run: {runId, pipeline, state: RUNNING, SUCCEEDED or FAILED, error?, tasks}."},
};

}  // namespace

std::span<const NativeRoute> PipelineRoutes() { return kRoutes; }

}  // namespace tarn::server::native
