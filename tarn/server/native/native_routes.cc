#include "tarn/server/native/native_routes.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/query/resource_name.h"
#include "tarn/server/native/audited.h"
#include "tarn/server/native/native_api.h"
#include "tarn/tree/permission.h"

namespace tarn::server::native {

namespace {

using metastore::SqlTransaction;
using nlohmann::json;

}  // namespace

Status RequireAdmin(NativeApi& api, SqlTransaction& sql, const RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const access::Role role, tree::RoleOn(sql, api.deps.query.authorizer,
                                                              context.principal, tree::RootRid()));
  return role >= access::Role::kOwner
             ? Status::Ok()
             : Status::PermissionDenied("only an administrator (Owner of the root) may do this");
}

Status RequireProject(NativeApi& api, SqlTransaction& sql, const RequestContext& context,
                      std::string_view project, access::Role role) {
  TARN_ASSIGN_OR_RETURN(const tree::Node node, query::FindProject(sql, project));
  TARN_ASSIGN_OR_RETURN(const access::Role found,
                        tree::RoleOn(sql, api.deps.query.authorizer, context.principal, node.rid));
  if (found == access::Role::kNone) {
    return Status::NotFound(fmt::format("project \"{}\" does not exist", project));
  }
  return found >= role ? Status::Ok()
                       : Status::PermissionDenied(
                             fmt::format("project \"{}\": the role {} is needed, you have {}",
                                         project, access::RoleName(role), access::RoleName(found)));
}

std::vector<std::string> NameParts(std::string_view name) {
  std::vector<std::string> parts;
  if (IsRid(name) || name.starts_with('/')) {
    parts.emplace_back(name);
    return parts;
  }
  while (true) {
    const size_t dot = name.find('.');
    parts.emplace_back(name.substr(0, dot));
    if (dot == std::string_view::npos) {
      return parts;
    }
    name.remove_prefix(dot + 1);
  }
}

Result<std::string> TextMember(const json& body, const char* name) {
  if (!body.is_object()) {
    return Status::InvalidArgument("the request body must be a JSON object");
  }
  const auto found = body.find(name);
  if (found == body.end() || found->is_null()) {
    return std::string();
  }
  if (!found->is_string()) {
    return Status::InvalidArgument(
        fmt::format("{} must be a text, found {}", name, found->type_name()));
  }
  return found->get<std::string>();
}

Result<std::string> RequiredText(const json& body, const char* name) {
  TARN_ASSIGN_OR_RETURN(std::string text, TextMember(body, name));
  if (text.empty()) {
    return Status::InvalidArgument(fmt::format("the request body lacks \"{}\"", name));
  }
  return text;
}

Status AddNativeRoutes(Router& router, const NativeDeps& deps) {
  const auto api = std::make_shared<NativeApi>(deps);
  api->failed_answers = router.failed_answers();
  std::vector<NativeRoute> all;
  for (const std::span<const NativeRoute> routes :
       {SqlRoutes(), ResourceRoutes(), TableRoutes(), TableMaintenanceRoutes(), ViewRoutes(),
        ObjectRemovalRoutes(), AccessRoutes(), PipelineRoutes(), TaskRoutes(), LandingRoutes(),
        DatasetRoutes()}) {
    all.insert(all.end(), routes.begin(), routes.end());
  }
  for (const NativeRoute& route : all) {
    TARN_RETURN_IF_ERROR(router.Add({.method = route.method,
                                     .pattern = std::string("/tarn/v1") + route.pattern,
                                     .scopes = {route.scope},
                                     .handler =
                                         [api, route](RequestContext& context) {
                                           return *route.audit == 0
                                                      ? route.handler(*api, context)
                                                      : CallAudited(*api, context, route);
                                         },
                                     .effect = route.effect}));
  }
  const json description = DescribeRoutes(all);
  return router.Add({.method = "GET",
                     .pattern = "/tarn/v1/openapi.json",
                     .scopes = {},
                     .handler = [description](RequestContext&) -> Result<http::Response> {
                       return JsonResponse(description);
                     },
                     .access = RouteAccess::kAnonymous});
}

}  // namespace tarn::server::native
