#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "tarn/access/directory.h"
#include "tarn/base/json_text.h"
#include "tarn/server/foundry/places.h"
#include "tarn/tree/labels.h"
#include "tarn/tree/lookup.h"
#include "tarn/tree/permission.h"

namespace tarn::server::foundry {

using metastore::SqlTransaction;
using nlohmann::json;

namespace {

Denial ResourceDenial(const char* name, const std::string& rid) {
  return {.name = name, .parameters = {{"resourceRid", rid}}};
}

/// {"roles":[{"roleId","resourceRolePrincipal":{…}}]}
Result<std::vector<access::Grant>> GrantsIn(const json& body) {
  const Status invalid =
      Status::InvalidArgument(
          "read the request body: \"roles\" must be a list of {roleId, resourceRolePrincipal}")
          .WithReason("InvalidBody", JsonObject({{"member", "roles"}}));
  const auto roles = body.is_object() ? body.find("roles") : body.end();
  if (!body.is_object() || roles == body.end() || !roles->is_array()) {
    return invalid;
  }
  std::vector<access::Grant> grants;
  std::vector<std::string> role_ids;
  for (const json& entry : *roles) {
    TARN_ASSIGN_OR_RETURN(std::string role_id, RequiredText(entry, "roleId"));
    const auto principal = entry.find("resourceRolePrincipal");
    if (principal == entry.end() || !principal->is_object()) {
      return invalid;
    }
    TARN_ASSIGN_OR_RETURN(const std::string type, RequiredText(*principal, "type"));
    access::Grant grant{.resource = {}, .principal_id = std::string(access::kEveryone)};
    if (type == "principalIdOnly" || type == "principalWithId") {
      TARN_ASSIGN_OR_RETURN(grant.principal_id, RequiredText(*principal, "principalId"));
    } else if (type != "everyone") {
      return invalid;
    }
    role_ids.push_back(std::move(role_id));
    grants.push_back(std::move(grant));
  }
  TARN_ASSIGN_OR_RETURN(const std::vector<access::Role> parsed, ParseRoles(role_ids));
  for (size_t i = 0; i < parsed.size(); ++i) {
    grants[i].role = parsed[i];
  }
  return grants;
}

/// A project may keep its members to itself: then nothing below it has grants of its own.
Status CheckGrantsAllowed(SqlTransaction& sql, const tree::LocatedNode& located,
                          const Denial& denial) {
  if (located.project.empty() || located.node.rid == located.project) {
    return Status::Ok();
  }
  TARN_ASSIGN_OR_RETURN(const std::string text, tree::ReadSettings(sql, located.project));
  const json settings = json::parse(text, nullptr, false);
  if (settings.is_object() && !settings.value("resourceLevelRoleGrantsAllowed", true)) {
    return Denied(denial, Status::PermissionDenied("project " + located.project.ToString() +
                                                   " allows roles on the project only"));
  }
  return Status::Ok();
}

Result<http::Response> Add(const FoundryDeps& deps, RequestContext& context) {
  const std::string& rid = context.Path("resourceRid");
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  const Denial denial = ResourceDenial("AddResourceRolesPermissionDenied", rid);
  TARN_RETURN_IF_ERROR(Audited(
      deps, context, "resource.addRoles", rid, metastore::Durability::kDurable,
      [&](SqlTransaction& sql) -> Status {
        TARN_ASSIGN_OR_RETURN(const Place place, GetPlace(deps, sql, context, PlaceKind::kGrantable,
                                                          rid, access::Role::kOwner, denial));
        TARN_RETURN_IF_ERROR(CheckGrantsAllowed(sql, place.located, denial));
        TARN_ASSIGN_OR_RETURN(const std::vector<access::Grant> grants, GrantsIn(body));
        for (access::Grant grant : grants) {
          grant.resource = place.located.node.rid;
          TARN_RETURN_IF_ERROR(
              access::AddGrant(sql, grant, context.principal.user_id, deps.clock.Now()));
        }
        return Status::Ok();
      }));
  return NoContent();
}

Result<http::Response> Remove(const FoundryDeps& deps, RequestContext& context) {
  const std::string& rid = context.Path("resourceRid");
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_RETURN_IF_ERROR(
      Audited(deps, context, "resource.removeRoles", rid, metastore::Durability::kDurable,
              [&](SqlTransaction& sql) -> Status {
                TARN_ASSIGN_OR_RETURN(
                    const Place place,
                    GetPlace(deps, sql, context, PlaceKind::kGrantable, rid, access::Role::kOwner,
                             ResourceDenial("RemoveResourceRolesPermissionDenied", rid)));
                TARN_ASSIGN_OR_RETURN(const std::vector<access::Grant> grants, GrantsIn(body));
                for (access::Grant grant : grants) {
                  grant.resource = place.located.node.rid;
                  TARN_RETURN_IF_ERROR(access::RemoveGrant(sql, grant));
                }
                return Status::Ok();
              }));
  return NoContent();
}

/// Empty for a principal that is gone.
Result<std::optional<json>> PrincipalJson(SqlTransaction& sql, const std::string& id) {
  if (id == access::kEveryone) {
    return std::optional<json>(json{{"type", "everyone"}});
  }
  const Result<access::User> user = access::GetUser(sql, id);
  if (!user.ok() && user.status().code() != ErrorCode::kNotFound) {
    return user.status();
  }
  const bool is_user = user.ok();
  if (!is_user && !access::GetGroup(sql, id).ok()) {
    return std::optional<json>();
  }
  return std::optional<json>(json{{"type", "principalWithId"},
                                  {"principalId", id},
                                  {"principalType", is_user ? "USER" : "GROUP"}});
}

Result<http::Response> List(const FoundryDeps& deps, RequestContext& context) {
  const std::string& rid = context.Path("resourceRid");
  TARN_ASSIGN_OR_RETURN(const int page_size, PageSizeOf(context, 1000, 1000));
  TARN_ASSIGN_OR_RETURN(const std::optional<bool> inherited,
                        QueryBool(context, "includeInherited"));
  std::map<std::string, json> by_key;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    by_key.clear();
    TARN_ASSIGN_OR_RETURN(
        const Place place,
        GetPlace(deps, sql, context, PlaceKind::kGrantable, rid, access::Role::kViewer,
                 ResourceDenial("ListResourceRolesPermissionDenied", rid)));
    std::vector<Rid> chain = {place.located.node.rid};
    if (inherited.value_or(false)) {
      TARN_ASSIGN_OR_RETURN(chain, tree::AncestorChain(sql, place.located.node.rid));
    }
    for (const Rid& resource : chain) {
      TARN_ASSIGN_OR_RETURN(const std::vector<access::Grant> grants,
                            access::ListGrants(sql, resource));
      for (const access::Grant& grant : grants) {
        TARN_ASSIGN_OR_RETURN(std::optional<json> principal,
                              PrincipalJson(sql, grant.principal_id));
        const std::string role_id(access::RoleId(grant.role));
        if (principal) {
          by_key[grant.principal_id + "\n" + role_id] = {
              {"resourceRolePrincipal", *std::move(principal)}, {"roleId", role_id}};
        }
      }
    }
    return Status::Ok();
  }));
  const std::vector<std::pair<std::string, json>> sorted(by_key.begin(), by_key.end());
  TARN_ASSIGN_OR_RETURN(const json page, PageOfList(sorted, page_size, PageTokenOf(context)));
  return JsonResponse(page);
}

constexpr access::Scope kRead = access::Scope::kFilesystemRead;
constexpr access::Scope kWrite = access::Scope::kFilesystemWrite;

constexpr FoundryRoute kRoutes[] = {
    {"GET", "/filesystem/resources/{resourceRid}/roles", kRead, List},
    {"POST", "/filesystem/resources/{resourceRid}/roles/add", kWrite, Add},
    {"POST", "/filesystem/resources/{resourceRid}/roles/remove", kWrite, Remove},
};

}  // namespace

std::span<const FoundryRoute> ResourceRoleRoutes() { return kRoutes; }

}  // namespace tarn::server::foundry
