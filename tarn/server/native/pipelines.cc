// /tarn/v1/pipelines and /tarn/v1/runs.
#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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

constexpr uint64_t kFileBytesMax = 4 << 20;
constexpr std::string_view kFollowPrefix = "pipeline:";  // Run ids of pipelines that were started.

Result<std::string> ReadFile(RequestContext& context) {
  return http::ReadAll(*context.http.body, kFileBytesMax);
}

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

json ToJson(const StoredPipeline& pipeline, const std::vector<TaskStatus>& tasks) {
  json list = json::array();
  for (const TaskStatus& task : tasks) {
    list.push_back(TaskToJson(task));
  }
  return {{"name", pipeline.name},
          {"project", pipeline.project},
          {"state", StateOf(pipeline, tasks)},
          {"appliedTime", FormatTimestamp(pipeline.applied)},
          {"appliedBy", pipeline.by},
          {"tasks", std::move(list)}};
}

// May the caller apply a pipeline there? A project that is missing will be made.
Status RequireApply(NativeApi& api, const RequestContext& context, const std::string& project) {
  return api.database().Read([&](SqlTransaction& sql) -> Status {
    const Result<tree::Node> node = query::FindProject(sql, project);
    if (!node.ok() && node.status().code() == ErrorCode::kNotFound) {
      return RequireAdmin(api, sql, context)
          .WithContext(fmt::format("make the project \"{}\"", project));
    }
    return RequireProject(api, sql, context, project, access::Role::kEditor);
  });
}

// Line and column of "line 7, column 3: …" as parameters of the failure.
Status WithPlace(const Status& failure) {
  int line = 0;
  int column = 0;
  const bool placed =
      std::sscanf(failure.message().c_str(), "line %d, column %d", &line, &column) == 2;
  return placed ? failure.WithReason("InvalidPipeline",
                                     json{{"line", line}, {"column", column}}.dump())
                : failure;
}

Result<pipeline::PipelineSpec> ParseFile(const std::string& yaml) {
  Result<pipeline::PipelineSpec> spec = pipeline::ParsePipeline(yaml);
  return spec.ok() ? std::move(spec) : Result<pipeline::PipelineSpec>(WithPlace(spec.status()));
}

Result<http::Response> ApplyPipeline(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const std::string yaml, ReadFile(context));
  TARN_ASSIGN_OR_RETURN(const pipeline::PipelineSpec spec, ParseFile(yaml));
  TARN_RETURN_IF_ERROR(RequireApply(api, context, spec.project));
  // The name may be taken by a pipeline of another project.
  const Result<StoredPipeline> before = api.deps.control.GetPipeline(spec.name);
  if (before.ok() && before->project != spec.project) {
    return Status::AlreadyExists(fmt::format(
        "pipeline {} is in project \"{}\": delete it there first", spec.name, before->project));
  }
  TARN_ASSIGN_OR_RETURN(const StoredPipeline stored,
                        api.deps.control.ApplyPipeline(yaml, context.principal.user_id));
  TARN_ASSIGN_OR_RETURN(const std::vector<TaskStatus> tasks, TasksOf(api, stored.name));
  return JsonResponse(ToJson(stored, tasks));
}

Result<http::Response> ValidatePipeline(NativeApi&, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const std::string yaml, ReadFile(context));
  TARN_ASSIGN_OR_RETURN(const pipeline::PipelineSpec spec, ParseFile(yaml));
  return JsonResponse({{"name", spec.name}, {"project", spec.project}, {"valid", true}});
}

Result<http::Response> PlanPipeline(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const std::string yaml, ReadFile(context));
  TARN_ASSIGN_OR_RETURN(const pipeline::PipelineSpec spec, ParseFile(yaml));
  TARN_RETURN_IF_ERROR(RequireApply(api, context, spec.project));
  TARN_ASSIGN_OR_RETURN(const std::vector<std::string> changes,
                        api.deps.control.PlanPipeline(yaml));
  json data = json::array();
  for (const std::string& change : changes) {
    data.push_back({{"object", spec.name}, {"change", change}});
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
  return JsonResponse(ToJson(stored, tasks));
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

json RunToJson(const std::string& id, const StoredPipeline& pipeline, std::string_view state,
               const Status& failure, const std::vector<TaskStatus>& tasks) {
  json run = ToJson(pipeline, tasks);
  run = {{"runId", id}, {"pipeline", pipeline.name}, {"state", state}, {"tasks", run["tasks"]}};
  if (!failure.ok()) {
    run["error"] = {{"task", pipeline.name},
                    {"name", ErrorNameOf(failure, Family::kNative)},
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
  for (const TaskStatus& task : tasks) {
    if (task.state == TaskState::kError) {
      json run = RunToJson(id, stored, "FAILED", Status::Internal(task.last_error), tasks);
      run["error"]["task"] = task.full_name();
      run["error"]["name"] = "TaskFailed";
      return JsonResponse(run);
    }
  }
  return JsonResponse(
      RunToJson(id, stored, stored.running ? "RUNNING" : "SUCCEEDED", Status::Ok(), tasks));
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
  const std::string_view name = state->running        ? "RUNNING"
                                : state->outcome.ok() ? "SUCCEEDED"
                                                      : "FAILED";
  TARN_ASSIGN_OR_RETURN(const std::vector<TaskStatus> tasks, TasksOf(api, stored.name));
  return JsonResponse(RunToJson(id, stored, name, state->outcome, tasks));
}

constexpr NativeRoute kRoutes[] = {
    {.method = "POST",
     .pattern = "/pipelines",
     .scope = access::Scope::kPipelinesWrite,
     .handler = &ApplyPipeline,
     .summary = "Makes the server's pipeline as in the file; a running one goes on with it.",
     .request = "application/yaml"},
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
     .summary = "What applying a file would change.",
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
     .answer = ""},
    {.method = "POST",
     .pattern = "/pipelines/{pipeline}:start",
     .scope = access::Scope::kPipelinesWrite,
     .handler = &StartPipeline,
     .summary = "Starts all tasks; gives {runId} to follow."},
    {.method = "POST",
     .pattern = "/pipelines/{pipeline}:stop",
     .scope = access::Scope::kPipelinesWrite,
     .handler = &StopPipeline,
     .summary = "Stops all tasks and waits for them."},
    {.method = "POST",
     .pattern = "/pipelines/{pipeline}:runOnce",
     .scope = access::Scope::kPipelinesWrite,
     .handler = &RunOnce,
     .summary = "Drains the sources, appends, applies; gives {runId} to follow."},
    {.method = "GET",
     .pattern = "/runs/{run}",
     .scope = access::Scope::kPipelinesRead,
     .handler = &GetRun,
     .summary = "A run: {runId, pipeline, state: RUNNING, SUCCEEDED or FAILED, error?, tasks}."},
};

}  // namespace

std::span<const NativeRoute> PipelineRoutes() { return kRoutes; }

}  // namespace tarn::server::native
