#include "tarn/task/task_status.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tarn::task {

namespace {

using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;
using metastore::SqlValue;

constexpr std::string_view kSchema = R"sql(
CREATE TABLE task_pipeline (
  name TEXT PRIMARY KEY,
  project TEXT NOT NULL,
  yaml TEXT NOT NULL,
  applied_by TEXT NOT NULL,
  applied_at INTEGER NOT NULL,
  running INTEGER NOT NULL
);
CREATE TABLE task_status (
  pipeline TEXT NOT NULL,
  task TEXT NOT NULL,
  kind INTEGER NOT NULL,
  state INTEGER NOT NULL,
  totals TEXT NOT NULL,
  unapplied INTEGER NOT NULL,
  lag_rows INTEGER NOT NULL,
  lag_seconds REAL NOT NULL,
  data_updated_to INTEGER,
  last_error TEXT NOT NULL,
  PRIMARY KEY (pipeline, task)
);
)sql";

// What was the pipeline's flag is each task's own.
constexpr std::string_view kSchemaPerTask = R"sql(
ALTER TABLE task_status ADD COLUMN wanted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE task_status ADD COLUMN details TEXT NOT NULL DEFAULT '{}';
ALTER TABLE task_pipeline ADD COLUMN variables TEXT NOT NULL DEFAULT '{}';
UPDATE task_status SET wanted = COALESCE(
  (SELECT running FROM task_pipeline WHERE task_pipeline.name = task_status.pipeline), 0);
)sql";

nlohmann::json TimeToJson(const std::optional<Timestamp>& time) {
  return time ? nlohmann::json(ToMicros(*time)) : nlohmann::json();
}

std::optional<Timestamp> TimeIn(const nlohmann::json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number_integer()
             ? std::optional(FromMicros(found->get<int64_t>()))
             : std::nullopt;
}

// What has no column of its own.
std::string EncodeDetails(const TaskStatus& status) {
  nlohmann::json warnings = nlohmann::json::array();
  for (const TaskWarning& warning : status.warnings) {
    warnings.push_back(
        {{"code", warning.code}, {"object", warning.object}, {"at", ToMicros(warning.at)}});
  }
  nlohmann::json partitions = nlohmann::json::array();
  for (const TaskPartition& one : status.partitions) {
    partitions.push_back({{"topic", one.topic},
                          {"partition", one.partition},
                          {"next", one.next_offset},
                          {"end", one.end_offset},
                          {"lag", one.lag_rows},
                          {"newest", TimeToJson(one.newest)},
                          {"error", one.error}});
  }
  return nlohmann::json{{"behind_since", TimeToJson(status.behind_since)},
                        {"last_commit", TimeToJson(status.last_commit)},
                        {"last_apply", TimeToJson(status.last_apply)},
                        {"partitions", std::move(partitions)},
                        {"rows_per_second", status.rows_per_second},
                        {"lag_bytes", status.lag_bytes},
                        {"warnings", std::move(warnings)}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void DecodeDetails(std::string_view text, TaskStatus& status) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return;
  }
  status.behind_since = TimeIn(json, "behind_since");
  status.last_commit = TimeIn(json, "last_commit");
  status.last_apply = TimeIn(json, "last_apply");
  status.rows_per_second = json.value("rows_per_second", 0.0);
  status.lag_bytes = json.value("lag_bytes", int64_t{0});
  for (const nlohmann::json& one : json.value("partitions", nlohmann::json::array())) {
    if (one.is_object()) {
      status.partitions.push_back({.topic = one.value("topic", ""),
                                   .partition = one.value("partition", 0),
                                   .next_offset = one.value("next", int64_t{0}),
                                   .end_offset = one.value("end", int64_t{0}),
                                   .lag_rows = one.value("lag", int64_t{0}),
                                   .newest = TimeIn(one, "newest"),
                                   .error = one.value("error", "")});
    }
  }
  for (const nlohmann::json& warning : json.value("warnings", nlohmann::json::array())) {
    if (warning.is_object()) {
      status.warnings.push_back({.code = warning.value("code", ""),
                                 .object = warning.value("object", ""),
                                 .at = TimeIn(warning, "at").value_or(Timestamp{})});
    }
  }
}

std::string EncodeTotals(const TaskTotals& totals) {
  return nlohmann::json{{"rows_in", totals.rows_in},
                        {"rows_out", totals.rows_out},
                        {"rejected", totals.rejected},
                        {"filtered", totals.filtered},
                        {"counts", totals.counts}}
      .dump();
}

TaskTotals DecodeTotals(std::string_view text) {
  TaskTotals totals;
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) {
    totals.rows_in = json.value("rows_in", int64_t{0});
    totals.rows_out = json.value("rows_out", int64_t{0});
    totals.rejected = json.value("rejected", int64_t{0});
    totals.filtered = json.value("filtered", int64_t{0});
    totals.counts = json.value("counts", std::map<std::string, int64_t>());
  }
  return totals;
}

