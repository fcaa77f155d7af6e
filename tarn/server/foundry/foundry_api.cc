#include "tarn/server/foundry/foundry_api.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "tarn/access/audit.h"
#include "tarn/base/json_text.h"
#include "tarn/dataset/errors.h"
#include "tarn/tree/permission.h"

namespace tarn::server::foundry {

using dataset::DatasetRid;
using dataset::TransactionRid;
using nlohmann::json;

namespace {

Status UnknownDataset(std::string_view text) {
  return Status::NotFound("there is no dataset " + JsonString(text))
      .WithReason("DatasetNotFound", JsonObject({{"datasetRid", text}}));
}

Status Denied(const Denial& denial, const Status& cause) {
  json parameters = json::object();
  for (const auto& [name, value] : denial.parameters) {
    parameters[std::string(name)] = value;
  }
  return cause.WithReason(denial.name,
                          parameters.dump(-1, ' ', false, json::error_handler_t::replace));
}

access::AuditRecord AuditOf(const FoundryDeps& deps, const RequestContext& context,
                            const DatasetRid& dataset, std::string_view action,
                            access::AuditOutcome outcome) {
  return {.id = 0,
          .time = deps.clock.Now(),
          .user_id = context.principal.user_id,
          .token_id = context.principal.token_id,
          .action = std::string(action),
          .resource = dataset.ToString(),
          .outcome = outcome,
          .details = JsonObject({{"requestId", context.request_id}})};
}

Result<http::Response> RunPreview(FoundryHandler handler, const FoundryDeps& deps,
                                  RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const std::optional<bool> preview, QueryBool(context, "preview"));
  if (!preview.value_or(false)) {
    return Status::InvalidArgument("this route is in preview: add ?preview=true")
        .WithReason("ApiFeaturePreviewUsageOnly");
  }
  return handler(deps, context);
}

}  // namespace

Status AddFoundryRoutes(Router& router, const FoundryDeps& deps) {
  for (const std::span<const FoundryRoute> routes :
       {DatasetRoutes(), BranchRoutes(), TransactionRoutes(), FileRoutes(), SchemaRoutes()}) {
    for (const FoundryRoute& route : routes) {
      TARN_RETURN_IF_ERROR(
          router.Add({.method = route.method,
                      .pattern = "/api/v2" + std::string(route.pattern),
                      .scopes = {route.scope},
                      .handler = [deps, &route](RequestContext& context) -> Result<http::Response> {
                        return route.stability == Stability::kPreview
                                   ? RunPreview(route.handler, deps, context)
                                   : route.handler(deps, context);
                      },
                      .access = RouteAccess::kBearer,
                      .effect = route.effect}));
    }
  }
  return Status::Ok();
}

Result<DatasetRid> DatasetOf(const RequestContext& context) {
  const std::string& text = context.Path("datasetRid");
  Result<DatasetRid> rid = DatasetRid::Parse(text);
  if (!rid.ok()) {
    return UnknownDataset(text);
  }
  return rid;
}

Result<TransactionRid> TransactionOf(const DatasetRid& dataset, std::string_view text) {
  Result<TransactionRid> rid = TransactionRid::Parse(text);
  if (!rid.ok()) {
    return Status::NotFound("dataset " + dataset.ToString() + " has no transaction " +
                            JsonString(text))
        .WithReason("TransactionNotFound",
                    JsonObject({{"datasetRid", dataset.ToString()}, {"transactionRid", text}}));
  }
  return rid;
}

Status RequireDataset(const FoundryDeps& deps, metastore::SqlTransaction& sql,
                      const RequestContext& context, const DatasetRid& dataset, access::Role role,
                      const Denial& denial) {
  const access::Scope scope =
      role >= access::Role::kEditor ? access::Scope::kDatasetsWrite : access::Scope::kDatasetsRead;
  const Status status = tree::Require(sql, deps.authorizer, context.principal, dataset.ToRid(),
                                      {.role = role, .scope = scope});
  if (status.code() == ErrorCode::kNotFound) {
    return dataset::DatasetNotFound(dataset);
  }
  if (status.code() == ErrorCode::kPermissionDenied && status.reason() != "ApiUsageDenied") {
    return Denied(denial, status);
  }
  return status;
}

Status RequireViewer(const FoundryDeps& deps, const RequestContext& context,
                     const DatasetRid& dataset, const Denial& denial) {
  return deps.database.Read([&](metastore::SqlTransaction& sql) {
    return RequireDataset(deps, sql, context, dataset, access::Role::kViewer, denial);
  });
}

