// /foundry-data-proxy, /foundry-metadata, /foundry-schema-inference and /foundry-sql-server: bytes,
// schemas and queries for the vendor's older tools.
#include <arrow/api.h>
#include <nlohmann/json.hpp>

#include "tarn/base/json_text.h"
#include "tarn/dataset/errors.h"
#include "tarn/format/field_type.h"
#include "tarn/query/infer_schema.h"
#include "tarn/server/foundry/file_access.h"
#include "tarn/server/foundry/internal/internal_api.h"
#include "tarn/server/foundry/sql_queries.h"
#include "tarn/server/foundry/start_query.h"

namespace tarn::server::foundry::internal {

using dataset::DatasetRid;
using dataset::TransactionRid;
using nlohmann::json;

namespace {

constexpr size_t kReferenceSegment = 6;  // /service/api/x/datasets/{rid}/views/{ref}
constexpr size_t kInferenceSegment = 5;  // /foundry-schema-inference/api/datasets/{rid}/…/{ref}

Denial ServiceDenial(const char* service, const DatasetRid& rid) {
  return {.name = std::string(service) + ":PermissionDenied",
          .parameters = {{"datasetRid", rid.ToString()}}};
}

/// Refuses a second file of one path in a transaction unless it may be overwritten.
Status CheckOverwrite(const FoundryDeps& deps, const RequestContext& context, const DatasetRid& rid,
                      const std::string& path) {
  TARN_ASSIGN_OR_RETURN(const bool overwrite, Flag(context, "overwrite"));
  if (overwrite) {
    return Status::Ok();
  }
  TARN_ASSIGN_OR_RETURN(const TransactionRid transaction,
                        TransactionOf(rid, context.Path("transactionRid")));
  dataset::ViewSelector own;
  own.start = transaction;
  own.end = transaction;
  const Status found = StatusOf(StatIn(deps, rid, own, path));
  if (found.code() == ErrorCode::kNotFound) {
    return Status::Ok();
  }
  TARN_RETURN_IF_ERROR(found);
  return Status::AlreadyExists("the transaction has " + JsonString(path) +
                               " already; overwrite=true replaces it")
      .WithReason("FileAlreadyExists", JsonObject({{"datasetRid", rid.ToString()},
                                                   {"transactionRid", transaction.ToString()},
                                                   {"path", path}}));
}

Result<http::Response> PutFile(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_RETURN_IF_ERROR(RequireViewer(deps, context, rid, ServiceDenial("DataProxy", rid)));
  const std::string path = context.query.Find("logicalPath").value_or("");
  if (!path.empty()) {
    TARN_RETURN_IF_ERROR(NamedBy("DataProxy", CheckOverwrite(deps, context, rid, path)));
  }
  context.path.emplace_back("filePath", path);
  context.query = {};
  context.query.Add("transactionRid", context.Path("transactionRid"));
  const Result<dataset::File> file = UploadFile(deps, context, rid);
  TARN_RETURN_IF_ERROR(NamedBy("DataProxy", StatusOf(file)));
  return JsonResponse({{"logicalPath", file->path}, {"size", file->size_bytes}});
}

Result<http::Response> Content(const FoundryDeps& deps, RequestContext& context,
                               const DatasetRid& rid, dataset::ViewSelector selector) {
  if (const auto start = context.query.Find("startTransactionRid")) {
    TARN_ASSIGN_OR_RETURN(selector.start, TransactionOf(rid, *start));
  }
  if (selector.end) {
    TARN_RETURN_IF_ERROR(deps.database.Read([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(const dataset::Transaction end,
                            deps.datasets.GetTransaction(sql, rid, *selector.end));
      return end.state == dataset::TransactionState::kOpen
                 ? RequireDataset(deps, sql, context, rid, access::Role::kEditor,
                                  ServiceDenial("DataProxy", rid))
                 : Status::Ok();
    }));
  }
  TARN_ASSIGN_OR_RETURN(const dataset::File file,
                        StatIn(deps, rid, selector, context.Path("filePath")));
  return ContentResponse(deps.store, rid, file, context.http.headers);
}

Result<http::Response> ContentOfView(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_RETURN_IF_ERROR(RequireViewer(deps, context, rid, ServiceDenial("DataProxy", rid)));
  TARN_ASSIGN_OR_RETURN(const std::string text, FormSegment(context, kReferenceSegment));
  TARN_ASSIGN_OR_RETURN(const Reference reference, ParseReference(text));
  Result<http::Response> answer = Content(deps, context, rid, reference.Select());
  TARN_RETURN_IF_ERROR(NamedBy("DataProxy", answer.status()));
  return answer;
}

Result<http::Response> ContentOfTransaction(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_RETURN_IF_ERROR(RequireViewer(deps, context, rid, ServiceDenial("DataProxy", rid)));
  TARN_ASSIGN_OR_RETURN(const TransactionRid transaction,
                        TransactionOf(rid, context.Path("transactionRid")));
  dataset::ViewSelector own;
  own.start = transaction;
  own.end = transaction;
  Result<http::Response> answer = Content(deps, context, rid, own);
  TARN_RETURN_IF_ERROR(NamedBy("DataProxy", answer.status()));
  return answer;
}

// --- Schemas ------------------------------------------------------------------------------------

struct SchemaPlace {
  std::string branch;
  std::optional<TransactionRid> end;
};

Result<SchemaPlace> PlaceOf(const RequestContext& context, const DatasetRid& rid) {
  SchemaPlace place;
  TARN_ASSIGN_OR_RETURN(place.branch, FormSegment(context, kReferenceSegment));
  TARN_RETURN_IF_ERROR(dataset::CheckBranchName(place.branch));
  if (const auto end = context.query.Find("endTransactionRid")) {
    TARN_ASSIGN_OR_RETURN(place.end, TransactionOf(rid, *end));
  }
  return place;
}

/// 204 is how this service says that there is none.
Result<http::Response> GetSchema(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_RETURN_IF_ERROR(RequireViewer(deps, context, rid, ServiceDenial("Metadata", rid)));
  TARN_ASSIGN_OR_RETURN(const SchemaPlace place, PlaceOf(context, rid));
  const Result<dataset::StoredSchema> stored =
      deps.datasets.GetSchema(rid, {.branch = place.branch, .end = place.end, .version = {}});
  if (stored.status().reason() == "SchemaNotFound" ||
      stored.status().reason() == "DatasetViewNotFound") {
    return NoContent();
  }
  TARN_RETURN_IF_ERROR(NamedBy("Metadata", StatusOf(stored)));
  return JsonResponse({{"schema", json::parse(FullSchema(stored->schema))},
                       {"transactionRid", stored->end_transaction.ToString()},
                       {"versionId", stored->version.ToString()}});
}

Result<http::Response> PutSchema(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const SchemaPlace place, PlaceOf(context, rid));
  TARN_RETURN_IF_ERROR(NamedBy(
      "Metadata",
      Mutate(deps, context, rid, ServiceDenial("Metadata", rid), "schema.put",
             metastore::Durability::kDurable, [&](metastore::SqlTransaction& sql) {
               return StatusOf(deps.datasets.PutSchema(
                   sql, rid, body.dump(),
                   {.branch = place.branch, .end = place.end, .by = context.principal.user_id}));
             })));
  return JsonResponse(json::object());
}

/// From all files of the branch, in types that hold every value; a failure is an answer too.
Result<http::Response> InferSchema(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_RETURN_IF_ERROR(RequireViewer(deps, context, rid, ServiceDenial("SchemaInference", rid)));
  TARN_ASSIGN_OR_RETURN(const std::string branch, FormSegment(context, kInferenceSegment));
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<engine::Session> session, deps.engine.OpenSession());
  const Result<query::InferredSchema> inferred = query::InferSchema(
      *session, deps.datasets, deps.store,
      {.name = {}, .written = rid.ToString(), .dataset = rid, .branch = branch, .point = {}}, {});
  if (!inferred.ok()) {
    return JsonResponse({{"status", "FAILED"}, {"message", inferred.status().message()}});
  }
  std::string problems;
  for (const query::InferredFile& file : inferred->files) {
    if (!file.problem.empty()) {
      problems += (problems.empty() ? "" : "; ") + file.path + ": " + file.problem;
    }
  }
  TARN_ASSIGN_OR_RETURN(const dataset::DatasetSchema parsed,
                        dataset::ParseDatasetSchema(query::SchemaJsonOf(*inferred)));
  return JsonResponse({{"status", problems.empty() ? "SUCCESS" : "WARN"},
                       {"message", problems.empty() ? "inferred" : problems},
                       {"data", {{"foundrySchema", json::parse(FullSchema(parsed))}}}});
}

