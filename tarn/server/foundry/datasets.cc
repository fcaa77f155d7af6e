#include <nlohmann/json.hpp>

#include "tarn/access/audit.h"
#include "tarn/base/json_text.h"
#include "tarn/dataset/errors.h"
#include "tarn/server/foundry/foundry_api.h"
#include "tarn/tree/lookup.h"
#include "tarn/tree/permission.h"

namespace tarn::server::foundry {

using dataset::DatasetRid;
using nlohmann::json;

namespace {

json DatasetJson(const tree::Node& node) {
  return {{"rid", node.rid.ToString()},
          {"name", node.name},
          {"parentFolderRid", node.parent.ToString()}};
}

Status FolderNotFound(std::string_view rid) {
  return Status::NotFound("there is no folder " + JsonString(rid))
      .WithReason("FolderNotFound", JsonObject({{"folderRid", rid}}));
}

/// Who may not write into the folder sees it missing or is told, as it may see it or not.
Status RequireFolder(const FoundryDeps& deps, metastore::SqlTransaction& sql,
                     const RequestContext& context, const Rid& folder, std::string_view name) {
  const Status status =
      tree::Require(sql, deps.authorizer, context.principal, folder,
                    {.role = access::Role::kEditor, .scope = access::Scope::kDatasetsWrite});
  if (status.code() == ErrorCode::kNotFound) {
    return FolderNotFound(folder.ToString());
  }
  if (status.code() == ErrorCode::kPermissionDenied && status.reason() != "ApiUsageDenied") {
    return status.WithReason("CreateDatasetPermissionDenied",
                             JsonObject({{"parentFolderRid", folder.ToString()}, {"name", name}}));
  }
  return status;
}

/// The tree's names for a bad display name and place, in the words that this operation declares.
Status AsDeclared(const Status& status, std::string_view folder, std::string_view name) {
  if (status.reason() == "MissingDisplayName") {
    return status.WithReason("InvalidDisplayName", JsonObject({{"displayName", name}}));
  }
  if (status.code() == ErrorCode::kNotFound && status.reason() == "ResourceNotFound") {
    return FolderNotFound(folder);
  }
  return status;
}

Result<http::Response> Create(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const std::string parent_text, RequiredText(body, "parentFolderRid"));
  TARN_ASSIGN_OR_RETURN(const std::string name, RequiredText(body, "name"));
  const Result<Rid> parent = Rid::Parse(parent_text);
  if (!parent.ok()) {
    return FolderNotFound(parent_text);
  }
  json answer;
  const Status created = deps.database.Write([&](metastore::SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(RequireFolder(deps, sql, context, *parent, name));
    TARN_ASSIGN_OR_RETURN(const dataset::Dataset made,
                          deps.datasets.CreateDataset(sql, {.parent_folder = *parent,
                                                            .name = name,
                                                            .base_uri = {},
                                                            .by = context.principal.user_id}));
    TARN_ASSIGN_OR_RETURN(const tree::Node node, tree::GetNode(sql, made.rid.ToRid()));
    answer = DatasetJson(node);
    return access::AppendAudit(sql, {.id = 0,
                                     .time = deps.clock.Now(),
                                     .user_id = context.principal.user_id,
                                     .token_id = context.principal.token_id,
                                     .action = "dataset.create",
                                     .resource = made.rid.ToString(),
                                     .outcome = access::AuditOutcome::kDone,
                                     .details = {}});
  });
  if (!created.ok()) {
    return AsDeclared(created, parent_text, name);
  }
  return JsonResponse(answer);
}

Result<http::Response> Get(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  json answer;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](metastore::SqlTransaction& sql) -> Status {
    // A Discoverer sees that it exists and its name.
    TARN_RETURN_IF_ERROR(RequireDataset(deps, sql, context, rid, access::Role::kDiscoverer,
                                        {.name = "DatasetNotFound", .parameters = {}}));
    TARN_RETURN_IF_ERROR(StatusOf(deps.datasets.GetDataset(sql, rid)));
    TARN_ASSIGN_OR_RETURN(const tree::Node node, tree::GetNode(sql, rid.ToRid()));
    answer = DatasetJson(node);
    return Status::Ok();
  }));
  return JsonResponse(answer);
}

/// Answers "none" about a dataset that is there: builds and checks run elsewhere.
Result<http::Response> EmptyPage(const FoundryDeps& deps, RequestContext& context,
                                 const char* denial, json data) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_RETURN_IF_ERROR(RequireViewer(
      deps, context, rid, {.name = denial, .parameters = {{"datasetRid", rid.ToString()}}}));
  if (context.query.Find("branchName")) {
    TARN_ASSIGN_OR_RETURN(const std::string branch, BranchNameOf(context));
    TARN_RETURN_IF_ERROR(StatusOf(deps.datasets.GetBranch(rid, branch)));
  }
  return JsonResponse({{"data", std::move(data)}});
}

Result<http::Response> ListSchedules(const FoundryDeps& deps, RequestContext& context) {
  return EmptyPage(deps, context, "GetDatasetSchedulesPermissionDenied", json::array());
}

Result<http::Response> ListJobs(const FoundryDeps& deps, RequestContext& context) {
  return EmptyPage(deps, context, "GetDatasetJobsPermissionDenied", json::array());
}

Result<http::Response> ListHealthChecks(const FoundryDeps& deps, RequestContext& context) {
  return EmptyPage(deps, context, "GetDatasetHealthChecksPermissionDenied", json::array());
}

Result<http::Response> ListHealthCheckReports(const FoundryDeps& deps, RequestContext& context) {
  return EmptyPage(deps, context, "GetDatasetHealthCheckReportsPermissionDenied", json::object());
}

Result<http::Response> ListTransactions(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_RETURN_IF_ERROR(
      RequireViewer(deps, context, rid,
                    {.name = "GetBranchTransactionHistoryPermissionDenied",
                     .parameters = {{"datasetRid", rid.ToString()}, {"branchName", ""}}}));
  TARN_ASSIGN_OR_RETURN(const int page_size, PageSizeOf(context, 1000, 1000));
  TARN_ASSIGN_OR_RETURN(const dataset::TransactionPage page,
                        deps.datasets.ListTransactions(rid, page_size, PageTokenOf(context)));
  json data = json::array();
  for (const dataset::Transaction& transaction : page.transactions) {
    data.push_back(ToJson(transaction));
  }
  return JsonResponse(PageJson(std::move(data), page.next_page_token));
}

constexpr access::Scope kRead = access::Scope::kDatasetsRead;
constexpr access::Scope kWrite = access::Scope::kDatasetsWrite;

constexpr FoundryRoute kRoutes[] = {
    {"POST", "/datasets", kWrite, Create},
    {"GET", "/datasets/{datasetRid}", kRead, Get},
    {"GET", "/datasets/{datasetRid}/transactions", kRead, ListTransactions, Stability::kPreview},
    {"GET", "/datasets/{datasetRid}/getSchedules", kRead, ListSchedules},
    {"POST", "/datasets/{datasetRid}/jobs", kRead, ListJobs, Stability::kPreview,
     RouteEffect::kReadOnly},
    {"GET", "/datasets/{datasetRid}/getHealthChecks", kRead, ListHealthChecks, Stability::kPreview},
    {"GET", "/datasets/{datasetRid}/getHealthCheckReports", kRead, ListHealthCheckReports,
     Stability::kPreview},
};

}  // namespace

std::span<const FoundryRoute> DatasetRoutes() { return kRoutes; }

}  // namespace tarn::server::foundry