Status Mutate(const FoundryDeps& deps, const RequestContext& context, const DatasetRid& dataset,
              const Denial& denial, std::string_view action, metastore::Durability durability,
              const metastore::SqlFunction& change) {
  const Status status = deps.database.Write(
      [&](metastore::SqlTransaction& sql) -> Status {
        TARN_RETURN_IF_ERROR(
            RequireDataset(deps, sql, context, dataset, access::Role::kEditor, denial));
        TARN_RETURN_IF_ERROR(change(sql));
        return access::AppendAudit(
            sql, AuditOf(deps, context, dataset, action, access::AuditOutcome::kDone));
      },
      durability);
  if (status.code() == ErrorCode::kPermissionDenied) {
    TARN_RETURN_IF_ERROR(access::AppendAudit(
        deps.database, AuditOf(deps, context, dataset, action, access::AuditOutcome::kDenied)));
  }
  return status;
}

Result<int> PageSizeOf(const RequestContext& context, int fallback, int size_max) {
  TARN_ASSIGN_OR_RETURN(const std::optional<int64_t> asked, QueryInt(context, "pageSize"));
  if (!asked) {
    return fallback;
  }
  if (*asked < 1) {
    return Status::InvalidArgument("pageSize must be positive, found " + std::to_string(*asked))
        .WithReason("InvalidPageSize", "{\"pageSize\":" + std::to_string(*asked) + "}");
  }
  return static_cast<int>(std::min<int64_t>(*asked, size_max));
}

std::string PageTokenOf(const RequestContext& context) {
  return context.query.Find("pageToken").value_or("");
}

Result<std::string> BranchNameOf(const RequestContext& context) {
  std::string name =
      context.query.Find("branchName").value_or(std::string(dataset::kDefaultBranch));
  TARN_RETURN_IF_ERROR(dataset::CheckBranchName(name));
  return name;
}

Result<std::optional<std::string>> OptionalText(const json& body, const char* member) {
  if (!body.is_object()) {
    return Status::InvalidArgument("read the request body: a JSON object is needed")
        .WithReason("InvalidBody");
  }
  const auto found = body.find(member);
  if (found == body.end() || found->is_null()) {
    return std::optional<std::string>();
  }
  if (!found->is_string()) {
    return Status::InvalidArgument(std::string("read the request body: \"") + member +
                                   "\" must be a string, found " + found->type_name())
        .WithReason("InvalidBody", JsonObject({{"member", member}}));
  }
  return std::optional<std::string>(found->get<std::string>());
}

Result<std::string> RequiredText(const json& body, const char* member) {
  TARN_ASSIGN_OR_RETURN(const std::optional<std::string> text, OptionalText(body, member));
  if (!text) {
    return Status::InvalidArgument(std::string("read the request body: \"") + member +
                                   "\" is missing")
        .WithReason("InvalidBody", JsonObject({{"member", member}}));
  }
  return *text;
}

Status InvalidParameterCombination(const std::vector<std::vector<std::string>>& valid,
                                   const std::vector<std::string>& provided) {
  const json parameters = {{"validCombinations", valid}, {"providedParameters", provided}};
  return Status::InvalidArgument(
             "these parameters exclude each other: " + parameters["providedParameters"].dump() +
             "; valid are " + parameters["validCombinations"].dump())
      .WithReason("InvalidParameterCombination", parameters.dump());
}

json ToJson(const dataset::Branch& branch) {
  json object = {{"name", branch.name}};
  if (branch.transaction()) {
    object["transactionRid"] = branch.transaction()->ToString();
  }
  return object;
}

json ToJson(const dataset::Transaction& transaction) {
  json object = {{"rid", transaction.rid.ToString()},
                 {"transactionType", dataset::TransactionTypeName(transaction.type)},
                 {"status", dataset::TransactionStateName(transaction.state)},
                 {"createdTime", FormatTimestamp(transaction.created_at)}};
  if (transaction.closed_at) {
    object["closedTime"] = FormatTimestamp(*transaction.closed_at);
  }
  return object;
}

json ToJson(const dataset::File& file) {
  return {{"path", file.path},
          {"transactionRid", file.transaction.ToString()},
          {"sizeBytes", std::to_string(file.size_bytes)},
          {"updatedTime", FormatTimestamp(file.updated_at)}};
}

json PageJson(json data, const std::optional<std::string>& next_page_token) {
  json page = {{"data", std::move(data)}};
  if (next_page_token) {
    page["nextPageToken"] = *next_page_token;
  }
  return page;
}

}  // namespace tarn::server::foundry
