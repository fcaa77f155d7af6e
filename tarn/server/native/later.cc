// Routes that are named in docs/native_routes.md and not offered by this version: they say so,
// instead of a bare 404.
#include <fmt/format.h>

#include "tarn/server/native/native_api.h"

namespace tarn::server::native {

namespace {

Result<http::Response> SayLater(NativeApi&, RequestContext& context) {
  const std::string& target = context.http.target;
  return Status::Unimplemented(fmt::format("{} {} is not available in this version",
                                           context.http.method,
                                           target.substr(0, target.find('?'))));
}

constexpr NativeRoute Later(const char* method, const char* pattern, access::Scope scope) {
  return {.method = method,
          .pattern = pattern,
          .scope = scope,
          .handler = &SayLater,
          .summary = "Not available in this version: 501.",
          .effect = RouteEffect::kReadOnly};
}

constexpr NativeRoute kRoutes[] = {
    Later("POST", "/landing:replayRejected", access::Scope::kPipelinesWrite),
};

}  // namespace

std::span<const NativeRoute> LaterRoutes() { return kRoutes; }

}  // namespace tarn::server::native
