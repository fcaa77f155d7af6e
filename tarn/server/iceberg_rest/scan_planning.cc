// Planning of scans for clients: which files of a snapshot may hold rows that pass a filter.
//
// A plan is answered at once; what does not fit into one answer follows by tokens, which say all
// that is needed to plan again, so that any server can go on.
#include <algorithm>
#include <set>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/base/hash.h"
#include "tarn/iceberg/scan.h"
#include "tarn/iceberg/wire/content_file_json.h"
#include "tarn/iceberg/wire/filter_json.h"
#include "tarn/server/iceberg_rest/iceberg_api.h"

namespace tarn::server::iceberg_rest {

using access::Role;
using catalog::ObjectKind;
using iceberg::FileScanTask;
using iceberg::Json;
using iceberg::JsonObject;
using iceberg::TableMetadata;

namespace {

constexpr uint64_t kBodyBytesMax = 4 << 20;
constexpr size_t kPageTasks = 2000;
constexpr size_t kPageBytes = 16 << 20;  // About; each task repeats the filter.
constexpr size_t kSnapshotsMax = 1000;   // Of an incremental scan.
constexpr size_t kTaskBytes = 1024;      // About what a task takes in memory.

/// What is to be planned. Value.
struct ScanRequest {
  std::optional<int64_t> snapshot;  // Empty = the table has none.
  std::optional<int64_t> after;     // Incremental: what was appended since.
  bool snapshot_schema = false;
  bool case_sensitive = true;
  std::vector<std::string> counted;  // Names of columns.
  std::string filter;                // JSON; empty = all.
};

Status NoPlanTask(std::string_view why) {
  return Status::NotFound(fmt::format("there is no such plan task: {}", why))
      .WithReason("NoSuchPlanTaskException");
}

Result<bool> FindBool(const JsonObject& object, std::string_view key, bool otherwise) {
  return object.Find(key) == nullptr ? Result<bool>(otherwise) : object.GetBool(key);
}

Result<ScanRequest> ReadScanRequest(const JsonObject& object, const TableMetadata& metadata) {
  ScanRequest request;
  TARN_ASSIGN_OR_RETURN(request.snapshot, object.FindLong("snapshot-id"));
  TARN_ASSIGN_OR_RETURN(request.after, object.FindLong("start-snapshot-id"));
  TARN_ASSIGN_OR_RETURN(const std::optional<int64_t> end, object.FindLong("end-snapshot-id"));
  if (request.after.has_value() != end.has_value()) {
    return Status::InvalidArgument(
        "start-snapshot-id and end-snapshot-id are needed together, or none of them");
  }
  if (end && request.snapshot) {
    return Status::InvalidArgument(
        "snapshot-id is for a scan of one snapshot, start-snapshot-id and end-snapshot-id for what "
        "was appended between two: leave one out");
  }
  request.snapshot = end ? end : request.snapshot;
  if (!request.snapshot && metadata.CurrentSnapshot() != nullptr) {
    request.snapshot = metadata.CurrentSnapshot()->snapshot_id;
  }
  for (const std::optional<int64_t>& id : {request.snapshot, request.after}) {
    if (id && metadata.FindSnapshot(*id) == nullptr) {
      return Status::InvalidArgument(fmt::format("the table has no snapshot {}", *id));
    }
  }
  TARN_ASSIGN_OR_RETURN(request.snapshot_schema, FindBool(object, "use-snapshot-schema", false));
  TARN_ASSIGN_OR_RETURN(request.case_sensitive, FindBool(object, "case-sensitive", true));
  TARN_ASSIGN_OR_RETURN(request.counted, object.FindStrings("stats-fields"));
  if (const Json* filter = object.Find("filter")) {
    request.filter = iceberg::DumpJson(*filter);
  }
  return request;
}

// Of a page that follows: opaque to clients.
std::string FormatPlanTask(const ScanRequest& request, size_t offset) {
  Json json = {{"snapshot", *request.snapshot},
               {"snapshot-schema", request.snapshot_schema},
               {"case-sensitive", request.case_sensitive},
               {"counted", request.counted},
               {"filter", request.filter},
               {"offset", offset}};
  if (request.after) {
    json["after"] = *request.after;
  }
  return EncodeBase64(iceberg::DumpJson(json));
}

Result<std::pair<ScanRequest, size_t>> ParsePlanTask(const std::string& text) {
  const auto parse = [&]() -> Result<std::pair<ScanRequest, size_t>> {
    TARN_ASSIGN_OR_RETURN(const std::string decoded, DecodeBase64(text));
    TARN_ASSIGN_OR_RETURN(const Json json, iceberg::ParseJson(decoded, "plan task"));
    TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "plan task"));
    ScanRequest request;
    TARN_ASSIGN_OR_RETURN(request.snapshot, object.GetLong("snapshot"));
    TARN_ASSIGN_OR_RETURN(request.after, object.FindLong("after"));
    TARN_ASSIGN_OR_RETURN(request.snapshot_schema, object.GetBool("snapshot-schema"));
    TARN_ASSIGN_OR_RETURN(request.case_sensitive, object.GetBool("case-sensitive"));
    TARN_ASSIGN_OR_RETURN(request.counted, object.FindStrings("counted"));
    TARN_ASSIGN_OR_RETURN(request.filter, object.GetString("filter"));
    TARN_ASSIGN_OR_RETURN(const int64_t offset, object.GetLong("offset"));
    if (offset < 0) {
      return Status::InvalidArgument("the offset is negative");
    }
    return std::pair(std::move(request), static_cast<size_t>(offset));
  };
  Result<std::pair<ScanRequest, size_t>> parsed = parse();
  return parsed.ok() ? std::move(parsed) : NoPlanTask(parsed.status().message());
}

