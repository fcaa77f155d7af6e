// /tarn/v1/retention…, /sweep:run, /datasets/{rid}/retention…: what goes, when and why.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/dataset/retention/explain.h"
#include "tarn/dataset/retention/policy_store.h"
#include "tarn/dataset/retention/retention_run.h"
#include "tarn/dataset/retention/sweep.h"
#include "tarn/server/native/dataset_request.h"

namespace tarn::server::native {

namespace {

using dataset::DatasetRid;
using dataset::TransactionRid;
using metastore::SqlTransaction;
using nlohmann::json;
namespace retention = dataset::retention;

retention::RetentionDeps DepsOf(NativeApi& api) {
  return {api.database(), api.deps.query.datasets, api.clock()};
}

Status RequireAdminNow(NativeApi& api, const RequestContext& context) {
  return api.database().Read([&](SqlTransaction& sql) { return RequireAdmin(api, sql, context); });
}

json PolicyToJson(const retention::StoredPolicy& stored) {
  json policy = json::parse(retention::FormatPolicy(stored.policy));
  policy["putTime"] = FormatTimestamp(stored.put_at);
  policy["putBy"] = stored.put_by;
  return policy;
}

json PoliciesToJson(const std::vector<retention::StoredPolicy>& policies) {
  json data = json::array();
  for (const retention::StoredPolicy& stored : policies) {
    data.push_back(PolicyToJson(stored));
  }
  return {{"data", std::move(data)}};
}

Result<http::Response> ListPolicies(NativeApi& api, RequestContext& context) {
  json answer;
  TARN_RETURN_IF_ERROR(api.database().Read([&](SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(RequireAdmin(api, sql, context));
    TARN_ASSIGN_OR_RETURN(const auto policies, retention::ListPolicies(sql));
    answer = PoliciesToJson(policies);
    return Status::Ok();
  }));
  return JsonResponse(answer);
}

Result<http::Response> PutPolicy(NativeApi& api, RequestContext& context) {
  TARN_RETURN_IF_ERROR(RequireAdminNow(api, context));
  TARN_ASSIGN_OR_RETURN(json body, ReadJson(context));
  if (body.is_object() && !body.contains("name")) {
    body["name"] = context.Path("name");
  }
  TARN_ASSIGN_OR_RETURN(const retention::RetentionPolicy policy,
                        retention::ParsePolicy(body.dump()));
  if (policy.name != context.Path("name")) {
    return Status::InvalidArgument(
        fmt::format("the policy is named {} in its path and {} in its "
                    "body",
                    context.Path("name"), policy.name));
  }
  TARN_RETURN_IF_ERROR(api.database().Write([&](SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(RequireAdmin(api, sql, context));
    return retention::PutPolicy(
        sql, {.policy = policy, .now = api.clock().Now(), .by = context.principal.user_id});
  }));
  TARN_RETURN_IF_ERROR(AuditDataset(api, context, policy.name, "retention.put"));
  return JsonResponse(json::parse(retention::FormatPolicy(policy)));
}

Result<http::Response> DeletePolicy(NativeApi& api, RequestContext& context) {
  TARN_RETURN_IF_ERROR(api.database().Write([&](SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(RequireAdmin(api, sql, context));
    return retention::DeletePolicy(sql, context.Path("name"));
  }));
  TARN_RETURN_IF_ERROR(AuditDataset(api, context, context.Path("name"), "retention.delete"));
  return NoContent();
}

json MarksToJson(const std::vector<retention::MarkEntry>& marks) {
  json list = json::array();
  for (const retention::MarkEntry& mark : marks) {
    const char* const change = mark.change == retention::MarkChange::kMarked    ? "marked"
                               : mark.change == retention::MarkChange::kWaiting ? "waiting"
                                                                                : "unmarked";
    list.push_back({{"datasetRid", mark.dataset.ToString()},
                    {"transactionRid", mark.transaction.ToString()},
                    {"change", change},
                    {"policy", mark.policy},
                    {"sweepTime", FormatTimestamp(mark.sweep_at)}});
  }
  return list;
}

Result<http::Response> RunRetention(NativeApi& api, RequestContext& context) {
  TARN_RETURN_IF_ERROR(RequireAdminNow(api, context));
  TARN_ASSIGN_OR_RETURN(const json body, OptionalBody(context));
  TARN_ASSIGN_OR_RETURN(const bool dry_run, FlagMember(body, "dryRun", false));
  retention::RunOptions options;
  options.mode = dry_run ? retention::RunMode::kDryRun : retention::RunMode::kDo;
  options.stop = [stop = context.http.stop] { return stop.stop_requested(); };
  options.by = context.principal.user_id;
  TARN_ASSIGN_OR_RETURN(const retention::RetentionReport report,
                        retention::RunRetention(DepsOf(api), options));
  if (!dry_run) {
    TARN_RETURN_IF_ERROR(AuditDataset(api, context, "retention", "retention.run"));
  }
  json removals = json::array();
  for (const retention::RemovalEntry& entry : report.removals) {
    removals.push_back({{"datasetRid", entry.dataset.ToString()},
                        {"branch", entry.branch},
                        {"policy", entry.policy},
                        {"files", entry.files},
                        {"busy", entry.busy}});
  }
  return JsonResponse({{"dryRun", dry_run},
                       {"datasets", report.datasets},
                       {"transactions", report.transactions},
                       {"marked", report.marked},
                       {"waiting", report.waiting},
                       {"unmarked", report.unmarked},
                       {"filesRemoved", report.files_removed},
                       {"stopped", report.stopped},
                       {"marks", MarksToJson(report.marks)},
                       {"removals", std::move(removals)}});
}

Result<http::Response> RunSweep(NativeApi& api, RequestContext& context) {
  TARN_RETURN_IF_ERROR(RequireAdminNow(api, context));
  TARN_ASSIGN_OR_RETURN(const json body, OptionalBody(context));
  TARN_ASSIGN_OR_RETURN(const bool dry_run, FlagMember(body, "dryRun", false));
  retention::SweepOptions options;
  options.mode = dry_run ? retention::RunMode::kDryRun : retention::RunMode::kDo;
  options.stop = [stop = context.http.stop] { return stop.stop_requested(); };
  TARN_ASSIGN_OR_RETURN(
      const retention::SweepReport report,
      retention::RunSweep(DepsOf(api), api.deps.query.catalog.deps().warehouse, options));
  if (!dry_run) {
    TARN_RETURN_IF_ERROR(AuditDataset(api, context, "sweep", "sweep.run"));
  }
  json entries = json::array();
  for (const retention::SweepEntry& entry : report.entries) {
    entries.push_back({{"key", entry.key}, {"sizeBytes", entry.size_bytes}});
  }
  return JsonResponse({{"dryRun", dry_run},
                       {"condemned", report.condemned},
                       {"unmarked", report.unmarked},
                       {"datasets", report.datasets},
                       {"datasetsElsewhere", report.datasets_elsewhere},
                       {"objects", report.objects},
                       {"tooYoung", report.too_young},
                       {"removed", report.removed},
                       {"removedBytes", report.removed_bytes},
                       {"stopped", report.stopped},
                       {"entries", std::move(entries)}});
}

Result<http::Response> ListDatasetPolicies(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(api, context, access::Role::kViewer));
  json answer;
  TARN_RETURN_IF_ERROR(api.database().Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const auto policies, retention::PoliciesOf(sql, rid));
    answer = PoliciesToJson(policies);
    return Status::Ok();
  }));
  return JsonResponse(answer);
}

