#include <algorithm>

#include <nlohmann/json.hpp>

#include "tarn/access/organization.h"
#include "tarn/base/json_text.h"
#include "tarn/server/foundry/places.h"
#include "tarn/tree/labels.h"
#include "tarn/tree/lookup.h"
#include "tarn/tree/permission.h"
#include "tarn/tree/tree.h"

namespace tarn::server::foundry {

using metastore::SqlTransaction;
using nlohmann::json;

namespace {

constexpr tree::LabelKind kOrganization = tree::LabelKind::kOrganization;

Denial ProjectDenial(const char* name, const std::string& rid) {
  return {.name = name, .parameters = {{"projectRid", rid}}};
}

/// What POST …/projects/create asks for.
struct ProjectBody {
  std::string name;
  std::string space;
  std::string description;
  std::vector<access::Grant> grants;  // Without the resource.
  std::vector<std::string> organizations;
  bool resource_level_grants = true;
};

Status InvalidBody(const std::string& what, const char* member) {
  return Status::InvalidArgument("read the request body: " + what)
      .WithReason("InvalidBody", JsonObject({{"member", member}}));
}

/// {roleId: [{principalId, …}]} and the roles of everyone.
Result<std::vector<access::Grant>> GrantsIn(const json& body) {
  const auto granted = body.find("roleGrants");
  if (granted == body.end() || !granted->is_object()) {
    return InvalidBody("\"roleGrants\" must be an object of lists", "roleGrants");
  }
  std::vector<std::string> role_ids;
  for (const auto& [role_id, principals] : granted->items()) {
    role_ids.push_back(role_id);
  }
  TARN_ASSIGN_OR_RETURN(const std::vector<access::Role> roles, ParseRoles(role_ids));
  std::vector<access::Grant> grants;
  for (size_t i = 0; i < roles.size(); ++i) {
    const json& principals = (*granted)[role_ids[i]];
    if (!principals.is_array()) {
      return InvalidBody("\"roleGrants\" must be an object of lists", "roleGrants");
    }
    for (const json& principal : principals) {
      TARN_ASSIGN_OR_RETURN(std::string id, RequiredText(principal, "principalId"));
      grants.push_back({.resource = {}, .principal_id = std::move(id), .role = roles[i]});
    }
  }
  if (std::ranges::none_of(
          grants, [](const access::Grant& grant) { return grant.role == access::Role::kOwner; })) {
    const json parameters = {
        {"grantedRoleIds", role_ids},
        {"roleSetOwnerLikeRoleIds", json::array({access::RoleId(access::Role::kOwner)})}};
    return Status::InvalidArgument("a project needs somebody with the role compass:manage")
        .WithReason("CreateProjectNoOwnerLikeRoleGrant", parameters.dump());
  }
  TARN_ASSIGN_OR_RETURN(const std::vector<std::string> defaults, TextList(body, "defaultRoles"));
  TARN_ASSIGN_OR_RETURN(const std::vector<access::Role> of_everyone, ParseRoles(defaults));
  for (const access::Role role : of_everyone) {
    grants.push_back(
        {.resource = {}, .principal_id = std::string(access::kEveryone), .role = role});
  }
  return grants;
}

Result<ProjectBody> ReadProjectBody(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  ProjectBody project;
  TARN_ASSIGN_OR_RETURN(project.name, RequiredText(body, "displayName"));
  TARN_ASSIGN_OR_RETURN(project.space, RequiredText(body, "spaceRid"));
  TARN_ASSIGN_OR_RETURN(const auto description, OptionalText(body, "description"));
  project.description = description.value_or("");
  TARN_ASSIGN_OR_RETURN(project.grants, GrantsIn(body));
  TARN_ASSIGN_OR_RETURN(project.organizations, TextList(body, "organizationRids"));
  const auto allowed = body.find("resourceLevelRoleGrantsAllowed");
  if (allowed != body.end() && !allowed->is_null()) {
    if (!allowed->is_boolean()) {
      return InvalidBody("\"resourceLevelRoleGrantsAllowed\" must be true or false",
                         "resourceLevelRoleGrantsAllowed");
    }
    project.resource_level_grants = allowed->get<bool>();
  }
  return project;
}

/// Organizations of a project must be among those of its space.
Status CheckOrganizations(SqlTransaction& sql, const Rid& space,
                          const std::vector<std::string>& organizations) {
  TARN_RETURN_IF_ERROR(StatusOf(KnownOrganizations(sql, organizations)));
  TARN_ASSIGN_OR_RETURN(const std::vector<std::string> of_space, OrganizationsOf(sql, space));
  json foreign = json::array();
  for (const std::string& rid : organizations) {
    if (std::ranges::find(of_space, rid) == of_space.end()) {
      foreign.push_back(rid);
    }
  }
  if (!foreign.empty()) {
    const json parameters = {{"spaceRid", space.ToString()}, {"organizationRids", foreign}};
    return Status::InvalidArgument("these organizations are not on the space: " + foreign.dump())
        .WithReason("OrganizationMarkingNotOnSpace", parameters.dump());
  }
  return Status::Ok();
}

Result<json> MakeProject(const FoundryDeps& deps, SqlTransaction& sql,
                         const RequestContext& context, const ProjectBody& wanted) {
  TARN_ASSIGN_OR_RETURN(
      const Place space,
      GetPlace(deps, sql, context, PlaceKind::kSpace, wanted.space, access::Role::kEditor,
               {.name = "CreateProjectPermissionDenied", .parameters = {}}));
  const std::string& by = context.principal.user_id;
  TARN_RETURN_IF_ERROR(CheckOrganizations(sql, space.located.node.rid, wanted.organizations));
  TARN_ASSIGN_OR_RETURN(const tree::Node node,
                        deps.catalog.deps().tree.Create(sql, {.rid = {},
                                                              .parent = space.located.node.rid,
                                                              .name = wanted.name,
                                                              .type = tree::NodeType::kProject,
                                                              .description = wanted.description,
                                                              .by = by}));
  for (access::Grant grant : wanted.grants) {
    grant.resource = node.rid;
    TARN_RETURN_IF_ERROR(access::AddGrant(sql, grant, by, deps.clock.Now()));
  }
  for (const std::string& organization : wanted.organizations) {
    TARN_RETURN_IF_ERROR(tree::AddLabel(sql, node.rid, kOrganization, organization));
  }
  const json settings = {{"resourceLevelRoleGrantsAllowed", wanted.resource_level_grants}};
  TARN_RETURN_IF_ERROR(tree::WriteSettings(sql, node.rid, settings.dump()));
  TARN_ASSIGN_OR_RETURN(const tree::LocatedNode located, tree::LocateNode(sql, node.rid));
  return ProjectJson(sql, located);
}

/// The tree's names for a bad display name, in the words that projects declare.
Status AsProjectError(const Status& status) {
  return status.reason() == "MissingDisplayName"
             ? status.WithReason("InvalidDisplayName", JsonObject({{"displayName", ""}}))
             : status;
}

Result<http::Response> Create(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const ProjectBody wanted, ReadProjectBody(context));
  json answer;
  std::string made = wanted.space;
  TARN_RETURN_IF_ERROR(AsProjectError(
      Audited(deps, context, "project.create", made, metastore::Durability::kDurable,
              [&](SqlTransaction& sql) -> Status {
                TARN_ASSIGN_OR_RETURN(answer, MakeProject(deps, sql, context, wanted));
                made = answer.value("rid", "");
                return Status::Ok();
              })));
  return JsonResponse(answer);
}

/// There are no templates on this server.
Result<http::Response> CreateFromTemplate(const FoundryDeps&, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const std::string rid, RequiredText(body, "templateRid"));
  return Status::NotFound("there is no project template " + JsonString(rid))
      .WithReason("ProjectTemplateNotFound", JsonObject({{"projectTemplateRid", rid}}));
}

