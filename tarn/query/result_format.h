// Result formats: the rows of a query as bytes for a client.
#pragma once

#include <functional>
#include <string_view>

#include "tarn/base/status.h"
#include "tarn/query/run_sql.h"

namespace tarn::query {

enum class ResultFormat {
  kJson,   // One array of row objects, exact values.
  kCsv,    // RFC 4180 with a header.
  kArrow,  // IPC stream.
};

/// "json", "csv" or "arrow". Errors: kInvalidArgument.
Result<ResultFormat> ParseResultFormat(std::string_view text);
/// "application/json", "text/csv; charset=utf-8", "application/vnd.apache.arrow.stream".
std::string_view MediaTypeOf(ResultFormat format);

/// Takes pieces in order; a failure ends the writing.
using ByteSink = std::function<Status(std::string_view)>;

/// Writes all rows. Memory: one batch. The first piece may come before an error of a later row:
/// then the text is not complete.
Status WriteResult(RunningQuery& query, ResultFormat format, const ByteSink& sink);

}  // namespace tarn::query
