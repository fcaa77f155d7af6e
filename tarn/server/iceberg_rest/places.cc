// Finding what a request names, and whether its caller may do what it asks.
#include <fmt/format.h>

#include "tarn/access/audit.h"
#include "tarn/catalog/pointer_store.h"
#include "tarn/query/resource_name.h"
#include "tarn/server/iceberg_rest/iceberg_api.h"
#include "tarn/tree/permission.h"

namespace tarn::server::iceberg_rest {

using access::Role;
using catalog::CatalogObject;
using catalog::ObjectKind;
using metastore::SqlTransaction;

namespace {

Status TooLittle(const std::string& name, Role needed, Role found) {
  return Status::PermissionDenied(fmt::format("{}: the role {} is needed, you have {}", name,
                                              access::RoleName(needed), access::RoleName(found)));
}

// The innermost folder of a namespace and its ancestors, as the authorizer wants them, of rows that
// were read to find it: above a project there are its space and the root.
std::vector<Rid> ChainOf(const tree::Node& project, const std::vector<Rid>& folders) {
  std::vector<Rid> chain(folders.rbegin(), folders.rend());
  chain.push_back(project.rid);
  chain.push_back(project.parent);
  chain.push_back(tree::RootRid());
  return chain;
}

}  // namespace

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

Result<tree::Node> IcebergApi::FindWarehouse(SqlTransaction& sql, const std::string& prefix) const {
  const std::string& name = prefix.empty() ? options_.default_project : prefix;
  Rid known;
  {
    const std::lock_guard lock(mutex_);
    known = prefix.empty() ? default_project_ : Rid();
  }
  if (!known.empty()) {
    // One look-up tells whether it is still the project of that name.
    TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> node, tree::FindNode(sql, known));
    if (node && !node->trashed && node->name == name) {
      return *node;
    }
  }
  const Result<tree::Node> project = query::FindProject(sql, name);
  if (!project.ok()) {
    return project.status().code() == ErrorCode::kNotFound
               ? Status::NotFound(fmt::format("Warehouse does not exist: {}", name))
                     .WithReason("NoSuchWarehouseException")
               : project.status();
  }
  if (prefix.empty()) {
    const std::lock_guard lock(mutex_);
    default_project_ = project->rid;
  }
  return *project;
}

Result<Rid> IcebergApi::ProjectOf(SqlTransaction& sql, const std::string& prefix) const {
  TARN_ASSIGN_OR_RETURN(const tree::Node project, FindWarehouse(sql, prefix));
  return project.rid;
}

Result<Role> IcebergApi::RoleOn(SqlTransaction& sql, const RequestContext& context,
                                const Rid& rid) const {
  return tree::RoleOn(sql, deps_.authorizer, context.principal, rid);
}

Result<Place> IcebergApi::FindPlace(SqlTransaction& sql, const RequestContext& context,
                                    const CatalogPath& path, Role needed) const {
  Place place{.path = path, .folder = {}};
  TARN_ASSIGN_OR_RETURN(const tree::Node project, FindWarehouse(sql, path.prefix));
  const Result<std::vector<Rid>> folders = catalog::GetNamespacePath(sql, project.rid, path.levels);
  if (!folders.ok()) {
    return folders.status().code() == ErrorCode::kNotFound ? NoNamespace(path.levels)
                                                           : folders.status();
  }
  const std::vector<Rid> chain = ChainOf(project, *folders);
  place.folder = chain.front();
  TARN_ASSIGN_OR_RETURN(place.role, deps_.authorizer.RoleOf(sql, context.principal, chain));
  if (place.role < Role::kViewer) {
    return NoNamespace(path.levels);
  }
  if (place.role < needed) {
    return TooLittle(path.levels.empty() ? "the warehouse" : FormatLevels(path.levels), needed,
                     place.role);
  }
  return place;
}

Result<Target> IcebergApi::FindTarget(SqlTransaction& sql, const RequestContext& context,
                                      const CatalogPath& path, ObjectKind kind, Role needed) const {
  Target target{.path = path, .object = {}};
  TARN_ASSIGN_OR_RETURN(const tree::Node project, FindWarehouse(sql, path.prefix));
  const Result<std::vector<Rid>> folders = catalog::GetNamespacePath(sql, project.rid, path.levels);
  if (!folders.ok()) {
    return folders.status().code() == ErrorCode::kNotFound ? NoObject(kind, path.identifier())
                                                           : folders.status();
  }
  std::vector<Rid> chain = ChainOf(project, *folders);
  TARN_ASSIGN_OR_RETURN(std::optional<CatalogObject> object,
                        catalog::FindObject(sql, chain.front(), path.name));
  if (!object || object->kind != kind) {
    return NoObject(kind, path.identifier());
  }
  target.object = *std::move(object);
  chain.insert(chain.begin(), target.object.rid);
  TARN_ASSIGN_OR_RETURN(target.role, deps_.authorizer.RoleOf(sql, context.principal, chain));
  if (target.role == Role::kNone) {
    return NoObject(kind, path.identifier());
  }
  if (target.role < needed) {
    return TooLittle(path.identifier().ToString(), needed, target.role);
  }
  return target;
}

