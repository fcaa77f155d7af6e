#include "tarn/server/foundry/start_query.h"

#include <algorithm>

#include "tarn/base/json_text.h"
#include "tarn/dataset/branch.h"
#include "tarn/query/stoppable_sql.h"
#include "tarn/server/foundry/spark_names.h"
#include "tarn/server/foundry/sql_queries.h"

namespace tarn::server::foundry {

namespace {

/// What a failed start is called. Missing and hidden tables look alike.
Status AsQueryError(const Status& status) {
  const std::string details = JsonObject({{"errorMessage", status.message()}});
  switch (status.code()) {
    case ErrorCode::kInvalidArgument:
      return status.WithReason("QueryParseError", details);
    case ErrorCode::kNotFound:
    case ErrorCode::kFailedPrecondition:
    case ErrorCode::kUnimplemented:
      return Status::InvalidArgument(status.message()).WithReason("QueryFailed", details);
    case ErrorCode::kPermissionDenied:
      return status.reason() == "ApiUsageDenied"
                 ? status
                 : status.WithReason("ReadQueryInputsPermissionDenied", "{\"rids\":[]}");
    default:
      return status;
  }
}

/// Starts on the first branch that all datasets of the statement have.
QueryStarter StarterOf(const FoundryDeps& deps, const access::Principal& principal,
                       const std::string& sql, const std::vector<std::string>& branches) {
  const query::QueryDeps query_deps{deps.authorizer, deps.catalog, deps.datasets, deps.engine,
                                    deps.memory_watch};
  return [query_deps, principal, sql,
          branches](const std::stop_token& stop) -> Result<std::unique_ptr<query::RunningQuery>> {
    Status last;
    for (const std::string& branch : branches) {
      query::QueryRequest request;
      request.sql = sql;
      request.branch = branch;
      Result<std::unique_ptr<query::RunningQuery>> started =
          query::RunStoppableSql(request, principal, query_deps, stop);
      if (started.ok() || started.status().reason() != "BranchNotFound") {
        return started;
      }
      last = started.status();
    }
    return last;
  };
}

}  // namespace

Result<std::string> StartSqlQuery(const FoundryDeps& deps, const RequestContext& context,
                                  const SqlStatement& statement) {
  std::vector<std::string> branches = statement.branches;
  for (const std::string& branch : branches) {
    TARN_RETURN_IF_ERROR(dataset::CheckBranchName(branch));
  }
  if (std::ranges::find(branches, dataset::kDefaultBranch) == branches.end()) {
    branches.emplace_back(dataset::kDefaultBranch);
  }
  const Result<std::string> sql = QuoteSparkNames(statement.sql);
  if (!sql.ok()) {
    return AsQueryError(sql.status());
  }
  const Result<std::string> id =
      deps.queries->Start(context.principal.user_id,
                          StarterOf(deps, context.principal, *sql, branches), statement.format);
  return id.ok() ? id : Result<std::string>(AsQueryError(id.status()));
}

}  // namespace tarn::server::foundry
