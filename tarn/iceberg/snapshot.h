// Snapshot and SnapshotRef: a state of the table, and the branches and tags that name one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"
#include "tarn/iceberg/json.h"

namespace tarn::iceberg {

enum class SnapshotOperation : uint8_t { kAppend, kReplace, kOverwrite, kDelete };
/// "append", "replace", "overwrite", "delete".
std::string_view SnapshotOperationName(SnapshotOperation operation);
Result<SnapshotOperation> ParseSnapshotOperation(std::string_view text);

struct Snapshot {
  int64_t snapshot_id = 0;
  std::optional<int64_t> parent_snapshot_id;
  int64_t sequence_number = 0;  // 0 in version 1.
  int64_t timestamp_ms = 0;
  std::string manifest_list;           // Location; empty only in version 1 with `manifests`.
  std::vector<std::string> manifests;  // Version 1 without a manifest list.
  SnapshotOperation operation = SnapshotOperation::kOverwrite;
  std::map<std::string, std::string> summary;  // Without "operation".
  std::optional<int32_t> schema_id;
  std::optional<int64_t> first_row_id;  // Version 3.
  std::optional<int64_t> added_rows;    // Version 3.
  UnknownMembers unknown;
  friend bool operator==(const Snapshot&, const Snapshot&) = default;
};

/// Snapshots are shared, immutable, between the versions of a table's metadata.
using SnapshotPtr = std::shared_ptr<const Snapshot>;

inline constexpr std::string_view kMainBranch = "main";

enum class SnapshotRefType : uint8_t { kBranch, kTag };

struct SnapshotRef {
  int64_t snapshot_id = 0;
  SnapshotRefType type = SnapshotRefType::kBranch;
  std::optional<int32_t> min_snapshots_to_keep;  // Branches only.
  std::optional<int64_t> max_snapshot_age_ms;    // Branches only.
  std::optional<int64_t> max_ref_age_ms;         // Not for main.
  friend bool operator==(const SnapshotRef&, const SnapshotRef&) = default;
};

/// A new positive id from random bits. Callers draw again on a collision.
int64_t MakeSnapshotId();

Json SnapshotToJson(const Snapshot& snapshot);
Result<Snapshot> SnapshotFromJson(const Json& json);
Json SnapshotRefToJson(const SnapshotRef& ref);
/// Errors: kInvalidArgument, also for branch settings on a tag and for values that are not
/// positive.
Result<SnapshotRef> SnapshotRefFromJson(const Json& json);

}  // namespace tarn::iceberg
