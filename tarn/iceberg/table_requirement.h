// TableRequirement: what must hold of the current metadata for a commit to go through.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/json.h"
#include "tarn/iceberg/table_metadata.h"
#include "tarn/iceberg/table_update.h"

namespace tarn::iceberg {

namespace table_requirement {
struct AssertCreate {
  friend bool operator==(const AssertCreate&, const AssertCreate&) = default;
};
struct AssertTableUuid {
  std::string uuid;
  friend bool operator==(const AssertTableUuid&, const AssertTableUuid&) = default;
};
struct AssertRefSnapshotId {
  std::string ref;
  std::optional<int64_t> snapshot_id;  // Empty = the ref must not exist.
  friend bool operator==(const AssertRefSnapshotId&, const AssertRefSnapshotId&) = default;
};
struct AssertLastAssignedFieldId {
  int32_t last_assigned_field_id = 0;
  friend bool operator==(const AssertLastAssignedFieldId&,
                         const AssertLastAssignedFieldId&) = default;
};
struct AssertCurrentSchemaId {
  int32_t current_schema_id = 0;
  friend bool operator==(const AssertCurrentSchemaId&, const AssertCurrentSchemaId&) = default;
};
struct AssertLastAssignedPartitionId {
  int32_t last_assigned_partition_id = 0;
  friend bool operator==(const AssertLastAssignedPartitionId&,
                         const AssertLastAssignedPartitionId&) = default;
};
struct AssertDefaultSpecId {
  int32_t default_spec_id = 0;
  friend bool operator==(const AssertDefaultSpecId&, const AssertDefaultSpecId&) = default;
};
struct AssertDefaultSortOrderId {
  int32_t default_sort_order_id = 0;
  friend bool operator==(const AssertDefaultSortOrderId&,
                         const AssertDefaultSortOrderId&) = default;
};
}  // namespace table_requirement

using TableRequirement = std::variant<
    table_requirement::AssertCreate, table_requirement::AssertTableUuid,
    table_requirement::AssertRefSnapshotId, table_requirement::AssertLastAssignedFieldId,
    table_requirement::AssertCurrentSchemaId, table_requirement::AssertLastAssignedPartitionId,
    table_requirement::AssertDefaultSpecId, table_requirement::AssertDefaultSortOrderId>;

/// {"type":"assert-table-uuid",…}.
Json TableRequirementToJson(const TableRequirement& requirement);
/// Errors: kInvalidArgument, also for a type that is not known.
Result<TableRequirement> TableRequirementFromJson(const Json& json);

/// Checks all of them; `base` is null when the table does not exist.
/// Errors: kConflict "Requirement failed: …" for the first that does not hold.
Status CheckRequirements(const TableMetadata* base,
                         const std::vector<TableRequirement>& requirements);

/// What a writer that made `updates` from `base` must require (null base = create).
std::vector<TableRequirement> RequirementsFor(const TableMetadata* base,
                                              const std::vector<TableUpdate>& updates);

}  // namespace tarn::iceberg
