#include "tarn/server/foundry/places.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "tarn/access/organization.h"
#include "tarn/base/json_text.h"
#include "tarn/tree/labels.h"
#include "tarn/tree/lookup.h"
#include "tarn/tree/permission.h"

namespace tarn::server::foundry {

using nlohmann::json;
using tree::LocatedNode;
using tree::NodeType;

namespace {

std::string_view TrashStatusName(tree::TrashStatus status) {
  switch (status) {
    case tree::TrashStatus::kNotTrashed:
      return "NOT_TRASHED";
    case tree::TrashStatus::kDirectlyTrashed:
      return "DIRECTLY_TRASHED";
    case tree::TrashStatus::kAncestorTrashed:
      return "ANCESTOR_TRASHED";
  }
  return "NOT_TRASHED";
}

/// The clients accept only names they know; they have none for a view of the catalog.
std::string_view ResourceTypeName(NodeType type) {
  switch (type) {
    case NodeType::kDataset:
      return "FOUNDRY_DATASET";
    case NodeType::kTable:
    case NodeType::kView:
      return "TABLES_TABLE";
    case NodeType::kPipeline:
      return "EDDIE_PIPELINE";
    default:
      return "COMPASS_FOLDER";
  }
}

/// The members that projects, folders and resources have in common.
json CommonJson(const LocatedNode& located) {
  const tree::Node& node = located.node;
  json object = {{"rid", node.rid.ToString()},
                 {"displayName", node.name},
                 {"path", located.path},
                 {"createdBy", UserIdOnWire(node.created_by)},
                 {"updatedBy", UserIdOnWire(node.updated_by)},
                 {"createdTime", FormatTimestamp(node.created)},
                 {"updatedTime", FormatTimestamp(node.updated)},
                 {"trashStatus", TrashStatusName(located.trash_status)},
                 {"spaceRid", located.space.ToString()}};
  if (!node.description.empty()) {
    object["description"] = node.description;
  }
  if (!node.documentation.empty()) {
    object["documentation"] = node.documentation;
  }
  return object;
}

Result<json> SettingsOf(metastore::SqlTransaction& sql, const Rid& rid) {
  TARN_ASSIGN_OR_RETURN(const std::string text, tree::ReadSettings(sql, rid));
  json settings = json::parse(text, nullptr, false);
  if (!settings.is_object()) {
    return Status::Corruption("settings of " + rid.ToString() + " are no JSON object");
  }
  return settings;
}

/// Checks that a place is what the request takes it for.
Status CheckKind(PlaceKind kind, const tree::Node& node) {
  const std::string rid = node.rid.ToString();
  switch (kind) {
    case PlaceKind::kSpace:
      return node.type == NodeType::kSpace ? Status::Ok() : PlaceNotFound(kind, rid);
    case PlaceKind::kProject:
      return node.type == NodeType::kProject ? Status::Ok() : PlaceNotFound(kind, rid);
    case PlaceKind::kFolder:
      return tree::IsFolderLike(node.type)
                 ? Status::Ok()
                 : Status::InvalidArgument(rid + " is a " +
                                           std::string(tree::NodeTypeName(node.type)) +
                                           ", not a folder")
                       .WithReason("InvalidFolder", JsonObject({{"resourceRid", rid}}));
    case PlaceKind::kGrantable:
      return Status::Ok();
    case PlaceKind::kResource:
      return node.type != NodeType::kSpace
                 ? Status::Ok()
                 : Status::InvalidArgument("space " + rid + " is a folder, but no resource")
                       .WithReason("GetSpaceResourceNotSupported", JsonObject({{"spaceRid", rid}}));
  }
  return Status::Ok();
}

}  // namespace

Status PlaceNotFound(PlaceKind kind, std::string_view rid) {
  switch (kind) {
    case PlaceKind::kSpace:
      return Status::NotFound("there is no space " + JsonString(rid))
          .WithReason("SpaceNotFound", JsonObject({{"spaceRid", rid}}));
    case PlaceKind::kProject:
      return Status::NotFound("there is no project " + JsonString(rid))
          .WithReason("ProjectNotFound", JsonObject({{"projectRid", rid}}));
    case PlaceKind::kFolder:
      return Status::NotFound("there is no folder " + JsonString(rid))
          .WithReason("FolderNotFound", JsonObject({{"folderRid", rid}}));
    case PlaceKind::kResource:
    case PlaceKind::kGrantable:
      break;
  }
  return Status::NotFound("there is no resource " + JsonString(rid))
      .WithReason("ResourceNotFound", JsonObject({{"resourceRid", rid}}));
}

Result<Place> GetPlace(const FoundryDeps& deps, metastore::SqlTransaction& sql,
                       const RequestContext& context, PlaceKind kind, std::string_view rid_text,
                       access::Role role, const Denial& denial) {
  const Result<Rid> rid = Rid::Parse(rid_text);
  if (!rid.ok()) {
    return PlaceNotFound(kind, rid_text);
  }
  if (*rid == tree::RootRid() && kind != PlaceKind::kSpace && kind != PlaceKind::kProject) {
    return Status::InvalidArgument("the root holds the spaces: list those")
        .WithReason("GetRootFolderNotSupported");
  }
  Place place;
  TARN_ASSIGN_OR_RETURN(place.role, tree::RoleOn(sql, deps.authorizer, context.principal, *rid));
  if (place.role == access::Role::kNone) {
    return PlaceNotFound(kind, rid_text);
  }
  TARN_ASSIGN_OR_RETURN(place.located, tree::LocateNode(sql, *rid));
  TARN_RETURN_IF_ERROR(CheckKind(kind, place.located.node));
  if (place.role < role) {
    return Denied(denial, Status::PermissionDenied(context.principal.username + " is " +
                                                   std::string(access::RoleName(place.role)) +
                                                   " of " + rid->ToString() + ", this needs " +
                                                   std::string(access::RoleName(role))));
  }
  return place;
}

Result<std::vector<std::string>> KnownOrganizations(metastore::SqlTransaction& sql,
                                                    std::vector<std::string> rids) {
  TARN_ASSIGN_OR_RETURN(const std::vector<access::Organization> known,
                        access::ListOrganizations(sql));
  json unknown = json::array();
  for (const std::string& rid : rids) {
    if (std::ranges::none_of(known, [&](const access::Organization& organization) {
          return organization.rid.ToString() == rid;
        })) {
      unknown.push_back(rid);
    }
  }
  if (!unknown.empty()) {
    return Status::NotFound("there are no organizations " + unknown.dump())
        .WithReason("OrganizationsNotFound", json({{"organizationRids", unknown}}).dump());
  }
  return rids;
}

Result<std::vector<std::string>> OrganizationsOf(metastore::SqlTransaction& sql, const Rid& rid) {
  TARN_ASSIGN_OR_RETURN(std::vector<std::string> own,
                        tree::ListLabels(sql, rid, tree::LabelKind::kOrganization));
  if (own.empty()) {
    TARN_ASSIGN_OR_RETURN(const access::Organization first, access::GetOrganization(sql));
    own.push_back(first.rid.ToString());
  }
  return own;
}

Result<std::vector<access::Role>> ParseRoles(const std::vector<std::string>& ids) {
  std::vector<access::Role> roles;
  json unknown = json::array();
  for (const std::string& id : ids) {
    const Result<access::Role> role = access::ParseRole(id);
    if (role.ok()) {
      roles.push_back(*role);
    } else {
      unknown.push_back(id);
    }
  }
  if (!unknown.empty()) {
    return Status::InvalidArgument("there are no roles " + unknown.dump())
        .WithReason("InvalidRoleIds", json({{"requestedRoleIds", unknown}}).dump());
  }
  return roles;
}

Result<json> SpaceJson(metastore::SqlTransaction& sql, const LocatedNode& space) {
  const tree::Node& node = space.node;
  TARN_ASSIGN_OR_RETURN(const json settings, SettingsOf(sql, node.rid));
  TARN_ASSIGN_OR_RETURN(const std::vector<std::string> organizations,
                        OrganizationsOf(sql, node.rid));
  TARN_ASSIGN_OR_RETURN(const std::vector<std::string> deletion,
                        tree::ListLabels(sql, node.rid, tree::LabelKind::kDeletionOrganization));
  json object = {
      {"rid", node.rid.ToString()},
      {"displayName", node.name},
      {"path", space.path},
      {"fileSystemId", settings.value("fileSystemId", "default")},
      {"usageAccountRid", settings.value("usageAccountRid", "ri.usage.main.account." +
                                                                std::string(node.rid.locator()))},
      {"organizations", organizations},
      {"deletionPolicyOrganizations", deletion.empty() ? organizations : deletion},
      {"defaultRoleSetId", settings.value("defaultRoleSetId", "compass")}};
  if (!node.description.empty()) {
    object["description"] = node.description;
  }
  return object;
}

Result<json> ProjectJson(metastore::SqlTransaction& sql, const LocatedNode& project) {
  TARN_ASSIGN_OR_RETURN(const json settings, SettingsOf(sql, project.node.rid));
  json object = CommonJson(project);
  object["resourceLevelRoleGrantsAllowed"] = settings.value("resourceLevelRoleGrantsAllowed", true);
  return object;
}

json FolderJson(const LocatedNode& folder) {
  json object = CommonJson(folder);
  object["parentFolderRid"] = folder.node.parent.ToString();
  object["type"] = folder.node.type == NodeType::kSpace     ? "SPACE"
                   : folder.node.type == NodeType::kProject ? "PROJECT"
                                                            : "FOLDER";
  if (!folder.project.empty()) {
    object["projectRid"] = folder.project.ToString();
  }
  return object;
}

json ResourceJson(const LocatedNode& resource) {
  json object = CommonJson(resource);
  object["parentFolderRid"] = resource.node.parent.ToString();
  object["projectRid"] = resource.project.ToString();
  object["type"] = ResourceTypeName(resource.node.type);
  return object;
}

}  // namespace tarn::server::foundry
