// /tarn/v1/tasks and /tarn/v1/status.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/query/resource_name.h"
#include "tarn/server/native/dataset_request.h"
#include "tarn/server/native/native_api.h"
#include "tarn/server/native/row_response.h"
#include "tarn/server/native/task_json.h"
#include "tarn/tree/permission.h"

namespace tarn::server::native {

namespace {

using metastore::SqlTransaction;
using nlohmann::json;
using task::StoredPipeline;
using task::TaskStatus;

// "PIPELINE.TASK".
struct TaskName {
  std::string pipeline;
  std::string task;
};

Result<TaskName> TaskNameOf(const RequestContext& context) {
  const std::string& text = context.Path("task");
  const size_t dot = text.find('.');
  if (dot == std::string::npos || dot == 0 || dot + 1 == text.size()) {
    return Status::InvalidArgument(
        fmt::format("a task is named PIPELINE.TASK, found \"{}\"", text));
  }
  return TaskName{.pipeline = text.substr(0, dot), .task = text.substr(dot + 1)};
}

// Printable ASCII on one line, cut: what a header field can hold.
std::string HeaderText(std::string_view text) {
  std::string out(text.substr(0, 500));
  std::ranges::replace_if(out, [](char c) { return c < ' ' || c > '~'; }, '?');
  return out;
}

Result<TaskStatus> FindTask(NativeApi& api, const RequestContext& context, access::Role role) {
  TARN_ASSIGN_OR_RETURN(const TaskName name, TaskNameOf(context));
  TARN_RETURN_IF_ERROR(FindPipeline(api, context, name.pipeline, role));
  TARN_ASSIGN_OR_RETURN(const std::vector<TaskStatus> tasks, api.deps.control.ReadStatus());
  const auto found = std::ranges::find_if(tasks, [&](const TaskStatus& task) {
    return task.pipeline == name.pipeline && task.task == name.task;
  });
  if (found == tasks.end()) {
    return Status::NotFound(
        fmt::format("pipeline {} has no task \"{}\"", name.pipeline, name.task));
  }
  return *found;
}

Result<http::Response> GetTask(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const TaskStatus task, FindTask(api, context, access::Role::kViewer));
  return JsonResponse(TaskToJson(task, api.clock().Now()));
}

Result<http::Response> PreviewTask(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const TaskStatus task, FindTask(api, context, access::Role::kViewer));
  if (task.kind != task::TaskKind::kTransform) {
    return Status::InvalidArgument(
        fmt::format("{} is a {} task: only transform tasks have a preview; see landing:sample",
                    task.full_name(), task::TaskKindName(task.kind)));
  }
  TARN_ASSIGN_OR_RETURN(const int64_t rows, RowsAsked(context, "limit"));
  TARN_ASSIGN_OR_RETURN(task::MappedRows mapped,
                        api.deps.control.PreviewTask(task.pipeline, task.task, rows));
  TARN_ASSIGN_OR_RETURN(http::Response response, RowsResponse(context, std::move(mapped.rows)));
  if (mapped.rejected > 0) {
    response.headers.Set("Tarn-Rejected", std::to_string(mapped.rejected));
    response.headers.Set("Tarn-First-Rejection", HeaderText(mapped.first_rejection));
  }
  return response;
}

Result<http::Response> StartTask(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const TaskStatus task, FindTask(api, context, access::Role::kEditor));
  TARN_RETURN_IF_ERROR(api.deps.control.StartTask(task.pipeline, task.task));
  return GetTask(api, context);
}

Result<http::Response> StopTask(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const TaskStatus task, FindTask(api, context, access::Role::kEditor));
  TARN_RETURN_IF_ERROR(api.deps.control.StopTask(task.pipeline, task.task));
  return GetTask(api, context);
}

Result<http::Response> PrepareTask(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const TaskStatus task, FindTask(api, context, access::Role::kEditor));
  TARN_RETURN_IF_ERROR(api.deps.control.Prepare(task.pipeline));
  return GetTask(api, context);
}

Result<http::Response> ApplyTask(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const TaskStatus task, FindTask(api, context, access::Role::kEditor));
  if (task.kind != task::TaskKind::kTransform) {
    return Status::InvalidArgument(fmt::format("{} is a {} task: only transform tasks apply",
                                               task.full_name(), task::TaskKindName(task.kind)));
  }
  TARN_RETURN_IF_ERROR(api.deps.control.ApplyTask(task.pipeline, task.task));
  return GetTask(api, context);
}