// --- Queries ------------------------------------------------------------------------------------

json StatusJson(const QueryStatus& status) {
  switch (status.state) {
    case QueryState::kRunning:
      return {{"running", json::object()}, {"type", "running"}};
    case QueryState::kSucceeded:
      return {{"ready", json::object()}, {"type", "ready"}};
    case QueryState::kFailed:
      return {{"failed", {{"failureReason", status.message}, {"errorMessage", status.message}}},
              {"type", "failed"}};
    case QueryState::kCanceled:
      break;
  }
  return {{"canceled", json::object()}, {"type", "canceled"}};
}

Result<http::Response> ExecuteQuery(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const std::string text, RequiredText(body, "query"));
  TARN_ASSIGN_OR_RETURN(const std::vector<std::string> branches,
                        TextList(body, "fallbackBranchIds"));
  const Result<std::string> id = StartSqlQuery(deps, context, {.sql = text, .branches = branches});
  TARN_RETURN_IF_ERROR(NamedBy("FoundrySqlServer", StatusOf(id)));
  TARN_ASSIGN_OR_RETURN(const QueryStatus status,
                        deps.queries->GetStatus(context.principal.user_id, *id));
  return JsonResponse({{"queryId", *id}, {"status", StatusJson(status)}});
}

Result<http::Response> GetQueryStatus(const FoundryDeps& deps, RequestContext& context) {
  const std::string& id = context.Path("sqlQueryId");
  TARN_ASSIGN_OR_RETURN(const QueryStatus status,
                        deps.queries->GetStatus(context.principal.user_id, id));
  return JsonResponse({{"queryId", id}, {"status", StatusJson(status)}});
}