Result<http::Response> ExplainFile(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(api, context, access::Role::kViewer));
  retention::ExplainRequest request{
      .dataset = rid, .transaction = {}, .path = context.query.Find("path").value_or("")};
  const std::string transaction = context.query.Find("transactionRid").value_or("");
  if (transaction.empty()) {
    dataset::ViewSelector selector;
    TARN_ASSIGN_OR_RETURN(selector.branch, BranchOf(api, context, rid));
    TARN_ASSIGN_OR_RETURN(const dataset::FileView view,
                          api.deps.query.datasets.ResolveView(rid, selector));
    if (view.absent()) {
      return Status::NotFound(fmt::format("branch {} has no transaction", selector.branch))
          .WithReason("TransactionNotFound");
    }
    request.transaction = *view.end;
  } else {
    TARN_ASSIGN_OR_RETURN(request.transaction, TransactionRid::Parse(transaction));
  }
  TARN_ASSIGN_OR_RETURN(const retention::Explanation explanation,
                        retention::ExplainFile(DepsOf(api), request));
  json examples = json::array();
  for (const TransactionRid& example : explanation.examples) {
    examples.push_back(example.ToString());
  }
  json marks = json::array();
  for (const retention::FileMark& mark : explanation.marks) {
    marks.push_back({{"transactionRid", mark.transaction.ToString()},
                     {"policy", mark.policy},
                     {"sweepTime", FormatTimestamp(mark.sweep_at)}});
  }
  return JsonResponse({{"file", FileToJson(explanation.file)},
                       {"fate", retention::FileFateName(explanation.fate)},
                       {"branches", explanation.branches},
                       {"tags", explanation.tags},
                       {"views", explanation.views},
                       {"transactions", std::move(examples)},
                       {"marks", std::move(marks)}});
}

