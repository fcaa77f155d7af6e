#include <nlohmann/json.hpp>

#include "tarn/dataset/errors.h"
#include "tarn/server/foundry/foundry_api.h"

namespace tarn::server::foundry {

using dataset::DatasetRid;
using nlohmann::json;

namespace {

Denial BranchDenial(const char* name, const DatasetRid& dataset, std::string_view branch) {
  return {.name = name,
          .parameters = {{"datasetRid", dataset.ToString()}, {"branchName", std::string(branch)}}};
}

Result<http::Response> Create(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const std::string name, RequiredText(body, "name"));
  TARN_ASSIGN_OR_RETURN(const std::optional<std::string> from,
                        OptionalText(body, "transactionRid"));
  dataset::Branch branch;
  TARN_RETURN_IF_ERROR(Mutate(
      deps, context, rid, BranchDenial("CreateBranchPermissionDenied", rid, name), "branch.create",
      metastore::Durability::kDurable, [&](metastore::SqlTransaction& sql) -> Status {
        dataset::CreateBranchOptions options{
            .from_branch = {}, .from_transaction = {}, .by = context.principal.user_id};
        if (from) {
          TARN_ASSIGN_OR_RETURN(options.from_transaction, TransactionOf(rid, *from));
        }
        TARN_ASSIGN_OR_RETURN(branch, deps.datasets.CreateBranch(sql, rid, name, options));
        return Status::Ok();
      }));
  return JsonResponse(ToJson(branch));
}

Result<http::Response> Get(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_RETURN_IF_ERROR(
      RequireViewer(deps, context, rid, BranchDenial("GetBranchPermissionDenied", rid, "")));
  TARN_ASSIGN_OR_RETURN(const dataset::Branch branch,
                        deps.datasets.GetBranch(rid, context.Path("branchName")));
  return JsonResponse(ToJson(branch));
}

Result<http::Response> List(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_RETURN_IF_ERROR(
      RequireViewer(deps, context, rid, BranchDenial("ListBranchesPermissionDenied", rid, "")));
  TARN_ASSIGN_OR_RETURN(const int page_size, PageSizeOf(context, 1000, 1000));
  TARN_ASSIGN_OR_RETURN(const dataset::BranchPage page,
                        deps.datasets.ListBranches(rid, page_size, PageTokenOf(context)));
  json data = json::array();
  for (const dataset::Branch& branch : page.branches) {
    data.push_back(ToJson(branch));
  }
  return JsonResponse(PageJson(std::move(data), page.next_page_token));
}

Result<http::Response> Delete(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  const std::string& name = context.Path("branchName");
  TARN_RETURN_IF_ERROR(Mutate(
      deps, context, rid, BranchDenial("DeleteBranchPermissionDenied", rid, name), "branch.delete",
      metastore::Durability::kDurable,
      [&](metastore::SqlTransaction& sql) { return deps.datasets.DeleteBranch(sql, rid, name); }));
  return NoContent();
}

Result<http::Response> ListTransactions(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  const std::string& name = context.Path("branchName");
  TARN_RETURN_IF_ERROR(RequireViewer(
      deps, context, rid, BranchDenial("GetBranchTransactionHistoryPermissionDenied", rid, name)));
  TARN_ASSIGN_OR_RETURN(const int page_size, PageSizeOf(context, 20, 50));
  TARN_ASSIGN_OR_RETURN(
      const dataset::TransactionPage page,
      deps.datasets.ListBranchTransactions(rid, name, page_size, PageTokenOf(context)));
  json data = json::array();
  for (const dataset::Transaction& transaction : page.transactions) {
    data.push_back(ToJson(transaction));
  }
  return JsonResponse(PageJson(std::move(data), page.next_page_token));
}

constexpr access::Scope kRead = access::Scope::kDatasetsRead;
constexpr access::Scope kWrite = access::Scope::kDatasetsWrite;

constexpr FoundryRoute kRoutes[] = {
    {"POST", "/datasets/{datasetRid}/branches", kWrite, Create},
    {"GET", "/datasets/{datasetRid}/branches", kRead, List},
    {"GET", "/datasets/{datasetRid}/branches/{branchName}", kRead, Get},
    {"DELETE", "/datasets/{datasetRid}/branches/{branchName}", kWrite, Delete},
    {"GET", "/datasets/{datasetRid}/branches/{branchName}/transactions", kRead, ListTransactions,
     Stability::kPreview},
};

}  // namespace

std::span<const FoundryRoute> BranchRoutes() { return kRoutes; }

}  // namespace tarn::server::foundry
