// TableMetadata: everything about a table but its rows; one JSON file per version of the table.
//
// A value. Changes go through ApplyUpdates (metadata_builder.h), which checks them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/json.h"
#include "tarn/iceberg/partition_spec.h"
#include "tarn/iceberg/schema.h"
#include "tarn/iceberg/snapshot.h"
#include "tarn/iceberg/sort_order.h"

namespace tarn::iceberg {

struct SnapshotLogEntry {
  int64_t snapshot_id = 0;
  int64_t timestamp_ms = 0;
  friend bool operator==(const SnapshotLogEntry&, const SnapshotLogEntry&) = default;
};

struct MetadataLogEntry {
  std::string metadata_file;
  int64_t timestamp_ms = 0;
  friend bool operator==(const MetadataLogEntry&, const MetadataLogEntry&) = default;
};

/// One blob of a statistics file.
struct BlobMetadata {
  std::string type;
  int64_t snapshot_id = 0;
  int64_t sequence_number = 0;
  std::vector<int32_t> fields;
  std::map<std::string, std::string> properties;
  friend bool operator==(const BlobMetadata&, const BlobMetadata&) = default;
};

struct StatisticsFile {
  int64_t snapshot_id = 0;
  std::string statistics_path;
  int64_t file_size_bytes = 0;
  int64_t file_footer_size_bytes = 0;
  std::vector<BlobMetadata> blob_metadata;
  UnknownMembers unknown;
  friend bool operator==(const StatisticsFile&, const StatisticsFile&) = default;
};

struct PartitionStatisticsFile {
  int64_t snapshot_id = 0;
  std::string statistics_path;
  int64_t file_size_bytes = 0;
  friend bool operator==(const PartitionStatisticsFile&, const PartitionStatisticsFile&) = default;
};

using SchemaPtr = std::shared_ptr<const Schema>;

inline constexpr int32_t kFormatVersionMax = 3;      // Read.
inline constexpr int32_t kFormatVersionDefault = 2;  // Written unless asked otherwise.

struct TableMetadata {
  int32_t format_version = kFormatVersionDefault;
  std::string table_uuid;  // Lower case; empty only in old version 1 files.
  std::string location;    // No trailing slash.
  int64_t last_sequence_number = 0;
  int64_t last_updated_ms = 0;
  int32_t last_column_id = 0;
  std::vector<SchemaPtr> schemas;
  int32_t current_schema_id = 0;
  std::vector<PartitionSpec> partition_specs;
  int32_t default_spec_id = 0;
  int32_t last_partition_id = kFirstPartitionFieldId - 1;
  std::vector<SortOrder> sort_orders;
  int32_t default_sort_order_id = 0;
  std::map<std::string, std::string> properties;
  std::optional<int64_t> current_snapshot_id;
  std::vector<SnapshotPtr> snapshots;
  std::vector<SnapshotLogEntry> snapshot_log;
  std::vector<MetadataLogEntry> metadata_log;
  std::map<std::string, SnapshotRef> refs;
  std::vector<StatisticsFile> statistics;
  std::vector<PartitionStatisticsFile> partition_statistics;
  int64_t next_row_id = 0;                     // Version 3.
  std::optional<std::string> encryption_keys;  // Version 3: JSON text, kept and not used.
  UnknownMembers unknown;

  /// The current schema; present in every metadata that was parsed or built.
  [[nodiscard]] const Schema& CurrentSchema() const;
  [[nodiscard]] const Schema* FindSchema(int32_t schema_id) const;
  [[nodiscard]] const PartitionSpec& DefaultSpec() const;
  [[nodiscard]] const PartitionSpec* FindSpec(int32_t spec_id) const;
  [[nodiscard]] const SortOrder& DefaultSortOrder() const;
  [[nodiscard]] const SortOrder* FindSortOrder(int32_t order_id) const;
  /// Head of main, null when the table has no snapshot.
  [[nodiscard]] const Snapshot* CurrentSnapshot() const;
  [[nodiscard]] const Snapshot* FindSnapshot(int64_t snapshot_id) const;
  /// The snapshot a branch or tag points to, null when there is none.
  [[nodiscard]] const Snapshot* FindSnapshotOf(std::string_view ref) const;
  /// The schema a snapshot was written with, else the current one.
  [[nodiscard]] const Schema& SchemaOf(const Snapshot& snapshot) const;
  /// A property, or the default when it is missing or not a number.
  [[nodiscard]] int64_t LongProperty(std::string_view key, int64_t otherwise) const;
  [[nodiscard]] bool BoolProperty(std::string_view key, bool otherwise) const;
  friend bool operator==(const TableMetadata& a, const TableMetadata& b);
};

/// Ids of a snapshot and its ancestors that are still in the metadata, newest first.
std::vector<int64_t> AncestorsOf(const TableMetadata& metadata, int64_t snapshot_id);
/// True when `ancestor` is `snapshot_id` or one of its ancestors.
bool IsAncestorOf(const TableMetadata& metadata, int64_t ancestor, int64_t snapshot_id);
/// The snapshot of main that was current at a time. Errors: kNotFound naming the oldest one.
Result<int64_t> SnapshotIdAsOf(const TableMetadata& metadata, int64_t timestamp_ms);

struct TableDefinition {
  std::string table_uuid;
  std::string location;
  Schema schema;                                  // Ids are given afresh from 1.
  PartitionSpec spec;                             // Source ids refer to `schema` as given.
  SortOrder sort_order;                           // Likewise.
  std::map<std::string, std::string> properties;  // "format-version" chooses the version.
};
/// Names that stand for something else than a property ("uuid", "format-version", …); they are
/// never stored.
bool IsReservedProperty(std::string_view name);

/// Metadata of a table without snapshots. Errors: kInvalidArgument.
Result<TableMetadata> MakeTableMetadata(const TableDefinition& table, int64_t now_ms);

/// Checks that ids refer to what exists, logs are in order, refs point to snapshots and main agrees
/// with the current snapshot. Errors: kInvalidArgument saying what is wrong.
Status ValidateTableMetadata(const TableMetadata& metadata);

}  // namespace tarn::iceberg
