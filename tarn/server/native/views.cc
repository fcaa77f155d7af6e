// GET /tarn/v1/views/{name}: the stored text of a view.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/catalog/pointer_store.h"
#include "tarn/query/resource_name.h"
#include "tarn/server/native/native_api.h"

namespace tarn::server::native {

namespace {

using metastore::SqlTransaction;
using nlohmann::json;

json DialectsOf(const iceberg::ViewVersion& version) {
  json dialects = json::array();
  for (const iceberg::ViewRepresentation& text : version.representations) {
    dialects.push_back(text.dialect);
  }
  return dialects;
}

Result<http::Response> GetView(NativeApi& api, RequestContext& context) {
  const std::string& name = context.Path("name");
  const std::string project = context.query.Find("project").value_or("default");
  const std::string dialect = context.query.Find("dialect").value_or("spark");
  std::optional<catalog::CatalogObject> object;
  TARN_RETURN_IF_ERROR(api.database().Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const tree::Node place, query::FindProject(sql, project));
    TARN_ASSIGN_OR_RETURN(const tree::Node node,
                          query::FindResource(sql,
                                              {.principal = context.principal,
                                               .authorizer = api.deps.query.authorizer,
                                               .project = place.rid,
                                               .needed = access::Scope::kIcebergRead},
                                              NameParts(name)));
    TARN_ASSIGN_OR_RETURN(object, catalog::FindObject(sql, node.rid));
    return Status::Ok();
  }));
  if (!object || object->kind != catalog::ObjectKind::kView) {
    return Status::InvalidArgument(name + " is not a view");
  }
  TARN_ASSIGN_OR_RETURN(const catalog::ViewMetadataPtr view,
                        api.deps.query.catalog.ReadView(object->metadata_location));
  const iceberg::ViewVersion& version = view->CurrentVersion();
  const iceberg::ViewRepresentation* text = version.FindDialect(dialect);
  if (text == nullptr) {
    return Status::InvalidArgument(
        fmt::format("view {} has no text for the dialect \"{}\": there is {}", name, dialect,
                    DialectsOf(version).dump()));
  }
  return JsonResponse({{"rid", object->rid.ToString()},
                       {"name", object->name},
                       {"dialect", text->dialect},
                       {"dialects", DialectsOf(version)},
                       {"sql", text->sql},
                       {"defaultNamespace", version.default_namespace}});
}

constexpr NativeRoute kRoutes[] = {
    {.method = "GET",
     .pattern = "/views/{name}",
     .scope = access::Scope::kIcebergRead,
     .handler = &GetView,
     .summary = "The text of a view for one engine: spark, trino or duckdb.",
     .query = "dialect project"},
};

}  // namespace

std::span<const NativeRoute> ViewRoutes() { return kRoutes; }

}  // namespace tarn::server::native
