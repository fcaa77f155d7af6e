// GET /tarn/v1/tables…: what the catalog knows of Iceberg tables.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/catalog/pointer_store.h"
#include "tarn/iceberg/scan.h"
#include "tarn/iceberg/schema.h"
#include "tarn/query/resource_name.h"
#include "tarn/server/native/table_request.h"
#include "tarn/tree/permission.h"

namespace tarn::server::native {

namespace {

using catalog::CatalogObject;
using iceberg::Snapshot;
using iceberg::TableMetadata;
using metastore::SqlTransaction;
using nlohmann::json;

std::string TimeText(int64_t timestamp_ms) { return FormatTimestamp(FromMillis(timestamp_ms)); }

// A number of the summary, null when the writer did not say.
json Count(const Snapshot& snapshot, const std::string& key) {
  const auto found = snapshot.summary.find(key);
  if (found == snapshot.summary.end()) {
    return nullptr;
  }
  const json number = json::parse(found->second, nullptr, false);
  return number.is_number_integer() ? number : json();
}

json TableToJson(const std::string& name, const CatalogObject& object,
                 const TableMetadata& metadata) {
  const Snapshot* snapshot = metadata.CurrentSnapshot();
  json table = {{"rid", object.rid.ToString()},
                {"name", name},
                {"rows", snapshot == nullptr ? json(0) : Count(*snapshot, "total-records")},
                {"snapshotId", snapshot == nullptr ? json() : json(snapshot->snapshot_id)},
                {"updatedTime", TimeText(metadata.last_updated_ms)}};
  return table;
}

// All tables below a folder that the caller may view.
Status AddTables(NativeApi& api, SqlTransaction& sql, const RequestContext& context,
                 const Rid& folder, std::vector<FoundTable>& tables) {
  tree::ChildrenRequest request{.parent = folder, .page_token = {}};
  do {
    TARN_ASSIGN_OR_RETURN(const tree::ChildrenPage page, tree::ListChildren(sql, request));
    for (const tree::Node& node : page.nodes) {
      if (tree::IsFolderLike(node.type)) {
        TARN_RETURN_IF_ERROR(AddTables(api, sql, context, node.rid, tables));
      }
      if (node.type != tree::NodeType::kTable) {
        continue;
      }
      TARN_ASSIGN_OR_RETURN(const access::Role role, tree::RoleOn(sql, api.deps.query.authorizer,
                                                                  context.principal, node.rid));
      TARN_ASSIGN_OR_RETURN(const std::optional<CatalogObject> object,
                            catalog::FindObject(sql, node.rid));
      if (role >= access::Role::kViewer && object) {
        TARN_ASSIGN_OR_RETURN(const tree::LocatedNode located, tree::LocateNode(sql, node.rid));
        tables.push_back({.name = DottedName(located.path), .object = *object});
      }
    }
    request.page_token = page.next_page_token;
  } while (!request.page_token.empty());
  return Status::Ok();
}

Result<http::Response> ListTables(NativeApi& api, RequestContext& context) {
  const std::string project = context.query.Find("project").value_or("");
  std::vector<FoundTable> tables;
  TARN_RETURN_IF_ERROR(api.database().Read([&](SqlTransaction& sql) -> Status {
    tables.clear();
    Rid root = tree::RootRid();
    if (!project.empty()) {
      TARN_ASSIGN_OR_RETURN(const tree::Node node, query::FindProject(sql, project));
      root = node.rid;
    }
    return AddTables(api, sql, context, root, tables);
  }));
  json data = json::array();
  for (const FoundTable& table : tables) {
    TARN_ASSIGN_OR_RETURN(const catalog::TableMetadataPtr metadata,
                          api.deps.query.catalog.ReadTable(table.object.metadata_location));
    data.push_back(TableToJson(table.name, table.object, *metadata));
  }
  return JsonResponse({{"data", std::move(data)}});
}

Result<http::Response> GetTable(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const FoundTable table, FindTable(api, context, access::Role::kViewer));
  TARN_ASSIGN_OR_RETURN(const catalog::TableMetadataPtr metadata,
                        api.deps.query.catalog.ReadTable(table.object.metadata_location));
  json columns = json::array();
  for (const iceberg::SchemaField& field : metadata->CurrentSchema().fields) {
    columns.push_back({{"id", field.id},
                       {"name", field.name},
                       {"type", iceberg::FormatType(field.type)},
                       {"required", field.required}});
  }
  json partitioning = json::array();
  for (const iceberg::PartitionField& field : metadata->DefaultSpec().fields) {
    partitioning.push_back(field.name);
  }
  json answer = TableToJson(table.name, table.object, *metadata);
  answer["uuid"] = metadata->table_uuid;
  answer["location"] = metadata->location;
  answer["metadataLocation"] = table.object.metadata_location;
  answer["formatVersion"] = metadata->format_version;
  answer["columns"] = std::move(columns);
  answer["partitioning"] = std::move(partitioning);
  answer["properties"] = metadata->properties;
  answer["snapshotCount"] = metadata->snapshots.size();
  return JsonResponse(answer);
}

Result<http::Response> ListSnapshots(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const FoundTable table, FindTable(api, context, access::Role::kViewer));
  TARN_ASSIGN_OR_RETURN(const catalog::TableMetadataPtr metadata,
                        api.deps.query.catalog.ReadTable(table.object.metadata_location));
  json data = json::array();
  for (auto at = metadata->snapshots.rbegin(); at != metadata->snapshots.rend(); ++at) {
    const Snapshot& snapshot = **at;
    data.push_back(
        {{"snapshotId", snapshot.snapshot_id},
         {"parentId", snapshot.parent_snapshot_id ? json(*snapshot.parent_snapshot_id) : json()},
         {"sequenceNumber", snapshot.sequence_number},
         {"committedTime", TimeText(snapshot.timestamp_ms)},
         {"operation", iceberg::SnapshotOperationName(snapshot.operation)},
         {"addedRows", Count(snapshot, "added-records")},
         {"deletedRows", Count(snapshot, "deleted-records")},
         {"summary", snapshot.summary}});
  }
  return JsonResponse({{"data", std::move(data)}});
}

