// RunSql for statements that somebody may stop before the first row is there.
#pragma once

#include <memory>
#include <stop_token>

#include "tarn/query/run_sql.h"

namespace tarn::query {

/// RunSql that ends with kCancelled when `stop` is requested while it plans or starts; afterwards
/// RunningQuery::Interrupt does that.
Result<std::unique_ptr<RunningQuery>> RunStoppableSql(const QueryRequest& request,
                                                      const access::Principal& principal,
                                                      const QueryDeps& deps,
                                                      const std::stop_token& stop);

}  // namespace tarn::query
