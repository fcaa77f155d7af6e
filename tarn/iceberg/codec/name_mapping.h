// Name mapping: the field ids of columns in data files that carry none, by their names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/table_metadata.h"

namespace tarn::iceberg {

inline constexpr std::string_view kNameMappingProperty = "schema.name-mapping.default";

/// Names of one field in files; children of a list are called "element", of a map "key" and
/// "value".
struct MappedField {
  std::optional<int32_t> field_id;  // Empty: only its children are mapped.
  std::vector<std::string> names;
  std::vector<MappedField> fields;
  friend bool operator==(const MappedField&, const MappedField&) = default;
};
using NameMapping = std::vector<MappedField>;

/// Errors: kInvalidArgument, also for a name that two fields of one struct share.
Result<NameMapping> ParseNameMapping(std::string_view json);

/// The mapping of a table's properties, nothing when it has none.
Result<std::optional<NameMapping>> NameMappingOf(const TableMetadata& metadata);

/// The field that a name stands for, null when there is none.
const MappedField* FindMapped(const NameMapping& mapping, std::string_view name);

}  // namespace tarn::iceberg
