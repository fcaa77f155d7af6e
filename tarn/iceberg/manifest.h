// DataFile, ManifestEntry, ManifestFile: what manifests and manifest lists hold.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/field_map.h"
#include "tarn/iceberg/literal.h"
#include "tarn/iceberg/partition_spec.h"
#include "tarn/iceberg/schema.h"

namespace tarn::iceberg {

enum class DataFileContent : uint8_t { kData = 0, kPositionDeletes = 1, kEqualityDeletes = 2 };

/// A data file or a delete file.
struct DataFile {
  DataFileContent content = DataFileContent::kData;
  std::string file_path;  // Full URI.
  std::string file_format = "PARQUET";
  int32_t spec_id = 0;  // Not stored in the entry: that of its manifest.
  PartitionValues partition;
  int64_t record_count = 0;
  int64_t file_size_bytes = 0;
  FieldMap<int64_t> column_sizes;  // Compressed bytes by leaf field id.
  FieldMap<int64_t> value_counts;  // Nulls and NaN included.
  FieldMap<int64_t> null_value_counts;
  FieldMap<int64_t> nan_value_counts;
  FieldMap<std::string> lower_bounds;  // Binary single values; may be truncated.
  FieldMap<std::string> upper_bounds;
  std::optional<std::string> key_metadata;
  std::vector<int64_t> split_offsets;
  std::vector<int32_t> equality_ids;
  std::optional<int32_t> sort_order_id;
  std::optional<int64_t> first_row_id;              // Version 3.
  std::optional<std::string> referenced_data_file;  // Position deletes of one data file.
  std::optional<int64_t> content_offset;            // Deletion vectors.
  std::optional<int64_t> content_size_bytes;

  /// A blob in a Puffin file rather than a Parquet file of positions.
  [[nodiscard]] bool is_deletion_vector() const { return content_offset.has_value(); }
  friend bool operator==(const DataFile&, const DataFile&) = default;
};

enum class ManifestStatus : uint8_t { kExisting = 0, kAdded = 1, kDeleted = 2 };

/// One file in one manifest. Numbers are as read after inheritance, or as to be written.
struct ManifestEntry {
  ManifestStatus status = ManifestStatus::kAdded;
  std::optional<int64_t> snapshot_id;      // That added it, or that deleted it.
  std::optional<int64_t> sequence_number;  // Data sequence number.
  std::optional<int64_t> file_sequence_number;
  DataFile data_file;

  [[nodiscard]] bool is_live() const { return status != ManifestStatus::kDeleted; }
  friend bool operator==(const ManifestEntry&, const ManifestEntry&) = default;
};

enum class ManifestContent : uint8_t { kData = 0, kDeletes = 1 };

/// What a manifest list says of one partition field over a manifest's files.
struct PartitionFieldSummary {
  bool contains_null = false;
  std::optional<bool> contains_nan;
  std::optional<std::string> lower_bound;  // In the type of the partition value.
  std::optional<std::string> upper_bound;
  friend bool operator==(const PartitionFieldSummary&, const PartitionFieldSummary&) = default;
};

/// One manifest in a manifest list.
struct ManifestFile {
  std::string manifest_path;
  int64_t manifest_length = 0;
  int32_t partition_spec_id = 0;
  ManifestContent content = ManifestContent::kData;
  int64_t sequence_number = 0;
  int64_t min_sequence_number = 0;
  int64_t added_snapshot_id = 0;
  std::optional<int32_t> added_files_count;  // Counts may be missing in version 1: assume some.
  std::optional<int32_t> existing_files_count;
  std::optional<int32_t> deleted_files_count;
  std::optional<int64_t> added_rows_count;
  std::optional<int64_t> existing_rows_count;
  std::optional<int64_t> deleted_rows_count;
  std::vector<PartitionFieldSummary> partitions;
  std::optional<std::string> key_metadata;
  std::optional<int64_t> first_row_id;

  /// False only when the counts say that no file of it is live.
  [[nodiscard]] bool has_live_files() const;
  [[nodiscard]] int64_t live_files_count() const;
  friend bool operator==(const ManifestFile&, const ManifestFile&) = default;
};

// Immutable once read; shared with the cache.
using ManifestEntries = std::shared_ptr<const std::vector<ManifestEntry>>;
using ManifestList = std::shared_ptr<const std::vector<ManifestFile>>;

}  // namespace tarn::iceberg
