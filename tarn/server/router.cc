#include "tarn/server/router.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/core.h>

#include "tarn/access/authorizer.h"
#include "tarn/base/hash.h"
#include "tarn/base/log.h"
#include "tarn/base/url.h"

namespace tarn::server {

namespace {

const std::vector<double> kLatencyBounds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                            0.1,    0.25,  0.5,    1,     2.5,  5,     10};

std::vector<std::string_view> SplitPath(std::string_view path) {
  std::vector<std::string_view> segments;
  path.remove_prefix(1);
  for (;;) {
    const size_t slash = path.find('/');
    segments.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) {
      return segments;
    }
    path.remove_prefix(slash + 1);
  }
}

/// "/a?b" of "http://host/a?b"; other targets as they are.
std::string_view WithoutAuthority(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (target.starts_with(scheme)) {
      const size_t path = target.find('/', scheme.size());
      return path == std::string_view::npos ? std::string_view("/") : target.substr(path);
    }
  }
  return target;
}

constexpr std::string_view kTailMark = "...";

/// A segment of a pattern.
struct PatternSegment {
  std::string literal;    // Of a literal segment.
  std::string parameter;  // Name, or empty for a literal.
  std::string verb;       // ":merge" of "{name}:merge".
  bool is_tail = false;   // "{name...}".
};

Result<PatternSegment> ParseSegment(std::string_view text) {
  if (text.find_first_of("{}") == std::string_view::npos) {
    return PatternSegment{.literal = std::string(text), .parameter = {}, .verb = {}};
  }
  const size_t close = text.find('}');
  const bool well_formed = text.front() == '{' && close != std::string_view::npos && close > 1 &&
                           text.find('{', 1) == std::string_view::npos &&
                           (close + 1 == text.size() || text[close + 1] == ':');
  if (!well_formed) {
    return Status::InvalidArgument(
        fmt::format("segment \"{}\": a literal, {{name}} or {{name}}:verb is needed", text));
  }
  std::string_view name = text.substr(1, close - 1);
  const bool is_tail = name.ends_with(kTailMark);
  name.remove_suffix(is_tail ? kTailMark.size() : 0);
  return PatternSegment{.literal = {},
                        .parameter = std::string(name),
                        .verb = std::string(text.substr(close + 1)),
                        .is_tail = is_tail};
}

bool ChangesSomething(std::string_view method) { return method != "GET" && method != "HEAD"; }

}  // namespace

struct Router::Endpoint {
  Route route;
  std::vector<std::string> parameters;  // Names in order of the pattern.
  Histogram* latency = nullptr;
  std::array<std::atomic<Counter*>, 600> counts{};  // By status, made at first use.
};

struct Router::Node {
  std::map<std::string, std::unique_ptr<Node>, std::less<>> literals;
  std::map<std::string, std::unique_ptr<Node>, std::less<>> verbs;  // By ":verb".
  std::unique_ptr<Node> parameter;
  std::unique_ptr<Node> tail;
  std::map<std::string, Endpoint*, std::less<>> endpoints;  // By method.
};

/// What a path was found to be.
struct Router::Match {
  const Endpoint* endpoint = nullptr;
  std::vector<std::string_view> values;  // Raw, in order of the pattern.
  std::set<std::string> allowed;         // Methods of the path, when none fits.
  std::string_view method;

  /// Tries literals, then verbs, then parameters; true once the method fits too.
  bool Find(const Node& node, const std::vector<std::string_view>& segments, size_t depth) {
    if (depth == segments.size()) {
      return Take(node);
    }
    const std::string_view segment = segments[depth];
    const auto literal = node.literals.find(segment);
    if (literal != node.literals.end() && Find(*literal->second, segments, depth + 1)) {
      return true;
    }
    for (const auto& [verb, next] : node.verbs) {
      if (segment.size() > verb.size() && segment.ends_with(verb) &&
          FindWith(segment.substr(0, segment.size() - verb.size()), *next, segments, depth)) {
        return true;
      }
    }
    const bool is_trailing_slash = segment.empty() && depth + 1 == segments.size();
    if (node.parameter != nullptr && !is_trailing_slash &&
        FindWith(segment, *node.parameter, segments, depth)) {
      return true;
    }
    if (node.tail == nullptr || is_trailing_slash) {
      return false;
    }
    // All segments are views of one path.
    const char* const end = segments.back().data() + segments.back().size();
    return FindWith({segment.data(), static_cast<size_t>(end - segment.data())}, *node.tail,
                    segments, segments.size() - 1);
  }

