// Taking a target's table and views out of the catalog, to be made again. Only for this room.
#pragma once

#include <string>

#include "tarn/base/rid.h"
#include "tarn/base/status.h"
#include "tarn/catalog/catalog.h"
#include "tarn/lakehouse/table_spec.h"
#include "tarn/metastore/database.h"

namespace tarn::task {

/// Drops the internal table, the views and the published table of a target; nothing when there is
/// no table. Their files go with the next Catalog::FinishPurges, and until then nobody else can
/// have their locations. The new table has another uuid, so it starts from the first landed row.
/// Errors: kAlreadyExists, and nothing is dropped, when the table belongs to another task.
Status RemoveTarget(metastore::SqlTransaction& sql, catalog::Catalog& catalog, const Rid& project,
                    const lakehouse::TableSpec& table, const std::string& by);

}  // namespace tarn::task
