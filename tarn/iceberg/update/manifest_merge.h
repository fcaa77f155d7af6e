// Which manifests to merge, so that a table with a commit every second keeps a short manifest list.
#pragma once

#include <cstdint>
#include <vector>

#include "tarn/iceberg/manifest.h"
#include "tarn/iceberg/table_metadata.h"

namespace tarn::iceberg {

struct MergeOptions {
  bool enabled = true;
  int64_t target_bytes = 8LL << 20;
  int32_t min_count = 100;

  /// From "commit.manifest*" of a table's properties.
  static MergeOptions FromProperties(const TableMetadata& metadata);
};

/// Groups of indexes into `manifests`, each to become one manifest. Pure.
///
/// Manifests of one spec and content fall into tiers by their live files: tier t holds those with
/// min_count^t to min_count^(t+1) files. A tier with min_count manifests is merged, so an entry is
/// rewritten once per tier (three times in a million files) and a list holds at most
/// min_count × tiers small manifests per spec. `all`: everything below the target size at once.
std::vector<std::vector<size_t>> PlanManifestMerge(const std::vector<ManifestFile>& manifests,
                                                   const MergeOptions& options, bool all);

}  // namespace tarn::iceberg
