// Care of Iceberg tables: GET …/doctor and …/trace, POST …:compact, :expire and :orphans.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/base/log.h"
#include "tarn/base/quantity.h"
#include "tarn/maintenance/compaction.h"
#include "tarn/maintenance/doctor.h"
#include "tarn/maintenance/expiry.h"
#include "tarn/maintenance/orphans.h"
#include "tarn/maintenance/trace.h"
#include "tarn/query/result_format.h"
#include "tarn/server/native/audited.h"
#include "tarn/server/native/table_request.h"

namespace tarn::server::native {

namespace {

using nlohmann::json;

// Actions in the audit log.
constexpr std::string_view kCompact = "table.compact";
constexpr std::string_view kExpire = "table.expire";
constexpr std::string_view kOrphans = "table.orphans";

Result<http::Response> GetDoctor(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const FoundTable table, FindTable(api, context, access::Role::kViewer));
  TARN_ASSIGN_OR_RETURN(const std::vector<maintenance::Finding> findings,
                        maintenance::DiagnoseTable(api.deps.query.catalog, table.object.rid));
  json data = json::array();
  for (const maintenance::Finding& finding : findings) {
    data.push_back({{"severity", maintenance::SeverityName(finding.severity)},
                    {"finding", finding.finding},
                    {"advice", finding.advice}});
  }
  return JsonResponse({{"data", std::move(data)}});
}

/// The body {dryRun?, olderThan?, keep?}; absent or empty = none of them.
struct CareBody {
  bool dry_run = false;
  std::optional<std::chrono::milliseconds> older_than;
  std::optional<int32_t> keep;
};

Result<CareBody> ReadBody(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  if (!body.is_object()) {
    return Status::InvalidArgument("the body must be a JSON object");
  }
  CareBody read;
  for (const auto& [name, value] : body.items()) {
    const auto wrong = [&name = name, &value = value](const char* wanted) {
      return Status::InvalidArgument(
          fmt::format("{} must be {}, found {}", name, wanted, value.dump()));
    };
    if (name == "dryRun") {
      if (!value.is_boolean()) {
        return wrong("true or false");
      }
      read.dry_run = value.get<bool>();
    } else if (name == "olderThan") {
      if (!value.is_string()) {
        return wrong("a duration such as \"7d\"");
      }
      TARN_ASSIGN_OR_RETURN(read.older_than, ParseDuration(value.get<std::string>()));
    } else if (name == "keep") {
      if (!value.is_number_integer() || value.get<int64_t>() < 1 ||
          value.get<int64_t>() > INT32_MAX) {
        return wrong("a number of snapshots, at least 1");
      }
      read.keep = value.get<int32_t>();
    } else {
      return Status::InvalidArgument(
          fmt::format("{} is not known: dryRun, olderThan and keep are", name));
    }
  }
  return read;
}

// The table that an upkeep is for. A denial is recorded.
Result<FoundTable> FindForUpkeep(NativeApi& api, const RequestContext& context, access::Role role,
                                 std::string_view action) {
  Result<FoundTable> table = FindTable(api, context, role);
  if (table.status().code() == ErrorCode::kPermissionDenied) {
    TARN_RETURN_IF_ERROR(access::AppendAudit(
        api.database(), AuditOf(api, context, {.action = action, .resource = context.Path("name")},
                                access::AuditOutcome::kDenied)));
  }
  return table;
}

// Puts the record of an upkeep into the SQL transaction of its commit.
metastore::SqlFunction RecordIn(NativeApi& api, const RequestContext& context,
                                std::string_view action, const std::string& table) {
  return [record = AuditOf(api, context, {.action = action, .resource = table},
                           access::AuditOutcome::kDone)](metastore::SqlTransaction& sql) {
    return access::AppendAudit(sql, record);
  };
}

Result<http::Response> PostCompact(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const CareBody body, ReadBody(context));
  if (body.older_than || body.keep) {
    return Status::InvalidArgument("compact takes neither olderThan nor keep");
  }
  TARN_ASSIGN_OR_RETURN(const FoundTable table,
                        FindForUpkeep(api, context, access::Role::kEditor, kCompact));
  TARN_ASSIGN_OR_RETURN(
      const maintenance::CompactionReport report,
      maintenance::CompactTable(
          api.deps.query.catalog, api.deps.query.engine, table.object.rid,
          {.dry_run = body.dry_run, .also = RecordIn(api, context, kCompact, table.name)}));
  return JsonResponse({{"table", table.name},
                       {"dryRun", body.dry_run},
                       {"groups", report.groups},
                       {"filesBefore", report.files_before},
                       {"filesAfter", body.dry_run ? json() : json(report.files_after)},
                       {"bytesBefore", report.bytes_before},
                       {"bytesAfter", body.dry_run ? json() : json(report.bytes_after)},
                       {"deletedRows", body.dry_run ? json() : json(report.deleted_rows)},
                       {"conflicts", report.conflicts}});
}

Result<http::Response> PostExpire(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const CareBody body, ReadBody(context));
  TARN_ASSIGN_OR_RETURN(const FoundTable table,
                        FindForUpkeep(api, context, access::Role::kOwner, kExpire));
  TARN_ASSIGN_OR_RETURN(
      const maintenance::ExpiryReport report,
      maintenance::ExpireSnapshots(api.deps.query.catalog, table.object.rid,
                                   {.older_than = body.older_than,
                                    .keep = body.keep,
                                    .dry_run = body.dry_run,
                                    .also = RecordIn(api, context, kExpire, table.name)}));
  return JsonResponse({{"table", table.name},
                       {"dryRun", body.dry_run},
                       {"snapshots", report.snapshot_ids},
                       {"refs", report.refs},
                       {"manifestLists", report.manifest_lists},
                       {"manifests", report.manifests},
                       {"dataFiles", report.data_files},
                       {"statistics", report.statistics},
                       {"leftBehind", report.left_behind}});
}

