// Version 1 of the API, as far as old clients use it: the same operations with `branchId` for
// `branchName`, uploads by query, and schemas in their full form.
#include <nlohmann/json.hpp>

#include "tarn/base/json_text.h"
#include "tarn/dataset/errors.h"
#include "tarn/server/foundry/foundry_api.h"

namespace tarn::server::foundry {

using dataset::DatasetRid;
using nlohmann::json;

namespace {

/// The handler of version 2 for a route. Aborts when there is none.
FoundryHandler HandlerOf(std::span<const FoundryRoute> routes, std::string_view method,
                         std::string_view pattern) {
  for (const FoundryRoute& route : routes) {
    if (route.method == method && route.pattern == pattern) {
      return route.handler;
    }
  }
  TARN_CHECK(false);
}

/// Names of a request in the words of version 2.
void TranslateRequest(RequestContext& context) {
  for (auto& [name, value] : context.path) {
    if (name == "branchId") {
      name = "branchName";
    }
  }
  UrlQuery query;
  for (const auto& [name, value] : context.query.parameters()) {
    query.Add(name == "branchId" ? "branchName" : name, value);
  }
  context.query = std::move(query);
}

/// A failure in the words of version 1; its parameters have both names of the branch.
Status TranslateFailure(const Status& failure) {
  json parameters = json::parse(failure.details(), nullptr, false);
  if (!parameters.is_object() || !parameters.contains("branchName")) {
    return failure;
  }
  parameters["branchId"] = parameters["branchName"];
  const std::string reason =
      failure.reason() == "InvalidBranchName" ? "InvalidBranchId" : failure.reason();
  return failure.WithReason(reason, parameters.dump());
}

Result<http::Response> Call(FoundryHandler handler, const FoundryDeps& deps,
                            RequestContext& context) {
  TranslateRequest(context);
  Result<http::Response> answer = handler(deps, context);
  return answer.ok() ? std::move(answer)
                     : Result<http::Response>(TranslateFailure(answer.status()));
}

/// {"name",…} as {"branchId",…}.
json BranchInOne(json branch) {
  branch["branchId"] = branch["name"];
  branch.erase("name");
  return branch;
}

Result<http::Response> CreateDataset(const FoundryDeps& deps, RequestContext& context) {
  return Call(HandlerOf(DatasetRoutes(), "POST", "/datasets"), deps, context);
}

Result<http::Response> GetDataset(const FoundryDeps& deps, RequestContext& context) {
  return Call(HandlerOf(DatasetRoutes(), "GET", "/datasets/{datasetRid}"), deps, context);
}

Result<http::Response> ReadTable(const FoundryDeps& deps, RequestContext& context) {
  return Call(HandlerOf(ReadTableRoutes(), "GET", "/datasets/{datasetRid}/readTable"), deps,
              context);
}

Result<http::Response> CreateBranch(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const std::string id, RequiredText(body, "branchId"));
  body.erase("branchId");
  body["name"] = id;
  context.http.body = std::make_unique<http::StringBodyReader>(body.dump());
  TARN_ASSIGN_OR_RETURN(
      const http::Response answer,
      Call(HandlerOf(BranchRoutes(), "POST", "/datasets/{datasetRid}/branches"), deps, context));
  return JsonResponse(BranchInOne(json::parse(answer.body)));
}

Result<http::Response> GetBranch(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(
      const http::Response answer,
      Call(HandlerOf(BranchRoutes(), "GET", "/datasets/{datasetRid}/branches/{branchName}"), deps,
           context));
  return JsonResponse(BranchInOne(json::parse(answer.body)));
}

Result<http::Response> ListBranches(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(
      const http::Response answer,
      Call(HandlerOf(BranchRoutes(), "GET", "/datasets/{datasetRid}/branches"), deps, context));
  json page = json::parse(answer.body);
  for (json& branch : page["data"]) {
    branch = BranchInOne(std::move(branch));
  }
  return JsonResponse(page);
}

Result<http::Response> DeleteBranch(const FoundryDeps& deps, RequestContext& context) {
  return Call(HandlerOf(BranchRoutes(), "DELETE", "/datasets/{datasetRid}/branches/{branchName}"),
              deps, context);
}

Result<http::Response> CreateTransaction(const FoundryDeps& deps, RequestContext& context) {
  return Call(HandlerOf(TransactionRoutes(), "POST", "/datasets/{datasetRid}/transactions"), deps,
              context);
}

Result<http::Response> GetTransaction(const FoundryDeps& deps, RequestContext& context) {
  return Call(
      HandlerOf(TransactionRoutes(), "GET", "/datasets/{datasetRid}/transactions/{transactionRid}"),
      deps, context);
}

Result<http::Response> CommitTransaction(const FoundryDeps& deps, RequestContext& context) {
  return Call(HandlerOf(TransactionRoutes(), "POST",
                        "/datasets/{datasetRid}/transactions/{transactionRid}/commit"),
              deps, context);
}

Result<http::Response> AbortTransaction(const FoundryDeps& deps, RequestContext& context) {
  return Call(HandlerOf(TransactionRoutes(), "POST",
                        "/datasets/{datasetRid}/transactions/{transactionRid}/abort"),
              deps, context);
}

Result<http::Response> ListFiles(const FoundryDeps& deps, RequestContext& context) {
  return Call(HandlerOf(FileRoutes(), "GET", "/datasets/{datasetRid}/files"), deps, context);
}

Result<http::Response> GetFile(const FoundryDeps& deps, RequestContext& context) {
  return Call(HandlerOf(FileRoutes(), "GET", "/datasets/{datasetRid}/files/{filePath}"), deps,
              context);
}

Result<http::Response> DeleteFile(const FoundryDeps& deps, RequestContext& context) {
  return Call(HandlerOf(FileRoutes(), "DELETE", "/datasets/{datasetRid}/files/{filePath}"), deps,
              context);
}

Result<http::Response> GetContent(const FoundryDeps& deps, RequestContext& context) {
  return Call(HandlerOf(FileRoutes(), "GET", "/datasets/{datasetRid}/files/{filePath}/content"),
              deps, context);
}

Result<http::Response> UploadFile(const FoundryDeps& deps, RequestContext& context) {
  context.path.emplace_back("filePath", context.query.Find("filePath").value_or(""));
  return Call(HandlerOf(FileRoutes(), "POST", "/datasets/{datasetRid}/files/{filePath}/upload"),
              deps, context);
}

/// The end transaction and the branch of a schema's query.
struct SchemaPlace {
  std::string branch;
  std::optional<dataset::TransactionRid> end;
};

Result<SchemaPlace> PlaceOf(const RequestContext& context, const DatasetRid& rid) {
  SchemaPlace place;
  place.branch = context.query.Find("branchId").value_or(std::string(dataset::kDefaultBranch));
  TARN_RETURN_IF_ERROR(dataset::CheckBranchName(place.branch));
  if (const auto end = context.query.Find("transactionRid")) {
    TARN_ASSIGN_OR_RETURN(place.end, TransactionOf(rid, *end));
  }
  return place;
}

/// The full form, as it was put; 204 where there is none.
Result<http::Response> GetSchema(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_RETURN_IF_ERROR(RequireViewer(deps, context, rid,
                                     {.name = "GetDatasetSchemaPermissionDenied",
                                      .parameters = {{"datasetRid", rid.ToString()}}}));
  TARN_ASSIGN_OR_RETURN(const SchemaPlace place, PlaceOf(context, rid));
  const Result<dataset::StoredSchema> stored =
      deps.datasets.GetSchema(rid, {.branch = place.branch, .end = place.end, .version = {}});
  if (stored.status().reason() == "SchemaNotFound" ||
      stored.status().reason() == "DatasetViewNotFound") {
    return NoContent();
  }
  if (!stored.ok()) {
    return TranslateFailure(stored.status());
  }
  return JsonResponse(json::parse(stored->schema.json));
}

Result<http::Response> PutSchema(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const SchemaPlace place, PlaceOf(context, rid));
  const Status put = Mutate(
      deps, context, rid,
      {.name = "PutDatasetSchemaPermissionDenied", .parameters = {{"datasetRid", rid.ToString()}}},
      "schema.put", metastore::Durability::kDurable, [&](metastore::SqlTransaction& sql) {
        return StatusOf(deps.datasets.PutSchema(
            sql, rid, body.dump(),
            {.branch = place.branch, .end = place.end, .by = context.principal.user_id}));
      });
  if (!put.ok()) {
    return TranslateFailure(put);
  }
  return NoContent();
}