size_t PageTasks(const ScanRequest& request) {
  return std::clamp<size_t>(kPageBytes / (request.filter.size() + 1024), 4, kPageTasks);
}

const iceberg::Schema& SchemaOf(const TableMetadata& metadata, const ScanRequest& request) {
  const iceberg::Snapshot* snapshot =
      request.snapshot ? metadata.FindSnapshot(*request.snapshot) : nullptr;
  return request.snapshot_schema && snapshot != nullptr ? metadata.SchemaOf(*snapshot)
                                                        : metadata.CurrentSchema();
}

// Plans one snapshot. `request` names columns by its own schema, files are planned by another.
Result<std::vector<FileScanTask>> PlanSnapshot(catalog::Catalog& catalog,
                                               const TableMetadata& metadata,
                                               const ScanRequest& request, int64_t snapshot_id) {
  const iceberg::Snapshot* snapshot = metadata.FindSnapshot(snapshot_id);
  if (snapshot == nullptr) {
    return Status::InvalidArgument(fmt::format("the table has no snapshot {}", snapshot_id));
  }
  iceberg::Expression filter = iceberg::Expression::True();
  if (!request.filter.empty()) {
    TARN_ASSIGN_OR_RETURN(const Json json, iceberg::ParseJson(request.filter, "filter"));
    TARN_ASSIGN_OR_RETURN(
        filter, iceberg::FilterFromJson(
                    json, {.named = SchemaOf(metadata, request),
                           .planned = metadata.SchemaOf(*snapshot),
                           .rule = request.case_sensitive ? iceberg::CaseRule::kSensitive
                                                          : iceberg::CaseRule::kInsensitive}));
  }
  return iceberg::PlanScan(catalog.deps().warehouse, catalog.manifest_cache(), metadata,
                           snapshot_id, filter, {});
}

// What each append after one snapshot, up to another, has added.
Result<std::vector<FileScanTask>> PlanAppends(catalog::Catalog& catalog,
                                              const TableMetadata& metadata,
                                              const ScanRequest& request) {
  std::vector<int64_t> appends = iceberg::AncestorsOf(metadata, *request.snapshot);
  const auto start = std::ranges::find(appends, *request.after);
  if (start == appends.end()) {
    return Status::InvalidArgument(fmt::format("snapshot {} is no ancestor of snapshot {}",
                                               *request.after, *request.snapshot));
  }
  appends.erase(start, appends.end());
  if (appends.size() > kSnapshotsMax) {
    return Status::InvalidArgument(fmt::format("{} snapshots lie between the two, more than {}",
                                               appends.size(), kSnapshotsMax));
  }
  std::vector<FileScanTask> added;
  for (auto id = appends.rbegin(); id != appends.rend(); ++id) {
    if (metadata.FindSnapshot(*id)->operation != iceberg::SnapshotOperation::kAppend) {
      continue;
    }
    TARN_ASSIGN_OR_RETURN(std::vector<FileScanTask> tasks,
                          PlanSnapshot(catalog, metadata, request, *id));
    for (FileScanTask& task : tasks) {
      if (task.added_snapshot_id == *id) {
        task.deletes.clear();  // Rows that go later were appended all the same.
        added.push_back(std::move(task));
      }
    }
  }
  return added;
}

Result<std::set<int32_t>> CountedIds(const TableMetadata& metadata, const ScanRequest& request) {
  std::set<int32_t> ids;
  for (const std::string& name : request.counted) {
    const iceberg::SchemaField* field =
        SchemaOf(metadata, request)
            .FindField(name, request.case_sensitive ? iceberg::CaseRule::kSensitive
                                                    : iceberg::CaseRule::kInsensitive);
    if (field == nullptr) {
      return Status::InvalidArgument("stats-fields: there is no column " + name);
    }
    ids.insert(field->id);
  }
  return ids;
}

