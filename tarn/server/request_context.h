// What a route handler works with: the request, who asks, and the decoded parts of the target.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tarn/access/principal.h"
#include "tarn/base/status.h"
#include "tarn/base/url.h"
#include "tarn/server/http/message.h"

namespace tarn::server {

/// Turns a bearer token into its principal. Errors: kUnauthenticated (unknown, expired, revoked).
/// Threads: any.
using Authenticator = std::function<Result<access::Principal>(std::string_view bearer_token)>;

/// One request on its way through a handler. One owner thread.
struct RequestContext {
  http::Request& http;
  std::string request_id;       // UUID; also errorInstanceId and the X-Request-Id of the answer.
  access::Principal principal;  // Empty on routes without authentication.
  std::vector<std::pair<std::string, std::string>> path;  // {name, segment decoded once}.
  UrlQuery query;

  /// A part of the path. The name must be in the route's pattern; aborts otherwise.
  [[nodiscard]] const std::string& Path(std::string_view name) const;
};

/// Reads the body as one JSON document. Errors: kInvalidArgument "MalformedJson" saying where,
/// "MissingPostBody" when it is empty, "RequestEntityTooLarge".
Result<nlohmann::json> ReadJson(RequestContext& context, uint64_t body_bytes_max = 16 << 20);

/// A query parameter as integer, boolean ("true", "false"). Errors: kInvalidArgument
/// "InvalidParameter" {"parameter","found"}.
Result<std::optional<int64_t>> QueryInt(const RequestContext& context, std::string_view name);
Result<std::optional<bool>> QueryBool(const RequestContext& context, std::string_view name);

/// A response with a JSON body.
http::Response JsonResponse(const nlohmann::json& document, int status = 200);
/// 204: the only way to say "done, nothing to return".
http::Response NoContent();

}  // namespace tarn::server
