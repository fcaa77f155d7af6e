// ManifestFilter: the manifests of a head with some of their files marked deleted.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/manifest.h"
#include "tarn/iceberg/manifest_cache.h"
#include "tarn/iceberg/table_metadata.h"
#include "tarn/iceberg/update/manifest_file_writer.h"
#include "tarn/iceberg/update/snapshot_summary.h"
#include "tarn/storage/object_store.h"

namespace tarn::iceberg {

/// What names a file among those of a snapshot: its path and, since several deletion vectors may
/// share a Puffin file, "@<offset>" behind it for those.
std::string RemovalKey(const DataFile& file);

/// What to take out of the manifests of one content.
struct FileRemoval {
  std::vector<DataFile> files;  // By path; each must be found live.
  /// Delete files about one of these data files go too, without having to be there.
  std::unordered_set<std::string> removed_data_files;
  /// The lowest data sequence number of live data files: delete files below it, equality deletes
  /// also at it, apply to nothing any more.
  int64_t obsolete_below = 0;
  /// Data files that get a deletion vector: one that they have and that is not in `files` is a
  /// conflict.
  std::unordered_set<std::string> vectors_for;
};

struct FilterResult {
  std::vector<ManifestFile> manifests;  // In the order given, rewritten where files went.
  int64_t rewritten_count = 0;
};

/// Rewrites the manifests that hold a file to remove: it becomes DELETED, the others EXISTING;
/// files deleted before are dropped. What is removed is added to `summary`. Errors: kConflict for a
/// file that is not live; those of the store.
Result<FilterResult> FilterManifests(const std::vector<ManifestFile>& manifests,
                                     const FileRemoval& removal, const TableMetadata& base,
                                     storage::ObjectStore& store, ManifestCache& cache,
                                     ManifestFileWriter& writer, SnapshotSummary& summary);

}  // namespace tarn::iceberg
