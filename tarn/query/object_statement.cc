#include "tarn/query/object_statement.h"

#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tarn/access/audit.h"
#include "tarn/catalog/namespace.h"
#include "tarn/catalog/pointer_store.h"
#include "tarn/lakehouse/view_origin.h"
#include "tarn/query/resource_name.h"
#include "tarn/tree/permission.h"

namespace tarn::query {

namespace {

using catalog::CatalogObject;
using catalog::ObjectKind;
using metastore::SqlTransaction;
using tree::Node;
using tree::NodeType;

constexpr std::string_view kOwnerProperty = "tarn.owner";
constexpr std::string_view kPublishedSuffix = "__applied";

class ObjectChange {
 public:
  ObjectChange(const std::vector<std::string>& name, const QueryRequest& request,
               const access::Principal& principal, const QueryDeps& deps)
      : name_(name), request_(request), principal_(principal), deps_(deps) {}

  Status CreateFolder(SqlTransaction& sql, bool if_not_exists) const {
    TARN_ASSIGN_OR_RETURN(const NameScope scope, Scope(sql));
    TARN_ASSIGN_OR_RETURN(const FolderPlace place, FindFolderPlace(sql, scope, name_));
    TARN_RETURN_IF_ERROR(Require(sql, place.parent, access::Role::kEditor,
                                 Status::NotFound("there is no folder or project " +
                                                  place.parent_name + " to create one in")));
    if (place.folder && if_not_exists) {
      return Status::Ok();
    }
    const Result<Rid> made = catalog::CreateNamespace(
        sql, deps_.catalog.deps().tree,
        {.parent = place.parent, .name = place.name, .properties = {}, .by = principal_.user_id});
    TARN_RETURN_IF_ERROR(made);
    return Audit(sql, "namespace.create");
  }

  Status DropFolder(SqlTransaction& sql, bool if_exists) const {
    TARN_ASSIGN_OR_RETURN(const NameScope scope, Scope(sql));
    Result<FolderPlace> place = FindFolderPlace(sql, scope, name_);
    const Status missing = Status::NotFound(fmt::format("there is no schema {}", Name()));
    if (place.ok() ? !place->folder : place.status().code() == ErrorCode::kNotFound) {
      return if_exists ? Status::Ok() : missing;
    }
    TARN_RETURN_IF_ERROR(place);
    TARN_RETURN_IF_ERROR(Require(sql, *place->folder, access::Role::kEditor, missing));
    const Status dropped =
        catalog::DropNamespace(sql, deps_.catalog.deps().tree, *place->folder, principal_.user_id);
    if (dropped.code() == ErrorCode::kFailedPrecondition) {
      return Status::Conflict(fmt::format("schema {}: {}", Name(), dropped.message()))
          .WithReason("FolderNotEmpty");
    }
    TARN_RETURN_IF_ERROR(dropped);
    return Audit(sql, "namespace.drop");
  }

  Status Drop(SqlTransaction& sql, const DropStatement& statement) const {
    TARN_ASSIGN_OR_RETURN(const NameScope scope, Scope(sql));
    const Result<Node> node = FindResource(sql, scope, name_);
    if (node.status().code() == ErrorCode::kNotFound && statement.if_exists) {
      return Status::Ok();
    }
    TARN_RETURN_IF_ERROR(node);
    const bool view = statement.kind == DropStatement::Kind::kView;
    if (node->type != (view ? NodeType::kView : NodeType::kTable)) {
      return WrongKind(node->type);
    }
    TARN_ASSIGN_OR_RETURN(const std::optional<CatalogObject> object,
                          catalog::FindObject(sql, node->rid));
    if (!object) {
      return Status::NotFound(fmt::format("{} does not exist in the catalog any more", Name()));
    }
    if (object->writers == catalog::Writers::kProduct) {
      return BelongsToPipeline(sql, *object);
    }
    TARN_RETURN_IF_ERROR(
        tree::Require(sql, deps_.authorizer, principal_, node->rid,
                      {.role = statement.purge ? access::Role::kOwner : access::Role::kEditor,
                       .scope = access::Scope::kIcebergWrite}));
    TARN_RETURN_IF_ERROR(catalog::DropObject(sql, deps_.catalog.deps().tree,
                                             {.object = *object,
                                              .by = principal_.user_id,
                                              .at = deps_.catalog.deps().clock.Now(),
                                              .purge = statement.purge}));
    return Audit(sql, view ? "view.drop" : "table.drop");
  }

 private:
  [[nodiscard]] std::string Name() const { return fmt::format("{}", fmt::join(name_, ".")); }

  Result<NameScope> Scope(SqlTransaction& sql) const {
    TARN_ASSIGN_OR_RETURN(const Node project, FindProject(sql, request_.project));
    return NameScope{.principal = principal_,
                     .authorizer = deps_.authorizer,
                     .project = project.rid,
                     .needed = access::Scope::kIcebergWrite};
  }

  // What the caller may not see is not there.
  Status Require(SqlTransaction& sql, const Rid& rid, access::Role role,
                 const Status& missing) const {
    const Status allowed = tree::Require(sql, deps_.authorizer, principal_, rid,
                                         {.role = role, .scope = access::Scope::kIcebergWrite});
    return allowed.code() == ErrorCode::kNotFound ? missing : allowed;
  }

