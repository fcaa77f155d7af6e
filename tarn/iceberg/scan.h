// Scan planning: which files of a snapshot a reader needs, with the deletes that apply to each.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/delete_index.h"
#include "tarn/iceberg/expression.h"
#include "tarn/iceberg/manifest_cache.h"
#include "tarn/iceberg/table_metadata.h"
#include "tarn/storage/object_store.h"

namespace tarn::iceberg {

struct FileScanTask {
  DataFile file;
  int64_t sequence_number = 0;  // Data sequence number.
  int64_t added_snapshot_id = 0;
  std::vector<DeleteFilePtr> deletes;
  Expression residual;  // Bound; what the reader must still check.
};

struct ScanOptions {
  CaseRule case_rule = CaseRule::kSensitive;
  bool prune_by_bounds = true;
  size_t file_count_max = 10'000'000;
};

/// Files that may hold rows matching `filter` in the snapshot (empty = current; a table without
/// snapshots gives none). The filter is bound to the schema of the snapshot.
/// Errors: kNotFound for a snapshot that is not there; kInvalidArgument for the filter;
/// kResourceExhausted above the limit; those of the store.
Result<std::vector<FileScanTask>> PlanScan(storage::ObjectStore& store, ManifestCache& cache,
                                           const TableMetadata& metadata,
                                           std::optional<int64_t> snapshot_id,
                                           const Expression& filter, const ScanOptions& options);

/// Live entries of one snapshot. `content`: data or delete manifests. Visits in manifest order;
/// `accept` may refuse whole manifests.
Status VisitLiveEntries(storage::ObjectStore& store, ManifestCache& cache,
                        const TableMetadata& metadata, const Snapshot& snapshot,
                        ManifestContent content,
                        const std::function<bool(const ManifestFile&)>& accept,
                        const std::function<Status(const ManifestEntry&)>& visit);

}  // namespace tarn::iceberg
