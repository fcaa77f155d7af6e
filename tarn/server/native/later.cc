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
    Later("POST", "/datasets/{rid}:inferSchema", access::Scope::kDatasetsRead),
    Later("POST", "/landing:replayRejected", access::Scope::kPipelinesWrite),
    Later("POST", "/tasks/{task}:reload", access::Scope::kPipelinesWrite),
    Later("POST", "/tasks/{task}:preview", access::Scope::kPipelinesRead),
    Later("GET", "/tables/{name}/doctor", access::Scope::kIcebergRead),
    Later("GET", "/tables/{name}/trace", access::Scope::kIcebergRead),
    Later("POST", "/tables/{name}:compact", access::Scope::kIcebergWrite),
    Later("POST", "/tables/{name}:expire", access::Scope::kIcebergWrite),
    Later("POST", "/tables/{name}:orphans", access::Scope::kIcebergWrite),
};

}  // namespace

std::span<const NativeRoute> LaterRoutes() { return kRoutes; }

}  // namespace tarn::server::native
