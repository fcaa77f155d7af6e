// Expiry of snapshots: which go (pure), and which files nothing refers to any more afterwards.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/manifest_cache.h"
#include "tarn/iceberg/table_metadata.h"
#include "tarn/iceberg/table_update.h"
#include "tarn/storage/object_store.h"

namespace tarn::iceberg {

struct ExpiryOptions {
  int64_t max_age_ms = 5LL * 24 * 3600 * 1000;  // Younger snapshots stay.
  int32_t min_keep = 1;                         // Per branch, newest first.
  std::optional<int32_t> max_count;    // Per branch: at most this many stay, whatever their age;
                                       // not below min_keep.
  int64_t max_ref_age_ms = INT64_MAX;  // Refs other than main whose snapshot is older are dropped.
  /// Nothing is expired until this many snapshots are due, so that the work after it is done
  /// seldom. A branch above max_count is cut to max_count - batch + 1.
  int32_t batch = 1;

  /// From "history.expire.*" of a table's properties.
  static ExpiryOptions FromProperties(const TableMetadata& metadata);
};

struct ExpiryPlan {
  std::vector<int64_t> snapshot_ids;
  std::vector<std::string> refs;
  [[nodiscard]] bool empty() const { return snapshot_ids.empty() && refs.empty(); }
};

/// Heads of branches and tags always stay; settings of a branch win over `options`. Snapshots that
/// no ref leads to stay while younger than max_age_ms.
ExpiryPlan PlanExpiry(const TableMetadata& metadata, const ExpiryOptions& options, int64_t now_ms);
std::vector<TableUpdate> UpdatesFor(const ExpiryPlan& plan);

/// Files that became unreachable, as URIs.
struct UnreachableFiles {
  std::vector<std::string> manifest_lists;
  std::vector<std::string> manifests;
  std::vector<std::string> data_files;  // Data and delete files.
  std::vector<std::string> statistics;
  [[nodiscard]] std::vector<std::string> All() const;
};

/// Files that `before` reached and `after`, the metadata without the expired snapshots, does not.
///
/// Reads every manifest that only expired snapshots have and, when those hold files, the remaining
/// ones that may name the same files. No data file is listed when a remaining manifest cannot be
/// read (that is an error). With "gc.enabled" = false data files are never listed.
/// Errors: those of the store; kCorruption. A manifest list or manifest of an expired snapshot that
/// is gone already is passed over.
Result<UnreachableFiles> FindUnreachableFiles(storage::ObjectStore& store, ManifestCache& cache,
                                              const TableMetadata& before,
                                              const TableMetadata& after);

/// Every file the metadata refers to, for orphan clean-up and purge: metadata files of the log,
/// manifest lists, manifests, data and delete files (also DELETED entries), statistics.
Result<std::vector<std::string>> ListReferencedFiles(storage::ObjectStore& store,
                                                     ManifestCache& cache,
                                                     const TableMetadata& metadata,
                                                     const std::string& metadata_location);

}  // namespace tarn::iceberg
