// ColumnUpdate: the next columns of an internal table. Pure. Only for target_table.cc.
#pragma once

#include <string>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/schema_update.h"
#include "tarn/iceberg/table_metadata.h"
#include "tarn/lakehouse/table_spec.h"

namespace tarn::lakehouse {

/// The table's schema after it has taken in `users`; unchanged columns keep their ids.
/// Errors: kInvalidArgument when a type cannot become the one asked for.
Result<iceberg::SchemaUpdate> PlanColumns(const iceberg::TableMetadata& metadata,
                                          const iceberg::Schema& users);

/// The table's schema without some columns; those that it does not have are passed over.
/// Errors: kFailedPrecondition for a column of the key, or that partitions or sorts the table.
Result<iceberg::SchemaUpdate> PlanDrops(const TableSpec& spec,
                                        const iceberg::TableMetadata& metadata,
                                        const std::vector<std::string>& names);

}  // namespace tarn::lakehouse
