#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "tarn/access/directory.h"
#include "tarn/access/organization.h"
#include "tarn/base/json_text.h"
#include "tarn/server/foundry/foundry_api.h"
#include "tarn/server/foundry/principals.h"
#include "tarn/tree/permission.h"

namespace tarn::server::foundry {

using access::Group;
using metastore::SqlTransaction;
using nlohmann::json;

namespace {

constexpr size_t kBatchMax = 500;
constexpr int kPageSizeMax = 1000;

Denial GroupDenial(const char* name, const std::string& id) {
  return {.name = name, .parameters = {{"groupId", id}}};
}

Result<json> GroupJson(SqlTransaction& sql, const Group& group) {
  TARN_ASSIGN_OR_RETURN(const access::GroupDetails details, access::GetGroupDetails(sql, group.id));
  json organizations = json::array();
  for (const Rid& rid : details.organizations) {
    organizations.push_back(rid.ToString());
  }
  json object = {{"id", group.id},
                 {"name", group.name},
                 {"realm", kRealm},
                 {"organizations", std::move(organizations)},
                 {"attributes", json::parse(details.attributes_json)}};
  if (!group.description.empty()) {
    object["description"] = group.description;
  }
  return object;
}

/// What create and replace take.
struct GroupBody {
  std::string name;
  std::string description;
  access::GroupDetails details;
};

/// {name: [text, …]}
Result<std::string> AttributesIn(const json& body) {
  const auto found = body.find("attributes");
  if (found == body.end() || found->is_null()) {
    return std::string("{}");
  }
  const Status invalid =
      Status::InvalidArgument("read the request body: \"attributes\" must map to lists of strings")
          .WithReason("InvalidBody", JsonObject({{"member", "attributes"}}));
  if (!found->is_object()) {
    return invalid;
  }
  for (const auto& [name, values] : found->items()) {
    if (!TextList(*found, name.c_str()).ok()) {
      return invalid;
    }
  }
  return found->dump();
}

Result<GroupBody> ReadGroup(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  GroupBody group;
  TARN_ASSIGN_OR_RETURN(group.name, RequiredText(body, "name"));
  TARN_ASSIGN_OR_RETURN(const auto description, OptionalText(body, "description"));
  group.description = description.value_or("");
  TARN_ASSIGN_OR_RETURN(const std::vector<std::string> rids, TextList(body, "organizations"));
  for (const std::string& text : rids) {
    const Result<Rid> rid = Rid::Parse(text);
    if (!rid.ok()) {
      return Status::NotFound("there is no organization " + JsonString(text))
          .WithReason("OrganizationNotFound", JsonObject({{"organizationRid", text}}));
    }
    group.details.organizations.push_back(*rid);
  }
  TARN_ASSIGN_OR_RETURN(group.details.attributes_json, AttributesIn(body));
  return group;
}

Result<http::Response> Create(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const GroupBody body, ReadGroup(context));
  access::Directory directory(deps.uuids, deps.clock);
  json answer;
  std::string made = body.name;
  TARN_RETURN_IF_ERROR(
      Audited(deps, context, "group.create", made, metastore::Durability::kDurable,
              [&](SqlTransaction& sql) -> Status {
                TARN_RETURN_IF_ERROR(RequireAdmin(
                    deps, sql, context, {.name = "CreateGroupPermissionDenied", .parameters = {}}));
                TARN_ASSIGN_OR_RETURN(const Group group,
                                      directory.CreateGroup(sql, body.name, body.description));
                made = group.id;
                TARN_RETURN_IF_ERROR(access::SetGroupDetails(sql, group.id, body.details));
                TARN_ASSIGN_OR_RETURN(answer, GroupJson(sql, group));
                return Status::Ok();
              }));
  return JsonResponse(answer);
}

Result<http::Response> Replace(const FoundryDeps& deps, RequestContext& context) {
  const std::string& id = context.Path("groupId");
  TARN_ASSIGN_OR_RETURN(const GroupBody body, ReadGroup(context));
  access::Directory directory(deps.uuids, deps.clock);
  json answer;
  TARN_RETURN_IF_ERROR(
      Audited(deps, context, "group.replace", id, metastore::Durability::kDurable,
              [&](SqlTransaction& sql) -> Status {
                TARN_RETURN_IF_ERROR(StatusOf(access::GetGroup(sql, id)));
                TARN_RETURN_IF_ERROR(RequireAdmin(deps, sql, context,
                                                  GroupDenial("ReplaceGroupPermissionDenied", id)));
                TARN_RETURN_IF_ERROR(directory.ReplaceGroup(sql, id, body.name, body.description));
                TARN_RETURN_IF_ERROR(access::SetGroupDetails(sql, id, body.details));
                TARN_ASSIGN_OR_RETURN(const Group group, access::GetGroup(sql, id));
                TARN_ASSIGN_OR_RETURN(answer, GroupJson(sql, group));
                return Status::Ok();
              }));
  return JsonResponse(answer);
}

Result<http::Response> Delete(const FoundryDeps& deps, RequestContext& context) {
  const std::string& id = context.Path("groupId");
  access::Directory directory(deps.uuids, deps.clock);
  TARN_RETURN_IF_ERROR(Audited(deps, context, "group.delete", id, metastore::Durability::kDurable,
                               [&](SqlTransaction& sql) -> Status {
                                 TARN_RETURN_IF_ERROR(StatusOf(access::GetGroup(sql, id)));
                                 TARN_RETURN_IF_ERROR(
                                     RequireAdmin(deps, sql, context,
                                                  GroupDenial("DeleteGroupPermissionDenied", id)));
                                 return directory.DeleteGroup(sql, id);
                               }));
  return NoContent();
}

Result<http::Response> Get(const FoundryDeps& deps, RequestContext& context) {
  json answer;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const Group group, access::GetGroup(sql, context.Path("groupId")));
    TARN_ASSIGN_OR_RETURN(answer, GroupJson(sql, group));
    return Status::Ok();
  }));
  return JsonResponse(answer);
}