std::string_view ContentName(iceberg::DataFileContent content) {
  switch (content) {
    case iceberg::DataFileContent::kData:
      return "data";
    case iceberg::DataFileContent::kPositionDeletes:
      return "position-deletes";
    case iceberg::DataFileContent::kEqualityDeletes:
      break;
  }
  return "equality-deletes";
}

Result<http::Response> ListFiles(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const FoundTable table, FindTable(api, context, access::Role::kViewer));
  catalog::Catalog& catalog = api.deps.query.catalog;
  TARN_ASSIGN_OR_RETURN(const catalog::TableMetadataPtr metadata,
                        catalog.ReadTable(table.object.metadata_location));
  json data = json::array();
  if (const Snapshot* snapshot = metadata->CurrentSnapshot()) {
    for (const iceberg::ManifestContent content :
         {iceberg::ManifestContent::kData, iceberg::ManifestContent::kDeletes}) {
      TARN_RETURN_IF_ERROR(iceberg::VisitLiveEntries(
          catalog.deps().warehouse, catalog.manifest_cache(), *metadata, *snapshot, content,
          [](const iceberg::ManifestFile&) { return true; },
          [&data](const iceberg::ManifestEntry& entry) {
            const iceberg::DataFile& file = entry.data_file;
            data.push_back({{"path", file.file_path},
                            {"content", ContentName(file.content)},
                            {"rowCount", file.record_count},
                            {"sizeBytes", file.file_size_bytes},
                            {"specId", file.spec_id}});
            return Status::Ok();
          }));
    }
  }
  return JsonResponse({{"data", std::move(data)}});
}

Result<http::Response> ListHistory(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const FoundTable table, FindTable(api, context, access::Role::kViewer));
  TARN_ASSIGN_OR_RETURN(const catalog::TableMetadataPtr metadata,
                        api.deps.query.catalog.ReadTable(table.object.metadata_location));
  json data = json::array();
  for (const iceberg::SnapshotLogEntry& entry : metadata->snapshot_log) {
    data.push_back({{"time", TimeText(entry.timestamp_ms)},
                    {"ref", "main"},
                    {"snapshotId", entry.snapshot_id}});
  }
  return JsonResponse({{"data", std::move(data)}});
}

constexpr NativeRoute kRoutes[] = {
    {.method = "GET",
     .pattern = "/tables",
     .scope = access::Scope::kIcebergRead,
     .handler = &ListTables,
     .summary = "The Iceberg tables of a project, or of all.",
     .query = "project"},
    {.method = "GET",
     .pattern = "/tables/{name}",
     .scope = access::Scope::kIcebergRead,
     .handler = &GetTable,
     .summary = "Columns, partitioning, properties and the current snapshot of a table.",
     .query = "project"},
    {.method = "GET",
     .pattern = "/tables/{name}/snapshots",
     .scope = access::Scope::kIcebergRead,
     .handler = &ListSnapshots,
     .summary = "The snapshots of a table, newest first.",
     .query = "project"},
    {.method = "GET",
     .pattern = "/tables/{name}/files",
     .scope = access::Scope::kIcebergRead,
     .handler = &ListFiles,
     .summary = "The data and delete files of the current snapshot.",
     .query = "project"},
    {.method = "GET",
     .pattern = "/tables/{name}/history",
     .scope = access::Scope::kIcebergRead,
     .handler = &ListHistory,
     .summary = "Which snapshot was current from when.",
     .query = "project"},
};

}  // namespace

std::span<const NativeRoute> TableRoutes() { return kRoutes; }

}  // namespace tarn::server::native
