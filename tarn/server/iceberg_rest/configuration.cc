// GET /config and POST /oauth/tokens: what a client asks first.
#include <chrono>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/access/audit.h"
#include "tarn/access/token.h"
#include "tarn/query/resource_name.h"
#include "tarn/server/client_credentials.h"
#include "tarn/server/iceberg_rest/iceberg_api.h"

namespace tarn::server::iceberg_rest {

using metastore::SqlTransaction;
using nlohmann::json;

namespace {

constexpr std::chrono::seconds kTokenLifetime{3600};
constexpr uint64_t kFormBytesMax = 64 << 10;
constexpr std::string_view kExchange = "urn:ietf:params:oauth:grant-type:token-exchange";
constexpr std::string_view kAccessToken = "urn:ietf:params:oauth:token-type:access_token";

/// A refusal in the words of RFC 6749, which clients of this route read.
http::Response OAuthError(int status, const char* error, const std::string& description) {
  http::Response response =
      JsonResponse({{"error", error}, {"error_description", description}}, status);
  response.headers.Set("Cache-Control", "no-store");
  if (status == 401) {
    response.headers.Set("WWW-Authenticate", "Basic realm=\"tarn\"");
  }
  return response;
}

http::Response TokenResponse(const access::IssuedToken& issued) {
  http::Response response = JsonResponse({{"access_token", issued.text},
                                          {"token_type", "bearer"},
                                          {"expires_in", kTokenLifetime.count()},
                                          {"issued_token_type", kAccessToken},
                                          {"scope", issued.token.scopes.ToString()}});
  response.headers.Set("Cache-Control", "no-store");
  return response;
}

// The scopes that are tarn's; clients also send those of other catalogs ("catalog",
// "PRINCIPAL_ROLE:ALL"), which say nothing here.
access::ScopeSet ScopesOf(const UrlQuery& form) {
  const std::string text = form.Find("scope").value_or("");
  access::ScopeSet scopes;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find(' ', start), text.size());
    const Result<access::Scope> scope =
        access::ParseScope(std::string_view(text).substr(start, end - start));
    if (scope.ok()) {
      scopes.bits |= access::ScopeSet::Of({*scope}).bits;
    }
    start = end + 1;
  }
  return scopes.bits == 0 ? access::ScopeSet::All() : scopes;
}

// A new token in place of one that ends soon. Tokens without an end cannot be exchanged: theirs
// would outlive a revocation.
Result<access::IssuedToken> Exchange(SqlTransaction& sql, access::Tokens& tokens,
                                     const std::string& subject, Timestamp now) {
  TARN_ASSIGN_OR_RETURN(const access::Principal principal, tokens.Authenticate(sql, subject));
  TARN_ASSIGN_OR_RETURN(const access::Token old, access::GetToken(sql, principal.token_id));
  if (!old.expires) {
    return Status(ErrorCode::kUnauthenticated, "the token does not expire: keep using it");
  }
  return tokens.Create(sql, {.user_id = principal.user_id,
                             .name = old.name,
                             .scopes = old.scopes,
                             .expires = now + kTokenLifetime});
}

}  // namespace

Result<http::Response> IcebergApi::GetConfig(RequestContext& context) {
  json overrides = json::object();
  const std::string warehouse = context.query.Find("warehouse").value_or("");
  TARN_RETURN_IF_ERROR(database().Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const Rid asked, ProjectOf(sql, warehouse));
    if (warehouse.empty()) {
      return Status::Ok();
    }
    const Result<tree::Node> usual = query::FindProject(sql, options_.default_project);
    if (!usual.ok() || usual->rid != asked) {
      overrides["prefix"] = asked.ToString();
    }
    return Status::Ok();
  }));
  json endpoints = json::array();
  for (const IcebergRoute& route : IcebergRoutes()) {
    endpoints.push_back(fmt::format("{} /v1/{{prefix}}{}", route.method, route.pattern));
  }
  json config = {{"defaults", json::object()},
                 {"overrides", std::move(overrides)},
                 {"endpoints", std::move(endpoints)}};
  if (options_.idempotency_lifetime.count() > 0) {
    config["idempotency-key-lifetime"] =
        fmt::format("PT{}M", options_.idempotency_lifetime.count());
  }
  return JsonResponse(config);
}

Result<http::Response> IcebergApi::IssueToken(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const std::string body, http::ReadAll(*context.http.body, kFormBytesMax));
  TARN_ASSIGN_OR_RETURN(const UrlQuery form, UrlQuery::Parse(body));
  const std::string grant = form.Find("grant_type").value_or("");
  if (grant.empty()) {
    return OAuthError(400, "invalid_request", "grant_type is missing");
  }
  if (grant != "client_credentials" && grant != kExchange) {
    return OAuthError(400, "unsupported_grant_type",
                      "only client_credentials and token-exchange are offered, found " + grant);
  }
  const catalog::CatalogDeps& deps = deps_.catalog.deps();
  access::Tokens tokens(deps.uuids, deps.clock);
  access::IssuedToken issued;
  const Status made = database().Write([&](SqlTransaction& sql) -> Status {
    if (grant == kExchange) {
      TARN_ASSIGN_OR_RETURN(
          issued, Exchange(sql, tokens, form.Find("subject_token").value_or(""), deps.clock.Now()));
    } else {
      TARN_ASSIGN_OR_RETURN(issued,
                            tokens.ExchangeClientSecret(sql, ReadClientCredentials(context, form),
                                                        ScopesOf(form), kTokenLifetime));
    }
    return access::AppendAudit(sql, {.id = 0,
                                     .time = deps.clock.Now(),
                                     .user_id = issued.token.user_id,
                                     .token_id = issued.token.id,
                                     .action = "token.issue",
                                     .resource = issued.token.user_id,
                                     .outcome = access::AuditOutcome::kDone,
                                     .details = {}});
  });
  if (made.code() == ErrorCode::kUnauthenticated) {
    return OAuthError(401, "invalid_client",
                      grant == kExchange ? made.message() : "client id and secret do not fit");
  }
  TARN_RETURN_IF_ERROR(made);
  return TokenResponse(issued);
}

}  // namespace tarn::server::iceberg_rest
