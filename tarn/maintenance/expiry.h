// Expiry of a table's snapshots on request, with the files that only they needed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"
#include "tarn/catalog/catalog.h"

namespace tarn::maintenance {

struct ExpiryRequest {
  std::optional<std::chrono::milliseconds> older_than;  // Empty: the table's properties.
  std::optional<int32_t> keep;                          // Snapshots of each branch; likewise.
  bool dry_run = false;
  metastore::SqlFunction also{};  // Done in the SQL transaction of the commit.
};

/// What went, or would go.
struct ExpiryReport {
  std::vector<int64_t> snapshot_ids;
  std::vector<std::string> refs;
  int64_t manifest_lists = 0;
  int64_t manifests = 0;
  int64_t data_files = 0;  // And delete files.
  int64_t statistics = 0;
  int64_t left_behind = 0;  // Could not be deleted: orphan clean-up gets them.
};

/// Heads of branches and tags stay, and what they reach. The snapshots go in one commit; the files
/// that the table no longer reaches are deleted after it, so a crash in between leaves orphans and
/// nothing else. With gc.enabled = false nothing is done.
///
/// Errors: kFailedPrecondition for gc.enabled = false and for tables of pipelines, whose commits
/// expire snapshots themselves; kConflict when a branch moved meanwhile.
Result<ExpiryReport> ExpireSnapshots(catalog::Catalog& catalog, const Rid& table,
                                     const ExpiryRequest& request);

}  // namespace tarn::maintenance