pipeline::Variables DecodeVariables(std::string_view text) {
  pipeline::Variables variables;
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) {
    for (const auto& [name, value] : json.items()) {
      variables[name] = value.is_string() ? value.get<std::string>() : std::string();
    }
  }
  return variables;
}

StoredPipeline PipelineAt(const SqlRow& row) {
  return {.name = std::string(row.Text(0)),
          .project = std::string(row.Text(1)),
          .yaml = std::string(row.Text(2)),
          .by = std::string(row.Text(3)),
          .applied = FromMicros(row.Int(4)),
          .variables = DecodeVariables(row.Text(5)),
          .running = row.Int(6) != 0};
}

constexpr std::string_view kPipelineColumns =
    "SELECT name, project, yaml, applied_by, applied_at, variables, (SELECT COUNT(*) FROM "
    "task_status WHERE task_status.pipeline = task_pipeline.name AND wanted <> 0) FROM "
    "task_pipeline ";

}  // namespace

std::vector<metastore::Migration> Migrations() {
  return {{"task", 1, std::string(kSchema)}, {"task", 2, std::string(kSchemaPerTask)}};
}

std::string_view TaskKindName(TaskKind kind) {
  return kind == TaskKind::kLanding ? "landing" : "transform";
}

std::string_view TaskStateName(TaskState state) {
  switch (state) {
    case TaskState::kQueued:
      return "QUEUED";
    case TaskState::kRunning:
      return "RUNNING";
    case TaskState::kError:
      return "ERROR";
    case TaskState::kStopped:
      return "STOPPED";
    case TaskState::kSuspended:
      return "SUSPENDED";
  }
  return "STOPPED";
}

TaskTotals Sum(const TaskTotals& a, const TaskTotals& b) {
  TaskTotals sum{.rows_in = a.rows_in + b.rows_in,
                 .rows_out = a.rows_out + b.rows_out,
                 .rejected = a.rejected + b.rejected,
                 .filtered = a.filtered + b.filtered,
                 .counts = a.counts};
  for (const auto& [name, count] : b.counts) {
    sum.counts[name] += count;
  }
  return sum;
}

double TaskStatus::LagSeconds(Timestamp now) const {
  return behind_since && now > *behind_since
             ? std::chrono::duration<double>(now - *behind_since).count()
             : 0.0;
}

double TaskPartition::LagSeconds(Timestamp now) const {
  return lag_rows > 0 && newest && now > *newest
             ? std::chrono::duration<double>(now - *newest).count()
             : 0.0;
}

void TaskStatus::Warn(TaskWarning warning) {
  std::erase_if(warnings, [&](const TaskWarning& known) {
    return known.code == warning.code && known.object == warning.object;
  });
  warnings.push_back(std::move(warning));
  if (warnings.size() > kWarningsMax) {
    warnings.erase(warnings.begin());
  }
}

Status WriteTaskStatus(SqlTransaction& sql, const TaskStatus& status) {
  const SqlValue updated = status.data_updated_to ? SqlValue(ToMicros(*status.data_updated_to))
                                                  : SqlValue(std::monostate());
  TARN_RETURN_IF_ERROR(sql.Execute(
      "INSERT INTO task_status (pipeline, task, kind, state, totals, unapplied, lag_rows, "
      "lag_seconds, data_updated_to, last_error, wanted, details) VALUES (?1, ?2, ?3, ?4, ?5, ?6, "
      "?7, 0, ?8, ?9, ?10, ?11) ON CONFLICT (pipeline, task) DO UPDATE SET kind = excluded.kind, "
      "state = excluded.state, totals = excluded.totals, unapplied = excluded.unapplied, lag_rows "
      "= excluded.lag_rows, data_updated_to = excluded.data_updated_to, last_error = "
      "excluded.last_error, details = excluded.details",
      {status.pipeline, status.task, static_cast<int64_t>(status.kind),
       static_cast<int64_t>(status.state), EncodeTotals(status.totals), status.unapplied,
       status.lag_rows, updated, status.last_error, static_cast<int64_t>(status.wanted),
       EncodeDetails(status)}));
  return Status::Ok();
}

Status WriteTaskTotals(SqlTransaction& sql, const TaskStatus& status) {
  const SqlValue updated = status.data_updated_to ? SqlValue(ToMicros(*status.data_updated_to))
                                                  : SqlValue(std::monostate());
  return StatusOf(sql.Execute(
      "UPDATE task_status SET totals = ?3, data_updated_to = COALESCE(?4, data_updated_to) WHERE "
      "pipeline = ?1 AND task = ?2",
      {status.pipeline, status.task, EncodeTotals(status.totals), updated}));
}

