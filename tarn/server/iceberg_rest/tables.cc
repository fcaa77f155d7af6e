// Tables: listing, loading, dropping, renaming, and the reports of readers and writers.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/base/hash.h"
#include "tarn/base/json_text.h"
#include "tarn/catalog/location.h"
#include "tarn/catalog/pointer_store.h"
#include "tarn/iceberg/table_metadata_json.h"
#include "tarn/server/iceberg_rest/iceberg_api.h"

namespace tarn::server::iceberg_rest {

using access::Role;
using catalog::ObjectKind;
using metastore::SqlTransaction;
using nlohmann::json;

namespace {

/// True where If-None-Match names the tag: exactly, weakly, or in a list.
bool MatchesTag(const http::Headers& headers, std::string_view tag) {
  const std::optional<std::string_view> found = headers.Find("If-None-Match");
  if (!found) {
    return false;
  }
  std::string_view rest = *found;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    std::string_view item = rest.substr(0, comma);
    while (!item.empty() && item.front() == ' ') {
      item.remove_prefix(1);
    }
    while (!item.empty() && item.back() == ' ') {
      item.remove_suffix(1);
    }
    if (item.starts_with("W/")) {
      item.remove_prefix(2);
    }
    if (item == tag || item == "*") {
      return true;
    }
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return false;
}

// Answers with other keys are others, so that clients hear of new ones.
std::string TagOf(std::string_view location, std::string_view snapshots,
                  const std::optional<GrantedKeys>& keys) {
  return fmt::format("\"{:016x}\"",
                     Xxh3(fmt::format("{}\n{}{}{}", location, snapshots, keys ? "\n" : "",
                                      keys ? keys->credentials.access_key_id : "")));
}

http::Response JsonText(std::string text) {
  http::Response response;
  response.headers.Set("Content-Type", "application/json");
  response.body = std::move(text);
  return response;
}

/// "true", "True", "false", "False"; absent = false.
Result<bool> PurgeRequested(const RequestContext& context) {
  const std::string text = context.query.Find("purgeRequested").value_or("false");
  if (http::EqualsIgnoringCase(text, "true")) {
    return true;
  }
  if (http::EqualsIgnoringCase(text, "false") || text.empty()) {
    return false;
  }
  return Status::InvalidArgument(
      fmt::format("purgeRequested must be true or false, found \"{}\"", text));
}

Status NoFile(const std::string& location) {
  return Status::NotFound("Failed to open input stream for file: " + location)
      .WithReason("NotFoundException");
}

}  // namespace

// Answers come from memory; that the file is still there is asked where it costs next to nothing.
Status IcebergApi::RequireMetadataFile(const std::string& location) {
  if (!warehouse().base_uri().starts_with("file:")) {
    return Status::Ok();
  }
  TARN_ASSIGN_OR_RETURN(const std::string key, storage::KeyOf(warehouse(), location));
  const Result<storage::ObjectMeta> found = warehouse().Head(key);
  return found.status().code() == ErrorCode::kNotFound ? NoFile(location) : found.status();
}

Result<http::Response> IcebergApi::ListObjects(RequestContext& context, ObjectKind kind) {
  TARN_ASSIGN_OR_RETURN(const CatalogPath path, ParseCatalogPath(context.http.target));
  TARN_ASSIGN_OR_RETURN(const Paging paging, PagingOf(context));
  json answer;
  TARN_RETURN_IF_ERROR(database().Read([&](SqlTransaction& sql) -> Status {
    answer = {{"identifiers", json::array()}, {"next-page-token", nullptr}};
    TARN_ASSIGN_OR_RETURN(const Place place, FindPlace(sql, context, path, Role::kViewer));
    std::string after = paging.token;
    while (true) {
      TARN_ASSIGN_OR_RETURN(const catalog::ObjectPage page,
                            catalog::ListObjects(sql, place.folder, kind, after,
                                                 paging.paged ? paging.size : int64_t{10'000}));
      for (const catalog::CatalogObject& object : page.objects) {
        answer["identifiers"].push_back({{"namespace", path.levels}, {"name", object.name}});
      }
      if (!page.truncated) {
        return Status::Ok();
      }
      after = page.objects.back().name;
      if (paging.paged) {
        answer["next-page-token"] = after;
        return Status::Ok();
      }
    }
  }));
  return JsonResponse(answer);
}

Result<http::Response> IcebergApi::ListTables(RequestContext& context) {
  return ListObjects(context, ObjectKind::kTable);
}

Result<std::shared_ptr<const std::string>> IcebergApi::MetadataText(const std::string& location,
                                                                    const std::string& snapshots) {
  const std::string key = location + "\n" + snapshots;
  std::shared_ptr<const std::string> text = answers_.Find(key);
  if (text == nullptr) {
    const Result<catalog::TableMetadataPtr> metadata = deps_.catalog.ReadTable(location);
    if (metadata.status().code() == ErrorCode::kNotFound) {
      return NoFile(location);
    }
    TARN_RETURN_IF_ERROR(metadata);
    text = std::make_shared<const std::string>(
        fmt::format(R"({{"metadata-location":{},"metadata":{})", JsonString(location),
                    snapshots == "refs" ? iceberg::FormatTableMetadataRefsOnly(**metadata)
                                        : iceberg::FormatTableMetadata(**metadata)));
    answers_.Add(key, text, text->size() + key.size());
  }
  return text;
}

Result<http::Response> IcebergApi::CreatedResponse(const catalog::LoadedTable& table,
                                                   const CatalogPath& path,
                                                   const std::optional<GrantedKeys>& keys) {
  const std::string& location = table.object.metadata_location;
  TARN_ASSIGN_OR_RETURN(const auto text, MetadataText(location, "all"));
  http::Response response = WithConfig(*text, path, keys);
  response.headers.Set("ETag", TagOf(location, "all", keys));
  return response;
}

http::Response IcebergApi::CommittedResponse(const catalog::LoadedTable& table) const {
  const std::string& location = table.object.metadata_location;
  http::Response response =
      JsonText(fmt::format(R"({{"metadata-location":{},"metadata":{}}})", JsonString(location),
                           iceberg::FormatTableMetadata(*table.metadata)));
  response.headers.Set("ETag", TagOf(location, "all", {}));
  return response;
}

Result<http::Response> IcebergApi::LoadTable(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const Target target,
                        ReadTarget(context, ObjectKind::kTable, Role::kViewer));
  const std::string snapshots = context.query.Find("snapshots").value_or("all");
  if (snapshots != "all" && snapshots != "refs") {
    return Status::InvalidArgument(
        fmt::format("snapshots must be all or refs, found \"{}\"", snapshots));
  }
  const std::string& location = target.object.metadata_location;
  TARN_RETURN_IF_ERROR(RequireMetadataFile(location));
  std::optional<GrantedKeys> keys;
  if (WantsKeys(context)) {
    const Result<catalog::TableMetadataPtr> metadata = deps_.catalog.ReadTable(location);
    if (metadata.status().code() == ErrorCode::kNotFound) {
      return NoFile(location);
    }
    TARN_RETURN_IF_ERROR(metadata);
    TARN_ASSIGN_OR_RETURN(keys, KeysFor(context, target, **metadata));
  }
  const std::string tag = TagOf(location, snapshots, keys);
  if (MatchesTag(context.http.headers, tag)) {
    http::Response unchanged;
    unchanged.status = 304;
    unchanged.headers.Set("ETag", tag);
    return unchanged;
  }
  TARN_ASSIGN_OR_RETURN(const auto text, MetadataText(location, snapshots));
  http::Response response = WithConfig(*text, target.path, keys);
  response.headers.Set("ETag", tag);
  return response;
}

Result<http::Response> IcebergApi::HeadTable(RequestContext& context) {
  TARN_RETURN_IF_ERROR(ReadTarget(context, ObjectKind::kTable, Role::kViewer));
  return NoContent();
}

Status IcebergApi::Drop(RequestContext& context, ObjectKind kind, std::string_view action) {
  TARN_ASSIGN_OR_RETURN(const CatalogPath path, ParseCatalogPath(context.http.target));
  TARN_ASSIGN_OR_RETURN(const bool purge, PurgeRequested(context));
  const Status dropped = database().Write([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const Target target, FindTarget(sql, context, path, kind, Role::kEditor));
    if (target.object.writers == catalog::Writers::kProduct) {
      return Status::PermissionDenied(
          fmt::format("{} {} belongs to a task: remove the pipeline that makes it",
                      catalog::ObjectKindName(kind), path.identifier().ToString()));
    }
    if (purge && target.role < Role::kOwner) {
      return Status::PermissionDenied(fmt::format(
          "{}: deleting its files needs the role Owner, you have {}; a drop without purge keeps "
          "them",
          path.identifier().ToString(), access::RoleName(target.role)));
    }
    TARN_RETURN_IF_ERROR(catalog::DropObject(sql, deps_.catalog.deps().tree,
                                             {.object = target.object,
                                              .by = context.principal.user_id,
                                              .at = deps_.catalog.deps().clock.Now(),
                                              .purge = purge}));
    return AuditChange(sql, context, action, target.object.rid.ToString());
  });
  TARN_RETURN_IF_ERROR(AuditDenial(context, action, path.identifier().ToString(), dropped));
  if (purge) {
    // The object is gone whatever becomes of its files; what is left is tried again at each start.
    const Result<int64_t> purged = deps_.catalog.FinishPurges();
    (void)purged;
  }
  return Status::Ok();
}

Result<http::Response> IcebergApi::DropTable(RequestContext& context) {
  TARN_RETURN_IF_ERROR(Drop(context, ObjectKind::kTable, "table.drop"));
  return NoContent();
}

Result<http::Response> IcebergApi::UnregisterTable(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const Target target,
                        ReadTarget(context, ObjectKind::kTable, Role::kEditor));
  TARN_ASSIGN_OR_RETURN(catalog::TableMetadataPtr metadata,
                        deps_.catalog.ReadTable(target.object.metadata_location));
  TARN_RETURN_IF_ERROR(Drop(context, ObjectKind::kTable, "table.unregister"));
  return CommittedResponse({.object = target.object, .metadata = std::move(metadata)});
}

Result<http::Response> IcebergApi::Rename(RequestContext& context, ObjectKind kind) {
  TARN_ASSIGN_OR_RETURN(const CatalogPath path, ParseCatalogPath(context.http.target));
  TARN_ASSIGN_OR_RETURN(const RenameRequest request, ReadRename(context));
  const std::string source = request.source.ToString();
  const char* const action = kind == ObjectKind::kTable ? "table.rename" : "view.rename";
  const Status renamed = database().Write([&](SqlTransaction& sql) -> Status {
    const CatalogPath from{path.prefix, request.source.levels, request.source.name};
    TARN_ASSIGN_OR_RETURN(const Target target, FindTarget(sql, context, from, kind, Role::kEditor));
    if (target.object.writers == catalog::Writers::kProduct) {
      return Status::PermissionDenied(fmt::format("{} {} belongs to a task and keeps its name",
                                                  catalog::ObjectKindName(kind), source));
    }
    const CatalogPath to{path.prefix, request.destination.levels, {}};
    TARN_ASSIGN_OR_RETURN(const Place place, FindPlace(sql, context, to, Role::kEditor));
    TARN_ASSIGN_OR_RETURN(
        const std::optional<tree::Node> clash,
        catalog::FindClash(sql, place.folder, request.destination.name, target.object.rid));
    if (clash) {
      const char* what = clash->type == tree::NodeType::kTable  ? "Table"
                         : clash->type == tree::NodeType::kView ? "View"
                                                                : "Another resource";
      return Status::AlreadyExists(fmt::format("Cannot rename {} to {}. {} already exists", source,
                                               request.destination.ToString(), what));
    }
    TARN_RETURN_IF_ERROR(deps_.catalog.deps().tree.Replace(
        sql, target.object.rid, {.parent = place.folder, .name = request.destination.name},
        context.principal.user_id));
    return AuditChange(sql, context, action, target.object.rid.ToString());
  });
  TARN_RETURN_IF_ERROR(AuditDenial(context, action, source, renamed));
  return NoContent();
}

Result<http::Response> IcebergApi::RenameTable(RequestContext& context) {
  return Rename(context, ObjectKind::kTable);
}

Result<http::Response> IcebergApi::ReportMetrics(RequestContext& context) {
  TARN_RETURN_IF_ERROR(ReadTarget(context, ObjectKind::kTable, Role::kViewer));
  TARN_RETURN_IF_ERROR(CheckMetricsReport(context));
  return NoContent();
}

}  // namespace tarn::server::iceberg_rest