constexpr access::Scope kRead = access::Scope::kDatasetsRead;
constexpr access::Scope kWrite = access::Scope::kDatasetsWrite;

constexpr FoundryRoute kRoutes[] = {
    {"POST", "/datasets", kWrite, CreateDataset},
    {"GET", "/datasets/{datasetRid}", kRead, GetDataset},
    {"GET", "/datasets/{datasetRid}/readTable", kRead, ReadTable},
    {"GET", "/datasets/{datasetRid}/schema", kRead, GetSchema, Stability::kPreview},
    {"PUT", "/datasets/{datasetRid}/schema", kWrite, PutSchema, Stability::kPreview},
    {"POST", "/datasets/{datasetRid}/branches", kWrite, CreateBranch},
    {"GET", "/datasets/{datasetRid}/branches", kRead, ListBranches},
    {"GET", "/datasets/{datasetRid}/branches/{branchId}", kRead, GetBranch},
    {"DELETE", "/datasets/{datasetRid}/branches/{branchId}", kWrite, DeleteBranch},
    {"POST", "/datasets/{datasetRid}/transactions", kWrite, CreateTransaction},
    {"GET", "/datasets/{datasetRid}/transactions/{transactionRid}", kRead, GetTransaction},
    {"POST", "/datasets/{datasetRid}/transactions/{transactionRid}/commit", kWrite,
     CommitTransaction},
    {"POST", "/datasets/{datasetRid}/transactions/{transactionRid}/abort", kWrite,
     AbortTransaction},
    {"GET", "/datasets/{datasetRid}/files", kRead, ListFiles},
    {"POST", "/datasets/{datasetRid}/files:upload", kWrite, UploadFile},
    {"GET", "/datasets/{datasetRid}/files/{filePath}", kRead, GetFile},
    {"DELETE", "/datasets/{datasetRid}/files/{filePath}", kWrite, DeleteFile},
    {"GET", "/datasets/{datasetRid}/files/{filePath}/content", kRead, GetContent},
};

}  // namespace

std::span<const FoundryRoute> VersionOneRoutes() { return kRoutes; }

}  // namespace tarn::server::foundry
