#include "tarn/iceberg/update/manifest_merge.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace tarn::iceberg {

MergeOptions MergeOptions::FromProperties(const TableMetadata& metadata) {
  MergeOptions options;
  options.enabled = metadata.BoolProperty("commit.manifest-merge.enabled", true);
  options.target_bytes = std::max<int64_t>(
      metadata.LongProperty("commit.manifest.target-size-bytes", options.target_bytes), 1024);
  options.min_count = static_cast<int32_t>(std::clamp<int64_t>(
      metadata.LongProperty("commit.manifest.min-count-to-merge", options.min_count), 2, 100'000));
  return options;
}

namespace {

int TierOf(const ManifestFile& manifest, int32_t base) {
  // Without counts (version 1) the size tells: an entry takes some 200 bytes packed.
  int64_t files = manifest.added_files_count && manifest.existing_files_count
                      ? manifest.live_files_count()
                      : manifest.manifest_length / 200;
  int tier = 0;
  while (files >= base && tier < 10) {
    files /= base;
    ++tier;
  }
  return tier;
}

}  // namespace

std::vector<std::vector<size_t>> PlanManifestMerge(const std::vector<ManifestFile>& manifests,
                                                   const MergeOptions& options, bool all) {
  using Key = std::tuple<ManifestContent, int32_t, int>;
  std::map<Key, std::vector<size_t>> tiers;
  for (size_t i = 0; i < manifests.size(); ++i) {
    const ManifestFile& manifest = manifests[i];
    if (manifest.manifest_length < options.target_bytes * 3 / 4) {
      tiers[{manifest.content, manifest.partition_spec_id,
             all ? 0 : TierOf(manifest, options.min_count)}]
          .push_back(i);
    }
  }
  std::vector<std::vector<size_t>> groups;
  for (const auto& [key, members] : tiers) {
    if (members.size() < (all ? 2U : static_cast<size_t>(options.min_count))) {
      continue;
    }
    std::vector<size_t> group;
    int64_t group_bytes = 0;
    const auto close = [&] {
      if (group.size() > 1) {
        groups.push_back(group);
      }
      group.clear();
      group_bytes = 0;
    };
    for (const size_t i : members) {
      if (!group.empty() && group_bytes + manifests[i].manifest_length > options.target_bytes) {
        close();
      }
      group.push_back(i);
      group_bytes += manifests[i].manifest_length;
    }
    close();
  }
  return groups;
}

}  // namespace tarn::iceberg
