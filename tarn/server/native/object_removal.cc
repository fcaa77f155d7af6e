// DELETE /tarn/v1/tables/{name}, /views/{name} and /folders/{folderRid}: as DROP in SQL.
#include <nlohmann/json.hpp>

#include "tarn/query/object_statement.h"
#include "tarn/server/native/native_api.h"

namespace tarn::server::native {

namespace {

using Kind = query::DropStatement::Kind;

Result<http::Response> Drop(NativeApi& api, RequestContext& context,
                            query::DropStatement statement) {
  const std::string purge = context.query.Find("purge").value_or("false");
  if (purge != "true" && purge != "false") {
    return Status::InvalidArgument("purge must be true or false, found " + purge);
  }
  statement.purge = purge == "true";
  query::QueryRequest request;
  request.project = context.query.Find("project").value_or("default");
  TARN_RETURN_IF_ERROR(query::DropObject(statement, request, context.principal, api.deps.query));
  return JsonResponse(
      {{"dropped", context.Path(statement.kind == Kind::kSchema ? "folderRid" : "name")}});
}

Result<http::Response> DeleteTable(NativeApi& api, RequestContext& context) {
  return Drop(api, context, {.kind = Kind::kTable, .name = NameParts(context.Path("name"))});
}

Result<http::Response> DeleteView(NativeApi& api, RequestContext& context) {
  return Drop(api, context, {.kind = Kind::kView, .name = NameParts(context.Path("name"))});
}

Result<http::Response> DeleteFolder(NativeApi& api, RequestContext& context) {
  return Drop(api, context, {.kind = Kind::kSchema, .name = {context.Path("folderRid")}});
}

constexpr NativeRoute kRoutes[] = {
    {.method = "DELETE",
     .pattern = "/tables/{name}",
     .scope = access::Scope::kIcebergWrite,
     .handler = &DeleteTable,
     .summary =
         "Takes a table of no pipeline out of the catalog; with purge=true its files go, too.",
     .query = "purge project"},
    {.method = "DELETE",
     .pattern = "/views/{name}",
     .scope = access::Scope::kIcebergWrite,
     .handler = &DeleteView,
     .summary = "Takes a view of no pipeline out of the catalog.",
     .query = "project"},
    {.method = "DELETE",
     .pattern = "/folders/{folderRid}",
     .scope = access::Scope::kIcebergWrite,
     .handler = &DeleteFolder,
     .summary = "Removes a folder that holds nothing."},
};

}  // namespace

std::span<const NativeRoute> ObjectRemovalRoutes() { return kRoutes; }

}  // namespace tarn::server::native
