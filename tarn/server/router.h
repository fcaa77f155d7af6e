// Router: from a raw target to a handler, with authentication, scopes, replays, error envelopes,
// metrics and the access log around it.
//
// The raw path is split at literal '/', then each segment is decoded exactly once, so "a%2Fb" is
// one segment "a/b". Nothing is normalised: no merging of empty segments, no "." or "..", and a
// trailing slash never matches the path without it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/base/uuid.h"
#include "tarn/server/failed_answers.h"
#include "tarn/server/http/message.h"
#include "tarn/server/http_error.h"
#include "tarn/server/idempotency_keys.h"
#include "tarn/server/metrics.h"
#include "tarn/server/rate_limit.h"
#include "tarn/server/request_context.h"

namespace tarn::server {

using RouteHandler = std::function<Result<http::Response>(RequestContext&)>;

enum class RouteAccess {
  kBearer,     // A valid token, with all of the route's scopes.
  kAnonymous,  // Health checks and the token endpoint.
};

/// How an Idempotency-Key is honoured.
enum class RouteEffect {
  kByMethod,  // POST, PUT, PATCH and DELETE change something; GET and HEAD do not.
  kReadOnly,  // A POST that only reads (batch gets, queries): keys are ignored.
};

/// One route. A segment of `pattern` is a literal, "{name}" or "{name}:verb" (the verb literal).
/// "{name}" also takes an empty segment unless it is the last one. The last one may be "{name...}":
/// it takes all that is left, slashes included. Literals go before parameters, those before tails.
struct Route {
  std::string method;
  std::string pattern;  // E.g. "/api/v2/datasets/{datasetRid}/files/{filePath}/content".
  std::vector<access::Scope> scopes;  // All are needed.
  RouteHandler handler;
  RouteAccess access = RouteAccess::kBearer;
  RouteEffect effect = RouteEffect::kByMethod;
};

enum class AccessLog { kOff, kOn };

struct RouterOptions {
  AccessLog access_log = AccessLog::kOn;
  uint64_t fingerprint_body_bytes_max = 1 << 20;  // Larger bodies count by length only.
  std::chrono::milliseconds slow_request{5'000};  // Logged as a warning from here on.
};

/// What the router needs; all outlive it. `idempotency` may be null: keys are then ignored; without
/// `rate_limit` nobody is held back. Callers are users, and peers where nobody is authenticated.
struct RouterDependencies {
  Authenticator authenticate;
  UuidGenerator& uuids;
  MetricRegistry& metrics;
  IdempotencyKeys* idempotency = nullptr;
  RateLimit* rate_limit = nullptr;
  std::optional<access::Principal> everyone{};  // Every caller is this one; tokens are not read.
};

/// Add all routes first, then Handle from any number of threads.
class Router {
 public:
  Router(RouterOptions options, RouterDependencies dependencies);
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  /// Errors: kInvalidArgument on a malformed pattern; kAlreadyExists on the same method and
  /// pattern (whatever the parameter names).
  Status Add(Route route);

  /// Answers a request; never throws. HEAD is answered by the GET route where it has none itself.
  http::Response Handle(http::Request& request);

  /// For http::ServerOptions: failures below the router, in the envelope of the target's family.
  http::Response RenderServerError(const Status& failure, std::string_view target);

  /// "GET /api/v2/datasets/{datasetRid}" of every route, sorted.
  [[nodiscard]] std::vector<std::string> ListRoutes() const;

  /// Why answers of routes were broken off.
  [[nodiscard]] const std::shared_ptr<FailedAnswers>& failed_answers() const { return failed_; }

 private:
  struct Node;
  struct Match;
  struct Endpoint;

  [[nodiscard]] Match FindRoute(std::string_view method, std::string_view path) const;
  Result<http::Response> Dispatch(const Match& match, RequestContext& context);
  Result<http::Response> Call(const Endpoint& endpoint, RequestContext& context) const;
  Result<http::Response> RunOnce(const Endpoint& endpoint, RequestContext& context);
  Status Authenticate(const Endpoint& endpoint, RequestContext& context) const;
  Status AdmitCaller(const Endpoint& endpoint, const RequestContext& context);
  void Record(const Endpoint* endpoint, const RequestContext& context,
              const http::Response& response, std::chrono::steady_clock::time_point started);

  const RouterOptions options_;
  RouterDependencies dependencies_;
  const std::shared_ptr<FailedAnswers> failed_ = std::make_shared<FailedAnswers>();
  std::unique_ptr<Node> root_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
};

/// Adds GET /healthz (200 while the process lives), /readyz (503 with the reason while `ready`
/// fails) and /metrics; all anonymous. `metrics` and `ready` outlive the router.
Status AddHealthRoutes(Router& router, const MetricRegistry& metrics,
                       std::function<Status()> ready);

}  // namespace tarn::server
