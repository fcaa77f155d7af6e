// What Catalog keeps between calls, for the sources of catalog.h alone.
#pragma once

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tarn/catalog/catalog.h"
#include "tarn/catalog/location_cache.h"

namespace tarn::catalog {

struct Catalog::Caches {
  explicit Caches(const CatalogOptions& options)
      : tables(options.metadata_count_max, options.metadata_bytes_max),
        views(options.metadata_count_max, options.metadata_bytes_max / 8),
        manifests(options.manifest_cache) {}

  /// About what decoded metadata takes in memory.
  static size_t SizeOf(const iceberg::TableMetadata& metadata) {
    size_t fields = 0;
    for (const iceberg::SchemaPtr& schema : metadata.schemas) {
      fields += schema->fields.size();
    }
    return 4096 + metadata.snapshots.size() * 2048 + fields * 256 +
           metadata.metadata_log.size() * 256;
  }
  void Add(const std::string& location, const TableMetadataPtr& metadata) {
    tables.Add(location, metadata, SizeOf(*metadata));
  }
  void Add(const std::string& location, const ViewMetadataPtr& metadata) {
    views.Add(location, metadata, 4096 + metadata->versions.size() * 2048);
  }

  LocationCache<iceberg::TableMetadata> tables;
  LocationCache<iceberg::ViewMetadata> views;
  iceberg::ManifestCache manifests;
};

/// One lock per object, some of them shared. Not the truth: the pointers are.
class Catalog::Locks {
 public:
  using Held = std::vector<std::unique_lock<std::mutex>>;

  /// Waits for all of them, always in one order.
  Held Take(const std::vector<Rid>& rids) {
    std::vector<size_t> places;
    for (const Rid& rid : rids) {
      if (!rid.empty()) {
        places.push_back(std::hash<Rid>{}(rid) % mutexes_.size());
      }
    }
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    Held held;
    for (const size_t place : places) {
      held.emplace_back(mutexes_[place]);
    }
    return held;
  }

 private:
  std::array<std::mutex, 256> mutexes_;
};

/// Commits that wait for the lock of their table. Whoever gets it takes the others along.
class Catalog::Waiting {
 public:
  struct Entry {
    const TableChange* change = nullptr;
    const metastore::SqlFunction* also = nullptr;
    std::optional<Result<LoadedTable>> result{};  // Written and read under the table's lock.
  };

  void Add(Entry& entry) {
    const std::lock_guard lock(mutex_);
    entries_[entry.change->table.rid].push_back(&entry);
  }
  /// In the order in which they came.
  std::vector<Entry*> TakeAll(const Rid& rid) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(rid);
    if (found == entries_.end()) {
      return {};
    }
    std::vector<Entry*> taken = std::move(found->second);
    entries_.erase(found);
    return taken;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<Rid, std::vector<Entry*>> entries_;  // Guarded by mutex_.
};

}  // namespace tarn::catalog
