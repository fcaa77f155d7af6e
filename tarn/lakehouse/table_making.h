// TableMaking: what a table was made with and keeps until it is made anew.
#pragma once

#include <map>
#include <string>

#include "tarn/base/status.h"
#include "tarn/iceberg/table_metadata.h"
#include "tarn/lakehouse/table_spec.h"
#include "tarn/lakehouse/view_origin.h"

namespace tarn::lakehouse {

/// Properties of the internal table that say where its views are and what the user set.
inline constexpr std::string_view kSchemaProperty = "tarn.schema";
inline constexpr std::string_view kHistorySuffixProperty = "tarn.history-suffix";
inline constexpr std::string_view kTablePropertiesProperty = "tarn.table-properties";
std::map<std::string, std::string> MakingProperties(const TableSpec& spec);

/// The objects of a target as they are.
struct MadeTarget {
  const iceberg::TableMetadata& internal;
  bool has_view = false;                     // A current view where the spec wants it.
  const ViewOrigin* current_view = nullptr;  // Null: none, or it does not tell.
  bool has_applied = false;
};

/// Compares what only a new table can take: schema, history_suffix, publish, partition_by, sort_by,
/// table_properties. Tables of older versions, which lack a property, are compared as far as their
/// metadata tells. Pure.
/// Errors: kFailedPrecondition naming the key, what the table has and what is wanted.
Status CheckMaking(const TableSpec& spec, const MadeTarget& made);

}  // namespace tarn::lakehouse
