// Rows of a query as the body of a response whose beginning is held back, so that a read which
// fails early is answered with the failure instead of a broken connection.
#pragma once

#include <functional>
#include <memory>

#include "tarn/query/result_format.h"
#include "tarn/query/run_sql.h"
#include "tarn/server/request_context.h"

namespace tarn::server::foundry {

/// Held back at most; larger results are streamed from there on.
inline constexpr size_t kHeldBackBytesMax = 4 << 20;

/// What a failure of the read is called.
using FailureName = std::function<Status(const Status&)>;

/// 200 with the rows as application/octet-stream. The query ends when the client goes away.
http::Response RowsResponse(std::unique_ptr<query::RunningQuery> query, query::ResultFormat format,
                            const RequestContext& context, FailureName name_failure);

}  // namespace tarn::server::foundry
