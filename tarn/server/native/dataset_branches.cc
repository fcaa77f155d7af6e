// /tarn/v1/datasets/{rid}/branches…, /tags, /history: branches beyond what /api/v2 offers.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/dataset/branching/branch_rules.h"
#include "tarn/dataset/branching/history.h"
#include "tarn/dataset/branching/merge.h"
#include "tarn/dataset/branching/tag.h"
#include "tarn/server/native/dataset_request.h"

namespace tarn::server::native {

namespace {

using dataset::DatasetRid;
using dataset::TransactionRid;
using dataset::branching::MergeSide;
using metastore::SqlTransaction;
using nlohmann::json;

json TagToJson(const dataset::branching::Tag& tag) {
  return {{"name", tag.name},
          {"transactionRid", tag.transaction.ToString()},
          {"createdTime", FormatTimestamp(tag.created_at)},
          {"createdBy", tag.created_by}};
}

json BranchToJson(const dataset::Branch& branch) {
  return {{"name", branch.name},
          {"transactionRid", RidOrNull(branch.transaction())},
          {"parent", branch.parent ? json(*branch.parent) : json()}};
}

// Starts at a branch, with its OPEN transaction and its schemas, at a transaction, or at nothing.
Result<http::Response> CreateBranch(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(api, context, access::Role::kEditor));
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const std::string name, RequiredText(body, "name"));
  TARN_ASSIGN_OR_RETURN(const std::string from_branch, TextMember(body, "fromBranch"));
  TARN_ASSIGN_OR_RETURN(const std::string from_transaction, TextMember(body, "transactionRid"));
  dataset::CreateBranchOptions options;
  options.by = context.principal.user_id;
  if (!from_branch.empty()) {
    options.from_branch = from_branch;
  }
  if (!from_transaction.empty()) {
    TARN_ASSIGN_OR_RETURN(options.from_transaction, TransactionRid::Parse(from_transaction));
  }
  std::optional<dataset::Branch> branch;
  TARN_RETURN_IF_ERROR(
      ChangeDataset(api, context, rid, access::Role::kEditor, "branch.create",
                    [&](SqlTransaction& sql) -> Status {
                      TARN_ASSIGN_OR_RETURN(
                          branch, api.deps.query.datasets.CreateBranch(sql, rid, name, options));
                      return Status::Ok();
                    }));
  return JsonResponse(BranchToJson(*branch));
}

Result<MergeSide> SideOf(const json& side, const std::string& what) {
  if (side == "source") {
    return MergeSide::kSource;
  }
  if (side == "target") {
    return MergeSide::kTarget;
  }
  return Status::InvalidArgument(
      fmt::format("{}: a choice is source or target, found {}", what, side.dump()));
}

Status ReadChoices(const json& body, dataset::branching::MergeRequest& request) {
  const auto choices = body.find("choices");
  if (choices != body.end() && !choices->is_null()) {
    if (!choices->is_object()) {
      return Status::InvalidArgument(fmt::format(
          "choices must be an object of path and side, found {}", choices->type_name()));
    }
    for (const auto& [path, side] : choices->items()) {
      TARN_ASSIGN_OR_RETURN(request.choices[path], SideOf(side, path));
    }
  }
  const auto otherwise = body.find("otherwise");
  if (otherwise != body.end() && !otherwise->is_null()) {
    TARN_ASSIGN_OR_RETURN(request.otherwise, SideOf(*otherwise, "otherwise"));
  }
  return Status::Ok();
}

Result<http::Response> MergeBranch(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(api, context, access::Role::kEditor));
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  dataset::branching::MergeRequest request;
  request.dataset = rid;
  request.target = context.Path("branch");
  TARN_ASSIGN_OR_RETURN(const std::string source, RequiredText(body, "source"));
  TARN_ASSIGN_OR_RETURN(request.source, SelectorOf(api, rid, source));
  TARN_RETURN_IF_ERROR(ReadChoices(body, request));
  TARN_ASSIGN_OR_RETURN(const bool dry_run, FlagMember(body, "dryRun", false));
  request.mode =
      dry_run ? dataset::branching::MergeMode::kDryRun : dataset::branching::MergeMode::kDo;
  request.now = api.clock().Now();
  request.by = context.principal.user_id;
  TARN_ASSIGN_OR_RETURN(
      const dataset::branching::MergeReport report,
      dataset::branching::MergeBranch(api.database(), api.deps.query.datasets, request));
  if (!dry_run) {
    TARN_RETURN_IF_ERROR(AuditDataset(api, context, rid.ToString(), "branch.merge"));
  }
  return JsonResponse({{"outcome", dataset::branching::MergeOutcomeName(report.outcome)},
                       {"transactionRid", RidOrNull(report.head)},
                       {"baseTransactionRid", RidOrNull(report.base)},
                       {"put", report.put},
                       {"removed", report.removed},
                       {"conflicts", report.conflicts},
                       {"unresolved", report.unresolved}});
}

Result<http::Response> ProtectBranch(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(api, context, access::Role::kOwner));
  TARN_ASSIGN_OR_RETURN(const json body, OptionalBody(context));
  TARN_ASSIGN_OR_RETURN(const bool is_protected, FlagMember(body, "protected", true));
  const std::string& branch = context.Path("branch");
  TARN_RETURN_IF_ERROR(ChangeDataset(
      api, context, rid, access::Role::kOwner, "branch.protect", [&](SqlTransaction& sql) {
        return dataset::branching::SetProtection(sql, rid, branch,
                                                 is_protected
                                                     ? dataset::branching::Protection::kProtected
                                                     : dataset::branching::Protection::kNone);
      }));
  return JsonResponse({{"name", branch}, {"protected", is_protected}});
}

