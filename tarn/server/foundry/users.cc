#include <nlohmann/json.hpp>

#include "tarn/access/directory.h"
#include "tarn/access/organization.h"
#include "tarn/access/token.h"
#include "tarn/base/json_text.h"
#include "tarn/server/foundry/foundry_api.h"
#include "tarn/server/foundry/principals.h"

namespace tarn::server::foundry {

using access::User;
using access::UserStatus;
using metastore::SqlTransaction;
using nlohmann::json;

namespace {

constexpr size_t kBatchMax = 500;
constexpr int kPageSizeMax = 1000;

Denial UserDenial(const char* name, const std::string& id) {
  return {.name = name, .parameters = {{"userId", id}}};
}

Result<json> UserJson(SqlTransaction& sql, const User& user) {
  TARN_ASSIGN_OR_RETURN(const access::Organization organization, access::GetOrganization(sql));
  json object = {{"id", user.id},
                 {"username", user.username},
                 {"realm", kRealm},
                 {"organization", organization.rid.ToString()},
                 {"status", user.status == UserStatus::kActive ? "ACTIVE" : "DELETED"},
                 {"attributes", json::object()}};
  for (const auto& [member, text] :
       {std::pair{"givenName", &user.given_name}, std::pair{"familyName", &user.family_name},
        std::pair{"email", &user.email}}) {
    if (!text->empty()) {
      object[member] = *text;
    }
  }
  return object;
}

Status UserDeleted(const std::string& id) {
  return Status::InvalidArgument("user " + id + " is deleted: ask for status DELETED")
      .WithReason("UserDeleted", JsonObject({{"principalId", id}}));
}

/// ACTIVE unless said otherwise.
Result<UserStatus> ParseStatus(const std::optional<std::string>& text, const char* parameter) {
  if (!text || *text == "ACTIVE") {
    return UserStatus::kActive;
  }
  if (*text == "DELETED") {
    return UserStatus::kDeleted;
  }
  return Status::InvalidArgument(std::string(parameter) + " must be ACTIVE or DELETED")
      .WithReason("InvalidParameter", JsonObject({{"parameter", parameter}, {"found", *text}}));
}

/// The user, if its status is the one asked for. Errors: UserNotFound, UserDeleted, UserIsActive.
Result<User> GetWithStatus(SqlTransaction& sql, const std::string& id, UserStatus status) {
  TARN_ASSIGN_OR_RETURN(const User user, access::GetUser(sql, id));
  if (user.status == status) {
    return user;
  }
  return status == UserStatus::kActive
             ? UserDeleted(id)
             : Status::InvalidArgument("user " + id + " is active")
                   .WithReason("UserIsActive", JsonObject({{"principalId", id}}));
}

Result<http::Response> Get(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const UserStatus status,
                        ParseStatus(context.query.Find("status"), "status"));
  json answer;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const User user, GetWithStatus(sql, context.Path("userId"), status));
    TARN_ASSIGN_OR_RETURN(answer, UserJson(sql, user));
    return Status::Ok();
  }));
  return JsonResponse(answer);
}

Result<http::Response> GetCurrent(const FoundryDeps& deps, RequestContext& context) {
  json answer;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const User user, access::GetUser(sql, context.principal.user_id));
    TARN_ASSIGN_OR_RETURN(answer, UserJson(sql, user));
    return Status::Ok();
  }));
  return JsonResponse(answer);
}

Result<http::Response> GetBatch(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadBatch(context, kBatchMax));
  json data = json::object();
  for (const json& entry : body) {
    TARN_ASSIGN_OR_RETURN(const std::string id, RequiredText(entry, "userId"));
    TARN_ASSIGN_OR_RETURN(const auto status_text, OptionalText(entry, "status"));
    TARN_ASSIGN_OR_RETURN(const UserStatus status, ParseStatus(status_text, "status"));
    TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
      const Result<User> user = GetWithStatus(sql, id, status);
      if (user.ok()) {
        TARN_ASSIGN_OR_RETURN(data[id], UserJson(sql, *user));
      }
      const ErrorCode code = user.status().code();
      return code == ErrorCode::kNotFound || code == ErrorCode::kInvalidArgument ? Status::Ok()
                                                                                 : StatusOf(user);
    }));
  }
  return JsonResponse({{"data", std::move(data)}});
}

/// Users of one status whose names begin with `prefix`.
Result<http::Response> ListPage(const FoundryDeps& deps, const DirectoryQuery& query,
                                UserStatus status) {
  TARN_ASSIGN_OR_RETURN(const std::string after, KeyOfToken(query.page_token));
  json data = json::array();
  std::optional<std::string> token;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    data = json::array();
    TARN_ASSIGN_OR_RETURN(
        std::vector<User> users,
        access::ListUsers(sql,
                          {.prefix = query.prefix, .after_id = after, .limit = query.page_size + 1},
                          status));
    if (users.size() > static_cast<size_t>(query.page_size)) {
      users.pop_back();
      token = TokenOfKey(users.back().id);
    }
    for (const User& user : users) {
      TARN_ASSIGN_OR_RETURN(json object, UserJson(sql, user));
      data.push_back(std::move(object));
    }
    return Status::Ok();
  }));
  return JsonResponse(PageJson(std::move(data), token));
}

Result<http::Response> List(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const UserStatus status,
                        ParseStatus(context.query.Find("include"), "include"));
  TARN_ASSIGN_OR_RETURN(const int page_size, PageSizeOf(context, kPageSizeMax, kPageSizeMax));
  return ListPage(deps, {.prefix = {}, .page_size = page_size, .page_token = PageTokenOf(context)},
                  status);
}

