#include "tarn/server/iceberg_rest/iceberg_routes.h"

#include <memory>

#include "tarn/server/iceberg_rest/iceberg_api.h"

namespace tarn::server::iceberg_rest {

namespace {

bool OnlyReads(const IcebergRoute& route) {
  const std::string_view method = route.method;
  return method == "GET" || method == "HEAD" || route.handler == &IcebergApi::ReportMetrics ||
         route.handler == &IcebergApi::PlanTable || route.handler == &IcebergApi::FetchTasks;
}

}  // namespace

const std::vector<IcebergRoute>& IcebergRoutes() {
  using Api = IcebergApi;
  static const std::vector<IcebergRoute> routes = {
      {"GET", "/namespaces", &Api::ListNamespaces},
      {"POST", "/namespaces", &Api::CreateNamespace},
      {"GET", "/namespaces/{namespace}", &Api::GetNamespace},
      {"HEAD", "/namespaces/{namespace}", &Api::HeadNamespace},
      {"DELETE", "/namespaces/{namespace}", &Api::DropNamespace},
      {"POST", "/namespaces/{namespace}/properties", &Api::ChangeProperties},
      {"GET", "/namespaces/{namespace}/tables", &Api::ListTables},
      {"POST", "/namespaces/{namespace}/tables", &Api::CreateTable},
      {"GET", "/namespaces/{namespace}/tables/{table}", &Api::LoadTable},
      {"HEAD", "/namespaces/{namespace}/tables/{table}", &Api::HeadTable},
      {"POST", "/namespaces/{namespace}/tables/{table}", &Api::CommitTable},
      {"DELETE", "/namespaces/{namespace}/tables/{table}", &Api::DropTable},
      {"GET", "/namespaces/{namespace}/tables/{table}/credentials", &Api::GetCredentials},
      {"POST", "/namespaces/{namespace}/tables/{table}/plan", &Api::PlanTable},
      {"POST", "/namespaces/{namespace}/tables/{table}/tasks", &Api::FetchTasks},
      {"POST", "/namespaces/{namespace}/tables/{table}/metrics", &Api::ReportMetrics},
      {"POST", "/namespaces/{namespace}/tables/{table}/unregister", &Api::UnregisterTable},
      {"POST", "/namespaces/{namespace}/register", &Api::RegisterTable},
      {"POST", "/tables/rename", &Api::RenameTable},
      {"POST", "/transactions/commit", &Api::CommitTransaction},
      {"GET", "/namespaces/{namespace}/views", &Api::ListViews},
      {"POST", "/namespaces/{namespace}/views", &Api::CreateView},
      {"GET", "/namespaces/{namespace}/views/{view}", &Api::LoadView},
      {"HEAD", "/namespaces/{namespace}/views/{view}", &Api::HeadView},
      {"POST", "/namespaces/{namespace}/views/{view}", &Api::CommitView},
      {"DELETE", "/namespaces/{namespace}/views/{view}", &Api::DropView},
      {"POST", "/namespaces/{namespace}/register-view", &Api::RegisterView},
      {"POST", "/views/rename", &Api::RenameView},
  };
  return routes;
}

Status AddIcebergRoutes(Router& router, const IcebergOptions& options, const IcebergDeps& deps) {
  const auto api = std::make_shared<IcebergApi>(options, deps);
  TARN_RETURN_IF_ERROR(
      router.Add({.method = "GET",
                  .pattern = "/iceberg/v1/config",
                  .scopes = {access::Scope::kIcebergRead},
                  .handler = [api](RequestContext& context) { return api->GetConfig(context); }}));
  // Keys of replays belong to a user, and this route has none yet.
  TARN_RETURN_IF_ERROR(
      router.Add({.method = "POST",
                  .pattern = "/iceberg/v1/oauth/tokens",
                  .scopes = {},
                  .handler = [api](RequestContext& context) { return api->IssueToken(context); },
                  .access = RouteAccess::kAnonymous,
                  .effect = RouteEffect::kReadOnly}));
  for (const IcebergRoute& route : IcebergRoutes()) {
    const bool reads = OnlyReads(route);
    for (const char* base : {"/iceberg/v1", "/iceberg/v1/{prefix}"}) {
      TARN_RETURN_IF_ERROR(router.Add(
          {.method = route.method,
           .pattern = std::string(base) + route.pattern,
           .scopes = {reads ? access::Scope::kIcebergRead : access::Scope::kIcebergWrite},
           .handler = [api, handler = route.handler](
                          RequestContext& context) { return (api.get()->*handler)(context); },
           .access = RouteAccess::kBearer,
           .effect = reads ? RouteEffect::kReadOnly : RouteEffect::kByMethod}));
    }
  }
  return Status::Ok();
}

}  // namespace tarn::server::iceberg_rest
