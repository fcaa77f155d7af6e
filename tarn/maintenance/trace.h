// Trace: everything that the table of a pipeline keeps of one key.
#pragma once

#include <string>

#include "tarn/base/status.h"
#include "tarn/catalog/object.h"
#include "tarn/iceberg/table_metadata.h"

namespace tarn::maintenance {

/// A SELECT over the internal table, named by its RID: change_identifier, operation, from, to,
/// store (Changes, Current or Prior), snapshot_id (of the snapshot that wrote the row where it is
/// now) and row, the user columns. Applied rows, which have no identifier any more, come first, in
/// the order of time; then the changes in that of their identifiers. `key`: the value as text, or
/// for a key of several columns a JSON array of values, null for NULL. Errors: kInvalidArgument for
/// a table without a key, or a key with another number of values.
Result<std::string> TraceSql(const catalog::CatalogObject& table,
                             const iceberg::TableMetadata& metadata, const std::string& key);

}  // namespace tarn::maintenance