Result<http::Response> Search(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DirectoryQuery query, ReadSearch(context));
  return ListPage(deps, query, UserStatus::kActive);
}

Result<http::Response> Delete(const FoundryDeps& deps, RequestContext& context) {
  const std::string& id = context.Path("userId");
  const Denial denial = UserDenial("DeleteUserPermissionDenied", id);
  access::Directory directory(deps.uuids, deps.clock);
  TARN_RETURN_IF_ERROR(Audited(deps, context, "user.delete", id, metastore::Durability::kDurable,
                               [&](SqlTransaction& sql) -> Status {
                                 TARN_RETURN_IF_ERROR(RequireAdmin(deps, sql, context, denial));
                                 if (id == context.principal.user_id) {
                                   // The last administrator would lock everybody out.
                                   return Denied(
                                       denial, Status::PermissionDenied("nobody deletes himself"));
                                 }
                                 return directory.DeleteUser(sql, id);
                               }));
  return NoContent();
}

Result<http::Response> RevokeAllTokens(const FoundryDeps& deps, RequestContext& context) {
  const std::string& id = context.Path("userId");
  access::Tokens tokens(deps.uuids, deps.clock);
  TARN_RETURN_IF_ERROR(
      Audited(deps, context, "user.revokeAllTokens", id, metastore::Durability::kDurable,
              [&](SqlTransaction& sql) -> Status {
                if (id != context.principal.user_id) {
                  TARN_RETURN_IF_ERROR(RequireAdmin(
                      deps, sql, context, UserDenial("RevokeAllTokensUserPermissionDenied", id)));
                }
                TARN_RETURN_IF_ERROR(StatusOf(GetWithStatus(sql, id, UserStatus::kActive)));
                return tokens.RevokeAllOf(sql, id);
              }));
  return NoContent();
}

/// Markings decide nothing here, so the only ones a user holds are those of its organization.
Result<http::Response> GetMarkings(const FoundryDeps& deps, RequestContext& context) {
  const std::string& id = context.Path("userId");
  json view = json::array();
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    if (id != context.principal.user_id) {
      TARN_RETURN_IF_ERROR(
          RequireAdmin(deps, sql, context, UserDenial("GetMarkingsUserPermissionDenied", id)));
    }
    TARN_RETURN_IF_ERROR(StatusOf(GetWithStatus(sql, id, UserStatus::kActive)));
    TARN_ASSIGN_OR_RETURN(const access::Organization organization, access::GetOrganization(sql));
    view = json::array({organization.marking_id});
    return Status::Ok();
  }));
  return JsonResponse({{"view", view}});
}

/// Pictures are not kept: 204 says that there is none.
Result<http::Response> ProfilePicture(const FoundryDeps& deps, RequestContext& context) {
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) {
    return StatusOf(GetWithStatus(sql, context.Path("userId"), UserStatus::kActive));
  }));
  return NoContent();
}

Result<http::Response> ListGroupMemberships(const FoundryDeps& deps, RequestContext& context) {
  const std::string& id = context.Path("userId");
  TARN_ASSIGN_OR_RETURN(const int page_size, PageSizeOf(context, kPageSizeMax, kPageSizeMax));
  TARN_ASSIGN_OR_RETURN(const std::optional<bool> transitive, QueryBool(context, "transitive"));
  std::vector<std::pair<std::string, json>> sorted;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    sorted.clear();
    TARN_RETURN_IF_ERROR(StatusOf(GetWithStatus(sql, id, UserStatus::kActive)));
    const access::Reach reach =
        transitive.value_or(false) ? access::Reach::kTransitive : access::Reach::kDirect;
    TARN_ASSIGN_OR_RETURN(const access::Memberships memberships,
                          access::ReadMemberships(sql, id, deps.clock.Now(), reach));
    for (const std::string& group : memberships.group_ids) {
      sorted.emplace_back(group, json{{"groupId", group}});
    }
    return Status::Ok();
  }));
  TARN_ASSIGN_OR_RETURN(const json page, PageOfList(sorted, page_size, PageTokenOf(context)));
  return JsonResponse(page);
}

constexpr access::Scope kRead = access::Scope::kAdminRead;
constexpr access::Scope kWrite = access::Scope::kAdminWrite;

constexpr FoundryRoute kRoutes[] = {
    {"GET", "/admin/users", kRead, List},
    {"GET", "/admin/users/getCurrent", kRead, GetCurrent},
    {"POST", "/admin/users/getBatch", kRead, GetBatch, Stability::kStable, RouteEffect::kReadOnly},
    {"POST", "/admin/users/search", kRead, Search, Stability::kStable, RouteEffect::kReadOnly},
    {"GET", "/admin/users/{userId}", kRead, Get},
    {"DELETE", "/admin/users/{userId}", kWrite, Delete},
    {"GET", "/admin/users/{userId}/getMarkings", kRead, GetMarkings},
    {"GET", "/admin/users/{userId}/profilePicture", kRead, ProfilePicture},
    {"POST", "/admin/users/{userId}/revokeAllTokens", kWrite, RevokeAllTokens},
    {"GET", "/admin/users/{userId}/groupMemberships", kRead, ListGroupMemberships},
};

}  // namespace

std::span<const FoundryRoute> UserRoutes() { return kRoutes; }

}  // namespace tarn::server::foundry
