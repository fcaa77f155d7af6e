#include <nlohmann/json.hpp>

#include "tarn/base/json_text.h"
#include "tarn/server/foundry/foundry_api.h"
#include "tarn/server/foundry/sql_queries.h"
#include "tarn/server/foundry/start_query.h"

namespace tarn::server::foundry {

using nlohmann::json;

namespace {

Result<query::ResultFormat> FormatIn(const json& body) {
  TARN_ASSIGN_OR_RETURN(const auto text, OptionalText(body, "serializationFormat"));
  if (!text || *text == "ARROW") {
    return query::ResultFormat::kArrow;
  }
  if (*text == "CSV") {
    return query::ResultFormat::kCsv;
  }
  return Status::InvalidArgument("serializationFormat must be ARROW or CSV")
      .WithReason("InvalidBody", JsonObject({{"member", "serializationFormat"}, {"found", *text}}));
}

json StatusJson(const QueryStatus& status, const std::string& id) {
  switch (status.state) {
    case QueryState::kRunning:
      return {{"type", "running"}, {"queryId", id}};
    case QueryState::kSucceeded:
      return {{"type", "succeeded"}, {"queryId", id}};
    case QueryState::kFailed:
      return {{"type", "failed"}, {"errorMessage", status.message}};
    case QueryState::kCanceled:
      break;
  }
  return {{"type", "canceled"}};
}

Result<http::Response> Execute(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const std::string text, RequiredText(body, "query"));
  TARN_ASSIGN_OR_RETURN(const query::ResultFormat format, FormatIn(body));
  TARN_ASSIGN_OR_RETURN(const std::vector<std::string> branches,
                        TextList(body, "fallbackBranchIds"));
  const std::string& user = context.principal.user_id;
  TARN_ASSIGN_OR_RETURN(
      const std::string id,
      StartSqlQuery(deps, context, {.sql = text, .branches = branches, .format = format}));
  TARN_ASSIGN_OR_RETURN(const QueryStatus status, deps.queries->GetStatus(user, id));
  return JsonResponse(StatusJson(status, id));
}

Result<http::Response> GetStatus(const FoundryDeps& deps, RequestContext& context) {
  const std::string& id = context.Path("sqlQueryId");
  TARN_ASSIGN_OR_RETURN(const QueryStatus status,
                        deps.queries->GetStatus(context.principal.user_id, id));
  return JsonResponse(StatusJson(status, id));
}

Result<http::Response> GetResults(const FoundryDeps& deps, RequestContext& context) {
  return deps.queries->OpenResult(context.principal.user_id, context.Path("sqlQueryId"));
}

Result<http::Response> Cancel(const FoundryDeps& deps, RequestContext& context) {
  TARN_RETURN_IF_ERROR(deps.queries->Cancel(context.principal.user_id, context.Path("sqlQueryId")));
  return NoContent();
}

constexpr access::Scope kRead = access::Scope::kSqlQueriesRead;
constexpr access::Scope kExecute = access::Scope::kSqlQueriesExecute;

constexpr FoundryRoute kRoutes[] = {
    {"POST", "/sqlQueries/execute", kExecute, Execute, Stability::kStable, RouteEffect::kReadOnly},
    {"GET", "/sqlQueries/{sqlQueryId}/getStatus", kRead, GetStatus},
    {"GET", "/sqlQueries/{sqlQueryId}/getResults", kRead, GetResults},
    {"POST", "/sqlQueries/{sqlQueryId}/cancel", kExecute, Cancel, Stability::kStable,
     RouteEffect::kReadOnly},
};

}  // namespace

std::span<const FoundryRoute> SqlQueryRoutes() { return kRoutes; }

}  // namespace tarn::server::foundry