Result<http::Response> Unmark(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(api, context, access::Role::kOwner));
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const std::string text, RequiredText(body, "transactionRid"));
  TARN_ASSIGN_OR_RETURN(const TransactionRid transaction, TransactionRid::Parse(text));
  TARN_RETURN_IF_ERROR(ChangeDataset(
      api, context, rid, access::Role::kOwner, "retention.unmark", [&](SqlTransaction& sql) {
        return retention::Unmark(sql, {.dataset = rid,
                                       .transaction = transaction,
                                       .now = api.clock().Now(),
                                       .by = context.principal.user_id});
      }));
  return JsonResponse({{"transactionRid", transaction.ToString()}, {"kept", true}});
}

constexpr NativeRoute kRoutes[] = {
    {.method = "GET",
     .pattern = "/retention/policies",
     .scope = access::Scope::kAdminRead,
     .handler = &ListPolicies,
     .summary = "Retention policies, by name."},
    {.method = "PUT",
     .pattern = "/retention/policies/{name}",
     .scope = access::Scope::kAdminWrite,
     .handler = &PutPolicy,
     .summary = "Makes or replaces a policy: {datasets, transactions, grace?, latestView?}.",
     .request = "application/json"},
    {.method = "DELETE",
     .pattern = "/retention/policies/{name}",
     .scope = access::Scope::kAdminWrite,
     .handler = &DeletePolicy,
     .summary = "Removes a policy and its marks.",
     .answer = ""},
    {.method = "POST",
     .pattern = "/retention:run",
     .scope = access::Scope::kAdminWrite,
     .handler = &RunRetention,
     .summary = "Marks what policies select: {dryRun?}; a report of marks and removals."},
    {.method = "POST",
     .pattern = "/sweep:run",
     .scope = access::Scope::kAdminWrite,
     .handler = &RunSweep,
     .summary = "Removes bytes that no readable view shows: {dryRun?}; a report of objects."},
    {.method = "GET",
     .pattern = "/datasets/{rid}/retention",
     .scope = access::Scope::kDatasetsRead,
     .handler = &ListDatasetPolicies,
     .summary = "The policies that apply to a dataset."},
    {.method = "GET",
     .pattern = "/datasets/{rid}/retention:explain",
     .scope = access::Scope::kDatasetsRead,
     .handler = &ExplainFile,
     .summary = "Why a file's bytes are kept, or when they go: {fate, branches, tags, views, "
                "marks}.",
     .query = "path transactionRid branch fallback"},
    {.method = "POST",
     .pattern = "/datasets/{rid}/retention:unmark",
     .scope = access::Scope::kDatasetsWrite,
     .handler = &Unmark,
     .summary = "Takes the mark off a transaction and keeps it: {transactionRid}.",
     .request = "application/json"},
};

}  // namespace

std::span<const NativeRoute> DatasetRetentionRoutes() { return kRoutes; }

}  // namespace tarn::server::native
