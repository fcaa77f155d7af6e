#include "tarn/server/native/table_request.h"

#include <algorithm>

#include <fmt/format.h>

#include "tarn/catalog/pointer_store.h"
#include "tarn/query/resource_name.h"
#include "tarn/tree/permission.h"

namespace tarn::server::native {

namespace {

using catalog::CatalogObject;
using metastore::SqlTransaction;

access::Scope ScopeFor(access::Role role) {
  return role > access::Role::kViewer ? access::Scope::kIcebergWrite : access::Scope::kIcebergRead;
}

Result<FoundTable> FindNamed(NativeApi& api, const RequestContext& context, access::Role role) {
  const std::string& name = context.Path("name");
  const std::string project = context.query.Find("project").value_or("default");
  FoundTable found;
  TARN_RETURN_IF_ERROR(api.database().Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const tree::Node place, query::FindProject(sql, project));
    TARN_ASSIGN_OR_RETURN(const tree::Node node,
                          query::FindResource(sql,
                                              {.principal = context.principal,
                                               .authorizer = api.deps.query.authorizer,
                                               .project = place.rid,
                                               .needed = access::Scope::kIcebergRead},
                                              NameParts(name)));
    TARN_RETURN_IF_ERROR(tree::Require(sql, api.deps.query.authorizer, context.principal, node.rid,
                                       {.role = role, .scope = ScopeFor(role)}));
    TARN_ASSIGN_OR_RETURN(const tree::LocatedNode located, tree::LocateNode(sql, node.rid));
    found.name = DottedName(located.path);
    TARN_ASSIGN_OR_RETURN(const std::optional<CatalogObject> object,
                          catalog::FindObject(sql, node.rid));
    if (!object) {
      return Status::InvalidArgument(
          fmt::format("{} is a {}, not a table", name, tree::NodeTypeName(node.type)));
    }
    found.object = *object;
    return Status::Ok();
  }));
  return found;
}

// The internal table of a pipeline's view.
Result<FoundTable> BehindView(NativeApi& api, const RequestContext& context, const FoundTable& view,
                              access::Role role, ViewRule rule) {
  TARN_ASSIGN_OR_RETURN(const catalog::ViewMetadataPtr metadata,
                        api.deps.query.catalog.ReadView(view.object.metadata_location));
  const auto schema = metadata->properties.find("tarn.internal-schema");
  const auto table = metadata->properties.find("tarn.internal-table");
  if (schema == metadata->properties.end() || table == metadata->properties.end()) {
    return Status::InvalidArgument(view.name + " is a view");
  }
  // Properties of other people's views say what they like.
  if (rule == ViewRule::kRefuse || view.object.writers != catalog::Writers::kProduct) {
    return Status::InvalidArgument(
        fmt::format("{} is a view; its table is {}.{}", view.name, schema->second, table->second));
  }
  FoundTable found;
  TARN_RETURN_IF_ERROR(api.database().Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const tree::LocatedNode located, tree::LocateNode(sql, view.object.rid));
    TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> folder,
                          tree::FindChild(sql, located.project, schema->second));
    std::optional<CatalogObject> object;
    if (folder) {
      TARN_ASSIGN_OR_RETURN(object, catalog::FindObject(sql, folder->rid, table->second));
    }
    if (!object || object->kind != catalog::ObjectKind::kTable) {
      return Status::NotFound("the table behind " + view.name + " does not exist any more");
    }
    TARN_RETURN_IF_ERROR(tree::Require(sql, api.deps.query.authorizer, context.principal,
                                       object->rid, {.role = role, .scope = ScopeFor(role)}));
    TARN_ASSIGN_OR_RETURN(const tree::LocatedNode place, tree::LocateNode(sql, object->rid));
    found = {.name = DottedName(place.path), .object = *object};
    return Status::Ok();
  }));
  return found;
}

}  // namespace

std::string DottedName(std::string_view path) {
  path.remove_prefix(std::min(path.find('/', 1), path.size() - 1) + 1);
  std::string name(path);
  std::ranges::replace(name, '/', '.');
  return name;
}

Result<FoundTable> FindTable(NativeApi& api, const RequestContext& context, access::Role role,
                             ViewRule rule) {
  TARN_ASSIGN_OR_RETURN(FoundTable found, FindNamed(api, context, role));
  return found.object.kind == catalog::ObjectKind::kView
             ? BehindView(api, context, found, role, rule)
             : Result<FoundTable>(std::move(found));
}

}  // namespace tarn::server::native