 private:
  bool FindWith(std::string_view value, const Node& next,
                const std::vector<std::string_view>& segments, size_t depth) {
    values.push_back(value);
    if (Find(next, segments, depth + 1)) {
      return true;
    }
    values.pop_back();
    return false;
  }

  bool Take(const Node& node) {
    auto found = node.endpoints.find(method);
    if (found == node.endpoints.end() && method == "HEAD") {
      found = node.endpoints.find("GET");
    }
    if (found == node.endpoints.end()) {
      for (const auto& [name, unused] : node.endpoints) {
        allowed.insert(name);
      }
      return false;
    }
    endpoint = found->second;
    return true;
  }
};

Router::Router(RouterOptions options, RouterDependencies dependencies)
    : options_(options), dependencies_(std::move(dependencies)), root_(std::make_unique<Node>()) {}

Router::~Router() = default;

Status Router::Add(Route route) {
  const std::string context = "add route " + route.method + " " + route.pattern;
  if (!route.pattern.starts_with('/') || route.method.empty() || !route.handler) {
    return Status::InvalidArgument(context + ": method, /path and handler are needed");
  }
  auto endpoint = std::make_unique<Endpoint>();
  Node* node = root_.get();
  for (const std::string_view text : SplitPath(route.pattern)) {
    const Result<PatternSegment> segment = ParseSegment(text);
    if (!segment.ok()) {
      return segment.status().WithContext(context);
    }
    std::unique_ptr<Node>& next = segment->parameter.empty() ? node->literals[segment->literal]
                                  : segment->is_tail         ? node->tail
                                  : segment->verb.empty()    ? node->parameter
                                                             : node->verbs[segment->verb];
    if (!segment->parameter.empty()) {
      endpoint->parameters.push_back(segment->parameter);
    }
    if (next == nullptr) {
      next = std::make_unique<Node>();
    }
    node = next.get();
  }
  const auto [place, inserted] = node->endpoints.emplace(route.method, endpoint.get());
  if (!inserted) {
    return Status::AlreadyExists(context + ": there is " + place->second->route.pattern);
  }
  endpoint->latency = &dependencies_.metrics.GetHistogram(
      "tarn_http_request_seconds", "Time to answer, without the streaming of bodies.",
      {{"method", route.method}, {"route", route.pattern}}, kLatencyBounds);
  endpoint->route = std::move(route);
  endpoints_.push_back(std::move(endpoint));
  return Status::Ok();
}

Router::Match Router::FindRoute(std::string_view method, std::string_view path) const {
  Match match;
  match.method = method;
  if (path.starts_with('/')) {
    match.Find(*root_, SplitPath(path), 0);
  }
  return match;
}

http::Response Router::Handle(http::Request& request) {
  const auto started = std::chrono::steady_clock::now();
  RequestContext context{.http = request,
                         .request_id = dependencies_.uuids.NextV7().ToString(),
                         .principal = {},
                         .path = {},
                         .query = {}};
  const std::string_view target = WithoutAuthority(request.target);
  const size_t question = target.find('?');
  const Match match = FindRoute(request.method, target.substr(0, question));
  Result<http::Response> result = Dispatch(match, context);
  http::Response response =
      result.ok() ? *std::move(result)
                  : RenderError(FamilyOf(target), result.status(), context.request_id);
  response.headers.Set("X-Request-Id", context.request_id);
  if (response.producer) {
    response.producer = [produce = std::move(response.producer), failed = failed_,
                         id = context.request_id,
                         user = context.principal.user_id](http::BodySink& sink) {
      Status status = produce(sink);
      if (!status.ok()) {  // Cancelled ones, too: it may be the server that is leaving.
        failed->Add(id, user, status);
      }
      return status;
    };
  }
  Record(match.endpoint, context, response, started);
  return response;
}