Result<http::Response> Get(const FoundryDeps& deps, RequestContext& context) {
  json answer;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const Place place, GetPlace(deps, sql, context, PlaceKind::kProject,
                                                      context.Path("projectRid")));
    TARN_ASSIGN_OR_RETURN(answer, ProjectJson(sql, place.located));
    return Status::Ok();
  }));
  return JsonResponse(answer);
}

Result<http::Response> Replace(const FoundryDeps& deps, RequestContext& context) {
  const std::string& rid = context.Path("projectRid");
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const std::string name, RequiredText(body, "displayName"));
  TARN_ASSIGN_OR_RETURN(const auto description, OptionalText(body, "description"));
  json answer;
  TARN_RETURN_IF_ERROR(AsProjectError(Audited(
      deps, context, "project.replace", rid, metastore::Durability::kDurable,
      [&](SqlTransaction& sql) -> Status {
        TARN_ASSIGN_OR_RETURN(
            const Place place,
            GetPlace(deps, sql, context, PlaceKind::kProject, rid, access::Role::kEditor,
                     ProjectDenial("ReplaceProjectPermissionDenied", rid)));
        const Rid& project = place.located.node.rid;
        tree::Tree& tree = deps.catalog.deps().tree;
        TARN_RETURN_IF_ERROR(tree.Rename(sql, project, name, context.principal.user_id));
        TARN_RETURN_IF_ERROR(tree.Describe(
            sql, project, {.description = description.value_or(""), .documentation = {}},
            context.principal.user_id));
        TARN_ASSIGN_OR_RETURN(const tree::LocatedNode located, tree::LocateNode(sql, project));
        TARN_ASSIGN_OR_RETURN(answer, ProjectJson(sql, located));
        return Status::Ok();
      })));
  return JsonResponse(answer);
}

