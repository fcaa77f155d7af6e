// What the handler files of this folder share: dependencies, the route table, and checks that
// several of them make.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tarn/access/role.h"
#include "tarn/base/clock.h"
#include "tarn/metastore/database.h"
#include "tarn/server/failed_answers.h"
#include "tarn/server/native/native_routes.h"
#include "tarn/server/native/runs.h"
#include "tarn/server/request_context.h"
#include "tarn/tree/node.h"

namespace tarn::server::native {

/// Dependencies of the handlers and what they keep between requests.
struct NativeApi {
  explicit NativeApi(const NativeDeps& dependencies) : deps(dependencies) {}

  const NativeDeps deps;
  std::shared_ptr<FailedAnswers> failed_answers;  // Those of the router.
  Runs runs;

  [[nodiscard]] metastore::Database& database() const { return deps.query.catalog.deps().database; }
  [[nodiscard]] const Clock& clock() const { return deps.query.catalog.deps().clock; }
  [[nodiscard]] UuidGenerator& uuids() const { return deps.query.catalog.deps().uuids; }
};

using NativeHandler = Result<http::Response> (*)(NativeApi&, RequestContext&);

/// One route and what the description says of it.
struct NativeRoute {
  const char* method;
  const char* pattern;  // Below /tarn/v1.
  access::Scope scope;
  NativeHandler handler;
  const char* summary;
  const char* query = "";    // Names of query parameters, separated by blanks.
  const char* request = "";  // Media type of the body; empty = none.
  const char* answer = "application/json";
  RouteEffect effect = RouteEffect::kByMethod;
  const char* audit = "";  // Action that CallAudited records; empty = the handler's business.
};

// One table per handler file.
std::span<const NativeRoute> SqlRoutes();
std::span<const NativeRoute> ResourceRoutes();
std::span<const NativeRoute> TableRoutes();
std::span<const NativeRoute> TableMaintenanceRoutes();
std::span<const NativeRoute> ViewRoutes();
std::span<const NativeRoute> ObjectRemovalRoutes();
std::span<const NativeRoute> AccessRoutes();
std::span<const NativeRoute> PipelineRoutes();
std::span<const NativeRoute> TaskRoutes();
std::span<const NativeRoute> LandingRoutes();
std::span<const NativeRoute> DatasetRoutes();

/// The OpenAPI 3.1 document of the routes.
nlohmann::json DescribeRoutes(std::span<const NativeRoute> routes);

/// kPermissionDenied unless the principal is Owner of the root: an administrator.
Status RequireAdmin(NativeApi& api, metastore::SqlTransaction& sql, const RequestContext& context);

/// kNotFound or kPermissionDenied unless the principal has `role` on the project of that name.
Status RequireProject(NativeApi& api, metastore::SqlTransaction& sql, const RequestContext& context,
                      std::string_view project, access::Role role);

/// The parts of a resource's name in a path or query: a RID or "/path" whole, else split at dots.
std::vector<std::string> NameParts(std::string_view name);

/// A member of a JSON body as text, "" when absent. Errors: kInvalidArgument when it is no text.
Result<std::string> TextMember(const nlohmann::json& body, const char* name);
/// The same, not empty.
Result<std::string> RequiredText(const nlohmann::json& body, const char* name);

}  // namespace tarn::server::native
