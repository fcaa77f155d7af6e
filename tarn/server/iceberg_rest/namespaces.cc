// Namespaces: folders of the warehouse's project.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/server/iceberg_rest/iceberg_api.h"
#include "tarn/tree/lookup.h"

namespace tarn::server::iceberg_rest {

using access::Role;
using metastore::SqlTransaction;
using nlohmann::json;

Status IcebergApi::AddFolders(SqlTransaction& sql, const RequestContext& context, const Rid& parent,
                              const std::vector<std::string>& levels, const Paging& paging,
                              std::vector<std::vector<std::string>>& found,
                              std::string& next_token) {
  tree::ChildrenRequest request{
      .parent = parent, .page_size = paging.size, .page_token = paging.token};
  while (true) {
    TARN_ASSIGN_OR_RETURN(const tree::ChildrenPage page, tree::ListChildren(sql, request));
    for (const tree::Node& node : page.nodes) {
      if (node.type != tree::NodeType::kFolder) {
        continue;
      }
      TARN_ASSIGN_OR_RETURN(const Role role, RoleOn(sql, context, node.rid));
      // Only what can be listed in turn: some clients stop at the first namespace that fails.
      if (role >= Role::kViewer) {
        found.push_back(levels);
        found.back().push_back(node.name);
      }
    }
    if (page.next_page_token.empty() || paging.paged) {
      next_token = page.next_page_token;
      return Status::Ok();
    }
    request.page_token = page.next_page_token;
  }
}

Result<http::Response> IcebergApi::ListNamespaces(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(CatalogPath path, ParseCatalogPath(context.http.target));
  TARN_ASSIGN_OR_RETURN(const Paging paging, PagingOf(context));
  const std::optional<std::string> parent = context.query.Find("parent");
  if (parent && !parent->empty()) {
    path.levels = SplitLevels(*parent);
  }
  std::vector<std::vector<std::string>> found;
  std::string next_token;
  TARN_RETURN_IF_ERROR(database().Read([&](SqlTransaction& sql) -> Status {
    found.clear();
    Rid folder;
    if (path.levels.empty()) {
      TARN_ASSIGN_OR_RETURN(folder, ProjectOf(sql, path.prefix));
    } else {
      TARN_ASSIGN_OR_RETURN(const Place place, FindPlace(sql, context, path, Role::kViewer));
      folder = place.folder;
    }
    return AddFolders(sql, context, folder, path.levels, paging, found, next_token);
  }));
  return JsonResponse(
      {{"namespaces", found}, {"next-page-token", next_token.empty() ? json() : json(next_token)}});
}

Result<http::Response> IcebergApi::CreateNamespace(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const CatalogPath path, ParseCatalogPath(context.http.target));
  TARN_ASSIGN_OR_RETURN(const CreateNamespaceRequest request, ReadCreateNamespace(context));
  CatalogPath parent = path;
  parent.levels.assign(request.levels.begin(), request.levels.end() - 1);
  const std::string name = FormatLevels(request.levels);
  const bool sets_override = request.properties.contains(std::string(kForeignWritesProperty));
  const Status made = database().Write([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(
        const Place place,
        FindPlace(sql, context, parent, sets_override ? Role::kOwner : Role::kEditor));
    const Result<Rid> folder = catalog::CreateNamespace(sql, deps_.catalog.deps().tree,
                                                        {.parent = place.folder,
                                                         .name = request.levels.back(),
                                                         .properties = request.properties,
                                                         .by = context.principal.user_id});
    if (folder.status().code() == ErrorCode::kAlreadyExists) {
      return Status::AlreadyExists(
          fmt::format("Namespace already exists: {}: {}", name, folder.status().message()));
    }
    TARN_RETURN_IF_ERROR(folder);
    return AuditChange(sql, context, "namespace.create", folder->ToString());
  });
  TARN_RETURN_IF_ERROR(AuditDenial(context, "namespace.create", name, made));
  return JsonResponse({{"namespace", request.levels}, {"properties", request.properties}});
}

Result<http::Response> IcebergApi::GetNamespace(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const CatalogPath path, ParseCatalogPath(context.http.target));
  catalog::NamespaceProperties properties;
  TARN_RETURN_IF_ERROR(database().Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const Place place, FindPlace(sql, context, path, Role::kViewer));
    TARN_ASSIGN_OR_RETURN(properties, catalog::ReadProperties(sql, place.folder));
    // Some engines choose the locations of tables themselves, below their namespace's.
    properties.emplace("location",
                       storage::UriOf(deps_.catalog.deps().warehouse,
                                      fmt::format("tables/{}", place.folder.locator())));
    return Status::Ok();
  }));
  return JsonResponse({{"namespace", path.levels}, {"properties", properties}});
}

Result<http::Response> IcebergApi::HeadNamespace(RequestContext& context) {
  TARN_RETURN_IF_ERROR(ReadPlace(context, Role::kViewer));
  return NoContent();
}

Result<http::Response> IcebergApi::DropNamespace(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const CatalogPath path, ParseCatalogPath(context.http.target));
  const std::string name = FormatLevels(path.levels);
  const Status dropped = database().Write([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const Place place, FindPlace(sql, context, path, Role::kEditor));
    const Status removed = catalog::DropNamespace(sql, deps_.catalog.deps().tree, place.folder,
                                                  context.principal.user_id);
    if (removed.code() == ErrorCode::kFailedPrecondition) {
      return Status::Conflict(fmt::format("Namespace {} is not empty: {}", name, removed.message()))
          .WithReason("NamespaceNotEmptyException");
    }
    TARN_RETURN_IF_ERROR(removed);
    return AuditChange(sql, context, "namespace.drop", place.folder.ToString());
  });
  TARN_RETURN_IF_ERROR(AuditDenial(context, "namespace.drop", name, dropped));
  return NoContent();
}

Result<http::Response> IcebergApi::ChangeProperties(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const CatalogPath path, ParseCatalogPath(context.http.target));
  TARN_ASSIGN_OR_RETURN(const PropertiesRequest request, ReadPropertiesRequest(context));
  const std::string guarded(kForeignWritesProperty);
  const bool sets_override = request.updates.contains(guarded) ||
                             std::find(request.removals.begin(), request.removals.end(), guarded) !=
                                 request.removals.end();
  catalog::PropertyReport report;
  const Status changed = database().Write([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(
        const Place place,
        FindPlace(sql, context, path, sets_override ? Role::kOwner : Role::kEditor));
    const Result<catalog::PropertyReport> done = catalog::ChangeProperties(
        sql, place.folder, {.removals = request.removals, .updates = request.updates});
    if (done.status().code() == ErrorCode::kInvalidArgument) {
      return done.status().WithReason("UnprocessableEntityException");
    }
    TARN_RETURN_IF_ERROR(done);
    report = *done;
    return AuditChange(sql, context, "namespace.properties", place.folder.ToString());
  });
  TARN_RETURN_IF_ERROR(
      AuditDenial(context, "namespace.properties", FormatLevels(path.levels), changed));
  return JsonResponse(
      {{"updated", report.updated}, {"removed", report.removed}, {"missing", report.missing}});
}

}  // namespace tarn::server::iceberg_rest
