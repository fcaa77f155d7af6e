// /tarn/v1/datasets/{rid}/…: what the Foundry-compatible routes lack.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/base/json_text.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/server/native/dataset_request.h"

namespace tarn::server::native {

namespace {

using dataset::DatasetRid;
using dataset::File;
using dataset::TransactionRid;
using dataset::ViewSelector;
using metastore::SqlTransaction;
using nlohmann::json;

json FilesToJson(const std::vector<File>& files) {
  json list = json::array();
  for (const File& file : files) {
    list.push_back(FileToJson(file));
  }
  return list;
}

Result<http::Response> FindTransactionAt(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(api, context, access::Role::kViewer));
  const std::string at = context.query.Find("at").value_or("");
  const Result<Timestamp> time = ParseTimestamp(at);
  ViewSelector selector;
  const char* kind = "time";
  if (time.ok()) {
    TARN_ASSIGN_OR_RETURN(selector.branch, BranchOf(api, context, rid));
    selector.at = *time;
  } else if (at.empty()) {
    return time.status();
  } else {
    const Result<ViewSelector> named = SelectorOf(api, rid, at);
    if (named.status().reason() == "BranchNotFound") {
      return Status::NotFound(fmt::format("{}: no branch or tag of the dataset, and no ISO-8601 "
                                          "time with a zone such as 2026-01-31T12:00:00Z",
                                          JsonString(at)))
          .WithReason(named.status().reason(), named.status().details());
    }
    TARN_ASSIGN_OR_RETURN(selector, named);
    kind = !selector.end ? "branch" : at.starts_with("ri.") ? "transaction" : "tag";
  }
  TARN_ASSIGN_OR_RETURN(const dataset::FileView view,
                        api.deps.query.datasets.ResolveView(rid, selector));
  if (view.absent()) {
    return Status::NotFound(fmt::format("branch {} had no transaction at {}", selector.branch, at))
        .WithReason("TransactionNotFound");
  }
  return JsonResponse({{"transactionRid", view.end->ToString()}, {"kind", kind}});
}

Result<http::Response> ReadIncrement(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(api, context, access::Role::kViewer));
  std::optional<TransactionRid> since;
  if (const std::optional<std::string> text = context.query.Find("since"); text && !text->empty()) {
    TARN_ASSIGN_OR_RETURN(since, TransactionRid::Parse(*text));
  }
  dataset::IncrementOptions options;
  TARN_ASSIGN_OR_RETURN(options.page_size, PageSizeOf(context));
  options.page_token = context.query.Find("pageToken").value_or("");
  TARN_ASSIGN_OR_RETURN(const std::string branch, BranchOf(api, context, rid));
  TARN_ASSIGN_OR_RETURN(const dataset::IncrementPage page,
                        api.deps.query.datasets.ReadIncrement(rid, branch, since, options));
  json answer = {{"incremental", page.incremental},
                 {"reason", dataset::IncrementReasonName(page.reason)},
                 {"headTransactionRid", RidOrNull(page.head)},
                 {"added", FilesToJson(page.added)},
                 {"changed", FilesToJson(page.changed)},
                 {"removed", FilesToJson(page.removed)},
                 {"removed_by_retention", FilesToJson(page.removed_by_retention)}};
  AddNextPage(page.next_page_token, answer);
  return JsonResponse(answer);
}

Result<http::Response> CompareViews(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(api, context, access::Role::kViewer));
  TARN_ASSIGN_OR_RETURN(const ViewSelector from,
                        SelectorOf(api, rid, context.query.Find("from").value_or("")));
  TARN_ASSIGN_OR_RETURN(const ViewSelector to,
                        SelectorOf(api, rid, context.query.Find("to").value_or("")));
  TARN_ASSIGN_OR_RETURN(const int page_size, PageSizeOf(context));
  TARN_ASSIGN_OR_RETURN(
      const dataset::ComparePage page,
      api.deps.query.datasets.CompareViews(rid, from, to, page_size,
                                           context.query.Find("pageToken").value_or("")));
  json answer = {{"added", json::array()}, {"changed", json::array()}, {"removed", json::array()}};
  for (const dataset::FileDifference& difference : page.differences) {
    if (!difference.before) {
      answer["added"].push_back(FileToJson(*difference.after));
    } else if (!difference.after) {
      answer["removed"].push_back(FileToJson(*difference.before));
    } else {
      answer["changed"].push_back({{"path", difference.path()},
                                   {"before", FileToJson(*difference.before)},
                                   {"after", FileToJson(*difference.after)}});
    }
  }
  AddNextPage(page.next_page_token, answer);
  return JsonResponse(answer);
}

