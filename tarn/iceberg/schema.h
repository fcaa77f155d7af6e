// Schema: the columns of a table at one time. A table keeps every schema its snapshots refer to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/json.h"
#include "tarn/iceberg/type.h"

namespace tarn::iceberg {

enum class CaseRule : uint8_t { kSensitive, kInsensitive };

struct Schema {
  int32_t schema_id = 0;
  std::vector<SchemaField> fields;
  std::vector<int32_t> identifier_field_ids;

  /// The field with this id at any depth, null when there is none. Cost: O(fields).
  [[nodiscard]] const SchemaField* FindField(int32_t id) const;
  /// The field with this dotted name ("a.b", list members as "l.element", map as "m.key",
  /// "m.value").
  [[nodiscard]] const SchemaField* FindField(std::string_view name,
                                             CaseRule rule = CaseRule::kSensitive) const;
  /// Dotted name of a field id.
  [[nodiscard]] std::optional<std::string> NameOf(int32_t id) const;
  /// Id of the enclosing field; nothing for top-level columns and unknown ids.
  [[nodiscard]] std::optional<int32_t> ParentOf(int32_t id) const;
  /// Greatest field id at any depth, 0 when there is none.
  [[nodiscard]] int32_t HighestFieldId() const;
  /// True when the two differ at most in their schema id.
  [[nodiscard]] bool HasSameColumns(const Schema& other) const;
  friend bool operator==(const Schema&, const Schema&) = default;
};

/// Every field in the schema, parents before children.
std::vector<const SchemaField*> AllFields(const Schema& schema);

/// Checks ids (unique, positive, below the reserved ones), names (unique in their struct, not
/// empty), types against the format version, and identifier fields (required primitives, not float
/// or double, not inside lists or maps). Errors: kInvalidArgument naming the field.
Status ValidateSchema(const Schema& schema, int32_t format_version);

/// The same columns with ids given again from `last_column_id` + 1: all fields of one struct first,
/// then their children in order. Updates `last_column_id`; identifier fields follow by name.
Schema AssignFreshIds(const Schema& schema, int32_t& last_column_id);

Json SchemaToJson(const Schema& schema);
Result<Schema> SchemaFromJson(const Json& json);
/// Compact JSON text, as manifests carry it.
std::string FormatSchema(const Schema& schema);
Result<Schema> ParseSchema(std::string_view json);

// Ids of columns that no schema holds.
inline constexpr int32_t kFilePathColumnId = 2147483546;  // Of position delete files.
inline constexpr int32_t kPositionColumnId = 2147483545;
inline constexpr int32_t kReservedIdsStart = 2147483447;

}  // namespace tarn::iceberg
