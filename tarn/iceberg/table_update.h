// TableUpdate: one change to a table's metadata, as the REST protocol and commits carry it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/json.h"
#include "tarn/iceberg/table_metadata.h"

namespace tarn::iceberg {

/// Stands for the schema, spec or sort order added last in the same list of updates.
inline constexpr int32_t kLastAdded = -1;

namespace table_update {
struct AssignUuid {
  std::string uuid;
  friend bool operator==(const AssignUuid&, const AssignUuid&) = default;
};
struct UpgradeFormatVersion {
  int32_t format_version = 0;
  friend bool operator==(const UpgradeFormatVersion&, const UpgradeFormatVersion&) = default;
};
struct AddSchema {
  Schema schema;  // Its id is given by the builder; an equal schema is reused.
  std::optional<int32_t> last_column_id;
  friend bool operator==(const AddSchema&, const AddSchema&) = default;
};
struct SetCurrentSchema {
  int32_t schema_id = kLastAdded;
  friend bool operator==(const SetCurrentSchema&, const SetCurrentSchema&) = default;
};
struct AddSpec {
  PartitionSpec spec;  // Fields with id 0 get one.
  friend bool operator==(const AddSpec&, const AddSpec&) = default;
};
struct SetDefaultSpec {
  int32_t spec_id = kLastAdded;
  friend bool operator==(const SetDefaultSpec&, const SetDefaultSpec&) = default;
};
struct AddSortOrder {
  SortOrder order;
  friend bool operator==(const AddSortOrder&, const AddSortOrder&) = default;
};
struct SetDefaultSortOrder {
  int32_t order_id = kLastAdded;
  friend bool operator==(const SetDefaultSortOrder&, const SetDefaultSortOrder&) = default;
};
struct AddSnapshot {
  Snapshot snapshot;
  friend bool operator==(const AddSnapshot&, const AddSnapshot&) = default;
};
struct SetSnapshotRef {
  std::string name;
  SnapshotRef ref;
  friend bool operator==(const SetSnapshotRef&, const SetSnapshotRef&) = default;
};
struct RemoveSnapshots {
  std::vector<int64_t> snapshot_ids;
  friend bool operator==(const RemoveSnapshots&, const RemoveSnapshots&) = default;
};
struct RemoveSnapshotRef {
  std::string name;
  friend bool operator==(const RemoveSnapshotRef&, const RemoveSnapshotRef&) = default;
};
struct SetLocation {
  std::string location;
  friend bool operator==(const SetLocation&, const SetLocation&) = default;
};
struct SetProperties {
  std::map<std::string, std::string> updates;
  friend bool operator==(const SetProperties&, const SetProperties&) = default;
};
struct RemoveProperties {
  std::vector<std::string> removals;
  friend bool operator==(const RemoveProperties&, const RemoveProperties&) = default;
};
struct SetStatistics {
  StatisticsFile statistics;
  friend bool operator==(const SetStatistics&, const SetStatistics&) = default;
};
struct RemoveStatistics {
  int64_t snapshot_id = 0;
  friend bool operator==(const RemoveStatistics&, const RemoveStatistics&) = default;
};
struct SetPartitionStatistics {
  PartitionStatisticsFile statistics;
  friend bool operator==(const SetPartitionStatistics&, const SetPartitionStatistics&) = default;
};
struct RemovePartitionStatistics {
  int64_t snapshot_id = 0;
  friend bool operator==(const RemovePartitionStatistics&,
                         const RemovePartitionStatistics&) = default;
};
struct RemovePartitionSpecs {
  std::vector<int32_t> spec_ids;
  friend bool operator==(const RemovePartitionSpecs&, const RemovePartitionSpecs&) = default;
};
struct RemoveSchemas {
  std::vector<int32_t> schema_ids;
  friend bool operator==(const RemoveSchemas&, const RemoveSchemas&) = default;
};
struct AddEncryptionKey {
  std::string key_id;
  std::string key_json;  // The whole key object, kept and not used.
  friend bool operator==(const AddEncryptionKey&, const AddEncryptionKey&) = default;
};
struct RemoveEncryptionKey {
  std::string key_id;
  friend bool operator==(const RemoveEncryptionKey&, const RemoveEncryptionKey&) = default;
};
}  // namespace table_update

using TableUpdate = std::variant<
    table_update::AssignUuid, table_update::UpgradeFormatVersion, table_update::AddSchema,
    table_update::SetCurrentSchema, table_update::AddSpec, table_update::SetDefaultSpec,
    table_update::AddSortOrder, table_update::SetDefaultSortOrder, table_update::AddSnapshot,
    table_update::SetSnapshotRef, table_update::RemoveSnapshots, table_update::RemoveSnapshotRef,
    table_update::SetLocation, table_update::SetProperties, table_update::RemoveProperties,
    table_update::SetStatistics, table_update::RemoveStatistics,
    table_update::SetPartitionStatistics, table_update::RemovePartitionStatistics,
    table_update::RemovePartitionSpecs, table_update::RemoveSchemas, table_update::AddEncryptionKey,
    table_update::RemoveEncryptionKey>;

/// {"action":"add-schema",…}.
Json TableUpdateToJson(const TableUpdate& update);
/// Accepts the older member names "updated" and "removed". Errors: kInvalidArgument, also for an
/// action that is not known.
Result<TableUpdate> TableUpdateFromJson(const Json& json);

}  // namespace tarn::iceberg