Result<http::Response> GetBatch(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadBatch(context, kBatchMax));
  json data = json::object();
  for (const json& entry : body) {
    TARN_ASSIGN_OR_RETURN(const std::string id, RequiredText(entry, "groupId"));
    TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
      const Result<Group> group = access::GetGroup(sql, id);
      if (group.ok()) {
        TARN_ASSIGN_OR_RETURN(data[id], GroupJson(sql, *group));
      }
      return group.status().code() == ErrorCode::kNotFound ? Status::Ok() : StatusOf(group);
    }));
  }
  return JsonResponse({{"data", std::move(data)}});
}

Result<http::Response> ListPage(const FoundryDeps& deps, const DirectoryQuery& query) {
  TARN_ASSIGN_OR_RETURN(const std::string after, KeyOfToken(query.page_token));
  json data = json::array();
  std::optional<std::string> token;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    data = json::array();
    TARN_ASSIGN_OR_RETURN(
        std::vector<Group> groups,
        access::ListGroups(
            sql, {.prefix = query.prefix, .after_id = after, .limit = query.page_size + 1}));
    if (groups.size() > static_cast<size_t>(query.page_size)) {
      groups.pop_back();
      token = TokenOfKey(groups.back().id);
    }
    for (const Group& group : groups) {
      TARN_ASSIGN_OR_RETURN(json object, GroupJson(sql, group));
      data.push_back(std::move(object));
    }
    return Status::Ok();
  }));
  return JsonResponse(PageJson(std::move(data), token));
}

Result<http::Response> List(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const int page_size, PageSizeOf(context, kPageSizeMax, kPageSizeMax));
  return ListPage(deps, {.prefix = {}, .page_size = page_size, .page_token = PageTokenOf(context)});
}

Result<http::Response> Search(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DirectoryQuery query, ReadSearch(context));
  return ListPage(deps, query);
}

