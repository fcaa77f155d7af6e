// From a selector to the transactions that a view is made of. Private to the room.
#pragma once

#include <optional>

#include "tarn/dataset/file_view.h"
#include "tarn/dataset/rows.h"
#include "tarn/metastore/database.h"

namespace tarn::dataset {

/// The lineage with every checkpoint at its beginning replaced by what it was a copy of, down to
/// the transaction that starts the view.
Result<Lineage> ExpandCheckpoints(metastore::SqlTransaction& sql, Lineage lineage);

/// The transactions of `to` that `from` does not have; both in one view.
Result<Lineage> ChangesBetween(metastore::SqlTransaction& sql, const Lineage& from,
                               const Lineage& to);

/// The transaction that a view of `selector` ends with; nothing when there is none yet.
Result<std::optional<TransactionRow>> ResolveEnd(metastore::SqlTransaction& sql,
                                                 const DatasetRow& dataset,
                                                 const ViewSelector& selector);

/// A view together with the row of its end.
struct ResolvedView {
  FileView view;
  std::optional<TransactionRow> end;
};
Result<ResolvedView> Resolve(metastore::SqlTransaction& sql, const DatasetRow& dataset,
                             const ViewSelector& selector);

}  // namespace tarn::dataset
