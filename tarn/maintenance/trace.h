// Trace: everything that the table of a pipeline keeps of one key.
#pragma once

#include <string>

#include "tarn/base/status.h"
#include "tarn/catalog/object.h"
#include "tarn/iceberg/table_metadata.h"

namespace tarn::maintenance {

/// A SELECT over the internal table, named by its RID: change_identifier, operation, from, to,
/// store (Changes, Current or Prior), then the user columns; in the order of time. `key`: the value
/// as text, or a JSON array of values for a key of several columns. Errors: kInvalidArgument for a
/// table without a key, or a key with another number of values.
Result<std::string> TraceSql(const catalog::CatalogObject& table,
                             const iceberg::TableMetadata& metadata, const std::string& key);

}  // namespace tarn::maintenance
