// Schemas, partition specs and sort orders of the tables that a target is made of. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/partition_spec.h"
#include "tarn/iceberg/schema.h"
#include "tarn/iceberg/sort_order.h"
#include "tarn/iceberg/table_metadata.h"
#include "tarn/lakehouse/header_columns.h"
#include "tarn/lakehouse/table_spec.h"

namespace tarn::lakehouse {

/// Id of the spec that Changes, Asset_state and Reload are always written under.
inline constexpr int32_t kInternalSpecId = 0;

/// Header columns, then the user columns of `users` (all optional, ids given afresh by the table).
iceberg::Schema InternalSchema(const iceberg::Schema& users);

/// The user columns of an internal table's schema, with its field ids.
iceberg::Schema UserSchema(const iceberg::Schema& internal);
std::vector<std::string> UserColumnNames(const iceberg::Schema& internal);

/// Identity on hdr__partition; ids refer to InternalSchema.
iceberg::PartitionSpec InternalSpec();

/// "day(created_at)", "bucket(16, id)", "truncate(4, name)", "country" as fields over `schema`.
/// Errors: kInvalidArgument naming the expression and what was found.
Result<std::vector<iceberg::PartitionField>> ParsePartitionBy(
    const std::vector<std::string>& expressions, const iceberg::Schema& schema);

/// "col", "col asc", "col desc". Errors: kInvalidArgument.
Result<iceberg::SortOrder> ParseSortBy(const std::vector<std::string>& expressions,
                                       const iceberg::Schema& schema);

/// Everything of a new table but its files. In append mode there is no hdr__partition value: rows
/// carry NULL there, and the only spec has the user's fields.
/// Errors: kInvalidArgument for keys, partition fields or sort columns that do not fit the columns.
Result<iceberg::TableMetadata> NewInternalTable(const TableSpec& spec, const iceberg::Schema& users,
                                                std::string_view location,
                                                std::string_view table_uuid, int64_t now_ms);

/// The published table: user columns under the same field ids, the user's partition fields only.
Result<iceberg::TableMetadata> NewAppliedTable(const iceberg::TableMetadata& internal,
                                               std::string_view location,
                                               std::string_view table_uuid, int64_t now_ms);

/// The column of that name, spelled so if there is one, else alike but for case; null when there is
/// none. Members of structs do not count.
const iceberg::SchemaField* FindColumn(const std::vector<iceberg::SchemaField>& columns,
                                       std::string_view name);
/// The names of a key as the columns are spelled; those that are no columns as they are.
std::vector<std::string> SpelledKey(const std::vector<std::string>& key,
                                    const iceberg::Schema& users);

/// Errors: kInvalidArgument naming a key column that is missing, nested, float or double. Names are
/// compared without case.
Status CheckKeyColumns(const TableSpec& spec, const iceberg::Schema& users);

}  // namespace tarn::lakehouse
