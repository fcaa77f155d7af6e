// From a Status to an HTTP answer: the one place that knows status numbers and envelopes.
//
// Each family of routes has its own envelope; the Status is the same. reason() is the precise wire
// name, details() its parameters as a JSON object.
#pragma once

#include <string>
#include <string_view>

#include "tarn/base/status.h"
#include "tarn/server/http/message.h"

namespace tarn::server {

/// Which envelope a route answers errors with.
enum class Family {
  kFoundry,  // {"errorCode","errorName","errorInstanceId","parameters"}
  kIceberg,  // {"error":{"message","type","code"}}
  kNative,   // {"error":{"name","message",…parameters}}
};

/// The family a target belongs to by its first segments; kNative for all that is not named.
Family FamilyOf(std::string_view target);

/// The HTTP status number of a failure: by reason() where the wire fixes one (foundry_wire.md
/// "surprising statuses"), else by code().
int HttpStatusOf(const Status& failure, Family family);

/// The name a client of `family` sees: reason(), or a stable name for the code.
std::string ErrorNameOf(const Status& failure, Family family);

/// Renders a failure. `instance_id` is the request id (a UUID); it ties the answer to the log.
http::Response RenderError(Family family, const Status& failure, std::string_view instance_id);

/// Failures that only the HTTP side makes.
Status RouteNotFound(std::string_view method, std::string_view target);
Status MethodNotAllowed(std::string_view method, std::string_view target, std::string_view allowed);
Status MissingCredentials(std::string_view found);

}  // namespace tarn::server
