// TableSpec: what the pipeline file says of one target table. Value, without any state.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tarn/lakehouse/fold.h"
#include "tarn/lakehouse/view_sql.h"

namespace tarn::lakehouse {

enum class Mode : uint8_t {
  kMerge,   // One row per key; changes are collected and applied.
  kAppend,  // Every input row becomes a row.
};

/// When unapplied changes are applied; any of the limits triggers.
struct ApplyThresholds {
  double rows_ratio = 0.01;     // Of the rows of Current.
  int64_t rows_min = 10'000;    // The row limit is the greater of the two.
  int64_t bytes = 128LL << 20;  // Of change files.
  int64_t files = 64;
  std::optional<std::chrono::microseconds> age_max;
};

enum class AtStop : uint8_t { kLeaveChanges, kApply };
enum class Publish : uint8_t { kApplied, kNone };

struct SnapshotRetention {
  std::chrono::microseconds age_max = std::chrono::hours{2};
  int32_t min_keep = 10;
  int32_t count_max = 500;
};

struct TableSpec {
  std::string owner;            // "pipeline.task": a table belongs to one task.
  std::string name;             // Of the target, with its prefix.
  std::string external_schema;  // Folder of the views.
  std::string internal_schema;  // Folder of the physical table.
  std::string history_suffix = "__history";
  Mode mode = Mode::kMerge;
  std::vector<std::string> key;  // Names of user columns; may be empty in append mode only.
  NullKeys null_keys = NullKeys::kRejected;
  FoldOptions fold;
  std::vector<std::string> partition_by;  // "day(created_at)", "bucket(16, id)", "country".
  std::vector<std::string> sort_by;       // "col" or "col desc".
  std::vector<std::string> view_headers;
  std::vector<std::pair<std::string, std::string>> table_properties;
  ApplyThresholds apply;
  AtStop at_stop = AtStop::kLeaveChanges;
  Publish publish = Publish::kApplied;
  SnapshotRetention snapshots;
  std::optional<std::chrono::microseconds> keep_changes;
  uint64_t memory_bytes = 512ULL << 20;

  /// "<name>_internal".
  [[nodiscard]] std::string internal_name() const { return name + "_internal"; }
  [[nodiscard]] std::string history_name() const { return name + history_suffix; }
  [[nodiscard]] std::string applied_name() const { return name + "__applied"; }
};

}  // namespace tarn::lakehouse