Result<http::Response> ReloadTask(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const TaskStatus task, FindTask(api, context, access::Role::kEditor));
  if (task.kind != task::TaskKind::kTransform) {
    return Status::InvalidArgument(fmt::format("{} is a {} task: only transform tasks reload",
                                               task.full_name(), task::TaskKindName(task.kind)));
  }
  TARN_ASSIGN_OR_RETURN(const json body, OptionalBody(context));
  task::ReloadOptions options;
  TARN_ASSIGN_OR_RETURN(options.type, TextMember(body, "type"));
  TARN_ASSIGN_OR_RETURN(options.from, TextMember(body, "from"));
  TARN_ASSIGN_OR_RETURN(options.to, TextMember(body, "to"));
  TARN_RETURN_IF_ERROR(api.deps.control.ReloadTask(task.pipeline, task.task, options));
  return GetTask(api, context);
}

Result<http::Response> RecreateTask(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const TaskStatus task, FindTask(api, context, access::Role::kEditor));
  if (task.kind != task::TaskKind::kTransform) {
    return Status::Unimplemented(fmt::format(
        "{} is a landing task: making its dataset again is not available in this version; land "
        "under another name",
        task.full_name()));
  }
  TARN_RETURN_IF_ERROR(api.deps.control.RecreateTask(task.pipeline, task.task));
  return GetTask(api, context);
}

// Runs the whole pipeline once and waits for it.
Result<http::Response> RunTaskOnce(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const TaskStatus task, FindTask(api, context, access::Role::kEditor));
  const task::RunOutcome outcome = api.deps.control.RunOnce(task.pipeline);
  if (!outcome.status.ok()) {
    return outcome.task.empty() ? outcome.status : outcome.status.WithContext(outcome.task);
  }
  return GetTask(api, context);
}

// All tasks that the caller may see.
Result<json> ListVisible(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const std::vector<StoredPipeline> pipelines,
                        api.deps.control.ListPipelines());
  std::map<std::string, bool> visible;
  for (const StoredPipeline& pipeline : pipelines) {
    TARN_ASSIGN_OR_RETURN(visible[pipeline.name], MaySee(api, context, pipeline.project));
  }
  TARN_ASSIGN_OR_RETURN(const std::vector<TaskStatus> tasks, api.deps.control.ReadStatus());
  const Timestamp now = api.clock().Now();
  json list = json::array();
  for (const TaskStatus& task : tasks) {
    if (visible[task.pipeline]) {
      list.push_back(TaskToJson(task, now));
    }
  }
  return list;
}

Result<http::Response> GetStatus(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(json tasks, ListVisible(api, context));
  return JsonResponse({{"tasks", std::move(tasks)}});
}

Result<http::Response> ListTasks(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(json tasks, ListVisible(api, context));
  return JsonResponse({{"data", std::move(tasks)}});
}

constexpr NativeRoute kRoutes[] = {
    {.method = "GET",
     .pattern = "/status",
     .scope = access::Scope::kPipelinesRead,
     .handler = &GetStatus,
     .summary = "State and numbers of all tasks: {tasks: […]}."},
    {.method = "GET",
     .pattern = "/tasks",
     .scope = access::Scope::kPipelinesRead,
     .handler = &ListTasks,
     .summary = "All tasks of the projects that the caller may view."},
    {.method = "GET",
     .pattern = "/tasks/{task}",
     .scope = access::Scope::kPipelinesRead,
     .handler = &GetTask,
     .summary = "State and numbers of the task PIPELINE.TASK."},
    {.method = "POST",
     .pattern = "/tasks/{task}:preview",
     .scope = access::Scope::kPipelinesRead,
     .handler = &PreviewTask,
     .summary = "The first landed rows as the mapping of a transform task makes them, as "
                "application/json (an array of objects) or text/csv. Rows that it rejects are "
                "counted in Tarn-Rejected, the first reason is in Tarn-First-Rejection.",
     .query = "limit",
     .effect = RouteEffect::kReadOnly},
    {.method = "POST",
     .pattern = "/tasks/{task}:start",
     .scope = access::Scope::kPipelinesWrite,
     .handler = &StartTask,
     .summary = "Starts one task; the others of its pipeline stay as they are.",
     .audit = "task.start"},
    {.method = "POST",
     .pattern = "/tasks/{task}:stop",
     .scope = access::Scope::kPipelinesWrite,
     .handler = &StopTask,
     .summary = "Stops one task at its next commit and waits for it.",
     .audit = "task.stop"},
    {.method = "POST",
     .pattern = "/tasks/{task}:prepare",
     .scope = access::Scope::kPipelinesWrite,
     .handler = &PrepareTask,
     .summary = "Makes the datasets of the task's pipeline, checks its tables and mappings.",
     .audit = "task.prepare"},
    {.method = "POST",
     .pattern = "/tasks/{task}:apply",
     .scope = access::Scope::kPipelinesWrite,
     .handler = &ApplyTask,
     .summary = "Applies the unapplied changes of a transform task now.",
     .audit = "task.apply"},
    {.method = "POST",
     .pattern = "/tasks/{task}:reload",
     .scope = access::Scope::kPipelinesWrite,
     .handler = &ReloadTask,
     .summary =
         "Makes the table of a transform task equal to what has landed, in one commit: "
         "{type?, from?, to?}: compare_and_apply, compare_and_apply_without_deletes (the only "
         "one for a range of landing transactions) or drop_and_create.",
     .request = "application/json",
     .audit = "task.reload"},
    {.method = "POST",
     .pattern = "/tasks/{task}:recreate",
     .scope = access::Scope::kPipelinesWrite,
     .handler = &RecreateTask,
     .summary = "Drops the table and views of a transform task: it makes them again from all that "
                "has landed.",
     .audit = "task.recreate"},
    {.method = "POST",
     .pattern = "/tasks/{task}:runOnce",
     .scope = access::Scope::kPipelinesWrite,
     .handler = &RunTaskOnce,
     .summary = "Runs the pipeline of the task once and waits for it.",
     .audit = "task.run"},
};

}  // namespace

