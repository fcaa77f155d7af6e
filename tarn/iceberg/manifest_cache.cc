#include "tarn/iceberg/manifest_cache.h"

#include <list>
#include <mutex>
#include <unordered_map>

#include <fmt/format.h>

#include "tarn/iceberg/manifest_avro.h"

namespace tarn::iceberg {
namespace {

uint64_t SizeOf(const std::vector<ManifestFile>& manifests) {
  uint64_t size = 64;
  for (const ManifestFile& manifest : manifests) {
    size += sizeof(manifest) + manifest.manifest_path.size() +
            manifest.partitions.size() * (sizeof(PartitionFieldSummary) + 32);
  }
  return size;
}

uint64_t SizeOf(const std::vector<ManifestEntry>& entries) {
  uint64_t size = 64;
  for (const ManifestEntry& entry : entries) {
    const DataFile& file = entry.data_file;
    size += sizeof(entry) + file.file_path.size() + file.partition.size() * sizeof(Literal) +
            (file.column_sizes.size() + file.value_counts.size() + file.null_value_counts.size() +
             file.nan_value_counts.size()) *
                sizeof(FieldMap<int64_t>::Entry) +
            (file.lower_bounds.size() + file.upper_bounds.size()) *
                (sizeof(FieldMap<std::string>::Entry) + 8) +
            file.split_offsets.size() * sizeof(int64_t);
  }
  return size;
}

}  // namespace

struct ManifestCache::State {
  struct Item {
    std::string path;
    ManifestList list;  // One of the two is set.
    ManifestEntries entries;
    uint64_t size_bytes = 0;
  };
  using Items = std::list<Item>;

  ManifestCacheOptions options;
  mutable std::mutex mutex;
  Items items;  // Most recently used first.
  std::unordered_map<std::string_view, Items::iterator> by_path;
  uint64_t size_bytes = 0;

  std::optional<Item> Find(const std::string& path) {
    const std::lock_guard lock(mutex);
    const auto at = by_path.find(path);
    if (at == by_path.end()) {
      return std::nullopt;
    }
    items.splice(items.begin(), items, at->second);
    return *at->second;
  }

  void Keep(Item item) {
    const std::lock_guard lock(mutex);
    if (item.size_bytes > options.size_bytes_max || by_path.contains(item.path)) {
      return;
    }
    size_bytes += item.size_bytes;
    items.push_front(std::move(item));
    by_path.emplace(items.front().path, items.begin());
    while (size_bytes > options.size_bytes_max) {
      size_bytes -= items.back().size_bytes;
      by_path.erase(items.back().path);
      items.pop_back();
    }
  }
};

ManifestCache::ManifestCache(ManifestCacheOptions options) : state_(std::make_unique<State>()) {
  state_->options = options;
}
ManifestCache::~ManifestCache() = default;

uint64_t ManifestCache::size_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->size_bytes;
}

namespace {

Status Encrypted(std::string_view what, const std::string& path) {
  return Status::Unimplemented(
      fmt::format("{} {} is encrypted: encrypted tables cannot be read here", what, path));
}

// Version 1 snapshots may name their manifests themselves: nothing is known of them.
std::vector<ManifestFile> InlineManifests(const Snapshot& snapshot) {
  std::vector<ManifestFile> manifests;
  for (const std::string& path : snapshot.manifests) {
    manifests.push_back({.manifest_path = path, .added_snapshot_id = snapshot.snapshot_id});
  }
  return manifests;
}

}  // namespace

Result<ManifestList> ManifestCache::ReadList(storage::ObjectStore& store,
                                             const TableMetadata& /*metadata*/,
                                             const Snapshot& snapshot) {
  if (snapshot.manifest_list.empty()) {
    return std::make_shared<const std::vector<ManifestFile>>(InlineManifests(snapshot));
  }
  if (const auto found = state_->Find(snapshot.manifest_list); found && found->list != nullptr) {
    return found->list;
  }
  if (snapshot.unknown.contains("key-id")) {
    return Encrypted("manifest list", snapshot.manifest_list);
  }
  TARN_ASSIGN_OR_RETURN(const std::string key, KeyOf(store, snapshot.manifest_list));
  TARN_ASSIGN_OR_RETURN(const std::string bytes, storage::ReadObject(store, key));
  Result<std::vector<ManifestFile>> manifests = DecodeManifestList(bytes);
  if (!manifests.ok()) {
    return manifests.status().WithContext(fmt::format("manifest list {}", snapshot.manifest_list));
  }
  auto list = std::make_shared<const std::vector<ManifestFile>>(std::move(manifests).value());
  state_->Keep({.path = snapshot.manifest_list, .list = list, .size_bytes = SizeOf(*list)});
  return ManifestList(list);
}

Result<ManifestEntries> ManifestCache::ReadManifest(storage::ObjectStore& store,
                                                    const TableMetadata& metadata,
                                                    const ManifestFile& manifest) {
  if (const auto found = state_->Find(manifest.manifest_path); found && found->entries != nullptr) {
    return found->entries;
  }
  const PartitionSpec* spec = metadata.FindSpec(manifest.partition_spec_id);
  if (spec == nullptr) {
    return Status::Corruption(fmt::format("manifest {}: the table has no partition spec {}",
                                          manifest.manifest_path, manifest.partition_spec_id));
  }
  if (manifest.key_metadata && !manifest.key_metadata->empty()) {
    return Encrypted("manifest", manifest.manifest_path);
  }
  TARN_ASSIGN_OR_RETURN(const std::string key, KeyOf(store, manifest.manifest_path));
  TARN_ASSIGN_OR_RETURN(const std::string bytes, storage::ReadObject(store, key));
  Result<DecodedManifest> decoded = DecodeManifest(bytes, *spec);
  if (!decoded.ok()) {
    return decoded.status().WithContext(fmt::format("manifest {}", manifest.manifest_path));
  }
  DecodedManifest whole = std::move(decoded).value();
  TARN_RETURN_IF_ERROR(InheritFrom(manifest, whole.format_version, whole.entries));
  auto entries = std::make_shared<const std::vector<ManifestEntry>>(std::move(whole.entries));
  state_->Keep(
      {.path = manifest.manifest_path, .entries = entries, .size_bytes = SizeOf(*entries)});
  return ManifestEntries(entries);
}

}  // namespace tarn::iceberg
