#include <nlohmann/json.hpp>

#include "tarn/base/json_text.h"
#include "tarn/dataset/errors.h"
#include "tarn/server/foundry/foundry_api.h"

namespace tarn::server::foundry {

using dataset::DatasetRid;
using dataset::TransactionRid;
using nlohmann::json;

namespace {

Denial TransactionDenial(const char* name, const DatasetRid& dataset, std::string_view rid) {
  return {.name = name,
          .parameters = {{"datasetRid", dataset.ToString()}, {"transactionRid", std::string(rid)}}};
}

Result<http::Response> Create(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_ASSIGN_OR_RETURN(const std::string branch, BranchNameOf(context));
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const std::string type_name, RequiredText(body, "transactionType"));
  TARN_ASSIGN_OR_RETURN(const dataset::TransactionType type,
                        dataset::ParseTransactionType(type_name));
  const Denial denial = {.name = "CreateTransactionPermissionDenied",
                         .parameters = {{"datasetRid", rid.ToString()}, {"branchName", branch}}};
  dataset::Transaction started;
  // Lazy: an OPEN transaction that a power cut takes is found missing, nothing visible is lost.
  TARN_RETURN_IF_ERROR(
      Mutate(deps, context, rid, denial, "transaction.start", metastore::Durability::kLazy,
             [&](metastore::SqlTransaction& sql) -> Status {
               TARN_RETURN_IF_ERROR(RefuseView(sql, rid));
               TARN_ASSIGN_OR_RETURN(
                   started, deps.datasets.StartTransaction(
                                sql, rid, branch, {.type = type, .by = context.principal.user_id}));
               return Status::Ok();
             }));
  return JsonResponse(ToJson(started));
}

Result<http::Response> Get(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  const std::string& text = context.Path("transactionRid");
  TARN_RETURN_IF_ERROR(RequireViewer(
      deps, context, rid, TransactionDenial("GetTransactionPermissionDenied", rid, text)));
  TARN_ASSIGN_OR_RETURN(const TransactionRid transaction, TransactionOf(rid, text));
  TARN_ASSIGN_OR_RETURN(const dataset::Transaction found,
                        deps.datasets.GetTransaction(rid, transaction));
  return JsonResponse(ToJson(found));
}

Result<http::Response> Commit(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  const std::string& text = context.Path("transactionRid");
  dataset::Transaction committed;
  TARN_RETURN_IF_ERROR(
      Mutate(deps, context, rid, TransactionDenial("CommitTransactionPermissionDenied", rid, text),
             "transaction.commit", metastore::Durability::kDurable,
             [&](metastore::SqlTransaction& sql) -> Status {
               TARN_ASSIGN_OR_RETURN(const TransactionRid transaction, TransactionOf(rid, text));
               dataset::CommitOptions options;
               options.by = context.principal.user_id;
               TARN_ASSIGN_OR_RETURN(
                   committed, deps.datasets.CommitTransaction(sql, rid, transaction, options));
               return Status::Ok();
             }));
  return JsonResponse(ToJson(committed));
}

Result<http::Response> Abort(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  const std::string& text = context.Path("transactionRid");
  dataset::Transaction aborted;
  TARN_RETURN_IF_ERROR(Mutate(
      deps, context, rid, TransactionDenial("AbortTransactionPermissionDenied", rid, text),
      "transaction.abort", metastore::Durability::kDurable,
      [&](metastore::SqlTransaction& sql) -> Status {
        TARN_ASSIGN_OR_RETURN(const TransactionRid transaction, TransactionOf(rid, text));
        TARN_ASSIGN_OR_RETURN(aborted, deps.datasets.AbortTransaction(sql, rid, transaction,
                                                                      context.principal.user_id));
        return Status::Ok();
      }));
  return JsonResponse(ToJson(aborted));
}

/// No build or job made the transaction: 204 tells the clients so.
Result<http::Response> NoBuild(const FoundryDeps& deps, RequestContext& context,
                               const char* denial) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  const std::string& text = context.Path("transactionRid");
  TARN_RETURN_IF_ERROR(RequireViewer(deps, context, rid, TransactionDenial(denial, rid, text)));
  TARN_ASSIGN_OR_RETURN(const TransactionRid transaction, TransactionOf(rid, text));
  TARN_RETURN_IF_ERROR(StatusOf(deps.datasets.GetTransaction(rid, transaction)));
  return NoContent();
}

Result<http::Response> Build(const FoundryDeps& deps, RequestContext& context) {
  return NoBuild(deps, context, "BuildTransactionPermissionDenied");
}

Result<http::Response> Job(const FoundryDeps& deps, RequestContext& context) {
  return NoBuild(deps, context, "JobTransactionPermissionDenied");
}

constexpr access::Scope kRead = access::Scope::kDatasetsRead;
constexpr access::Scope kWrite = access::Scope::kDatasetsWrite;

constexpr FoundryRoute kRoutes[] = {
    {"POST", "/datasets/{datasetRid}/transactions", kWrite, Create},
    {"GET", "/datasets/{datasetRid}/transactions/{transactionRid}", kRead, Get},
    {"POST", "/datasets/{datasetRid}/transactions/{transactionRid}/commit", kWrite, Commit},
    {"POST", "/datasets/{datasetRid}/transactions/{transactionRid}/abort", kWrite, Abort},
    {"GET", "/datasets/{datasetRid}/transactions/{transactionRid}/build", kRead, Build,
     Stability::kPreview},
    {"GET", "/datasets/{datasetRid}/transactions/{transactionRid}/job", kRead, Job,
     Stability::kPreview},
};

}  // namespace

std::span<const FoundryRoute> TransactionRoutes() { return kRoutes; }

}  // namespace tarn::server::foundry
