#include "tarn/server/iceberg_rest/iceberg_routes.h"

#include <array>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/base/hash.h"
#include "tarn/base/json_text.h"
#include "tarn/catalog/pointer_store.h"
#include "tarn/iceberg/table_metadata_json.h"
#include "tarn/query/resource_name.h"
#include "tarn/server/iceberg_rest/catalog_path.h"
#include "tarn/tree/permission.h"

namespace tarn::server::iceberg_rest {

namespace {

using catalog::CatalogObject;
using catalog::ObjectKind;
using metastore::SqlTransaction;
using nlohmann::json;

constexpr int64_t kPageSizeMax = 1000;

/// What a table or view route works on.
struct Target {
  CatalogPath path;
  CatalogObject object;
};

Status NoNamespace(const std::vector<std::string>& levels) {
  return Status::NotFound("Namespace does not exist: " + FormatLevels(levels))
      .WithReason("NoSuchNamespaceException");
}

Status NoObject(ObjectKind kind, const catalog::Identifier& identifier) {
  const bool table = kind == ObjectKind::kTable;
  return Status::NotFound((table ? "Table does not exist: " : "View does not exist: ") +
                          identifier.ToString())
      .WithReason(table ? "NoSuchTableException" : "NoSuchViewException");
}

http::Response JsonText(std::string text) {
  http::Response response;
  response.headers.Set("Content-Type", "application/json");
  response.body = std::move(text);
  return response;
}

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

/// Where a listing begins and how long a page is. Without `pageToken` everything is one page.
struct Paging {
  bool paged = false;
  std::string token;
  int64_t size = kPageSizeMax;
};

Result<Paging> PagingOf(const RequestContext& context) {
  Paging paging;
  if (const std::optional<std::string> token = context.query.Find("pageToken")) {
    paging.paged = true;
    paging.token = *token;
  }
  TARN_ASSIGN_OR_RETURN(const std::optional<int64_t> size, QueryInt(context, "pageSize"));
  if (size) {
    if (*size < 1) {
      return Status::InvalidArgument(fmt::format("pageSize {}: must be at least 1", *size));
    }
    paging.size = std::min(*size, kPageSizeMax);
  }
  return paging;
}

/// The routes. Lives as long as the router's handlers.
class IcebergApi {
 public:
  IcebergApi(IcebergOptions options, const IcebergDeps& deps)
      : options_(std::move(options)), deps_(deps) {}

  Result<http::Response> GetConfig(RequestContext& context);
  Result<http::Response> ListNamespaces(RequestContext& context);
  Result<http::Response> GetNamespace(RequestContext& context);
  Result<http::Response> HeadNamespace(RequestContext& context);
  Result<http::Response> ListTables(RequestContext& context) {
    return ListObjects(context, ObjectKind::kTable);
  }
  Result<http::Response> LoadTable(RequestContext& context);
  Result<http::Response> HeadTable(RequestContext& context) {
    TARN_RETURN_IF_ERROR(FindTarget(context, ObjectKind::kTable));
    return NoContent();
  }
  Result<http::Response> ListViews(RequestContext& context) {
    return ListObjects(context, ObjectKind::kView);
  }
  Result<http::Response> LoadView(RequestContext& context);
  Result<http::Response> HeadView(RequestContext& context) {
    TARN_RETURN_IF_ERROR(FindTarget(context, ObjectKind::kView));
    return NoContent();
  }

 private:
  metastore::Database& database() { return deps_.catalog.deps().database; }

  Result<Rid> ProjectOf(SqlTransaction& sql, const std::string& prefix) const;
  Result<access::Role> RoleOn(SqlTransaction& sql, const RequestContext& context,
                              const Rid& rid) const;
  Status RequireNamespace(SqlTransaction& sql, const RequestContext& context, const Rid& folder,
                          const std::vector<std::string>& levels) const;
  Result<Rid> FolderOf(SqlTransaction& sql, const RequestContext& context,
                       const CatalogPath& path) const;
  Result<Target> FindTarget(RequestContext& context, ObjectKind kind);
  Result<http::Response> ListObjects(RequestContext& context, ObjectKind kind);
  Status AddFolders(SqlTransaction& sql, const RequestContext& context, const Rid& parent,
                    const std::vector<std::string>& levels, const Paging& paging, json& answer);