Result<http::Response> ListOrganizations(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const int page_size, PageSizeOf(context, 1000, 1000));
  std::vector<std::pair<std::string, json>> sorted;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    sorted.clear();
    TARN_ASSIGN_OR_RETURN(const Place place, GetPlace(deps, sql, context, PlaceKind::kProject,
                                                      context.Path("projectRid")));
    TARN_ASSIGN_OR_RETURN(const std::vector<std::string> rids,
                          OrganizationsOf(sql, place.located.node.rid));
    for (const std::string& rid : rids) {
      sorted.emplace_back(rid, rid);
    }
    return Status::Ok();
  }));
  TARN_ASSIGN_OR_RETURN(const json page, PageOfList(sorted, page_size, PageTokenOf(context)));
  return JsonResponse(page);
}

Result<http::Response> AddOrganizations(const FoundryDeps& deps, RequestContext& context) {
  const std::string& rid = context.Path("projectRid");
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const auto organizations, TextList(body, "organizationRids"));
  TARN_RETURN_IF_ERROR(
      Audited(deps, context, "project.addOrganizations", rid, metastore::Durability::kDurable,
              [&](SqlTransaction& sql) -> Status {
                TARN_ASSIGN_OR_RETURN(
                    const Place place,
                    GetPlace(deps, sql, context, PlaceKind::kProject, rid, access::Role::kOwner,
                             ProjectDenial("AddOrganizationsPermissionDenied", rid)));
                TARN_RETURN_IF_ERROR(StatusOf(KnownOrganizations(sql, organizations)));
                // Those it had without saying so become its own, or adding one would lose them.
                TARN_ASSIGN_OR_RETURN(std::vector<std::string> all,
                                      OrganizationsOf(sql, place.located.node.rid));
                all.insert(all.end(), organizations.begin(), organizations.end());
                for (const std::string& organization : all) {
                  TARN_RETURN_IF_ERROR(
                      tree::AddLabel(sql, place.located.node.rid, kOrganization, organization));
                }
                return Status::Ok();
              }));
  return NoContent();
}