  [[nodiscard]] Status WrongKind(NodeType type) const {
    if (type == NodeType::kDataset) {
      return Status::InvalidArgument(
          fmt::format("{} is a dataset: DROP is for tables, views and schemas", Name()));
    }
    return Status::InvalidArgument(fmt::format("{} is a {}: use DROP {}", Name(),
                                               tree::NodeTypeName(type),
                                               type == NodeType::kView ? "VIEW" : "TABLE"));
  }

  // PIPELINE.TASK that an object of a pipeline belongs to; empty when it does not tell.
  Result<std::string> OwnerOf(SqlTransaction& sql, const CatalogObject& object) const {
    if (object.kind == ObjectKind::kTable) {
      TARN_ASSIGN_OR_RETURN(const catalog::TableMetadataPtr table,
                            deps_.catalog.ReadTable(object.metadata_location));
      const auto owner = table->properties.find(std::string(kOwnerProperty));
      if (owner != table->properties.end()) {
        return owner->second;
      }
      // The published table has none of its own: its view, beside it, knows more.
      if (!object.name.ends_with(kPublishedSuffix)) {
        return std::string();
      }
      TARN_ASSIGN_OR_RETURN(const tree::LocatedNode located, tree::LocateNode(sql, object.rid));
      TARN_ASSIGN_OR_RETURN(
          const std::optional<CatalogObject> view,
          catalog::FindObject(sql, located.node.parent,
                              object.name.substr(0, object.name.size() - kPublishedSuffix.size())));
      return view && view->kind == ObjectKind::kView ? OwnerOf(sql, *view) : std::string();
    }
    TARN_ASSIGN_OR_RETURN(const catalog::ViewMetadataPtr view,
                          deps_.catalog.ReadView(object.metadata_location));
    TARN_ASSIGN_OR_RETURN(const std::optional<lakehouse::ViewOrigin> origin,
                          lakehouse::ParseOrigin(view->properties));
    if (!origin) {
      return std::string();
    }
    TARN_ASSIGN_OR_RETURN(const tree::LocatedNode located, tree::LocateNode(sql, object.rid));
    TARN_ASSIGN_OR_RETURN(const std::optional<Node> folder,
                          tree::FindChild(sql, located.project, origin->internal_schema));
    if (!folder) {
      return std::string();
    }
    TARN_ASSIGN_OR_RETURN(const std::optional<CatalogObject> internal,
                          catalog::FindObject(sql, folder->rid, origin->internal_name));
    return internal && internal->kind == ObjectKind::kTable ? OwnerOf(sql, *internal)
                                                            : std::string();
  }

  Status BelongsToPipeline(SqlTransaction& sql, const CatalogObject& object) const {
    TARN_ASSIGN_OR_RETURN(const std::string owner, OwnerOf(sql, object));
    const std::string pipeline = owner.substr(0, owner.find('.'));
    return Status::PermissionDenied(
        owner.empty()
            ? fmt::format("{} {} belongs to a pipeline and cannot be dropped",
                          catalog::ObjectKindName(object.kind), Name())
            : fmt::format(
                  "{} {} belongs to task {} of pipeline {} and cannot be dropped: tarn task "
                  "recreate {} makes it anew, tarn pipeline delete {} ends the pipeline",
                  catalog::ObjectKindName(object.kind), Name(), owner, pipeline, owner, pipeline));
  }

  Status Audit(SqlTransaction& sql, std::string_view action) const {
    return access::AppendAudit(sql, {.id = 0,
                                     .time = deps_.catalog.deps().clock.Now(),
                                     .user_id = principal_.user_id,
                                     .token_id = principal_.token_id,
                                     .action = std::string(action),
                                     .resource = Name(),
                                     .outcome = access::AuditOutcome::kDone,
                                     .details = {}});
  }

  const std::vector<std::string>& name_;
  const QueryRequest& request_;
  const access::Principal& principal_;
  const QueryDeps& deps_;
};

}  // namespace

Status CreateSchema(const CreateSchemaStatement& statement, const QueryRequest& request,
                    const access::Principal& principal, const QueryDeps& deps) {
  const ObjectChange change(statement.name, request, principal, deps);
  return deps.catalog.deps().database.Write(
      [&](SqlTransaction& sql) { return change.CreateFolder(sql, statement.if_not_exists); });
}

Status DropObject(const DropStatement& statement, const QueryRequest& request,
                  const access::Principal& principal, const QueryDeps& deps) {
  const ObjectChange change(statement.name, request, principal, deps);
  TARN_RETURN_IF_ERROR(deps.catalog.deps().database.Write([&](SqlTransaction& sql) {
    return statement.kind == DropStatement::Kind::kSchema
               ? change.DropFolder(sql, statement.if_exists)
               : change.Drop(sql, statement);
  }));
  if (statement.purge) {
    // The table is gone whatever becomes of its files; what is left is tried again at each start.
    const Result<int64_t> purged = deps.catalog.FinishPurges();
    (void)purged;
  }
  return Status::Ok();
}

}  // namespace tarn::query
