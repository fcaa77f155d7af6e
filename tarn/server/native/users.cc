// /tarn/v1/users and /tarn/v1/tokens.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/access/directory.h"
#include "tarn/access/token.h"
#include "tarn/base/quantity.h"
#include "tarn/server/native/audited.h"
#include "tarn/server/native/native_api.h"

namespace tarn::server::native {

namespace {

using access::ScopeSet;
using access::Token;
using access::User;
using metastore::SqlTransaction;
using nlohmann::json;

json UserToJson(const User& user) { return {{"id", user.id}, {"name", user.username}}; }

json TimeToJson(const std::optional<Timestamp>& time) {
  return time ? json(FormatTimestamp(*time)) : json();
}

// The user of a name or an id; the caller when empty. Others are an administrator's business.
Result<User> FindUser(NativeApi& api, SqlTransaction& sql, const RequestContext& context,
                      const std::string& name) {
  if (name.empty() || name == context.principal.user_id || name == context.principal.username) {
    return access::GetUser(sql, context.principal.user_id);
  }
  TARN_RETURN_IF_ERROR(RequireAdmin(api, sql, context));
  TARN_ASSIGN_OR_RETURN(const std::optional<User> user, access::FindUserByName(sql, name));
  return user ? Result<User>(*user) : access::GetUser(sql, name);
}

Result<http::Response> CreateUser(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const std::string name, RequiredText(body, "name"));
  TARN_ASSIGN_OR_RETURN(const std::string kind, TextMember(body, "kind"));
  if (!kind.empty() && kind != "person" && kind != "service") {
    return Status::InvalidArgument("kind must be person or service, found " + kind);
  }
  access::Directory directory(api.uuids(), api.clock());
  access::Tokens tokens(api.uuids(), api.clock());
  json answer;
  const AuditedAction action{.action = "user.create", .resource = name};
  const auto create = [&](SqlTransaction& sql) -> Result<std::string> {
    TARN_RETURN_IF_ERROR(RequireAdmin(api, sql, context));
    TARN_ASSIGN_OR_RETURN(
        const User user,
        directory.CreateUser(sql, {.username = name,
                                   .kind = kind == "service" ? access::UserKind::kService
                                                             : access::UserKind::kPerson}));
    answer = UserToJson(user);
    if (user.kind == access::UserKind::kService) {
      TARN_ASSIGN_OR_RETURN(const access::ClientSecret client,
                            tokens.RenewClientSecret(sql, user.id));
      answer["clientSecret"] = client.secret;
    }
    return user.id;
  };
  TARN_RETURN_IF_ERROR(WriteAudited(api, context, action, create));
  return JsonResponse(answer);
}

Result<http::Response> RenewSecret(NativeApi& api, RequestContext& context) {
  access::Tokens tokens(api.uuids(), api.clock());
  json answer;
  const AuditedAction action{.action = "user.renewSecret", .resource = context.Path("id")};
  const auto renew = [&](SqlTransaction& sql) -> Result<std::string> {
    TARN_RETURN_IF_ERROR(RequireAdmin(api, sql, context));
    TARN_ASSIGN_OR_RETURN(const access::ClientSecret client,
                          tokens.RenewClientSecret(sql, action.resource));
    answer = {{"id", client.client_id}, {"clientSecret", client.secret}};
    return client.client_id;
  };
  TARN_RETURN_IF_ERROR(WriteAudited(api, context, action, renew));
  return JsonResponse(answer);
}

Result<http::Response> ListUsers(NativeApi& api, RequestContext& context) {
  json data = json::array();
  TARN_RETURN_IF_ERROR(api.database().Read([&](SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(RequireAdmin(api, sql, context));
    data = json::array();
    access::DirectoryPage page;
    while (true) {
      TARN_ASSIGN_OR_RETURN(const std::vector<User> users, access::ListUsers(sql, page));
      for (const User& user : users) {
        data.push_back(UserToJson(user));
      }
      if (static_cast<int64_t>(users.size()) < page.limit) {
        return Status::Ok();
      }
      page.after_id = users.back().id;
    }
  }));
  return JsonResponse({{"data", std::move(data)}});
}

// "90d" from now, or a time; nothing when absent or "never".
Result<std::optional<Timestamp>> ExpiryOf(const json& body, Timestamp now) {
  TARN_ASSIGN_OR_RETURN(const std::string text, TextMember(body, "expires"));
  if (text.empty() || text == "never") {
    return std::optional<Timestamp>();
  }
  if (const Result<std::chrono::milliseconds> duration = ParseDuration(text); duration.ok()) {
    return std::optional<Timestamp>(now + *duration);
  }
  const Result<Timestamp> time = ParseTimestamp(text);
  if (!time.ok()) {
    return Status::InvalidArgument(
        fmt::format("expires \"{}\": a duration (90d) or an ISO-8601 time is needed", text));
  }
  return std::optional<Timestamp>(*time);
}

// As asked for, but never more than the token that asks.
Result<ScopeSet> ScopesOf(const json& body, const RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const std::string text, TextMember(body, "scopes"));
  if (text.empty()) {
    return context.principal.scopes;
  }
  TARN_ASSIGN_OR_RETURN(const ScopeSet scopes, ScopeSet::Parse(text));
  if (scopes.Intersect(context.principal.scopes) != scopes) {
    return Status::PermissionDenied(
        fmt::format("a token cannot have scopes that the token asking for it lacks: {}", text));
  }
  return scopes;
}