// Files are deleted one by one, without a commit: the record follows. That it could not be written
// must not look like files that are still there.
void RecordRemoval(NativeApi& api, const RequestContext& context, const std::string& table,
                   const Result<maintenance::OrphansReport>& report) {
  const ErrorCode code = report.status().code();
  if (code == ErrorCode::kInvalidArgument || code == ErrorCode::kNotFound) {
    return;  // Wrong requests begin nothing.
  }
  access::AuditRecord record =
      AuditOf(api, context, {.action = kOrphans, .resource = table},
              report.ok() ? access::AuditOutcome::kDone : access::AuditOutcome::kFailed);
  json details = json::parse(record.details);
  if (report.ok()) {
    details["removed"] = report->removed;
  } else {
    details["error"] = ErrorCodeName(code);
  }
  record.details = details.dump();
  const Status recorded = access::AppendAudit(api.database(), record);
  if (!recorded.ok()) {
    Log(LogLevel::kError, "server",
        fmt::format("{} of {} is not in the audit log: {}", kOrphans, table, recorded.ToString()));
  }
}

Result<http::Response> PostOrphans(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const CareBody body, ReadBody(context));
  if (body.keep) {
    return Status::InvalidArgument("orphans takes no keep");
  }
  TARN_ASSIGN_OR_RETURN(const FoundTable table,
                        FindForUpkeep(api, context, access::Role::kOwner, kOrphans));
  maintenance::OrphansRequest request{.dry_run = body.dry_run};
  if (body.older_than) {
    request.older_than = *body.older_than;
  }
  const Result<maintenance::OrphansReport> found =
      maintenance::FindOrphans(api.deps.query.catalog, table.object.rid, request);
  if (!body.dry_run) {
    RecordRemoval(api, context, table.name, found);
  }
  TARN_ASSIGN_OR_RETURN(const maintenance::OrphansReport report, found);
  json files = json::array();
  for (const maintenance::OrphanFile& file : report.files) {
    files.push_back({{"path", file.uri},
                     {"sizeBytes", file.size_bytes},
                     {"modifiedTime", FormatTimestamp(file.modified)}});
  }
  return JsonResponse({{"table", table.name},
                       {"dryRun", body.dry_run},
                       {"seen", report.seen},
                       {"found", report.found},
                       {"foundBytes", report.found_bytes},
                       {"tooYoung", report.too_young},
                       {"removed", report.removed},
                       {"leftBehind", report.left_behind},
                       {"files", std::move(files)}});
}

Result<http::Response> GetTrace(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const FoundTable table,
                        FindTable(api, context, access::Role::kViewer, ViewRule::kTableBehindIt));
  const std::optional<std::string> key = context.query.Find("key");
  if (!key) {
    return Status::InvalidArgument("the query parameter key is missing");
  }
  TARN_ASSIGN_OR_RETURN(const catalog::TableMetadataPtr metadata,
                        api.deps.query.catalog.ReadTable(table.object.metadata_location));
  query::QueryRequest request;
  TARN_ASSIGN_OR_RETURN(request.sql, maintenance::TraceSql(table.object, *metadata, *key));
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<query::RunningQuery> rows,
                        query::RunSql(request, context.principal, api.deps.query));
  std::string text;
  TARN_RETURN_IF_ERROR(
      query::WriteResult(*rows, query::ResultFormat::kJson, [&text](std::string_view piece) {
        text += piece;
        return Status::Ok();
      }));
  http::Response response;
  response.headers.Set("Content-Type", "application/json");
  response.body = "{\"data\":" + text + "}";  // As it is: numbers keep all their digits.
  return response;
}

constexpr NativeRoute kRoutes[] = {
    {.method = "GET",
     .pattern = "/tables/{name}/doctor",
     .scope = access::Scope::kIcebergRead,
     .handler = &GetDoctor,
     .summary = "What is wrong or slow with a table, and what to do.",
     .query = "project"},
    {.method = "GET",
     .pattern = "/tables/{name}/trace",
     .scope = access::Scope::kIcebergRead,
     .handler = &GetTrace,
     .summary = "Every row that a merged table keeps of one key, in order.",
     .query = "project key"},
    {.method = "POST",
     .pattern = "/tables/{name}:compact",
     .scope = access::Scope::kIcebergWrite,
     .handler = &PostCompact,
     .summary = "Rewrites small files into larger ones, without deleted rows: {dryRun?}.",
     .query = "project",
     .request = "application/json"},
    {.method = "POST",
     .pattern = "/tables/{name}:expire",
     .scope = access::Scope::kIcebergWrite,
     .handler = &PostExpire,
     .summary = "Drops old snapshots and the files only they need: {dryRun?, olderThan?, keep?}.",
     .query = "project",
     .request = "application/json"},
    {.method = "POST",
     .pattern = "/tables/{name}:orphans",
     .scope = access::Scope::kIcebergWrite,
     .handler = &PostOrphans,
     .summary = "Finds and removes files that nothing refers to: {dryRun?, olderThan?}.",
     .query = "project",
     .request = "application/json"},
};

}  // namespace

std::span<const NativeRoute> TableMaintenanceRoutes() { return kRoutes; }

}  // namespace tarn::server::native
