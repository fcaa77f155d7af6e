// ManifestCache: manifests and manifest lists that were read before. The files never change, so
// entries are never stale; the least recently used go when the cache is full.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tarn/base/status.h"
#include "tarn/iceberg/manifest.h"
#include "tarn/iceberg/snapshot.h"
#include "tarn/iceberg/table_metadata.h"
#include "tarn/storage/object_store.h"

namespace tarn::iceberg {

struct ManifestCacheOptions {
  uint64_t size_bytes_max = 128ULL << 20;  // Estimated memory of decoded entries; 0 keeps nothing.
};

/// Threads: any; two readers of one missing file may both read it.
class ManifestCache {
 public:
  explicit ManifestCache(ManifestCacheOptions options = {});
  ~ManifestCache();
  ManifestCache(const ManifestCache&) = delete;
  ManifestCache& operator=(const ManifestCache&) = delete;

  /// The manifests of a snapshot. Errors: those of the store; kCorruption naming the file.
  Result<ManifestList> ReadList(storage::ObjectStore& store, const TableMetadata& metadata,
                                const Snapshot& snapshot);
  /// Entries of a manifest after inheritance. Errors: as above; kCorruption when the metadata lacks
  /// its spec.
  Result<ManifestEntries> ReadManifest(storage::ObjectStore& store, const TableMetadata& metadata,
                                       const ManifestFile& manifest);
  [[nodiscard]] uint64_t size_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tarn::iceberg
