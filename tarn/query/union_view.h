// UnionView: a dataset without files of its own, whose rows are those of other datasets, perhaps
// the newest per key. It is computed at every read; nothing is copied.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/access/authorizer.h"
#include "tarn/dataset/ids.h"
#include "tarn/engine/engine.h"
#include "tarn/metastore/database.h"
#include "tarn/query/dataset_relation.h"

namespace tarn::query {

/// The table of union views. Room "query".
std::vector<metastore::Migration> Migrations();

/// A dataset that a view takes rows from. Value.
struct BackingDataset {
  dataset::DatasetRid dataset;
  std::string branch;  // Empty: the branch that the view is read at, else master.
  std::vector<std::string> stopped_markings;  // Kept for clients.
  friend bool operator==(const BackingDataset&, const BackingDataset&) = default;
};

/// How rows with the same key are told apart. Value.
struct UnionKey {
  std::vector<std::string> columns;
  bool unique = true;                      // The datasets keep it so; nothing is removed.
  std::vector<std::string> order_columns;  // Not unique: the row that is greatest in these stays.
  std::string deletion_column;             // BOOLEAN: true takes the key away; empty = none.
  friend bool operator==(const UnionKey&, const UnionKey&) = default;
};

/// Value.
struct UnionView {
  std::vector<BackingDataset> backing;
  std::optional<UnionKey> key;
  friend bool operator==(const UnionView&, const UnionView&) = default;
};

/// Writes what a view is on one of its branches.
Status PutUnionView(metastore::SqlTransaction& sql, const dataset::DatasetRid& rid,
                    std::string_view branch, const UnionView& view);
/// Nothing when the dataset is no view on that branch. Errors: kCorruption.
Result<std::optional<UnionView>> FindUnionView(metastore::SqlTransaction& sql,
                                               const dataset::DatasetRid& rid,
                                               std::string_view branch);
/// True for a view on any branch: it takes no files.
Result<bool> IsUnionView(metastore::SqlTransaction& sql, const dataset::DatasetRid& rid);
/// Forgets all branches of a view that is gone.
Status RemoveUnionView(metastore::SqlTransaction& sql, const dataset::DatasetRid& rid);

/// "SELECT …" over relations of the session, one per backing dataset. Columns are matched by name;
/// a missing one is NULL. Of rows that are equal in all order columns the one of the later dataset
/// stays; inside one dataset either may. Errors: kInvalidArgument without any relation.
Result<std::string> BuildUnion(const UnionView& view, const std::vector<std::string>& relations);

/// What MakeRows needs; all outlive the session.
struct RowsDeps {
  metastore::Database& database;
  access::Authorizer& authorizer;
  dataset::DatasetStore& datasets;
  storage::ObjectStore& store;
};

/// MakeDatasetRelation for a dataset that may be a union view. A view is read with the rights of
/// the reader on each of its datasets, not with those of whoever made it.
/// Errors: as MakeDatasetRelation; kPermissionDenied naming a dataset that the reader may not
/// view; kInvalidArgument for a transaction of a view, which has none.
Status MakeRows(engine::Session& session, const RowsDeps& deps, const access::Principal& principal,
                const DatasetRelation& relation);

}  // namespace tarn::query
