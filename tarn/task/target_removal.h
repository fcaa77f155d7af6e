// Taking a target's table and views out of the catalog, to be made again. Only for this room.
#pragma once

#include <cstdint>
#include <string>

#include "tarn/base/rid.h"
#include "tarn/base/status.h"
#include "tarn/catalog/catalog.h"
#include "tarn/lakehouse/table_spec.h"
#include "tarn/metastore/database.h"

namespace tarn::task {

enum class RemovedFiles : uint8_t {
  kStay,   // Until orphans are removed.
  kPurge,  // Until the next Catalog::FinishPurges.
};

/// Drops the internal table, the views and the published table of a target; nothing when there is
/// no table. The new table has another uuid, so it starts from the first landed row.
/// Errors: kAlreadyExists, and nothing is dropped, when the table belongs to another task.
Status RemoveTarget(metastore::SqlTransaction& sql, catalog::Catalog& catalog, const Rid& project,
                    const lakehouse::TableSpec& table, const std::string& by,
                    RemovedFiles files = RemovedFiles::kStay);

}  // namespace tarn::task