Result<http::Response> Router::Dispatch(const Match& match, RequestContext& context) {
  const http::Request& request = context.http;
  if (match.endpoint == nullptr) {
    if (match.allowed.empty()) {
      return RouteNotFound(request.method, request.target);
    }
    std::string allowed;
    for (const std::string& method : match.allowed) {
      allowed += (allowed.empty() ? "" : ", ") + method;
    }
    return MethodNotAllowed(request.method, request.target, allowed);
  }
  const Endpoint& endpoint = *match.endpoint;
  for (size_t i = 0; i < match.values.size(); ++i) {
    TARN_ASSIGN_OR_RETURN(std::string value, DecodeUrl(match.values[i]));
    context.path.emplace_back(endpoint.parameters[i], std::move(value));
  }
  const size_t question = request.target.find('?');
  if (question != std::string::npos) {
    TARN_ASSIGN_OR_RETURN(context.query,
                          UrlQuery::Parse(std::string_view(request.target).substr(question + 1)));
  }
  TARN_RETURN_IF_ERROR(Authenticate(endpoint, context));
  TARN_RETURN_IF_ERROR(AdmitCaller(endpoint, context));
  if (dependencies_.idempotency != nullptr && endpoint.route.effect == RouteEffect::kByMethod &&
      ChangesSomething(request.method) && request.headers.Find("Idempotency-Key")) {
    return RunOnce(endpoint, context);
  }
  return Call(endpoint, context);
}

Status Router::Authenticate(const Endpoint& endpoint, RequestContext& context) const {
  if (endpoint.route.access == RouteAccess::kAnonymous) {
    return Status::Ok();
  }
  if (dependencies_.everyone) {
    context.principal = *dependencies_.everyone;
    return Status::Ok();
  }
  const auto field = context.http.headers.Find("Authorization");
  if (!field) {
    return MissingCredentials("no Authorization field");
  }
  constexpr std::string_view kBearer = "Bearer ";
  if (field->size() <= kBearer.size() ||
      !http::EqualsIgnoringCase(field->substr(0, kBearer.size()), kBearer)) {
    return MissingCredentials("another scheme");  // The value may be a secret.
  }
  std::string_view token = field->substr(kBearer.size());
  token.remove_prefix(std::min(token.find_first_not_of(' '), token.size()));
  if (token.empty()) {
    return MissingCredentials("an empty token");
  }
  TARN_ASSIGN_OR_RETURN(context.principal, dependencies_.authenticate(token));
  for (const access::Scope scope : endpoint.route.scopes) {
    TARN_RETURN_IF_ERROR(access::RequireScope(context.principal, scope));
  }
  return Status::Ok();
}

/// Anonymous reads (health checks) are never held back; the token endpoint is, by peer.
Status Router::AdmitCaller(const Endpoint& endpoint, const RequestContext& context) {
  if (dependencies_.rate_limit == nullptr || (endpoint.route.access == RouteAccess::kAnonymous &&
                                              !ChangesSomething(context.http.method))) {
    return Status::Ok();
  }
  const std::string& peer = context.http.peer;
  const std::string caller = endpoint.route.access == RouteAccess::kAnonymous
                                 ? "peer " + peer.substr(0, peer.rfind(':'))
                                 : context.principal.user_id;
  return dependencies_.rate_limit->Admit(caller, std::chrono::steady_clock::now());
}

/// Calls the handler; the last catch for what libraries throw.
Result<http::Response> Router::Call(const Endpoint& endpoint, RequestContext& context) const {
  try {
    return endpoint.route.handler(context);
  } catch (const std::exception& exception) {
    return Status::Internal(
        fmt::format("{} {}: {}", context.http.method, endpoint.route.pattern, exception.what()));
  } catch (...) {
    return Status::Internal(
        fmt::format("{} {}: unknown exception", context.http.method, endpoint.route.pattern));
  }
}

/// Calls the handler unless the key has been answered, and keeps the answer, failures included.
Result<http::Response> Router::RunOnce(const Endpoint& endpoint, RequestContext& context) {
  http::Request& request = context.http;
  std::string body;
  const std::optional<uint64_t> length = request.body->content_length();
  if (length && *length <= options_.fingerprint_body_bytes_max) {
    TARN_ASSIGN_OR_RETURN(body, http::ReadAll(*request.body, *length));
    request.body = std::make_unique<http::StringBodyReader>(body);
  } else {
    body = length ? "length " + std::to_string(*length) : "chunked";
  }
  const metastore::IdempotentRequest claim{
      .principal = context.principal.user_id,
      .key = std::string(*request.headers.Find("Idempotency-Key")),
      .fingerprint = EncodeHex(Sha256(request.method + "\n" + request.target + "\n" + body))};
  IdempotencyKeys& keys = *dependencies_.idempotency;
  TARN_ASSIGN_OR_RETURN(std::optional<http::Response> replay, keys.Begin(claim));
  if (replay) {
    return *std::move(replay);
  }
  Result<http::Response> result = Call(endpoint, context);
  http::Response response = result.ok() ? *std::move(result)
                                        : RenderError(FamilyOf(WithoutAuthority(request.target)),
                                                      result.status(), context.request_id);
  const Status finished = keys.Finish(claim, response);
  if (!finished.ok()) {
    // The effect is there, so the answer goes out; only a replay will find the key taken.
    Log(LogLevel::kError, "server", "keep an answer for replays: " + finished.ToString());
  }
  return response;
}