Result<Place> IcebergApi::ReadPlace(RequestContext& context, Role needed) {
  TARN_ASSIGN_OR_RETURN(const CatalogPath path, ParseCatalogPath(context.http.target));
  Place place;
  TARN_RETURN_IF_ERROR(database().Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(place, FindPlace(sql, context, path, needed));
    return Status::Ok();
  }));
  return place;
}

Result<Target> IcebergApi::ReadTarget(RequestContext& context, ObjectKind kind, Role needed) {
  TARN_ASSIGN_OR_RETURN(const CatalogPath path, ParseCatalogPath(context.http.target));
  Target target;
  TARN_RETURN_IF_ERROR(database().Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(target, FindTarget(sql, context, path, kind, needed));
    return Status::Ok();
  }));
  return target;
}

Status IcebergApi::RequireChangeable(SqlTransaction& sql, const RequestContext& context,
                                     const Target& target) const {
  if (target.object.writers == catalog::Writers::kAnyone) {
    return Status::Ok();
  }
  if (target.object.kind == ObjectKind::kView) {
    // Its properties say which internal table it shows, and readers of SQL believe them.
    return Status::PermissionDenied(fmt::format(
        "view {} belongs to a task, which alone writes it; make a view of another name over it",
        target.path.identifier().ToString()));
  }
  TARN_ASSIGN_OR_RETURN(const Role role, RoleOn(sql, context, target.object.folder));
  if (role >= Role::kOwner) {
    TARN_ASSIGN_OR_RETURN(const catalog::NamespaceProperties properties,
                          catalog::ReadProperties(sql, target.object.folder));
    const auto found = properties.find(std::string(kForeignWritesProperty));
    if (found != properties.end() && found->second == "allow") {
      return Status::Ok();
    }
  }
  return Status::PermissionDenied(fmt::format(
      "{} {} belongs to a task, which alone writes it; an Owner of namespace {} can set its "
      "property {}=allow, and the task will stop at the foreign commit",
      catalog::ObjectKindName(target.object.kind), target.path.identifier().ToString(),
      FormatLevels(target.path.levels), kForeignWritesProperty));
}

Status IcebergApi::RequireFreeName(SqlTransaction& sql, const Place& place, ObjectKind kind,
                                   const std::string& name) const {
  TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> clash,
                        catalog::FindClash(sql, place.folder, name));
  if (!clash) {
    return Status::Ok();
  }
  const bool table = clash->type == tree::NodeType::kTable;
  const std::string asked = catalog::Identifier{place.path.levels, name}.ToString();
  const std::string found =
      clash->name == name ? "" : fmt::format(" (names differ only in case: {})", clash->name);
  if (table || clash->type == tree::NodeType::kView) {
    const bool same = table == (kind == ObjectKind::kTable);
    return Status::AlreadyExists(
        fmt::format("{} {}: {}{}", table ? "Table" : "View",
                    same ? "already exists" : "with same name already exists", asked, found));
  }
  return Status::AlreadyExists(fmt::format("A {} with same name already exists: {}{}",
                                           tree::NodeTypeName(clash->type), asked, found));
}

Status IcebergApi::AuditChange(SqlTransaction& sql, const RequestContext& context,
                               std::string_view action, const std::string& resource) const {
  return access::AppendAudit(sql, {.id = 0,
                                   .time = deps_.catalog.deps().clock.Now(),
                                   .user_id = context.principal.user_id,
                                   .token_id = context.principal.token_id,
                                   .action = std::string(action),
                                   .resource = resource,
                                   .outcome = access::AuditOutcome::kDone,
                                   .details = {}});
}

Status IcebergApi::AuditDenial(const RequestContext& context, std::string_view action,
                               const std::string& resource, const Status& outcome) {
  if (outcome.code() == ErrorCode::kPermissionDenied) {
    TARN_RETURN_IF_ERROR(access::AppendAudit(database(), {.id = 0,
                                                          .time = deps_.catalog.deps().clock.Now(),
                                                          .user_id = context.principal.user_id,
                                                          .token_id = context.principal.token_id,
                                                          .action = std::string(action),
                                                          .resource = resource,
                                                          .outcome = access::AuditOutcome::kDenied,
                                                          .details = {}}));
  }
  return outcome;
}

}  // namespace tarn::server::iceberg_rest
