// Ancestry: questions about the tree of committed transactions, in O(log depth) look-ups.
//
// Every transaction keeps its depth, its parent and one jump to an ancestor further up, laid out
// as a skew-binary list (E. W. Myers, "An applicative random-access stack", 1983).
#pragma once

#include <optional>

#include "tarn/base/clock.h"
#include "tarn/dataset/rows.h"
#include "tarn/metastore/database.h"

namespace tarn::dataset {

/// Fills in depth, parent and jump of a new child of `parent` (null: it has none).
Status PlaceUnder(metastore::SqlTransaction& sql, const TransactionRow* parent,
                  TransactionRow& child);

/// The ancestor of `row` (or itself) at `depth`, which must not be below it.
Result<TransactionRow> AncestorAt(metastore::SqlTransaction& sql, TransactionRow row,
                                  int64_t depth);

/// True where `ancestor` is `row` or one of its ancestors.
Result<bool> IsAncestor(metastore::SqlTransaction& sql, const TransactionRow& ancestor,
                        const TransactionRow& row);

/// The newest of `row` and its ancestors that was committed at or before `time`.
Result<std::optional<TransactionRow>> NewestAtOrBefore(metastore::SqlTransaction& sql,
                                                       TransactionRow row, Timestamp time);

}  // namespace tarn::dataset