void Router::Record(const Endpoint* endpoint, const RequestContext& context,
                    const http::Response& response, std::chrono::steady_clock::time_point started) {
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started;
  const std::string pattern = endpoint == nullptr ? "none" : endpoint->route.pattern;
  const auto make_counter = [&]() -> Counter& {
    return dependencies_.metrics.GetCounter(
        "tarn_http_requests_total", "Requests answered.",
        {{"method", endpoint == nullptr ? "other" : endpoint->route.method},
         {"route", pattern},
         {"status", std::to_string(response.status)}});
  };
  if (endpoint != nullptr && response.status < 600) {
    auto& place = const_cast<Endpoint*>(endpoint)->counts[static_cast<size_t>(response.status)];
    Counter* counter = place.load(std::memory_order_acquire);
    if (counter == nullptr) {
      counter = &make_counter();
      place.store(counter, std::memory_order_release);
    }
    counter->Add();
    endpoint->latency->Observe(elapsed.count());
  } else {
    make_counter().Add();
  }
  const bool is_slow = elapsed >= options_.slow_request;
  if (options_.access_log == AccessLog::kOff && !is_slow && response.status < 500) {
    return;
  }
  const LogLevel level = response.status >= 500 ? LogLevel::kError
                         : is_slow              ? LogLevel::kWarning
                                                : LogLevel::kNotice;
  Log(level, "server",
      fmt::format("{} {} {} {:.1f}ms user={} peer={} request={}{}", context.http.method,
                  context.http.target, response.status, elapsed.count() * 1e3,
                  context.principal.username.empty() ? "-" : context.principal.username,
                  context.http.peer, context.request_id,
                  response.status >= 500 ? " " + response.body.substr(0, 2000) : ""));
}

http::Response Router::RenderServerError(const Status& failure, std::string_view target) {
  const std::string request_id = dependencies_.uuids.NextV7().ToString();
  http::Response response = RenderError(FamilyOf(WithoutAuthority(target)), failure, request_id);
  response.headers.Set("X-Request-Id", request_id);
  dependencies_.metrics
      .GetCounter(
          "tarn_http_requests_total", "Requests answered.",
          {{"method", "other"}, {"route", "none"}, {"status", std::to_string(response.status)}})
      .Add();
  if (response.status >= 500) {
    Log(LogLevel::kError, "server",
        fmt::format("{} request={}: {}", target, request_id, failure.ToString()));
  }
  return response;
}

std::vector<std::string> Router::ListRoutes() const {
  std::vector<std::string> routes;
  for (const auto& endpoint : endpoints_) {
    routes.push_back(endpoint->route.method + " " + endpoint->route.pattern);
  }
  std::ranges::sort(routes);
  return routes;
}

Status AddHealthRoutes(Router& router, const MetricRegistry& metrics,
                       std::function<Status()> ready) {
  const auto add = [&router](std::string path, RouteHandler handler) {
    return router.Add({.method = "GET",
                       .pattern = std::move(path),
                       .scopes = {},
                       .handler = std::move(handler),
                       .access = RouteAccess::kAnonymous});
  };
  const auto text = [](std::string body, std::string type) {
    http::Response response;
    response.headers.Set("Content-Type", std::move(type));
    response.body = std::move(body);
    return response;
  };
  TARN_RETURN_IF_ERROR(add("/healthz", [text](RequestContext&) -> Result<http::Response> {
    return text("ok\n", "text/plain");
  }));
  TARN_RETURN_IF_ERROR(
      add("/readyz", [text, ready = std::move(ready)](RequestContext&) -> Result<http::Response> {
        const Status status = ready();
        if (!status.ok()) {
          return Status::Unavailable(status.message()).WithContext("not ready");
        }
        return text("ready\n", "text/plain");
      }));
  return add("/metrics", [text, &metrics](RequestContext&) -> Result<http::Response> {
    return text(metrics.Render(), "text/plain; version=0.0.4; charset=utf-8");
  });
}

}  // namespace tarn::server
