// PartitionSpec: how rows are put into partitions. Files name the spec they were written under.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/iceberg/json.h"
#include "tarn/iceberg/literal.h"
#include "tarn/iceberg/schema.h"
#include "tarn/iceberg/transform.h"

namespace tarn::iceberg {

inline constexpr int32_t kFirstPartitionFieldId = 1000;

struct PartitionField {
  int32_t source_id = 0;
  int32_t field_id = 0;  // From 1000, unique over all specs of the table.
  std::string name;
  Transform transform;
  friend bool operator==(const PartitionField&, const PartitionField&) = default;
};

struct PartitionSpec {
  int32_t spec_id = 0;
  std::vector<PartitionField> fields;

  /// No field, or only void ones.
  [[nodiscard]] bool is_unpartitioned() const;
  /// Same sources, transforms and names in the same order; ids of fields do not count.
  [[nodiscard]] bool IsCompatibleWith(const PartitionSpec& other) const;
  friend bool operator==(const PartitionSpec&, const PartitionSpec&) = default;
};

/// Checks sources, transforms and names against a schema. Errors: kInvalidArgument naming the
/// field.
Status ValidatePartitionSpec(const PartitionSpec& spec, const Schema& schema);

/// Types of the partition values, in the order of the fields. A field whose source was dropped, or
/// whose transform is unknown, has the type unknown.
std::vector<Type> PartitionTypes(const PartitionSpec& spec, const Schema& schema);

/// "<name>=<value>" joined by '/', both form-encoded; "" when unpartitioned.
Result<std::string> FormatPartitionPath(const PartitionSpec& spec, const Schema& schema,
                                        const PartitionValues& values);

/// Partition values of one row of a batch whose columns are the schema's top-level columns by name.
Result<PartitionValues> PartitionValuesAt(const PartitionSpec& spec, const Schema& schema,
                                          const arrow::RecordBatch& batch, int64_t row);

/// Name that a new field gets by default: "c", "c_bucket", "c_trunc", "c_year", …, "c_null".
std::string DefaultPartitionFieldName(const std::string& column, const Transform& transform);

Json PartitionFieldsToJson(const PartitionSpec& spec);
Json PartitionSpecToJson(const PartitionSpec& spec);
/// `last_field_id` numbers fields that carry no id (version 1).
Result<std::vector<PartitionField>> PartitionFieldsFromJson(const Json& json,
                                                            int32_t last_field_id = 999);
Result<PartitionSpec> PartitionSpecFromJson(const Json& json);

}  // namespace tarn::iceberg
