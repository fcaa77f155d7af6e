#include "tarn/server/foundry/foundry_api.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "tarn/access/audit.h"
#include "tarn/base/hash.h"
#include "tarn/base/json_text.h"
#include "tarn/dataset/errors.h"
#include "tarn/query/union_view.h"
#include "tarn/server/foundry/internal/internal_api.h"
#include "tarn/server/foundry/sql_queries.h"
#include "tarn/server/foundry/token_endpoint.h"
#include "tarn/tree/node.h"
#include "tarn/tree/permission.h"

namespace tarn::server::foundry {

using dataset::DatasetRid;
using dataset::TransactionRid;
using nlohmann::json;

namespace {

constexpr std::string_view kTokenStart = "key\n";

Status UnknownDataset(std::string_view text) {
  return Status::NotFound("there is no dataset " + JsonString(text))
      .WithReason("DatasetNotFound", JsonObject({{"datasetRid", text}}));
}

access::AuditRecord AuditOf(const FoundryDeps& deps, const RequestContext& context,
                            const std::string& resource, std::string_view action,
                            access::AuditOutcome outcome) {
  return {.id = 0,
          .time = deps.clock.Now(),
          .user_id = context.principal.user_id,
          .token_id = context.principal.token_id,
          .action = std::string(action),
          .resource = resource,
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

Status AddTable(Router& router, const FoundryDeps& deps, const std::string& prefix,
                std::span<const FoundryRoute> routes) {
  for (const FoundryRoute& route : routes) {
    TARN_RETURN_IF_ERROR(router.Add(
        {.method = route.method,
         .pattern = prefix + route.pattern,
         .scopes = route.scope ? std::vector{*route.scope} : std::vector<access::Scope>{},
         .handler = [deps, &route](RequestContext& context) -> Result<http::Response> {
           return route.stability == Stability::kPreview ? RunPreview(route.handler, deps, context)
                                                         : route.handler(deps, context);
         },
         .access = RouteAccess::kBearer,
         .effect = route.effect}));
  }
  return Status::Ok();
}

}  // namespace

Status AddFoundryRoutes(Router& router, const FoundryDeps& given) {
  FoundryDeps deps = given;
  deps.queries = std::make_shared<SqlQueries>(SqlQueriesOptions{}, deps.uuids, deps.clock);
  for (const std::span<const FoundryRoute> routes :
       {DatasetRoutes(), BranchRoutes(), TransactionRoutes(), FileRoutes(), SchemaRoutes(),
        ReadTableRoutes(), ViewRoutes(), SqlQueryRoutes(), SpaceRoutes(), ProjectRoutes(),
        FolderRoutes(), ResourceRoutes(), ResourceRoleRoutes(), UserRoutes(), GroupRoutes(),
        OrganizationRoutes()}) {
    TARN_RETURN_IF_ERROR(AddTable(router, deps, "/api/v2", routes));
  }
  TARN_RETURN_IF_ERROR(AddTable(router, deps, "/api/v1", VersionOneRoutes()));
  for (const std::span<const FoundryRoute> routes :
       {internal::CatalogRoutes(), internal::DataRoutes(), internal::CompassRoutes()}) {
    TARN_RETURN_IF_ERROR(AddTable(router, deps, "", routes));
  }
  return AddTokenRoutes(router, deps);
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
  return status.code() == ErrorCode::kPermissionDenied ? Denied(denial, status) : status;
}

Status RequireViewer(const FoundryDeps& deps, const RequestContext& context,
                     const DatasetRid& dataset, const Denial& denial) {
  const Status status = deps.database.Read([&](metastore::SqlTransaction& sql) {
    return RequireDataset(deps, sql, context, dataset, access::Role::kViewer, denial);
  });
  if (status.code() == ErrorCode::kPermissionDenied) {
    TARN_RETURN_IF_ERROR(access::AppendAudit(
        deps.database,
        AuditOf(deps, context, dataset.ToString(), "dataset.read", access::AuditOutcome::kDenied)));
  }
  return status;
}

Status Audited(const FoundryDeps& deps, const RequestContext& context, std::string_view action,
               const std::string& resource, metastore::Durability durability,
               const metastore::SqlFunction& change) {
  const Status status = deps.database.Write(
      [&](metastore::SqlTransaction& sql) -> Status {
        TARN_RETURN_IF_ERROR(change(sql));
        return access::AppendAudit(
            sql, AuditOf(deps, context, resource, action, access::AuditOutcome::kDone));
      },
      durability);
  if (status.code() == ErrorCode::kPermissionDenied) {
    TARN_RETURN_IF_ERROR(access::AppendAudit(
        deps.database, AuditOf(deps, context, resource, action, access::AuditOutcome::kDenied)));
  }
  return status;
}

Status RefuseView(metastore::SqlTransaction& sql, const DatasetRid& dataset) {
  TARN_ASSIGN_OR_RETURN(const bool is_view, query::IsUnionView(sql, dataset));
  if (is_view) {
    return Status::InvalidArgument("dataset " + dataset.ToString() +
                                   " is a view: write to the datasets behind it")
        .WithReason("DatasetIsView", JsonObject({{"datasetRid", dataset.ToString()}}));
  }
  return Status::Ok();
}

Status Mutate(const FoundryDeps& deps, const RequestContext& context, const DatasetRid& dataset,
              const Denial& denial, std::string_view action, metastore::Durability durability,
              const metastore::SqlFunction& change) {
  return Audited(deps, context, action, dataset.ToString(), durability,
                 [&](metastore::SqlTransaction& sql) -> Status {
                   TARN_RETURN_IF_ERROR(
                       RequireDataset(deps, sql, context, dataset, access::Role::kEditor, denial));
                   return change(sql);
                 });
}

Status Denied(const Denial& denial, const Status& cause) {
  if (cause.reason() == "ApiUsageDenied") {
    return cause;
  }
  json parameters = json::object();
  for (const auto& [name, value] : denial.parameters) {
    parameters[std::string(name)] = value;
  }
  return cause.WithReason(denial.name,
                          parameters.dump(-1, ' ', false, json::error_handler_t::replace));
}

Status RequireAdmin(const FoundryDeps& deps, metastore::SqlTransaction& sql,
                    const RequestContext& context, const Denial& denial) {
  TARN_ASSIGN_OR_RETURN(const access::Role role,
                        tree::RoleOn(sql, deps.authorizer, context.principal, tree::RootRid()));
  if (role < access::Role::kOwner) {
    return Denied(
        denial, Status::PermissionDenied("only an administrator (Owner of the root) may do this"));
  }
  return Status::Ok();
}

Result<int> PageSizeOf(const RequestContext& context, int fallback, int size_max) {
  TARN_ASSIGN_OR_RETURN(const std::optional<int64_t> asked, QueryInt(context, "pageSize"));
  return CheckedPageSize(asked, fallback, size_max);
}

Result<int> CheckedPageSize(std::optional<int64_t> asked, int fallback, int size_max) {
  if (!asked) {
    return fallback;
  }
  if (*asked < 1) {
    return Status::InvalidArgument("pageSize must be positive, found " + std::to_string(*asked))
        .WithReason("InvalidPageSize", "{\"pageSize\":" + std::to_string(*asked) + "}");
  }
  return static_cast<int>(std::min<int64_t>(*asked, size_max));
}

std::string TokenOfKey(std::string_view key) {
  return EncodeBase64(std::string(kTokenStart).append(key));
}

Result<std::string> KeyOfToken(const std::string& page_token) {
  if (page_token.empty()) {
    return std::string();
  }
  const Result<std::string> decoded = DecodeBase64(page_token);
  if (!decoded.ok() || !decoded->starts_with(kTokenStart)) {
    return dataset::InvalidPageToken(page_token);
  }
  return decoded->substr(kTokenStart.size());
}

Result<json> PageOfList(const std::vector<std::pair<std::string, json>>& sorted, int page_size,
                        const std::string& page_token) {
  TARN_ASSIGN_OR_RETURN(const std::string after, KeyOfToken(page_token));
  auto next = page_token.empty() ? sorted.begin()
                                 : std::ranges::upper_bound(sorted, after, {},
                                                            &std::pair<std::string, json>::first);
  json data = json::array();
  for (; next != sorted.end() && data.size() < static_cast<size_t>(page_size); ++next) {
    data.push_back(next->second);
  }
  if (next == sorted.end()) {
    return PageJson(std::move(data), std::nullopt);
  }
  return PageJson(std::move(data), TokenOfKey(std::prev(next)->first));
}

Result<json> ReadBatch(RequestContext& context, size_t size_max) {
  TARN_ASSIGN_OR_RETURN(json body, ReadJson(context));
  if (!body.is_array() || body.empty()) {
    return Status::InvalidArgument("read the request body: a list with an entry is needed")
        .WithReason("MissingBatchRequest");
  }
  if (body.size() > size_max) {
    const json parameters = {{"maximumBatchSize", size_max}, {"providedBatchSize", body.size()}};
    return Status::InvalidArgument("read the request body: more than " + std::to_string(size_max) +
                                   " entries")
        .WithReason("BatchRequestSizeExceededLimit", parameters.dump());
  }
  return body;
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

Result<std::vector<std::string>> TextList(const json& body, const char* member) {
  const auto invalid = [&] {
    return Status::InvalidArgument(std::string("read the request body: \"") + member +
                                   "\" must be a list of strings")
        .WithReason("InvalidBody", JsonObject({{"member", member}}));
  };
  if (!body.is_object()) {
    return invalid();
  }
  const auto found = body.find(member);
  std::vector<std::string> texts;
  if (found == body.end() || found->is_null()) {
    return texts;
  }
  if (!found->is_array()) {
    return invalid();
  }
  for (const json& entry : *found) {
    if (!entry.is_string()) {
      return invalid();
    }
    texts.push_back(entry.get<std::string>());
  }
  return texts;
}

Result<std::optional<int64_t>> OptionalInt(const json& body, const char* member) {
  const auto found = body.is_object() ? body.find(member) : body.end();
  if (found == body.end() || found->is_null()) {
    return std::optional<int64_t>();
  }
  if (!found->is_number_integer()) {
    return Status::InvalidArgument(std::string("read the request body: \"") + member +
                                   "\" must be a whole number")
        .WithReason("InvalidBody", JsonObject({{"member", member}}));
  }
  return std::optional<int64_t>(found->get<int64_t>());
}

Status InvalidParameterCombination(const std::vector<std::vector<std::string>>& valid,
                                   const std::vector<std::string>& provided) {
  const json parameters = {{"validCombinations", valid}, {"providedParameters", provided}};
  return Status::InvalidArgument(
             "these parameters exclude each other: " + parameters["providedParameters"].dump() +
             "; valid are " + parameters["validCombinations"].dump())
      .WithReason("InvalidParameterCombination", parameters.dump());
}

std::string UserIdOnWire(const std::string& id) {
  return Uuid::Parse(id).ok() ? id : Uuid{}.ToString();
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
