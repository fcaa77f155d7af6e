#include "tarn/iceberg/snapshot_expiry.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include <fmt/format.h>

namespace tarn::iceberg {

ExpiryOptions ExpiryOptions::FromProperties(const TableMetadata& metadata) {
  ExpiryOptions options;
  options.max_age_ms =
      metadata.LongProperty("history.expire.max-snapshot-age-ms", options.max_age_ms);
  options.min_keep = static_cast<int32_t>(std::clamp<int64_t>(
      metadata.LongProperty("history.expire.min-snapshots-to-keep", 1), 1, INT32_MAX));
  options.max_ref_age_ms =
      metadata.LongProperty("history.expire.max-ref-age-ms", options.max_ref_age_ms);
  return options;
}

namespace {

struct BranchPlan {
  std::vector<int64_t> kept;
  bool over_count = false;
};

BranchPlan PlanBranch(const TableMetadata& metadata, const SnapshotRef& ref,
                      const ExpiryOptions& options, int64_t now_ms) {
  const auto min_keep = static_cast<size_t>(ref.min_snapshots_to_keep.value_or(options.min_keep));
  const int64_t max_age = ref.max_snapshot_age_ms.value_or(options.max_age_ms);
  BranchPlan plan;
  for (const int64_t id : AncestorsOf(metadata, ref.snapshot_id)) {
    const Snapshot* snapshot = metadata.FindSnapshot(id);
    const bool young = now_ms - snapshot->timestamp_ms <= max_age;
    if (plan.kept.size() >= min_keep && !young && !plan.kept.empty()) {
      break;
    }
    plan.kept.push_back(id);
  }
  if (options.max_count) {
    const auto max_count = static_cast<size_t>(std::max(1, *options.max_count));
    plan.over_count = plan.kept.size() > std::max(max_count, min_keep);
    if (plan.over_count) {
      const auto batch = static_cast<size_t>(std::max(1, options.batch));
      const size_t limit = max_count >= batch ? max_count - batch + 1 : 1;
      plan.kept.resize(std::min(plan.kept.size(), std::max({limit, min_keep, size_t{1}})));
    }
  }
  return plan;
}

}  // namespace

ExpiryPlan PlanExpiry(const TableMetadata& metadata, const ExpiryOptions& options, int64_t now_ms) {
  ExpiryPlan plan;
  std::unordered_set<int64_t> kept;
  std::unordered_set<int64_t> referenced;
  bool over_count = false;
  for (const auto& [name, ref] : metadata.refs) {
    const Snapshot* head = metadata.FindSnapshot(ref.snapshot_id);
    const int64_t max_ref_age = ref.max_ref_age_ms.value_or(options.max_ref_age_ms);
    if (name != kMainBranch && (head == nullptr || now_ms - head->timestamp_ms > max_ref_age)) {
      plan.refs.push_back(name);
      continue;
    }
    kept.insert(ref.snapshot_id);
    referenced.insert(ref.snapshot_id);
    if (ref.type == SnapshotRefType::kBranch) {
      const BranchPlan branch = PlanBranch(metadata, ref, options, now_ms);
      kept.insert(branch.kept.begin(), branch.kept.end());
      over_count = over_count || branch.over_count;
      for (const int64_t id : AncestorsOf(metadata, ref.snapshot_id)) {
        referenced.insert(id);
      }
    }
  }
  for (const SnapshotPtr& snapshot : metadata.snapshots) {
    const bool young = now_ms - snapshot->timestamp_ms <= options.max_age_ms;
    const bool stays = kept.contains(snapshot->snapshot_id) ||
                       (!referenced.contains(snapshot->snapshot_id) && young);
    if (!stays) {
      plan.snapshot_ids.push_back(snapshot->snapshot_id);
    }
  }
  if (!over_count && plan.refs.empty() &&
      plan.snapshot_ids.size() < static_cast<size_t>(std::max(1, options.batch))) {
    return {};
  }
  return plan;
}

std::vector<TableUpdate> UpdatesFor(const ExpiryPlan& plan) {
  std::vector<TableUpdate> updates;
  for (const std::string& ref : plan.refs) {
    updates.emplace_back(table_update::RemoveSnapshotRef{ref});
  }
  if (!plan.snapshot_ids.empty()) {
    updates.emplace_back(table_update::RemoveSnapshots{plan.snapshot_ids});
  }
  return updates;
}

std::vector<std::string> UnreachableFiles::All() const {
  std::vector<std::string> all = data_files;
  all.insert(all.end(), manifests.begin(), manifests.end());
  all.insert(all.end(), manifest_lists.begin(), manifest_lists.end());
  all.insert(all.end(), statistics.begin(), statistics.end());
  return all;
}

namespace {

// Manifests of a set of snapshots, each once.
using ManifestsByPath = std::map<std::string, ManifestFile>;

Status CollectManifests(storage::ObjectStore& store, ManifestCache& cache,
                        const TableMetadata& metadata, const Snapshot& snapshot,
                        ManifestsByPath& out) {
  TARN_ASSIGN_OR_RETURN(const ManifestList list, cache.ReadList(store, metadata, snapshot));
  for (const ManifestFile& manifest : *list) {
    out.try_emplace(manifest.manifest_path, manifest);
  }
  return Status::Ok();
}

Status KeepUnlessGone(Status status) {
  return status.code() == ErrorCode::kNotFound ? Status::Ok() : status;
}

void CollectStatistics(const TableMetadata& before, const TableMetadata& after,
                       std::vector<std::string>& out) {
  std::unordered_set<std::string> remaining;
  for (const StatisticsFile& file : after.statistics) {
    remaining.insert(file.statistics_path);
  }
  for (const PartitionStatisticsFile& file : after.partition_statistics) {
    remaining.insert(file.statistics_path);
  }
  for (const StatisticsFile& file : before.statistics) {
    if (!remaining.contains(file.statistics_path)) {
      out.push_back(file.statistics_path);
    }
  }
  for (const PartitionStatisticsFile& file : before.partition_statistics) {
    if (!remaining.contains(file.statistics_path)) {
      out.push_back(file.statistics_path);
    }
  }
}

// Files live in manifests that are going, less those live in one that stays.
Result<std::vector<std::string>> DeadFiles(storage::ObjectStore& store, ManifestCache& cache,
                                           const TableMetadata& metadata,
                                           const ManifestsByPath& going,
                                           const ManifestsByPath& staying) {
  std::set<std::string> dead;
  std::set<std::pair<ManifestContent, int32_t>> kinds;
  for (const auto& [path, manifest] : going) {
    const Result<ManifestEntries> entries = cache.ReadManifest(store, metadata, manifest);
    if (!entries.ok()) {
      TARN_RETURN_IF_ERROR(KeepUnlessGone(entries.status()));
      continue;
    }
    for (const ManifestEntry& entry : **entries) {
      if (entry.is_live()) {
        dead.insert(entry.data_file.file_path);
        kinds.emplace(manifest.content, manifest.partition_spec_id);
      }
    }
  }
  for (const auto& [path, manifest] : staying) {
    if (dead.empty()) {
      break;
    }
    // A file is always listed under the spec it was written with.
    if (!kinds.contains({manifest.content, manifest.partition_spec_id}) ||
        !manifest.has_live_files()) {
      continue;
    }
    TARN_ASSIGN_OR_RETURN(const ManifestEntries entries,
                          cache.ReadManifest(store, metadata, manifest));
    for (const ManifestEntry& entry : *entries) {
      if (entry.is_live()) {
        dead.erase(entry.data_file.file_path);
      }
    }
  }
  return std::vector<std::string>(dead.begin(), dead.end());
}

}  // namespace

Result<UnreachableFiles> FindUnreachableFiles(storage::ObjectStore& store, ManifestCache& cache,
                                              const TableMetadata& before,
                                              const TableMetadata& after) {
  UnreachableFiles files;
  std::vector<SnapshotPtr> expired;
  for (const SnapshotPtr& snapshot : before.snapshots) {
    if (after.FindSnapshot(snapshot->snapshot_id) == nullptr) {
      expired.push_back(snapshot);
    }
  }
  CollectStatistics(before, after, files.statistics);
  if (expired.empty()) {
    return files;
  }
  ManifestsByPath staying;
  std::unordered_set<std::string> staying_lists;
  for (const SnapshotPtr& snapshot : after.snapshots) {
    TARN_RETURN_IF_ERROR(CollectManifests(store, cache, after, *snapshot, staying));
    staying_lists.insert(snapshot->manifest_list);
  }
  ManifestsByPath going;
  for (const SnapshotPtr& snapshot : expired) {
    TARN_RETURN_IF_ERROR(KeepUnlessGone(CollectManifests(store, cache, before, *snapshot, going)));
    if (!snapshot->manifest_list.empty() && !staying_lists.contains(snapshot->manifest_list)) {
      files.manifest_lists.push_back(snapshot->manifest_list);
    }
  }
  std::erase_if(going, [&](const auto& entry) { return staying.contains(entry.first); });
  if (before.BoolProperty("gc.enabled", true)) {
    TARN_ASSIGN_OR_RETURN(files.data_files, DeadFiles(store, cache, before, going, staying));
  }
  for (const auto& [path, manifest] : going) {
    files.manifests.push_back(path);
  }
  return files;
}

Result<std::vector<std::string>> ListReferencedFiles(storage::ObjectStore& store,
                                                     ManifestCache& cache,
                                                     const TableMetadata& metadata,
                                                     const std::string& metadata_location) {
  std::set<std::string> files;
  if (!metadata_location.empty()) {
    files.insert(metadata_location);
  }
  for (const MetadataLogEntry& entry : metadata.metadata_log) {
    files.insert(entry.metadata_file);
  }
  for (const StatisticsFile& file : metadata.statistics) {
    files.insert(file.statistics_path);
  }
  for (const PartitionStatisticsFile& file : metadata.partition_statistics) {
    files.insert(file.statistics_path);
  }
  ManifestsByPath manifests;
  for (const SnapshotPtr& snapshot : metadata.snapshots) {
    if (!snapshot->manifest_list.empty()) {
      files.insert(snapshot->manifest_list);
    }
    TARN_RETURN_IF_ERROR(CollectManifests(store, cache, metadata, *snapshot, manifests));
  }
  for (const auto& [path, manifest] : manifests) {
    files.insert(path);
    TARN_ASSIGN_OR_RETURN(const ManifestEntries entries,
                          cache.ReadManifest(store, metadata, manifest));
    for (const ManifestEntry& entry : *entries) {
      files.insert(entry.data_file.file_path);
    }
  }
  return std::vector<std::string>(files.begin(), files.end());
}

}  // namespace tarn::iceberg
