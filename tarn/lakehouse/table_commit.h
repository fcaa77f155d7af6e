// TableCommit: one snapshot of an internal table and the matching one of its published table,
// committed together with the rows that the metastore keeps of them. Only for target_table.cc.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tarn/catalog/catalog.h"
#include "tarn/iceberg/snapshot_update.h"
#include "tarn/lakehouse/apply.h"
#include "tarn/lakehouse/table_inputs.h"
#include "tarn/lakehouse/table_spec.h"

namespace tarn::lakehouse {

// Keys of snapshot summaries. Every commit carries the first three.
inline constexpr std::string_view kChangeCountKey = "tarn.change-count";
inline constexpr std::string_view kApplyIdentifierKey = "tarn.apply-change-identifier";
inline constexpr std::string_view kCopyIdentifierKey = "tarn.copy-change-identifier";
inline constexpr std::string_view kInputKeyPrefix = "tarn.input.";

/// Value of a summary key of the current snapshot, empty when it is missing.
std::string SummaryOf(const iceberg::TableMetadata& metadata, std::string_view key);

struct SnapshotPair {
  iceberg::SnapshotUpdate internal;
  std::optional<iceberg::SnapshotUpdate> applied;
};

struct TableCommitRequest {
  Rid internal;
  std::optional<Rid> applied;
  /// Makes the updates on the newest metadata: what derives from the head is made anew for each
  /// attempt.
  std::function<Result<SnapshotPair>(const iceberg::TableMetadata&)> plan;
  std::vector<ConsumedInput> inputs;
  metastore::SqlFunction also;
  Timestamp now;
};

struct TableCommitted {
  int64_t snapshot_id = 0;
  catalog::LoadedTable before;
  catalog::LoadedTable after;
  std::optional<catalog::LoadedTable> applied_before;
  std::optional<catalog::LoadedTable> applied_after;
};

inline constexpr int kCommitAttemptsMax = 10;

/// Errors: those of plan and of Catalog::CommitTables; kConflict after the last attempt. Unless the
/// state is unknown, no manifest of a failed attempt is left.
Result<TableCommitted> CommitSnapshots(catalog::Catalog& catalog,
                                       const TableCommitRequest& request);

/// Deletes what only expired snapshots referred to; files that the published table's snapshots
/// still have stay. Failures are logged: orphan clean-up gets the rest.
void RemoveExpiredFiles(catalog::Catalog& catalog, const TableCommitted& committed);

/// The update of the published table that mirrors an apply.
iceberg::SnapshotUpdate PublishedUpdate(const ApplyResult& result,
                                        const iceberg::TableMetadata& internal);

/// Expiry settings of a spec.
iceberg::ExpiryOptions ExpiryOf(const SnapshotRetention& retention);

}  // namespace tarn::lakehouse
