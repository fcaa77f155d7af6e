// Starting a statement of Spark's SQL for a caller; several routes do.
#pragma once

#include <string>
#include <vector>

#include "tarn/query/result_format.h"
#include "tarn/server/foundry/foundry_routes.h"
#include "tarn/server/request_context.h"

namespace tarn::server::foundry {

struct SqlStatement {
  std::string sql;                    // Names in backticks or double quotes.
  std::vector<std::string> branches;  // Of datasets, in the order to try; master comes last.
  query::ResultFormat format = query::ResultFormat::kArrow;
};

/// The id under which SqlQueries knows it. Errors: QueryParseError and QueryFailed (parameter
/// errorMessage), ReadQueryInputsPermissionDenied, InvalidBranchName; missing and hidden tables
/// look alike.
Result<std::string> StartSqlQuery(const FoundryDeps& deps, const RequestContext& context,
                                  const SqlStatement& statement);

}  // namespace tarn::server::foundry
