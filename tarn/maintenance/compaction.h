// Compaction: small files of a table into larger ones, deleted rows left out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/catalog/catalog.h"
#include "tarn/engine/engine.h"
#include "tarn/iceberg/scan.h"
#include "tarn/iceberg/table_metadata.h"

namespace tarn::maintenance {

struct CompactionOptions {
  int64_t target_bytes = 512LL << 20;
  /// Files outside of [0.75, 1.8] times the target are rewritten, where there are several of them.
  double small_ratio = 0.75;
  double large_ratio = 1.8;
  /// A file with this share of its rows deleted is rewritten whatever its size; so is one that
  /// equality deletes apply to.
  double deleted_ratio = 0.3;
  int64_t group_bytes_max = 10LL << 30;  // Rewritten by one commit.

  /// "write.target-file-size-bytes" of a table's properties.
  static CompactionOptions FromProperties(const iceberg::TableMetadata& metadata);
};

/// Files that become one or few, all of one partition and spec.
struct CompactionGroup {
  std::vector<iceberg::FileScanTask> files;
  int64_t size_bytes = 0;
};

/// Groups in the order of their first files. Pure.
std::vector<CompactionGroup> PlanCompaction(const std::vector<iceberg::FileScanTask>& files,
                                            const CompactionOptions& options);

struct CompactionRequest {
  bool dry_run = false;
  metastore::SqlFunction also{};  // Done in the SQL transaction of each commit.
};

struct CompactionReport {
  int64_t groups = 0;
  int64_t files_before = 0;
  int64_t files_after = 0;  // Unknown (0) in a dry run.
  int64_t bytes_before = 0;
  int64_t bytes_after = 0;
  int64_t deleted_rows = 0;  // Rows that were deleted and are gone now.
  int64_t conflicts = 0;     // Groups that gave way to commits meanwhile.
};

/// Rewrites each group under the current spec, sorted by the table's order where that is of plain
/// columns, and commits it as a replace snapshot of its own. Rows keep their data sequence number,
/// in version 3 also their row ids. A group whose files get deletes meanwhile is dropped and
/// counted; run again later.
///
/// Errors: kFailedPrecondition for tables of pipelines, which their applies rewrite; kUnimplemented
/// for tables of format version 1 and types that cannot be written; those of the store and the
/// engine. Groups committed before an error stay committed. Crash: new files of the group under way
/// are orphans.
Result<CompactionReport> CompactTable(catalog::Catalog& catalog, engine::Engine& engine,
                                      const Rid& table, const CompactionRequest& request);

}  // namespace tarn::maintenance