// A transaction, or the newest committed one of a branch.
Result<TransactionRid> HeadOf(NativeApi& api, const DatasetRid& rid, const std::string& text) {
  if (text.starts_with("ri.")) {
    return TransactionRid::Parse(text);
  }
  TARN_ASSIGN_OR_RETURN(const dataset::Branch branch, api.deps.query.datasets.GetBranch(rid, text));
  if (!branch.head) {
    return Status::InvalidArgument(fmt::format("branch {} has no committed transaction", text));
  }
  return *branch.head;
}

// Moves a branch to the transaction named `member` in the body.
template <typename Move>
Result<http::Response> MoveBranch(NativeApi& api, RequestContext& context, const char* member,
                                  const Move& move) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(api, context, access::Role::kEditor));
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const std::string text, RequiredText(body, member));
  TARN_ASSIGN_OR_RETURN(const TransactionRid to, HeadOf(api, rid, text));
  std::optional<dataset::Branch> branch;
  TARN_RETURN_IF_ERROR(ChangeDataset(api, context, rid, access::Role::kEditor, "branch.move",
                                     [&](SqlTransaction& sql) -> Status {
                                       TARN_ASSIGN_OR_RETURN(branch, move(sql, rid, to));
                                       return Status::Ok();
                                     }));
  return JsonResponse({{"name", branch->name}, {"transactionRid", RidOrNull(branch->head)}});
}

Result<http::Response> ResetBranch(NativeApi& api, RequestContext& context) {
  return MoveBranch(api, context, "transactionRid",
                    [&](SqlTransaction& sql, const DatasetRid& rid, const TransactionRid& to) {
                      return api.deps.query.datasets.ResetBranch(sql, rid, context.Path("branch"),
                                                                 to, context.principal.user_id);
                    });
}

Result<http::Response> FastForwardBranch(NativeApi& api, RequestContext& context) {
  return MoveBranch(api, context, "to",
                    [&](SqlTransaction& sql, const DatasetRid& rid, const TransactionRid& to) {
                      return api.deps.query.datasets.FastForwardBranch(
                          sql, rid, context.Path("branch"), to, context.principal.user_id);
                    });
}

constexpr NativeRoute kRoutes[] = {
    {.method = "GET",
     .pattern = "/datasets/{rid}/transactions:at",
     .scope = access::Scope::kDatasetsRead,
     .handler = &FindTransactionAt,
     .summary = "The newest transaction of a branch that was committed at or before a time.",
     .query = "branch fallback at"},
    {.method = "GET",
     .pattern = "/datasets/{rid}/increment",
     .scope = access::Scope::kDatasetsRead,
     .handler = &ReadIncrement,
     .summary =
         "What changed on a branch since a transaction: {incremental, reason, added, changed, "
         "removed, removed_by_retention}.",
     .query = "since branch fallback pageSize pageToken"},
    {.method = "GET",
     .pattern = "/datasets/{rid}/compare",
     .scope = access::Scope::kDatasetsRead,
     .handler = &CompareViews,
     .summary =
         "Files that differ between two branches or transactions: {added, changed, removed}.",
     .query = "from to pageSize pageToken"},
    {.method = "POST",
     .pattern = "/datasets/{rid}/branches/{branch}:reset",
     .scope = access::Scope::kDatasetsWrite,
     .handler = &ResetBranch,
     .summary = "Points a branch at a committed transaction: {transactionRid}.",
     .request = "application/json"},
    {.method = "POST",
     .pattern = "/datasets/{rid}/branches/{branch}:fastForward",
     .scope = access::Scope::kDatasetsWrite,
     .handler = &FastForwardBranch,
     .summary = "Moves a branch to a descendant of its head: {to}.",
     .request = "application/json"},
};

}  // namespace

std::span<const NativeRoute> DatasetRoutes() {
  static const std::vector<NativeRoute> all = [] {
    std::vector<NativeRoute> routes(std::begin(kRoutes), std::end(kRoutes));
    for (const std::span<const NativeRoute> more :
         {DatasetBranchRoutes(), DatasetImportRoutes(), DatasetViewRoutes(),
          DatasetRetentionRoutes(), DatasetSchemaRoutes()}) {
      routes.insert(routes.end(), more.begin(), more.end());
    }
    return routes;
  }();
  return all;
}

}  // namespace tarn::server::native
