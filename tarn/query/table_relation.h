// TableRelation: an Iceberg table, or a view of a target, at one snapshot as a relation of an
// engine session.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/catalog/catalog.h"
#include "tarn/engine/engine.h"
#include "tarn/iceberg/scan.h"
#include "tarn/lakehouse/view_origin.h"
#include "tarn/query/point_in_time.h"
#include "tarn/query/scan_filter.h"

namespace tarn::query {

/// The snapshot of main that a point in time means; null for a table without snapshots.
///
/// Errors: kNotFound for a snapshot or transaction that the table does not have, and for a time
/// before its oldest snapshot, naming that one; kept history is pointed to when `history_view` is
/// not empty.
Result<const iceberg::Snapshot*> PinSnapshot(const iceberg::TableMetadata& metadata,
                                             const PointInTime& point,
                                             std::string_view history_view);

/// Where a table is read on a branch: at `point` on main (also called master, as the default branch
/// of datasets is), else at the snapshot of the ref. A snapshot id is the same on every branch.
///
/// Errors: kNotFound when the table has no such ref; kInvalidArgument for a time or a transaction
/// on another branch than main, whose log is the only one that is kept.
Result<PointInTime> PointOnBranch(const iceberg::TableMetadata& metadata, const PointInTime& point,
                                  const std::string& branch);

/// Files of a snapshot (null = none) that may hold rows of the filter, which names columns of
/// `schema`: that of the snapshot, or the current one for the newest snapshot; with another schema
/// no file is left out. `schema` is one of the metadata.
Result<std::vector<iceberg::FileScanTask>> PlanFiles(catalog::Catalog& catalog,
                                                     const iceberg::TableMetadata& metadata,
                                                     const iceberg::Snapshot* snapshot,
                                                     const iceberg::Schema& schema,
                                                     const iceberg::Expression& filter);

struct TableRelation {
  std::string name;     // Of the temporary view to make; more may be made beside it.
  std::string written;  // The table or view as the reader calls it, for messages.
  catalog::TableMetadataPtr metadata;
  PointInTime point;
  /// What a view of a target shows of its internal table; empty = the table itself.
  std::optional<lakehouse::ViewOrigin> origin;
  /// Rows that are wanted of the table itself: files without such a row are left out.
  std::vector<ScanCondition> conditions{};
};

/// Plans the files of the snapshot and makes the view. A view of a target shows unapplied changes
/// as an apply will leave them; with nothing unapplied it reads Current (and Prior) alone.
Status MakeTableRelation(engine::Session& session, catalog::Catalog& catalog,
                         const TableRelation& relation);

}  // namespace tarn::query