Result<http::Response> CreateToken(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  access::TokenRequest request;
  TARN_ASSIGN_OR_RETURN(const std::string user_name, TextMember(body, "user"));
  TARN_ASSIGN_OR_RETURN(request.name, TextMember(body, "name"));
  TARN_ASSIGN_OR_RETURN(request.expires, ExpiryOf(body, api.clock().Now()));
  access::Tokens tokens(api.uuids(), api.clock());
  json answer;
  const AuditedAction action{.action = "token.create", .resource = user_name};
  const auto create = [&](SqlTransaction& sql) -> Result<std::string> {
    TARN_ASSIGN_OR_RETURN(request.scopes, ScopesOf(body, context));
    TARN_ASSIGN_OR_RETURN(const User user, FindUser(api, sql, context, user_name));
    request.user_id = user.id;
    TARN_ASSIGN_OR_RETURN(const access::IssuedToken issued, tokens.Create(sql, request));
    answer = {{"id", issued.token.id},
              {"token", issued.text},
              {"user", user.username},
              {"scopes", issued.token.scopes.ToString()},
              {"expires", TimeToJson(issued.token.expires)}};
    return issued.token.id;
  };
  TARN_RETURN_IF_ERROR(WriteAudited(api, context, action, create));
  return JsonResponse(answer);
}

Result<http::Response> ListTokens(NativeApi& api, RequestContext& context) {
  json data = json::array();
  TARN_RETURN_IF_ERROR(api.database().Read([&](SqlTransaction& sql) -> Status {
    data = json::array();
    TARN_ASSIGN_OR_RETURN(const User user,
                          FindUser(api, sql, context, context.query.Find("user").value_or("")));
    TARN_ASSIGN_OR_RETURN(const std::vector<Token> tokens, access::ListTokens(sql, user.id));
    for (const Token& token : tokens) {
      data.push_back({{"id", token.id},
                      {"name", token.name},
                      {"user", user.username},
                      {"scopes", token.scopes.ToString()},
                      {"created", FormatTimestamp(token.created)},
                      {"expires", TimeToJson(token.expires)},
                      {"revoked", TimeToJson(token.revoked)}});
    }
    return Status::Ok();
  }));
  return JsonResponse({{"data", std::move(data)}});
}

Result<http::Response> RevokeToken(NativeApi& api, RequestContext& context) {
  const std::string& id = context.Path("id");
  access::Tokens tokens(api.uuids(), api.clock());
  const auto revoke = [&](SqlTransaction& sql) -> Result<std::string> {
    TARN_ASSIGN_OR_RETURN(const Token token, access::GetToken(sql, id));
    if (token.user_id != context.principal.user_id) {
      TARN_RETURN_IF_ERROR(RequireAdmin(api, sql, context));
    }
    TARN_RETURN_IF_ERROR(tokens.Revoke(sql, id));
    return id;
  };
  TARN_RETURN_IF_ERROR(
      WriteAudited(api, context, {.action = "token.revoke", .resource = id}, revoke));
  return NoContent();
}

constexpr NativeRoute kRoutes[] = {
    {.method = "POST",
     .pattern = "/users",
     .scope = access::Scope::kAdminWrite,
     .handler = &CreateUser,
     .summary =
         "Makes a user without any grants: {name, kind?} gives {id, name}. Kind service makes "
         "a user for a program and gives {clientSecret} too, this once: with it and the id "
         "POST /multipass/api/oauth2/token gives tokens. For administrators.",
     .request = "application/json"},
    {.method = "POST",
     .pattern = "/users/{id}:renewSecret",
     .scope = access::Scope::kAdminWrite,
     .handler = &RenewSecret,
     .summary = "Gives a service user a new secret: {id, clientSecret}; the one before stops "
                "working. For administrators."},
    {.method = "GET",
     .pattern = "/users",
     .scope = access::Scope::kAdminRead,
     .handler = &ListUsers,
     .summary = "All users. For administrators."},
    {.method = "POST",
     .pattern = "/tokens",
     .scope = access::Scope::kAdminWrite,
     .handler = &CreateToken,
     .summary =
         "Makes a token: {user?, name?, scopes?, expires?} gives {id, token, …}; its text is "
         "shown this once. For oneself, or by administrators for others.",
     .request = "application/json"},
    {.method = "GET",
     .pattern = "/tokens",
     .scope = access::Scope::kAdminRead,
     .handler = &ListTokens,
     .summary = "The tokens of a user, by name or id; one's own when absent.",
     .query = "user"},
    {.method = "DELETE",
     .pattern = "/tokens/{id}",
     .scope = access::Scope::kAdminWrite,
     .handler = &RevokeToken,
     .summary = "Makes a token stop working.",
     .answer = ""},
};

}  // namespace

std::span<const NativeRoute> AccessRoutes() { return kRoutes; }

}  // namespace tarn::server::native
