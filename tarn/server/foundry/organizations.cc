#include <array>

#include <nlohmann/json.hpp>

#include "tarn/access/directory.h"
#include "tarn/access/organization.h"
#include "tarn/access/role.h"
#include "tarn/base/json_text.h"
#include "tarn/server/foundry/enrollment.h"
#include "tarn/server/foundry/foundry_api.h"

namespace tarn::server::foundry {

using access::Organization;
using access::Role;
using metastore::SqlTransaction;
using nlohmann::json;

namespace {

constexpr size_t kBatchMax = 500;
constexpr std::array<Role, 4> kRoles = {Role::kDiscoverer, Role::kViewer, Role::kEditor,
                                        Role::kOwner};

json OrganizationJson(const Organization& organization) {
  json object = {{"rid", organization.rid.ToString()},
                 {"name", organization.name},
                 {"markingId", organization.marking_id}};
  if (!organization.description.empty()) {
    object["description"] = organization.description;
  }
  if (!organization.host.empty()) {
    object["host"] = organization.host;
  }
  return object;
}

std::string_view DescriptionOf(Role role) {
  switch (role) {
    case Role::kDiscoverer:
      return "Sees that it exists and its name.";
    case Role::kViewer:
      return "Reads everything.";
    case Role::kEditor:
      return "Reads and writes, moves and trashes.";
    default:
      return "All of it, and decides who may do what.";
  }
}

/// `operations` and `canAssigns` follow from the order of the roles: each includes those before.
json RoleJson(Role role) {
  json operations = json::array({"compass:discover"});
  if (role >= Role::kViewer) {
    operations.push_back("compass:view");
  }
  if (role >= Role::kEditor) {
    operations.push_back("compass:edit");
  }
  json assigns = json::array();
  if (role == Role::kOwner) {
    operations.push_back("compass:manage");
    for (const Role other : kRoles) {
      assigns.push_back(access::RoleId(other));
    }
  }
  return {{"id", access::RoleId(role)},
          {"displayName", access::RoleName(role)},
          {"description", DescriptionOf(role)},
          {"operations", std::move(operations)},
          {"canAssigns", std::move(assigns)}};
}

Result<Organization> OrganizationOf(SqlTransaction& sql, const std::string& text) {
  const Result<Rid> rid = Rid::Parse(text);
  if (!rid.ok()) {
    return Status::NotFound("there is no organization " + JsonString(text))
        .WithReason("OrganizationNotFound", JsonObject({{"organizationRid", text}}));
  }
  return access::GetOrganization(sql, *rid);
}

Result<http::Response> Create(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  Organization wanted;
  TARN_ASSIGN_OR_RETURN(wanted.name, RequiredText(body, "name"));
  TARN_ASSIGN_OR_RETURN(const std::string enrollment, RequiredText(body, "enrollmentRid"));
  TARN_ASSIGN_OR_RETURN(const auto description, OptionalText(body, "description"));
  TARN_ASSIGN_OR_RETURN(const auto host, OptionalText(body, "host"));
  TARN_ASSIGN_OR_RETURN(const auto administrators, TextList(body, "administrators"));
  wanted.description = description.value_or("");
  wanted.host = host.value_or("");
  json answer;
  std::string made = wanted.name;
  TARN_RETURN_IF_ERROR(Audited(
      deps, context, "organization.create", made, metastore::Durability::kDurable,
      [&](SqlTransaction& sql) -> Status {
        TARN_RETURN_IF_ERROR(RequireAdmin(
            deps, sql, context, {.name = "CreateOrganizationPermissionDenied", .parameters = {}}));
        TARN_RETURN_IF_ERROR(CheckEnrollment(sql, enrollment));
        if (administrators.empty()) {
          return Status::InvalidArgument("an organization needs an administrator")
              .WithReason("CreateOrganizationMissingInitialAdminRole");
        }
        for (const std::string& id : administrators) {
          if (!access::GetUser(sql, id).ok() && !access::GetGroup(sql, id).ok()) {
            return Status::NotFound("no active user and no group " + JsonString(id))
                .WithReason("PrincipalNotFound", JsonObject({{"principalId", id}}));
          }
        }
        TARN_ASSIGN_OR_RETURN(const Organization organization,
                              access::CreateOrganization(sql, wanted, deps.uuids, deps.clock));
        made = organization.rid.ToString();
        answer = OrganizationJson(organization);
        return Status::Ok();
      }));
  return JsonResponse(answer);
}

Result<http::Response> Get(const FoundryDeps& deps, RequestContext& context) {
  json answer;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const Organization organization,
                          OrganizationOf(sql, context.Path("organizationRid")));
    answer = OrganizationJson(organization);
    return Status::Ok();
  }));
  return JsonResponse(answer);
}