  const IcebergOptions options_;
  const IcebergDeps deps_;
};

/// One route, for both the default warehouse and those with a prefix.
struct ApiRoute {
  const char* method;
  const char* pattern;
  Result<http::Response> (IcebergApi::*handler)(RequestContext&);
};

constexpr std::array<ApiRoute, 9> kRoutes = {{
    {"GET", "/namespaces", &IcebergApi::ListNamespaces},
    {"GET", "/namespaces/{namespace}", &IcebergApi::GetNamespace},
    {"HEAD", "/namespaces/{namespace}", &IcebergApi::HeadNamespace},
    {"GET", "/namespaces/{namespace}/tables", &IcebergApi::ListTables},
    {"GET", "/namespaces/{namespace}/tables/{table}", &IcebergApi::LoadTable},
    {"HEAD", "/namespaces/{namespace}/tables/{table}", &IcebergApi::HeadTable},
    {"GET", "/namespaces/{namespace}/views", &IcebergApi::ListViews},
    {"GET", "/namespaces/{namespace}/views/{view}", &IcebergApi::LoadView},
    {"HEAD", "/namespaces/{namespace}/views/{view}", &IcebergApi::HeadView},
}};

Result<Rid> IcebergApi::ProjectOf(SqlTransaction& sql, const std::string& prefix) const {
  const std::string& name = prefix.empty() ? options_.default_project : prefix;
  Result<tree::Node> project = query::FindProject(sql, name);
  if (!project.ok()) {
    return project.status().code() == ErrorCode::kNotFound
               ? Status::NotFound(fmt::format("Warehouse does not exist: {}", name))
                     .WithReason("NoSuchWarehouseException")
               : project.status();
  }
  return project->rid;
}

Result<access::Role> IcebergApi::RoleOn(SqlTransaction& sql, const RequestContext& context,
                                        const Rid& rid) const {
  return tree::RoleOn(sql, deps_.authorizer, context.principal, rid);
}

Status IcebergApi::RequireNamespace(SqlTransaction& sql, const RequestContext& context,
                                    const Rid& folder,
                                    const std::vector<std::string>& levels) const {
  TARN_ASSIGN_OR_RETURN(const access::Role role, RoleOn(sql, context, folder));
  return role >= access::Role::kViewer ? Status::Ok() : NoNamespace(levels);
}

Result<Rid> IcebergApi::FolderOf(SqlTransaction& sql, const RequestContext& context,
                                 const CatalogPath& path) const {
  TARN_ASSIGN_OR_RETURN(const Rid project, ProjectOf(sql, path.prefix));
  Result<Rid> folder = catalog::GetNamespace(sql, project, path.levels);
  if (!folder.ok()) {
    return folder.status().code() == ErrorCode::kNotFound ? NoNamespace(path.levels)
                                                          : folder.status();
  }
  TARN_RETURN_IF_ERROR(RequireNamespace(sql, context, *folder, path.levels));
  return folder;
}

Result<http::Response> IcebergApi::GetConfig(RequestContext& context) {
  json overrides = json::object();
  const std::string warehouse = context.query.Find("warehouse").value_or("");
  TARN_RETURN_IF_ERROR(database().Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const Rid asked, ProjectOf(sql, warehouse));
    if (warehouse.empty()) {
      return Status::Ok();
    }
    const Result<tree::Node> usual = query::FindProject(sql, options_.default_project);
    if (!usual.ok() || usual->rid != asked) {
      overrides["prefix"] = asked.ToString();
    }
    return Status::Ok();
  }));
  json endpoints = json::array();
  for (const ApiRoute& route : kRoutes) {
    endpoints.push_back(fmt::format("{} /v1/{{prefix}}{}", route.method, route.pattern));
  }
  return JsonResponse({{"defaults", json::object()},
                       {"overrides", std::move(overrides)},
                       {"endpoints", std::move(endpoints)}});
}