namespace {

json TimeToJson(const std::optional<Timestamp>& time) {
  return time ? json(FormatTimestamp(*time)) : json();
}

}  // namespace

json TaskToJson(const TaskStatus& task, Timestamp now) {
  json partitions = json::array();
  for (const task::TaskPartition& one : task.partitions) {
    partitions.push_back({{"topic", one.topic},
                          {"partition", one.partition},
                          {"next_offset", one.next_offset},
                          {"end_offset", one.end_offset},
                          {"lag_rows", one.lag_rows},
                          {"lag_seconds", one.LagSeconds(now)},
                          {"data_updated_to", TimeToJson(one.newest)},
                          {"error", one.error.empty() ? json() : json(one.error)}});
  }
  json warnings = json::array();
  for (const task::TaskWarning& warning : task.warnings) {
    warnings.push_back(
        {{"code", warning.code}, {"object", warning.object}, {"at", FormatTimestamp(warning.at)}});
  }
  return {{"task", task.full_name()},
          {"kind", task::TaskKindName(task.kind)},
          {"state", task::TaskStateName(task.state)},
          {"rows_in", task.totals.rows_in},
          {"rows_out", task.totals.rows_out},
          {"rejected", task.totals.rejected},
          {"filtered", task.totals.filtered},
          {"unapplied", task.unapplied},
          {"lag_rows", task.lag_rows},
          {"lag_bytes", task.lag_bytes},
          {"lag_seconds", task.LagSeconds(now)},
          {"rows_per_second", task.rows_per_second},
          {"partitions", std::move(partitions)},
          {"data_updated_to", TimeToJson(task.data_updated_to)},
          {"last_commit", TimeToJson(task.last_commit)},
          {"last_apply", TimeToJson(task.last_apply)},
          {"last_error", task.last_error.empty() ? json() : json(task.last_error)},
          {"counts", task.totals.counts},
          {"warnings", std::move(warnings)}};
}

Result<bool> MaySee(NativeApi& api, const RequestContext& context, const std::string& project) {
  const Status seen = api.database().Read([&](SqlTransaction& sql) -> Status {
    const Result<tree::Node> node = query::FindProject(sql, project);
    return node.ok() ? RequireProject(api, sql, context, project, access::Role::kViewer)
                     : RequireAdmin(api, sql, context);
  });
  if (seen.code() == ErrorCode::kNotFound || seen.code() == ErrorCode::kPermissionDenied) {
    return false;
  }
  TARN_RETURN_IF_ERROR(seen);
  return true;
}

Result<StoredPipeline> FindPipeline(NativeApi& api, const RequestContext& context,
                                    const std::string& name, access::Role role) {
  TARN_ASSIGN_OR_RETURN(StoredPipeline stored, api.deps.control.GetPipeline(name));
  TARN_ASSIGN_OR_RETURN(const bool visible, MaySee(api, context, stored.project));
  if (!visible) {
    return Status::NotFound(fmt::format("pipeline {} does not exist", name));
  }
  TARN_RETURN_IF_ERROR(api.database().Read([&](SqlTransaction& sql) -> Status {
    const Result<tree::Node> node = query::FindProject(sql, stored.project);
    return node.ok() ? RequireProject(api, sql, context, stored.project, role)
                     : RequireAdmin(api, sql, context);
  }));
  return stored;
}

std::span<const NativeRoute> TaskRoutes() { return kRoutes; }

}  // namespace tarn::server::native
