// What a changed mapping result means for the columns of an existing table. Pure.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/transform/mapping.h"

namespace tarn::transform {

enum class SchemaPolicy { kApply, kIgnore, kSuspendTable, kStopTask };

struct SchemaPolicies {
  SchemaPolicy add_column = SchemaPolicy::kApply;
  SchemaPolicy add_struct_field = SchemaPolicy::kApply;
  SchemaPolicy change_column_type = SchemaPolicy::kIgnore;
  SchemaPolicy drop_column = SchemaPolicy::kIgnore;
  friend bool operator==(const SchemaPolicies&, const SchemaPolicies&) = default;
};

enum class SchemaAction {
  kKeep,      // As it is; a missing column is written as NULL.
  kAdd,       // New column at the end.
  kWiden,     // The table's column takes the new type.
  kNarrow,    // The table's type stays; a value that does not fit rejects the row.
  kSuffix,    // Values that do not fit go to the column `<name>_<type>`, the rest stays. With
              // _2, _3, … where that name is taken by a mapped column or by another type.
  kDrop,      // The table's column goes.
  kLeaveOut,  // The mapped column is not written.
  kSuspend,   // The table stops until someone decides.
  kStop,      // The task stops.
};

struct SchemaStep {
  SchemaAction action = SchemaAction::kKeep;
  std::string column;                            // Name in the table.
  std::shared_ptr<arrow::DataType> type{};       // After the step; of the mapped column if none.
  std::shared_ptr<arrow::DataType> from_type{};  // In the table before; null for a new column.
  std::string suffixed_column{};                 // For kSuffix.
  std::shared_ptr<arrow::DataType> suffixed_type{};  // Of it; wider than in the table, maybe.
  bool suffixed_exists = false;                      // It was added by an earlier plan.
  std::string reason{};                              // For people; empty for kKeep.
};

/// Plans the way from a table's user columns to a mapping's result. Table columns keep their order
/// and come first; one step per column, none for a suffixed column that is in use. Names are
/// compared without case unless `case_sensitive`. A mapped type whose values all fit the table's
/// is kKeep with the table's type. With `case_sensitive`, a new column that differs from one of the
/// table in case only is kStop: no engine could tell the two apart.
/// Widening: int32 -> int64, float -> double, decimal(p, s) -> decimal(p', s), and the same inside
/// structs, lists and maps; a new member of a struct is a widening under add_struct_field.
std::vector<SchemaStep> PlanSchemaChange(const arrow::Schema& table,
                                         const std::vector<MappedColumn>& mapped,
                                         const SchemaPolicies& policies,
                                         bool case_sensitive = false);

/// True when Iceberg (v2) allows a column of type `from` to become one of type `to` in place, new
/// struct members included, or when the types are equal.
bool CanWiden(const arrow::DataType& from, const arrow::DataType& to);

}  // namespace tarn::transform
