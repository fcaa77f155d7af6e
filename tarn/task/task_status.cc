#include "tarn/task/task_status.h"

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

StoredPipeline PipelineAt(const SqlRow& row) {
  return {.name = std::string(row.Text(0)),
          .project = std::string(row.Text(1)),
          .yaml = std::string(row.Text(2)),
          .by = std::string(row.Text(3)),
          .applied = FromMicros(row.Int(4)),
          .running = row.Int(5) != 0};
}

constexpr std::string_view kPipelineColumns =
    "SELECT name, project, yaml, applied_by, applied_at, running FROM task_pipeline ";

}  // namespace

std::vector<metastore::Migration> Migrations() { return {{"task", 1, std::string(kSchema)}}; }

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

Status WriteTaskStatus(SqlTransaction& sql, const TaskStatus& status) {
  const SqlValue updated = status.data_updated_to ? SqlValue(ToMicros(*status.data_updated_to))
                                                  : SqlValue(std::monostate());
  TARN_RETURN_IF_ERROR(sql.Execute(
      "INSERT INTO task_status (pipeline, task, kind, state, totals, unapplied, lag_rows, "
      "lag_seconds, data_updated_to, last_error) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) "
      "ON CONFLICT (pipeline, task) DO UPDATE SET kind = excluded.kind, state = excluded.state, "
      "totals = excluded.totals, unapplied = excluded.unapplied, lag_rows = excluded.lag_rows, "
      "lag_seconds = excluded.lag_seconds, data_updated_to = excluded.data_updated_to, last_error "
      "= excluded.last_error",
      {status.pipeline, status.task, static_cast<int64_t>(status.kind),
       static_cast<int64_t>(status.state), EncodeTotals(status.totals), status.unapplied,
       status.lag_rows, status.lag_seconds, updated, status.last_error}));
  return Status::Ok();
}

Result<std::vector<TaskStatus>> ReadTaskStatuses(SqlTransaction& sql, std::string_view pipeline) {
  std::vector<TaskStatus> statuses;
  TARN_RETURN_IF_ERROR(sql.Query(
      "SELECT pipeline, task, kind, state, totals, unapplied, lag_rows, lag_seconds, "
      "data_updated_to, last_error FROM task_status WHERE ?1 = '' OR pipeline = ?1 ORDER BY "
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
        status.lag_seconds = row.Real(7);
        if (!row.IsNull(8)) {
          status.data_updated_to = FromMicros(row.Int(8));
        }
        status.last_error = row.Text(9);
        statuses.push_back(std::move(status));
        return RowAction::kContinue;
      }));
  return statuses;
}

Status ForgetTask(SqlTransaction& sql, std::string_view pipeline, std::string_view task) {
  TARN_RETURN_IF_ERROR(sql.Execute("DELETE FROM task_status WHERE pipeline = ?1 AND task = ?2",
                                   {std::string(pipeline), std::string(task)}));
  return Status::Ok();
}

Status WritePipeline(SqlTransaction& sql, const StoredPipeline& pipeline) {
  TARN_RETURN_IF_ERROR(sql.Execute(
      "INSERT INTO task_pipeline (name, project, yaml, applied_by, applied_at, running) VALUES "
      "(?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (name) DO UPDATE SET project = excluded.project, yaml "
      "= excluded.yaml, applied_by = excluded.applied_by, applied_at = excluded.applied_at",
      {pipeline.name, pipeline.project, pipeline.yaml, pipeline.by, ToMicros(pipeline.applied),
       static_cast<int64_t>(pipeline.running)}));
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

Status SetRunning(SqlTransaction& sql, std::string_view name, bool running) {
  TARN_RETURN_IF_ERROR(sql.Execute("UPDATE task_pipeline SET running = ?1 WHERE name = ?2",
                                   {static_cast<int64_t>(running), std::string(name)}));
  return Status::Ok();
}

}  // namespace tarn::task
