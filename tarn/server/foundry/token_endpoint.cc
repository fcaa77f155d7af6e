#include "tarn/server/foundry/token_endpoint.h"

#include <chrono>

#include <nlohmann/json.hpp>

#include "tarn/access/audit.h"
#include "tarn/access/token.h"
#include "tarn/base/url.h"
#include "tarn/server/client_credentials.h"
#include "tarn/server/foundry/foundry_api.h"

namespace tarn::server::foundry {

using nlohmann::json;

namespace {

constexpr std::chrono::seconds kLifetime{3600};
constexpr uint64_t kFormBytesMax = 64 << 10;

/// A refusal in the words of RFC 6749 and in those of the other routes.
http::Response OAuthError(const RequestContext& context, int status, const char* error,
                          const std::string& description) {
  const json body = {{"error", error},
                     {"error_description", description},
                     {"errorCode", status == 401 ? "UNAUTHORIZED" : "INVALID_ARGUMENT"},
                     {"errorName", "OAuth2:" + std::string(error)},
                     {"errorInstanceId", context.request_id},
                     {"parameters", {{"message", description}}}};
  http::Response response = JsonResponse(body, status);
  response.headers.Set("Cache-Control", "no-store");
  if (status == 401) {
    response.headers.Set("WWW-Authenticate", "Basic realm=\"tarn\"");
  }
  return response;
}

/// Errors: kInvalidArgument naming the scopes there are.
Result<access::ScopeSet> ScopesOf(const UrlQuery& form) {
  const std::string text = form.Find("scope").value_or("");
  access::ScopeSet scopes;
  bool any = false;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find(' ', start), text.size());
    const std::string_view name = std::string_view(text).substr(start, end - start);
    start = end + 1;
    if (name.empty() || name == "offline_access") {
      continue;
    }
    TARN_ASSIGN_OR_RETURN(const access::Scope scope, access::ParseScope(name));
    scopes.bits |= access::ScopeSet::Of({scope}).bits;
    any = true;
  }
  return any ? scopes : access::ScopeSet::All();
}

Status RecordIssue(metastore::SqlTransaction& sql, const FoundryDeps& deps,
                   const std::string& client_id, const std::string& token_id) {
  return access::AppendAudit(sql, {.id = 0,
                                   .time = deps.clock.Now(),
                                   .user_id = client_id,
                                   .token_id = token_id,
                                   .action = "token.issue",
                                   .resource = client_id,
                                   .outcome = access::AuditOutcome::kDone,
                                   .details = {}});
}

Result<http::Response> IssueToken(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const std::string body, http::ReadAll(*context.http.body, kFormBytesMax));
  TARN_ASSIGN_OR_RETURN(const UrlQuery form, UrlQuery::Parse(body));
  const std::string grant = form.Find("grant_type").value_or("");
  if (grant.empty()) {
    return OAuthError(context, 400, "invalid_request", "grant_type is missing");
  }
  if (grant != "client_credentials") {
    return OAuthError(context, 400, "unsupported_grant_type",
                      "only client_credentials is offered, found " + grant);
  }
  const Result<access::ScopeSet> scopes = ScopesOf(form);
  if (!scopes.ok()) {
    return OAuthError(context, 400, "invalid_scope", scopes.status().message());
  }
  const access::ClientSecret client = ReadClientCredentials(context, form);
  access::Tokens tokens(deps.uuids, deps.clock);
  access::IssuedToken issued;
  const Status exchanged = deps.database.Write([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(issued, tokens.ExchangeClientSecret(sql, client, *scopes, kLifetime));
    return RecordIssue(sql, deps, client.client_id, issued.token.id);
  });
  if (exchanged.code() == ErrorCode::kUnauthenticated) {
    return OAuthError(context, 401, "invalid_client", "client id and secret do not fit");
  }
  TARN_RETURN_IF_ERROR(exchanged);
  http::Response response = JsonResponse({{"access_token", issued.text},
                                          {"token_type", "bearer"},
                                          {"expires_in", kLifetime.count()},
                                          {"scope", issued.token.scopes.ToString()}});
  response.headers.Set("Cache-Control", "no-store");
  return response;
}

/// RFC 7009: an unknown token is as good as revoked. Whoever shows a token may revoke it.
Result<http::Response> RevokeToken(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const std::string body, http::ReadAll(*context.http.body, kFormBytesMax));
  TARN_ASSIGN_OR_RETURN(const UrlQuery form, UrlQuery::Parse(body));
  const std::string text = form.Find("token").value_or("");
  if (text.empty()) {
    return OAuthError(context, 400, "invalid_request", "token is missing");
  }
  access::Tokens tokens(deps.uuids, deps.clock);
  TARN_RETURN_IF_ERROR(deps.database.Write([&](metastore::SqlTransaction& sql) -> Status {
    const Result<access::Principal> principal = tokens.Authenticate(sql, text);
    if (principal.status().code() == ErrorCode::kUnauthenticated) {
      return Status::Ok();
    }
    TARN_RETURN_IF_ERROR(StatusOf(principal));
    return tokens.Revoke(sql, principal->token_id);
  }));
  return JsonResponse(json::object());
}

}  // namespace

Status AddTokenRoutes(Router& router, const FoundryDeps& deps) {
  const auto add = [&](const char* pattern, FoundryHandler handler) {
    // Keys of replays belong to a user, and these routes have none yet.
    return router.Add(
        {.method = "POST",
         .pattern = pattern,
         .scopes = {},
         .handler = [deps, handler](RequestContext& context) { return handler(deps, context); },
         .access = RouteAccess::kAnonymous,
         .effect = RouteEffect::kReadOnly});
  };
  TARN_RETURN_IF_ERROR(add("/multipass/api/oauth2/token", IssueToken));
  return add("/multipass/api/oauth2/revoke_token", RevokeToken);
}

}  // namespace tarn::server::foundry
