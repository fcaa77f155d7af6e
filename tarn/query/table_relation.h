// TableRelation: an Iceberg table, or a view of a target, at one snapshot as a relation of an
// engine session.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tarn/base/status.h"
#include "tarn/catalog/catalog.h"
#include "tarn/engine/engine.h"
#include "tarn/lakehouse/view_origin.h"
#include "tarn/query/point_in_time.h"

namespace tarn::query {

/// The snapshot of main that a point in time means; null for a table without snapshots.
///
/// Errors: kNotFound for a snapshot or transaction that the table does not have, and for a time
/// before its oldest snapshot, naming that one; kept history is pointed to when `history_view` is
/// not empty.
Result<const iceberg::Snapshot*> PinSnapshot(const iceberg::TableMetadata& metadata,
                                             const PointInTime& point,
                                             std::string_view history_view);

struct TableRelation {
  std::string name;     // Of the temporary view to make; more may be made beside it.
  std::string written;  // The table or view as the reader calls it, for messages.
  catalog::TableMetadataPtr metadata;
  PointInTime point;
  /// What a view of a target shows of its internal table; empty = the table itself.
  std::optional<lakehouse::ViewOrigin> origin;
};

/// Plans the files of the snapshot and makes the view. A view of a target shows unapplied changes
/// as an apply will leave them; with nothing unapplied it reads Current (and Prior) alone.
Status MakeTableRelation(engine::Session& session, catalog::Catalog& catalog,
                         const TableRelation& relation);

}  // namespace tarn::query