Status IcebergApi::AddFolders(SqlTransaction& sql, const RequestContext& context, const Rid& parent,
                              const std::vector<std::string>& levels, const Paging& paging,
                              json& answer) {
  tree::ChildrenRequest request{
      .parent = parent, .page_size = paging.size, .page_token = paging.token};
  while (true) {
    TARN_ASSIGN_OR_RETURN(const tree::ChildrenPage page, tree::ListChildren(sql, request));
    for (const tree::Node& node : page.nodes) {
      if (node.type != tree::NodeType::kFolder) {
        continue;
      }
      TARN_ASSIGN_OR_RETURN(const access::Role role, RoleOn(sql, context, node.rid));
      // Only what can be listed in turn: some clients stop at the first namespace that fails.
      if (role >= access::Role::kViewer) {
        std::vector<std::string> path = levels;
        path.push_back(node.name);
        answer["namespaces"].push_back(path);
      }
    }
    if (page.next_page_token.empty()) {
      return Status::Ok();
    }
    if (paging.paged) {
      answer["next-page-token"] = page.next_page_token;
      return Status::Ok();
    }
    request.page_token = page.next_page_token;
  }
}

Result<http::Response> IcebergApi::ListNamespaces(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const CatalogPath path, ParseCatalogPath(context.http.target));
  TARN_ASSIGN_OR_RETURN(const Paging paging, PagingOf(context));
  const std::optional<std::string> parent = context.query.Find("parent");
  json answer = {{"namespaces", json::array()}, {"next-page-token", nullptr}};
  TARN_RETURN_IF_ERROR(database().Read([&](SqlTransaction& sql) -> Status {
    answer["namespaces"] = json::array();
    CatalogPath place = path;
    if (parent && !parent->empty()) {
      place.levels = SplitLevels(*parent);
    }
    if (place.levels.empty()) {
      TARN_ASSIGN_OR_RETURN(const Rid project, ProjectOf(sql, place.prefix));
      return AddFolders(sql, context, project, {}, paging, answer);
    }
    TARN_ASSIGN_OR_RETURN(const Rid folder, FolderOf(sql, context, place));
    return AddFolders(sql, context, folder, place.levels, paging, answer);
  }));
  return JsonResponse(answer);
}

Result<http::Response> IcebergApi::GetNamespace(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const CatalogPath path, ParseCatalogPath(context.http.target));
  TARN_RETURN_IF_ERROR(
      database().Read([&](SqlTransaction& sql) { return StatusOf(FolderOf(sql, context, path)); }));
  return JsonResponse({{"namespace", path.levels}, {"properties", json::object()}});
}

Result<http::Response> IcebergApi::HeadNamespace(RequestContext& context) {
  TARN_RETURN_IF_ERROR(GetNamespace(context));
  return NoContent();
}