Result<http::Response> ListCurrent(const FoundryDeps& deps, RequestContext& context) {
  json data = json::array();
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    data = json::array();
    TARN_ASSIGN_OR_RETURN(const access::Memberships memberships,
                          access::ReadMemberships(sql, context.principal.user_id, deps.clock.Now(),
                                                  access::Reach::kTransitive));
    for (const std::string& id : memberships.group_ids) {
      TARN_ASSIGN_OR_RETURN(const Group group, access::GetGroup(sql, id));
      TARN_ASSIGN_OR_RETURN(json object, GroupJson(sql, group));
      data.push_back(std::move(object));
    }
    return Status::Ok();
  }));
  return JsonResponse({{"data", std::move(data)}});
}

/// Administrators, and those who are in the group.
Status RequireMember(const FoundryDeps& deps, SqlTransaction& sql, const RequestContext& context,
                     const std::string& group) {
  TARN_ASSIGN_OR_RETURN(const access::Memberships own,
                        access::ReadMemberships(sql, context.principal.user_id, deps.clock.Now(),
                                                access::Reach::kTransitive));
  if (std::ranges::binary_search(own.group_ids, group)) {
    return Status::Ok();
  }
  return RequireAdmin(deps, sql, context, GroupDenial("ListGroupMembersPermissionDenied", group));
}

/// The members of a group, with kTransitive also those of the groups in it, each once.
Result<std::vector<access::GroupMember>> ReadMembers(SqlTransaction& sql, const std::string& group,
                                                     Timestamp now, access::Reach reach) {
  std::vector<access::GroupMember> all;
  std::set<std::string> seen;
  std::vector<std::string> to_visit = {group};
  while (!to_visit.empty()) {
    const std::string next = std::move(to_visit.back());
    to_visit.pop_back();
    TARN_ASSIGN_OR_RETURN(const std::vector<access::GroupMember> members,
                          access::ListMembers(sql, next));
    for (const access::GroupMember& member : members) {
      if ((member.expiration && *member.expiration <= now) ||
          !seen.insert(member.principal_id).second) {
        continue;
      }
      if (member.kind == access::MemberKind::kGroup && reach == access::Reach::kTransitive) {
        to_visit.push_back(member.principal_id);
      }
      all.push_back(member);
    }
  }
  std::ranges::sort(all, {}, &access::GroupMember::principal_id);
  return all;
}

Result<http::Response> ListMembers(const FoundryDeps& deps, RequestContext& context) {
  const std::string& id = context.Path("groupId");
  TARN_ASSIGN_OR_RETURN(const int page_size, PageSizeOf(context, kPageSizeMax, kPageSizeMax));
  TARN_ASSIGN_OR_RETURN(const std::optional<bool> transitive, QueryBool(context, "transitive"));
  TARN_ASSIGN_OR_RETURN(const std::optional<bool> expirations,
                        QueryBool(context, "includeExpirations"));
  if (transitive.value_or(false) && expirations.value_or(false)) {
    return Status::InvalidArgument("members of members have no one expiration")
        .WithReason("ExpirationForTransitiveGroupMembersNotSupported");
  }
  std::vector<std::pair<std::string, json>> sorted;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    sorted.clear();
    TARN_RETURN_IF_ERROR(StatusOf(access::GetGroup(sql, id)));
    TARN_RETURN_IF_ERROR(RequireMember(deps, sql, context, id));
    TARN_ASSIGN_OR_RETURN(const std::vector<access::GroupMember> members,
                          ReadMembers(sql, id, deps.clock.Now(),
                                      transitive.value_or(false) ? access::Reach::kTransitive
                                                                 : access::Reach::kDirect));
    for (const access::GroupMember& member : members) {
      json object = {{"principalType", member.kind == access::MemberKind::kUser ? "USER" : "GROUP"},
                     {"principalId", member.principal_id}};
      if (expirations.value_or(false) && member.expiration) {
        object["expiration"] = FormatTimestamp(*member.expiration);
      }
      sorted.emplace_back(member.principal_id, std::move(object));
    }
    return Status::Ok();
  }));
  TARN_ASSIGN_OR_RETURN(const json page, PageOfList(sorted, page_size, PageTokenOf(context)));
  return JsonResponse(page);
}

