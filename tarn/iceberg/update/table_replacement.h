// TableReplacement: another table in the place of one that is there, with the history of both.
#pragma once

#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/table_metadata.h"
#include "tarn/iceberg/table_update.h"

namespace tarn::iceberg {

/// The updates that make of `base` the table that `definition` says, without rows: main is gone
/// until a snapshot follows; snapshots, schemas, specs, orders, other branches and tags stay.
///
/// Columns of the same name, type and requirement keep their ids, others get new ones, so files of
/// before are never taken for the new columns'. Properties are added to those there are;
/// "format-version" can only rise. The uuid stays; an empty location means the same.
/// Errors: kInvalidArgument, as MakeTableMetadata.
Result<std::vector<TableUpdate>> PlanReplacement(const TableMetadata& base,
                                                 const TableDefinition& definition);

}  // namespace tarn::iceberg