Result<http::Response> IcebergApi::ListObjects(RequestContext& context, ObjectKind kind) {
  TARN_ASSIGN_OR_RETURN(const CatalogPath path, ParseCatalogPath(context.http.target));
  TARN_ASSIGN_OR_RETURN(const Paging paging, PagingOf(context));
  json answer = {{"identifiers", json::array()}, {"next-page-token", nullptr}};
  TARN_RETURN_IF_ERROR(database().Read([&](SqlTransaction& sql) -> Status {
    answer["identifiers"] = json::array();
    TARN_ASSIGN_OR_RETURN(const Rid folder, FolderOf(sql, context, path));
    std::string after = paging.token;
    while (true) {
      TARN_ASSIGN_OR_RETURN(const catalog::ObjectPage page,
                            catalog::ListObjects(sql, folder, kind, after, paging.size));
      for (const CatalogObject& object : page.objects) {
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

Result<Target> IcebergApi::FindTarget(RequestContext& context, ObjectKind kind) {
  Target target;
  TARN_ASSIGN_OR_RETURN(target.path, ParseCatalogPath(context.http.target));
  const Status absent = NoObject(kind, target.path.identifier());
  TARN_RETURN_IF_ERROR(database().Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const Rid project, ProjectOf(sql, target.path.prefix));
    const Result<Rid> folder = catalog::GetNamespace(sql, project, target.path.levels);
    if (!folder.ok()) {
      return folder.status().code() == ErrorCode::kNotFound ? absent : folder.status();
    }
    TARN_ASSIGN_OR_RETURN(const std::optional<CatalogObject> object,
                          catalog::FindObject(sql, *folder, target.path.name));
    if (!object || object->kind != kind) {
      return absent;
    }
    TARN_ASSIGN_OR_RETURN(const access::Role role, RoleOn(sql, context, object->rid));
    if (role == access::Role::kNone) {
      return absent;
    }
    if (role < access::Role::kViewer) {
      return Status::PermissionDenied(fmt::format("{}: the role Viewer is needed, you have {}",
                                                  target.path.identifier().ToString(),
                                                  access::RoleName(role)));
    }
    target.object = *object;
    return Status::Ok();
  }));
  return target;
}

Result<http::Response> IcebergApi::LoadTable(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const Target target, FindTarget(context, ObjectKind::kTable));
  const std::string snapshots = context.query.Find("snapshots").value_or("all");
  if (snapshots != "all" && snapshots != "refs") {
    return Status::InvalidArgument(
        fmt::format("snapshots must be all or refs, found \"{}\"", snapshots));
  }
  const std::string& location = target.object.metadata_location;
  const std::string tag = fmt::format("\"{:016x}\"", Xxh3(location + '\n' + snapshots));
  if (MatchesTag(context.http.headers, tag)) {
    http::Response unchanged;
    unchanged.status = 304;
    unchanged.headers.Set("ETag", tag);
    return unchanged;
  }
  const Result<catalog::TableMetadataPtr> metadata = deps_.catalog.ReadTable(location);
  if (!metadata.ok()) {
    return metadata.status().code() == ErrorCode::kNotFound
               ? Status::NotFound("Failed to open input stream for file: " + location)
                     .WithReason("NotFoundException")
               : metadata.status();
  }
  http::Response response = JsonText(
      fmt::format(R"({{"metadata-location":{},"metadata":{},"config":{{}}}})", JsonString(location),
                  snapshots == "refs" ? iceberg::FormatTableMetadataRefsOnly(**metadata)
                                      : iceberg::FormatTableMetadata(**metadata)));
  response.headers.Set("ETag", tag);
  return response;
}

Result<http::Response> IcebergApi::LoadView(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const Target target, FindTarget(context, ObjectKind::kView));
  const std::string& location = target.object.metadata_location;
  TARN_ASSIGN_OR_RETURN(const catalog::ViewMetadataPtr metadata, deps_.catalog.ReadView(location));
  return JsonText(fmt::format(R"({{"metadata-location":{},"metadata":{},"config":{{}}}})",
                              JsonString(location), iceberg::FormatViewMetadata(*metadata)));
}

}  // namespace

Status AddIcebergRoutes(Router& router, const IcebergOptions& options, const IcebergDeps& deps) {
  const auto api = std::make_shared<IcebergApi>(options, deps);
  TARN_RETURN_IF_ERROR(
      router.Add({.method = "GET",
                  .pattern = "/iceberg/v1/config",
                  .scopes = {access::Scope::kIcebergRead},
                  .handler = [api](RequestContext& context) { return api->GetConfig(context); }}));
  for (const ApiRoute& route : kRoutes) {
    for (const char* base : {"/iceberg/v1", "/iceberg/v1/{prefix}"}) {
      TARN_RETURN_IF_ERROR(
          router.Add({.method = route.method,
                      .pattern = std::string(base) + route.pattern,
                      .scopes = {access::Scope::kIcebergRead},
                      .handler = [api, handler = route.handler](RequestContext& context) {
                        return (api.get()->*handler)(context);
                      }}));
    }
  }
  return Status::Ok();
}

}  // namespace tarn::server::iceberg_rest