/// One byte 'A', then the Arrow stream.
Result<http::Response> GetQueryResults(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(
      http::Response response,
      deps.queries->OpenResult(context.principal.user_id, context.Path("sqlQueryId")));
  response.content_length = *response.content_length + 1;
  response.producer = [rows = std::move(response.producer)](http::BodySink& sink) -> Status {
    TARN_RETURN_IF_ERROR(sink.Write("A"));
    return rows(sink);
  };
  return response;
}

/// Gives the failures of `kHandler` the names of its service.
template <FoundryHandler kHandler>
Result<http::Response> DataProxy(const FoundryDeps& deps, RequestContext& context) {
  Result<http::Response> answer = kHandler(deps, context);
  TARN_RETURN_IF_ERROR(NamedBy("DataProxy", answer.status()));
  return answer;
}

constexpr access::Scope kRead = access::Scope::kDatasetsRead;
constexpr access::Scope kWrite = access::Scope::kDatasetsWrite;
constexpr access::Scope kQueryRead = access::Scope::kSqlQueriesRead;
constexpr access::Scope kQueryExecute = access::Scope::kSqlQueriesExecute;

constexpr FoundryRoute kRoutes[] = {
    {"POST",
     "/foundry-data-proxy/api/dataproxy/datasets/{datasetRid}/transactions/{transactionRid}/"
     "putFile",
     kWrite, DataProxy<PutFile>},
    {"GET",
     "/foundry-data-proxy/api/dataproxy/datasets/{datasetRid}/transactions/{transactionRid}/"
     "{filePath...}",
     kRead, DataProxy<ContentOfTransaction>},
    {"GET", "/foundry-data-proxy/api/dataproxy/datasets/{datasetRid}/views/{branch}/{filePath...}",
     kRead, DataProxy<ContentOfView>},
    {"GET", "/foundry-metadata/api/schemas/datasets/{datasetRid}/branches/{branch}", kRead,
     GetSchema},
    {"POST", "/foundry-metadata/api/schemas/datasets/{datasetRid}/branches/{branch}", kWrite,
     PutSchema},
    {"POST", "/foundry-schema-inference/api/datasets/{datasetRid}/branches/{branch}/schema", kRead,
     InferSchema, Stability::kStable, RouteEffect::kReadOnly},
    {"POST", "/foundry-sql-server/api/queries/execute", kQueryExecute, ExecuteQuery,
     Stability::kStable, RouteEffect::kReadOnly},
    {"GET", "/foundry-sql-server/api/queries/{sqlQueryId}/status", kQueryRead, GetQueryStatus},
    {"GET", "/foundry-sql-server/api/queries/{sqlQueryId}/results", kQueryRead, GetQueryResults},
};

}  // namespace

std::span<const FoundryRoute> DataRoutes() { return kRoutes; }

}  // namespace tarn::server::foundry::internal
