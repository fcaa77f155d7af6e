// StartOrder: one order over the transactions of all datasets, whatever clocks say.
#pragma once

#include <cstdint>

#include "tarn/dataset/ids.h"
#include "tarn/metastore/database.h"

namespace tarn::dataset::changes {

/// The number of a transaction in the order in which transactions of all datasets were started.
/// Those that were started and committed in one SQL transaction, as landing tasks do, were
/// committed in this order. Numbers are unique, never reused, and have gaps.
/// Errors: kNotFound. Cost: one row.
Result<int64_t> StartOrder(metastore::SqlTransaction& sql, const TransactionRid& rid);

}  // namespace tarn::dataset::changes
