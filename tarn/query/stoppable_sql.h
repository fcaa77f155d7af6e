// Statements that somebody may stop before they have ended: RunSql and RunChange for clients that
// may leave.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "tarn/query/run_change.h"
#include "tarn/query/run_sql.h"

namespace tarn::query {

/// RunSql that ends with kCancelled when `stop` is requested while it plans or starts; afterwards
/// RunningQuery::Interrupt does that.
Result<std::unique_ptr<RunningQuery>> RunStoppableSql(const QueryRequest& request,
                                                      const access::Principal& principal,
                                                      const QueryDeps& deps,
                                                      const std::stop_token& stop);

/// RunChange that ends with kCancelled when `stop` is requested before its commit; the table is as
/// it was then.
Result<ChangeResult> RunStoppableChange(const QueryRequest& request,
                                        const access::Principal& principal, const QueryDeps& deps,
                                        const std::stop_token& stop);

/// What the two above and ReadDataset have in common: a session in which `plan` makes relations and
/// gives the statement to run, under the watch (null: none) and until `stop` is requested.
Result<std::unique_ptr<RunningQuery>> StartWatched(
    engine::Engine& engine, MemoryWatch* watch, const std::stop_token& stop,
    const std::function<Result<std::string>(engine::Session&)>& plan);

}  // namespace tarn::query