Result<http::Response> RemoveOrganizations(const FoundryDeps& deps, RequestContext& context) {
  const std::string& rid = context.Path("projectRid");
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const auto organizations, TextList(body, "organizationRids"));
  TARN_RETURN_IF_ERROR(Audited(
      deps, context, "project.removeOrganizations", rid, metastore::Durability::kDurable,
      [&](SqlTransaction& sql) -> Status {
        TARN_ASSIGN_OR_RETURN(
            const Place place,
            GetPlace(deps, sql, context, PlaceKind::kProject, rid, access::Role::kOwner,
                     ProjectDenial("RemoveOrganizationsPermissionDenied", rid)));
        const Rid& project = place.located.node.rid;
        TARN_RETURN_IF_ERROR(StatusOf(KnownOrganizations(sql, organizations)));
        TARN_ASSIGN_OR_RETURN(const std::vector<std::string> all, OrganizationsOf(sql, project));
        const bool some_stay = std::ranges::any_of(all, [&](const std::string& one) {
          return std::ranges::find(organizations, one) == organizations.end();
        });
        if (!some_stay) {
          const json parameters = {{"organizationRids", organizations}};
          return Status::InvalidArgument("a project keeps at least one organization")
              .WithReason("OrganizationCannotBeRemoved", parameters.dump());
        }
        for (const std::string& organization : organizations) {
          TARN_RETURN_IF_ERROR(tree::RemoveLabel(sql, project, kOrganization, organization));
        }
        return Status::Ok();
      }));
  return NoContent();
}

/// One reference of a request, checked. Errors: ResourceNotFound, InvalidResourceReference.
Result<tree::Reference> ReferenceIn(const FoundryDeps& deps, SqlTransaction& sql,
                                    const RequestContext& context, const json& entry,
                                    const Rid& project) {
  TARN_ASSIGN_OR_RETURN(const std::string text, RequiredText(entry, "resourceRid"));
  TARN_ASSIGN_OR_RETURN(const std::string type, RequiredText(entry, "type"));
  tree::Reference reference{.resource = {},
                            .name = {},
                            .external = type == "external",
                            .imported_by = context.principal.user_id,
                            .imported = deps.clock.Now()};
  const Status invalid =
      Status::InvalidArgument("resource " + JsonString(text) + " cannot be referenced here")
          .WithReason("InvalidResourceReference", JsonObject({{"resourceRid", text}}));
  if (reference.external) {
    const Result<Rid> rid = Rid::Parse(text);
    if (!rid.ok()) {
      return invalid;
    }
    reference.resource = *rid;
    TARN_ASSIGN_OR_RETURN(reference.name, RequiredText(entry, "importName"));
    return reference;
  }
  if (type != "filesystem") {
    return InvalidBody("\"type\" must be external or filesystem", "type");
  }
  TARN_ASSIGN_OR_RETURN(const Place place,
                        GetPlace(deps, sql, context, PlaceKind::kResource, text));
  if (place.located.project == project) {
    return invalid;
  }
  reference.resource = place.located.node.rid;
  reference.name = place.located.node.name;
  return reference;
}

Result<http::Response> AddReferences(const FoundryDeps& deps, RequestContext& context) {
  const std::string& rid = context.Path("projectRid");
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  const auto resources = body.is_object() ? body.find("resources") : body.end();
  if (!body.is_object() || resources == body.end() || !resources->is_array()) {
    return InvalidBody("\"resources\" must be a list", "resources");
  }
  TARN_RETURN_IF_ERROR(Audited(
      deps, context, "project.addReferences", rid, metastore::Durability::kDurable,
      [&](SqlTransaction& sql) -> Status {
        TARN_ASSIGN_OR_RETURN(
            const Place place,
            GetPlace(deps, sql, context, PlaceKind::kProject, rid, access::Role::kEditor,
                     ProjectDenial("AddProjectResourceReferencesPermissionDenied", rid)));
        for (const json& entry : *resources) {
          TARN_ASSIGN_OR_RETURN(const tree::Reference reference,
                                ReferenceIn(deps, sql, context, entry, place.located.node.rid));
          TARN_RETURN_IF_ERROR(tree::AddReference(sql, place.located.node.rid, reference));
        }
        return Status::Ok();
      }));
  return NoContent();
}