Result<std::vector<TaskStatus>> ReadTaskStatuses(SqlTransaction& sql, std::string_view pipeline) {
  std::vector<TaskStatus> statuses;
  TARN_RETURN_IF_ERROR(sql.Query(
      "SELECT pipeline, task, kind, state, totals, unapplied, lag_rows, data_updated_to, "
      "last_error, wanted, details FROM task_status WHERE ?1 = '' OR pipeline = ?1 ORDER BY "
      "pipeline, task",
      {std::string(pipeline)}, [&](const SqlRow& row) -> Result<RowAction> {
        TaskStatus status;
        status.pipeline = row.Text(0);
        status.task = row.Text(1);
        status.kind = static_cast<TaskKind>(row.Int(2));
        status.state = static_cast<TaskState>(row.Int(3));
        status.totals = DecodeTotals(row.Text(4));
        status.unapplied = row.Int(5);
        status.lag_rows = row.Int(6);
        if (!row.IsNull(7)) {
          status.data_updated_to = FromMicros(row.Int(7));
        }
        status.last_error = row.Text(8);
        status.wanted = row.Int(9) != 0;
        DecodeDetails(row.Text(10), status);
        statuses.push_back(std::move(status));
        return RowAction::kContinue;
      }));
  return statuses;
}

Status SetWanted(SqlTransaction& sql, std::string_view pipeline, std::string_view task,
                 bool wanted) {
  TARN_RETURN_IF_ERROR(sql.Execute(
      "UPDATE task_status SET wanted = ?3 WHERE pipeline = ?1 AND (?2 = '' OR task = ?2)",
      {std::string(pipeline), std::string(task), static_cast<int64_t>(wanted)}));
  return Status::Ok();
}

Status QueueTask(SqlTransaction& sql, std::string_view pipeline, std::string_view task) {
  TARN_RETURN_IF_ERROR(sql.Execute(
      "UPDATE task_status SET state = ?3, last_error = '' WHERE pipeline = ?1 AND task "
      "= ?2",
      {std::string(pipeline), std::string(task), static_cast<int64_t>(TaskState::kQueued)}));
  return Status::Ok();
}

Status ForgetTask(SqlTransaction& sql, std::string_view pipeline, std::string_view task) {
  TARN_RETURN_IF_ERROR(sql.Execute("DELETE FROM task_status WHERE pipeline = ?1 AND task = ?2",
                                   {std::string(pipeline), std::string(task)}));
  return Status::Ok();
}

Status StopAbandonedTasks(SqlTransaction& sql) {
  return StatusOf(sql.Execute(
      "UPDATE task_status SET state = ?1, last_error = ?2 WHERE wanted = 0 AND state IN (?3, ?4)",
      {static_cast<int64_t>(TaskState::kStopped),
       std::string("the server ended while it ran: what it committed stays, run it again"),
       static_cast<int64_t>(TaskState::kQueued), static_cast<int64_t>(TaskState::kRunning)}));
}

Status FailWantedTasks(SqlTransaction& sql, std::string_view pipeline, const std::string& error) {
  return StatusOf(sql.Execute(
      "UPDATE task_status SET state = ?2, last_error = ?3 WHERE pipeline = ?1 AND wanted <> 0",
      {std::string(pipeline), static_cast<int64_t>(TaskState::kError), error}));
}

Status WritePipeline(SqlTransaction& sql, const StoredPipeline& pipeline) {
  TARN_RETURN_IF_ERROR(sql.Execute(
      "INSERT INTO task_pipeline (name, project, yaml, applied_by, applied_at, variables, running) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0) ON CONFLICT (name) DO UPDATE SET project = "
      "excluded.project, yaml = excluded.yaml, applied_by = excluded.applied_by, applied_at = "
      "excluded.applied_at, variables = excluded.variables",
      {pipeline.name, pipeline.project, pipeline.yaml, pipeline.by, ToMicros(pipeline.applied),
       nlohmann::json(pipeline.variables)
           .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)}));
  return Status::Ok();
}

Result<StoredPipeline> ReadPipeline(SqlTransaction& sql, std::string_view name) {
  std::optional<StoredPipeline> found;
  TARN_RETURN_IF_ERROR(sql.Query(std::string(kPipelineColumns) + "WHERE name = ?1",
                                 {std::string(name)}, [&](const SqlRow& row) -> Result<RowAction> {
                                   found = PipelineAt(row);
                                   return RowAction::kStop;
                                 }));
  if (!found) {
    return Status::NotFound(fmt::format("there is no pipeline {}", name));
  }
  return *found;
}

Result<std::vector<StoredPipeline>> ReadPipelines(SqlTransaction& sql) {
  std::vector<StoredPipeline> pipelines;
  TARN_RETURN_IF_ERROR(sql.Query(std::string(kPipelineColumns) + "ORDER BY name", {},
                                 [&](const SqlRow& row) -> Result<RowAction> {
                                   pipelines.push_back(PipelineAt(row));
                                   return RowAction::kContinue;
                                 }));
  return pipelines;
}

Status DeletePipeline(SqlTransaction& sql, std::string_view name) {
  TARN_ASSIGN_OR_RETURN(
      const int64_t removed,
      sql.Execute("DELETE FROM task_pipeline WHERE name = ?1", {std::string(name)}));
  if (removed == 0) {
    return Status::NotFound(fmt::format("there is no pipeline {}", name));
  }
  TARN_RETURN_IF_ERROR(
      sql.Execute("DELETE FROM task_status WHERE pipeline = ?1", {std::string(name)}));
  return Status::Ok();
}

}  // namespace tarn::task