Result<std::optional<Timestamp>> ExpirationIn(const json& body, const std::string& group) {
  TARN_ASSIGN_OR_RETURN(const auto text, OptionalText(body, "expiration"));
  if (!text) {
    return std::optional<Timestamp>();
  }
  const Result<Timestamp> time = ParseTimestamp(*text);
  if (!time.ok()) {
    return Status::InvalidArgument("expiration: " + time.status().message())
        .WithReason("InvalidBody",
                    JsonObject({{"member", "expiration"}, {"found", *text}, {"groupId", group}}));
  }
  return std::optional<Timestamp>(*time);
}

Result<http::Response> AddMembers(const FoundryDeps& deps, RequestContext& context) {
  const std::string& id = context.Path("groupId");
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const std::vector<std::string> principals, TextList(body, "principalIds"));
  TARN_ASSIGN_OR_RETURN(const std::optional<Timestamp> expiration, ExpirationIn(body, id));
  access::Directory directory(deps.uuids, deps.clock);
  TARN_RETURN_IF_ERROR(
      Audited(deps, context, "group.addMembers", id, metastore::Durability::kDurable,
              [&](SqlTransaction& sql) -> Status {
                TARN_RETURN_IF_ERROR(StatusOf(access::GetGroup(sql, id)));
                TARN_RETURN_IF_ERROR(RequireAdmin(
                    deps, sql, context, GroupDenial("AddGroupMembersPermissionDenied", id)));
                for (const std::string& principal : principals) {
                  TARN_RETURN_IF_ERROR(directory.AddMember(sql, id, principal, expiration));
                }
                return Status::Ok();
              }));
  return NoContent();
}

Result<http::Response> RemoveMembers(const FoundryDeps& deps, RequestContext& context) {
  const std::string& id = context.Path("groupId");
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const std::vector<std::string> principals, TextList(body, "principalIds"));
  access::Directory directory(deps.uuids, deps.clock);
  TARN_RETURN_IF_ERROR(
      Audited(deps, context, "group.removeMembers", id, metastore::Durability::kDurable,
              [&](SqlTransaction& sql) -> Status {
                TARN_RETURN_IF_ERROR(StatusOf(access::GetGroup(sql, id)));
                TARN_RETURN_IF_ERROR(RequireAdmin(
                    deps, sql, context, GroupDenial("RemoveGroupMembersPermissionDenied", id)));
                for (const std::string& principal : principals) {
                  TARN_RETURN_IF_ERROR(directory.RemoveMember(sql, id, principal));
                }
                return Status::Ok();
              }));
  return NoContent();
}

constexpr access::Scope kRead = access::Scope::kAdminRead;
constexpr access::Scope kWrite = access::Scope::kAdminWrite;

constexpr FoundryRoute kRoutes[] = {
    {"POST", "/admin/groups", kWrite, Create},
    {"GET", "/admin/groups", kRead, List},
    {"POST", "/admin/groups/getBatch", kRead, GetBatch, Stability::kStable, RouteEffect::kReadOnly},
    {"POST", "/admin/groups/search", kRead, Search, Stability::kStable, RouteEffect::kReadOnly},
    {"GET", "/admin/groups/listCurrent", std::nullopt, ListCurrent, Stability::kPreview},
    {"GET", "/admin/groups/{groupId}", kRead, Get},
    {"PUT", "/admin/groups/{groupId}", kWrite, Replace},
    {"DELETE", "/admin/groups/{groupId}", kWrite, Delete},
    {"GET", "/admin/groups/{groupId}/groupMembers", kRead, ListMembers},
    {"POST", "/admin/groups/{groupId}/groupMembers/add", kWrite, AddMembers},
    {"POST", "/admin/groups/{groupId}/groupMembers/remove", kWrite, RemoveMembers},
};

}  // namespace

std::span<const FoundryRoute> GroupRoutes() { return kRoutes; }

}  // namespace tarn::server::foundry