Result<http::Response> RemoveReferences(const FoundryDeps& deps, RequestContext& context) {
  const std::string& rid = context.Path("projectRid");
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const auto resources, TextList(body, "resources"));
  TARN_RETURN_IF_ERROR(Audited(
      deps, context, "project.removeReferences", rid, metastore::Durability::kDurable,
      [&](SqlTransaction& sql) -> Status {
        TARN_ASSIGN_OR_RETURN(
            const Place place,
            GetPlace(deps, sql, context, PlaceKind::kProject, rid, access::Role::kEditor,
                     ProjectDenial("RemoveProjectResourceReferencesPermissionDenied", rid)));
        for (const std::string& text : resources) {
          const Result<Rid> resource = Rid::Parse(text);
          if (!resource.ok()) {
            return Status::InvalidArgument("resource " + JsonString(text) + " is no identifier")
                .WithReason("InvalidResourceReference", JsonObject({{"resourceRid", text}}));
          }
          TARN_RETURN_IF_ERROR(tree::RemoveReference(sql, place.located.node.rid, *resource));
        }
        return Status::Ok();
      }));
  return NoContent();
}

Result<http::Response> ListReferences(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const int page_size, PageSizeOf(context, 1000, 1000));
  const std::string type = context.query.Find("referenceType").value_or("");
  if (!type.empty() && type != "EXTERNAL" && type != "FILESYSTEM") {
    return Status::InvalidArgument("referenceType must be EXTERNAL or FILESYSTEM")
        .WithReason("InvalidParameter",
                    JsonObject({{"parameter", "referenceType"}, {"found", type}}));
  }
  std::vector<std::pair<std::string, json>> sorted;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    sorted.clear();
    TARN_ASSIGN_OR_RETURN(const Place place, GetPlace(deps, sql, context, PlaceKind::kProject,
                                                      context.Path("projectRid")));
    TARN_ASSIGN_OR_RETURN(const std::vector<tree::Reference> references,
                          tree::ListReferences(sql, place.located.node.rid));
    for (const tree::Reference& reference : references) {
      TARN_ASSIGN_OR_RETURN(
          const access::Role role,
          tree::RoleOn(sql, deps.authorizer, context.principal, reference.resource));
      const bool hidden = !reference.external && role == access::Role::kNone;
      if (hidden || (!type.empty() && reference.external != (type == "EXTERNAL"))) {
        continue;
      }
      const std::string rid = reference.resource.ToString();
      sorted.emplace_back(rid, json{{"reference",
                                     {{"type", reference.external ? "external" : "filesystem"},
                                      {"resourceRid", rid},
                                      {"name", reference.name},
                                      {"importedAt", FormatTimestamp(reference.imported)},
                                      {"importedBy", UserIdOnWire(reference.imported_by)}}}});
    }
    return Status::Ok();
  }));
  TARN_ASSIGN_OR_RETURN(const json page, PageOfList(sorted, page_size, PageTokenOf(context)));
  return JsonResponse(page);
}

constexpr access::Scope kRead = access::Scope::kFilesystemRead;
constexpr access::Scope kWrite = access::Scope::kFilesystemWrite;

constexpr FoundryRoute kRoutes[] = {
    {"POST", "/filesystem/projects/create", kWrite, Create},
    {"POST", "/filesystem/projects/createFromTemplate", kWrite, CreateFromTemplate},
    {"GET", "/filesystem/projects/{projectRid}", kRead, Get},
    {"PUT", "/filesystem/projects/{projectRid}", kWrite, Replace, Stability::kPreview},
    {"GET", "/filesystem/projects/{projectRid}/organizations", std::nullopt, ListOrganizations},
    {"POST", "/filesystem/projects/{projectRid}/addOrganizations", kWrite, AddOrganizations},
    {"POST", "/filesystem/projects/{projectRid}/removeOrganizations", kWrite, RemoveOrganizations},
    {"GET", "/filesystem/projects/{projectRid}/references", kRead, ListReferences},
    {"POST", "/filesystem/projects/{projectRid}/references/add", kWrite, AddReferences},
    {"POST", "/filesystem/projects/{projectRid}/references/remove", kWrite, RemoveReferences},
};

}  // namespace

std::span<const FoundryRoute> ProjectRoutes() { return kRoutes; }

}  // namespace tarn::server::foundry