Result<http::Response> CreateTag(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(api, context, access::Role::kEditor));
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  dataset::branching::CreateTagRequest request;
  request.dataset = rid;
  request.now = api.clock().Now();
  request.by = context.principal.user_id;
  TARN_ASSIGN_OR_RETURN(request.name, RequiredText(body, "name"));
  TARN_ASSIGN_OR_RETURN(const std::string transaction, RequiredText(body, "transactionRid"));
  TARN_ASSIGN_OR_RETURN(request.transaction, TransactionRid::Parse(transaction));
  json answer;
  TARN_RETURN_IF_ERROR(ChangeDataset(
      api, context, rid, access::Role::kEditor, "tag.create", [&](SqlTransaction& sql) -> Status {
        TARN_ASSIGN_OR_RETURN(const dataset::branching::Tag tag,
                              dataset::branching::CreateTag(sql, request));
        answer = TagToJson(tag);
        return Status::Ok();
      }));
  return JsonResponse(answer);
}

Result<http::Response> ListTags(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(api, context, access::Role::kViewer));
  TARN_ASSIGN_OR_RETURN(const int page_size, PageSizeOf(context, 1000));
  json answer = {{"data", json::array()}};
  TARN_RETURN_IF_ERROR(api.database().Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const dataset::branching::TagPage page,
                          dataset::branching::ListTags(
                              sql, rid, page_size, context.query.Find("pageToken").value_or("")));
    for (const dataset::branching::Tag& tag : page.tags) {
      answer["data"].push_back(TagToJson(tag));
    }
    AddNextPage(page.next_page_token, answer);
    return Status::Ok();
  }));
  return JsonResponse(answer);
}

Result<http::Response> DeleteTag(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(api, context, access::Role::kEditor));
  TARN_RETURN_IF_ERROR(ChangeDataset(
      api, context, rid, access::Role::kEditor, "tag.delete", [&](SqlTransaction& sql) {
        return dataset::branching::DeleteTag(sql, rid, context.Path("tag"));
      }));
  return NoContent();
}

Result<http::Response> ListHistory(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(api, context, access::Role::kViewer));
  TARN_ASSIGN_OR_RETURN(const int page_size, PageSizeOf(context, 1000));
  TARN_ASSIGN_OR_RETURN(
      const dataset::branching::HistoryPage page,
      dataset::branching::ListHistory(api.database(), api.deps.query.datasets, rid, page_size,
                                      context.query.Find("pageToken").value_or("")));
  json answer = {{"data", json::array()}};
  for (const dataset::branching::HistoryEntry& entry : page.entries) {
    json item = TransactionToJson(entry.transaction);
    item["mergedRid"] = RidOrNull(entry.merged);
    item["branches"] = entry.branches;
    item["tags"] = entry.tags;
    item["dataRemoved"] = entry.swept;
    item["sweepTime"] = entry.sweep_at ? json(FormatTimestamp(*entry.sweep_at)) : json();
    answer["data"].push_back(std::move(item));
  }
  AddNextPage(page.next_page_token, answer);
  return JsonResponse(answer);
}

constexpr NativeRoute kRoutes[] = {
    {.method = "POST",
     .pattern = "/datasets/{rid}/branches",
     .scope = access::Scope::kDatasetsWrite,
     .handler = &CreateBranch,
     .summary = "Creates a branch: {name, fromBranch? or transactionRid?}.",
     .request = "application/json"},
    {.method = "POST",
     .pattern = "/datasets/{rid}/branches/{branch}:merge",
     .scope = access::Scope::kDatasetsWrite,
     .handler = &MergeBranch,
     .summary = "Merges a branch or transaction into a branch, three-way by path: {source, "
                "choices?: {path: source or target}, otherwise?, dryRun?}.",
     .request = "application/json"},
    {.method = "POST",
     .pattern = "/datasets/{rid}/branches/{branch}:protect",
     .scope = access::Scope::kDatasetsWrite,
     .handler = &ProtectBranch,
     .summary = "Keeps a branch from being deleted and reset, or no longer: {protected?}.",
     .request = "application/json"},
    {.method = "POST",
     .pattern = "/datasets/{rid}/tags",
     .scope = access::Scope::kDatasetsWrite,
     .handler = &CreateTag,
     .summary = "Names a committed transaction for good: {name, transactionRid}.",
     .request = "application/json"},
    {.method = "GET",
     .pattern = "/datasets/{rid}/tags",
     .scope = access::Scope::kDatasetsRead,
     .handler = &ListTags,
     .summary = "Tags, by name.",
     .query = "pageSize pageToken"},
    {.method = "DELETE",
     .pattern = "/datasets/{rid}/tags/{tag}",
     .scope = access::Scope::kDatasetsWrite,
     .handler = &DeleteTag,
     .summary = "Removes a tag; its transaction stays.",
     .answer = ""},
    {.method = "GET",
     .pattern = "/datasets/{rid}/history",
     .scope = access::Scope::kDatasetsRead,
     .handler = &ListHistory,
     .summary = "All transactions, newest first, with parents, merges, branches and tags.",
     .query = "pageSize pageToken"},
};

}  // namespace

std::span<const NativeRoute> DatasetBranchRoutes() { return kRoutes; }

}  // namespace tarn::server::native
