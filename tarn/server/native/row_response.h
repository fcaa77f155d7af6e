// Few rows as an answer: of samples and previews.
#pragma once

#include <cstdint>
#include <memory>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/server/http/message.h"
#include "tarn/server/request_context.h"

namespace tarn::server::native {

/// The query parameter `name`: how many rows are asked for, 20 when it is not there.
/// Errors: kInvalidArgument outside 1 to 10,000.
Result<int64_t> RowsAsked(const RequestContext& context, std::string_view name);

/// The rows as text/csv where the request accepts that, else as a JSON array of objects. Null is no
/// rows.
Result<http::Response> RowsResponse(const RequestContext& context,
                                    std::shared_ptr<arrow::RecordBatch> rows);

}  // namespace tarn::server::native