Result<http::Response> Replace(const FoundryDeps& deps, RequestContext& context) {
  const std::string& rid = context.Path("organizationRid");
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const std::string name, RequiredText(body, "name"));
  TARN_ASSIGN_OR_RETURN(const auto description, OptionalText(body, "description"));
  TARN_ASSIGN_OR_RETURN(const auto host, OptionalText(body, "host"));
  if (host && (host->empty() || host->find_first_of("/: \t\r\n") != std::string::npos)) {
    return Status::InvalidArgument(JsonString(*host) + " is no host name")
        .WithReason("InvalidHostName", JsonObject({{"invalidHostName", *host}}));
  }
  json answer;
  TARN_RETURN_IF_ERROR(
      Audited(deps, context, "organization.replace", rid, metastore::Durability::kDurable,
              [&](SqlTransaction& sql) -> Status {
                TARN_ASSIGN_OR_RETURN(Organization organization, OrganizationOf(sql, rid));
                TARN_RETURN_IF_ERROR(RequireAdmin(deps, sql, context,
                                                  {.name = "ReplaceOrganizationPermissionDenied",
                                                   .parameters = {{"organizationRid", rid}}}));
                organization.name = name;
                organization.description = description.value_or("");
                organization.host = host.value_or("");
                TARN_RETURN_IF_ERROR(access::ReplaceOrganization(sql, organization));
                answer = OrganizationJson(organization);
                return Status::Ok();
              }));
  return JsonResponse(answer);
}

Result<http::Response> ListAvailableRoles(const FoundryDeps& deps, RequestContext& context) {
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) {
    return StatusOf(OrganizationOf(sql, context.Path("organizationRid")));
  }));
  json data = json::array();
  for (const Role role : kRoles) {
    json object = RoleJson(role);
    object["name"] = access::RoleName(role);
    object["roleSetId"] = "compass";
    object["isDefault"] = true;
    object["type"] = "ORGANIZATION";
    data.push_back(std::move(object));
  }
  return JsonResponse({{"data", std::move(data)}});
}

Result<json> EnrollmentJson(SqlTransaction& sql) {
  TARN_ASSIGN_OR_RETURN(const Rid rid, EnrollmentRid(sql));
  TARN_ASSIGN_OR_RETURN(const Organization first, access::GetOrganization(sql));
  return json{{"rid", rid.ToString()}, {"name", first.name}};
}

Result<http::Response> GetEnrollment(const FoundryDeps& deps, RequestContext& context) {
  json answer;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(CheckEnrollment(sql, context.Path("enrollmentRid")));
    TARN_ASSIGN_OR_RETURN(answer, EnrollmentJson(sql));
    return Status::Ok();
  }));
  return JsonResponse(answer);
}

Result<http::Response> GetCurrentEnrollment(const FoundryDeps& deps, RequestContext&) {
  json answer;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(answer, EnrollmentJson(sql));
    return Status::Ok();
  }));
  return JsonResponse(answer);
}

Status RoleNotFound(const std::string& id) {
  return Status::NotFound("there is no role " + JsonString(id))
      .WithReason("RoleNotFound", JsonObject({{"roleId", id}}));
}

Result<http::Response> GetRole(const FoundryDeps&, RequestContext& context) {
  const Result<Role> role = access::ParseRole(context.Path("roleId"));
  if (!role.ok()) {
    return RoleNotFound(context.Path("roleId"));
  }
  return JsonResponse(RoleJson(*role));
}

Result<http::Response> GetRoleBatch(const FoundryDeps&, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadBatch(context, kBatchMax));
  json data = json::object();
  for (const json& entry : body) {
    TARN_ASSIGN_OR_RETURN(const std::string id, RequiredText(entry, "roleId"));
    const Result<Role> role = access::ParseRole(id);
    if (role.ok()) {
      data[id] = RoleJson(*role);
    }
  }
  return JsonResponse({{"data", std::move(data)}});
}

constexpr access::Scope kRead = access::Scope::kAdminRead;
constexpr access::Scope kWrite = access::Scope::kAdminWrite;

constexpr FoundryRoute kRoutes[] = {
    {"POST", "/admin/organizations", kWrite, Create, Stability::kPreview},
    {"GET", "/admin/organizations/{organizationRid}", kRead, Get},
    {"PUT", "/admin/organizations/{organizationRid}", kWrite, Replace},
    {"GET", "/admin/organizations/{organizationRid}/listAvailableRoles", kRead, ListAvailableRoles},
    {"GET", "/admin/enrollments/getCurrent", kRead, GetCurrentEnrollment, Stability::kPreview},
    {"GET", "/admin/enrollments/{enrollmentRid}", kRead, GetEnrollment, Stability::kPreview},
    {"POST", "/admin/roles/getBatch", kRead, GetRoleBatch, Stability::kPreview,
     RouteEffect::kReadOnly},
    {"GET", "/admin/roles/{roleId}", kRead, GetRole, Stability::kPreview},
};

}  // namespace

std::span<const FoundryRoute> OrganizationRoutes() { return kRoutes; }

}  // namespace tarn::server::foundry