// One page of tasks: their files, and the deletes that they refer to by their places in a list.
Result<Json> PageOf(const TableMetadata& metadata, const ScanRequest& request,
                    const std::vector<FileScanTask>& tasks, size_t offset) {
  TARN_ASSIGN_OR_RETURN(const std::set<int32_t> counted, CountedIds(metadata, request));
  const auto file_json = [&](const iceberg::DataFile& file) -> Result<Json> {
    const iceberg::PartitionSpec* spec = metadata.FindSpec(file.spec_id);
    if (spec == nullptr) {
      return Status::Corruption(fmt::format("file {} is of partition spec {}, which is not there",
                                            file.file_path, file.spec_id));
    }
    return iceberg::ContentFileToJson(
        file, {.spec = *spec, .schema = metadata.CurrentSchema(), .counted = counted});
  };
  Json deletes = Json::array();
  Json scans = Json::array();
  std::unordered_map<const iceberg::DeleteFile*, size_t> places;
  // Some clients need to be told what is left to check, and that is what they asked for.
  Json residual = true;
  if (!request.filter.empty()) {
    TARN_ASSIGN_OR_RETURN(residual, iceberg::ParseJson(request.filter, "filter"));
  }
  const size_t end = std::min(offset + PageTasks(request), tasks.size());
  for (size_t i = offset; i < end; ++i) {
    TARN_ASSIGN_OR_RETURN(Json file, file_json(tasks[i].file));
    Json references = Json::array();
    for (const iceberg::DeleteFilePtr& one : tasks[i].deletes) {
      const auto [place, fresh] = places.emplace(one.get(), deletes.size());
      if (fresh) {
        TARN_ASSIGN_OR_RETURN(Json json, file_json(one->file));
        deletes.push_back(std::move(json));
      }
      references.push_back(place->second);
    }
    Json scan = {{"data-file", std::move(file)}, {"residual-filter", residual}};
    if (!references.empty()) {
      scan["delete-file-references"] = std::move(references);
    }
    scans.push_back(std::move(scan));
  }
  Json page = Json::object();
  if (end < tasks.size()) {
    page["plan-tasks"] = Json::array({FormatPlanTask(request, end)});
  }
  if (!deletes.empty()) {
    page["delete-files"] = std::move(deletes);
  }
  page["file-scan-tasks"] = std::move(scans);
  return page;
}

}  // namespace

// The same plan for all of its pages.
Result<IcebergApi::Plan> IcebergApi::PlanOf(const std::string& key,
                                            const std::function<Result<Tasks>()>& make) {
  if (Plan kept = plans_.Find(key)) {
    return kept;
  }
  TARN_ASSIGN_OR_RETURN(Tasks tasks, make());
  const size_t bytes = tasks.size() * kTaskBytes + key.size();
  Plan plan = std::make_shared<const Tasks>(std::move(tasks));
  plans_.Add(key, plan, bytes);
  return plan;
}

Result<http::Response> IcebergApi::AnswerPlan(RequestContext& context, PlanPage page) {
  const bool first = page == PlanPage::kFirst;
  TARN_ASSIGN_OR_RETURN(const Target target,
                        ReadTarget(context, ObjectKind::kTable, Role::kViewer));
  TARN_ASSIGN_OR_RETURN(const std::string body, http::ReadAll(*context.http.body, kBodyBytesMax));
  TARN_ASSIGN_OR_RETURN(const Json json, iceberg::ParseJson(body, "request body"));
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "request body"));
  TARN_ASSIGN_OR_RETURN(const catalog::TableMetadataPtr metadata,
                        deps_.catalog.ReadTable(target.object.metadata_location));
  ScanRequest request;
  size_t offset = 0;
  if (first) {
    TARN_ASSIGN_OR_RETURN(request, ReadScanRequest(object, *metadata));
  } else {
    TARN_ASSIGN_OR_RETURN(const std::string task, object.GetString("plan-task"));
    TARN_ASSIGN_OR_RETURN(std::tie(request, offset), ParsePlanTask(task));
    if (metadata->FindSnapshot(*request.snapshot) == nullptr) {
      return NoPlanTask(fmt::format("its snapshot {} has expired", *request.snapshot));
    }
  }
  Plan plan = std::make_shared<const Tasks>();
  if (request.snapshot) {
    const std::string key = fmt::format("{}\n{}\n{}", target.object.rid.ToString(),
                                        metadata->current_schema_id, FormatPlanTask(request, 0));
    TARN_ASSIGN_OR_RETURN(plan, PlanOf(key, [&] {
                            return request.after ? PlanAppends(deps_.catalog, *metadata, request)
                                                 : PlanSnapshot(deps_.catalog, *metadata, request,
                                                                *request.snapshot);
                          }));
  }
  TARN_ASSIGN_OR_RETURN(Json answer, PageOf(*metadata, request, *plan, offset));
  if (first) {
    answer["status"] = "completed";
    TARN_ASSIGN_OR_RETURN(const std::optional<GrantedKeys> keys,
                          KeysFor(context, target, *metadata));
    if (keys) {
      answer["storage-credentials"] = Json::parse(CredentialsText(*keys));
    }
  }
  http::Response response;
  response.headers.Set("Content-Type", "application/json");
  response.headers.Set("Cache-Control", "no-store");
  response.body = iceberg::DumpJson(answer);
  return response;
}

Result<http::Response> IcebergApi::PlanTable(RequestContext& context) {
  return AnswerPlan(context, PlanPage::kFirst);
}

Result<http::Response> IcebergApi::FetchTasks(RequestContext& context) {
  return AnswerPlan(context, PlanPage::kNext);
}

}  // namespace tarn::server::iceberg_rest
