#include "tarn/iceberg/update/manifest_filter.h"

#include <algorithm>

#include <fmt/format.h>

#include "tarn/iceberg/delete_index.h"

namespace tarn::iceberg {
namespace {

// False only when the summaries of a manifest rule out a partition.
bool MayHoldPartition(const ManifestFile& manifest, const std::vector<Type>& types,
                      const PartitionValues& values) {
  if (manifest.partitions.size() != values.size() || types.size() != values.size()) {
    return true;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const PartitionFieldSummary& summary = manifest.partitions[i];
    if (values[i].is_null()) {
      if (!summary.contains_null) {
        return false;
      }
      continue;
    }
    if (values[i].is_nan() || !summary.lower_bound || !summary.upper_bound) {
      continue;
    }
    const Result<Literal> lower = DecodeLiteral(types[i], *summary.lower_bound);
    const Result<Literal> upper = DecodeLiteral(types[i], *summary.upper_bound);
    if (lower.ok() && upper.ok() &&
        (CompareLiterals(values[i], *lower) < 0 || CompareLiterals(*upper, values[i]) < 0)) {
      return false;
    }
  }
  return true;
}

// A deletion vector that must not stay beside a new one.
std::optional<std::string> VectorFor(const DataFile& file,
                                     const std::unordered_set<std::string>& data_files) {
  if (!file.is_deletion_vector()) {
    return std::nullopt;
  }
  std::optional<std::string> path = ReferencedDataFile(file);
  return path && data_files.contains(*path) ? path : std::nullopt;
}

class Filter {
 public:
  Filter(const FileRemoval& removal, const TableMetadata& base, storage::ObjectStore& store,
         ManifestCache& cache, ManifestFileWriter& writer, SnapshotSummary& summary)
      : removal_(removal),
        base_(base),
        store_(store),
        cache_(cache),
        writer_(writer),
        summary_(summary) {
    for (const DataFile& file : removal.files) {
      wanted_.insert(RemovalKey(file));
      missing_.insert(RemovalKey(file));
    }
    // Part of the names of rewritten manifests: what else than the head decides their content.
    key_suffix_ = fmt::format("|{}", removal.obsolete_below);
  }

  Result<FilterResult> Run(const std::vector<ManifestFile>& manifests) {
    FilterResult result;
    result.manifests = manifests;
    std::vector<bool> visited(manifests.size(), false);
    // Hints first; what they do not lead to is looked for everywhere.
    for (const bool everywhere : {false, true}) {
      for (size_t i = 0; i < manifests.size(); ++i) {
        if (!visited[i] && manifests[i].has_live_files() &&
            (everywhere ? !missing_.empty() : MayConcern(manifests[i]))) {
          visited[i] = true;
          TARN_ASSIGN_OR_RETURN(const bool rewritten, Rewrite(result.manifests[i]));
          result.rewritten_count += rewritten ? 1 : 0;
        }
      }
    }
    if (!missing_.empty()) {
      return Status::Conflict(fmt::format(
          "Missing required files to delete: {} ({} in all): read the table again and retry",
          *std::min_element(missing_.begin(), missing_.end()), missing_.size()));
    }
    return result;
  }

 private:
  [[nodiscard]] bool MayConcern(const ManifestFile& manifest) const {
    if (manifest.content == ManifestContent::kDeletes &&
        (!removal_.removed_data_files.empty() || !removal_.vectors_for.empty() ||
         manifest.min_sequence_number <= removal_.obsolete_below)) {
      return true;
    }
    const PartitionSpec* spec = base_.FindSpec(manifest.partition_spec_id);
    if (spec == nullptr) {
      return true;
    }
    const std::vector<Type> types = PartitionTypes(*spec, base_.CurrentSchema());
    return std::any_of(removal_.files.begin(), removal_.files.end(), [&](const DataFile& file) {
      return file.spec_id == manifest.partition_spec_id &&
             MayHoldPartition(manifest, types, file.partition);
    });
  }

  [[nodiscard]] bool Goes(const ManifestEntry& entry) const {
    const DataFile& file = entry.data_file;
    if (wanted_.contains(RemovalKey(file))) {
      return true;
    }
    if (file.content == DataFileContent::kData) {
      return false;
    }
    // Position deletes apply to rows of their own number, too; equality deletes to older ones only.
    const int64_t number = entry.sequence_number.value_or(0);
    const bool equality = file.content == DataFileContent::kEqualityDeletes;
    if (number < removal_.obsolete_below || (equality && number == removal_.obsolete_below)) {
      return true;
    }
    const std::optional<std::string> path = ReferencedDataFile(file);
    return path && removal_.removed_data_files.contains(*path);
  }

  // Replaces `manifest` when files of it go.
  Result<bool> Rewrite(ManifestFile& manifest) {
    TARN_ASSIGN_OR_RETURN(const ManifestEntries entries,
                          cache_.ReadManifest(store_, base_, manifest));
    std::vector<ManifestEntry> rewritten;
    bool any = false;
    for (const ManifestEntry& entry : *entries) {
      if (!entry.is_live()) {
        continue;
      }
      ManifestEntry copy = entry;
      copy.status = ManifestStatus::kExisting;
      if (Goes(entry)) {
        any = true;
        copy.status = ManifestStatus::kDeleted;
        copy.snapshot_id = writer_.snapshot_id();
        missing_.erase(RemovalKey(entry.data_file));
        summary_.Remove(entry.data_file);
      } else if (const auto path = VectorFor(entry.data_file, removal_.vectors_for)) {
        return Status::Conflict(
            fmt::format("{} has a deletion vector already, which the new one does not replace: "
                        "read the table again and retry",
                        *path));
      }
      rewritten.push_back(std::move(copy));
    }
    if (!any) {
      return false;
    }
    TARN_ASSIGN_OR_RETURN(
        manifest, writer_.Write(base_, manifest.content, manifest.partition_spec_id, rewritten,
                                manifest.manifest_path + key_suffix_));
    return true;
  }

  const FileRemoval& removal_;
  const TableMetadata& base_;
  storage::ObjectStore& store_;
  ManifestCache& cache_;
  ManifestFileWriter& writer_;
  SnapshotSummary& summary_;
  std::unordered_set<std::string> wanted_;
  std::unordered_set<std::string> missing_;
  std::string key_suffix_;
};

}  // namespace

std::string RemovalKey(const DataFile& file) {
  return file.is_deletion_vector() ? fmt::format("{}@{}", file.file_path, *file.content_offset)
                                   : file.file_path;
}

Result<FilterResult> FilterManifests(const std::vector<ManifestFile>& manifests,
                                     const FileRemoval& removal, const TableMetadata& base,
                                     storage::ObjectStore& store, ManifestCache& cache,
                                     ManifestFileWriter& writer, SnapshotSummary& summary) {
  if (removal.files.empty() && removal.removed_data_files.empty() && removal.vectors_for.empty() &&
      removal.obsolete_below == 0) {
    return FilterResult{.manifests = manifests};
  }
  return Filter(removal, base, store, cache, writer, summary).Run(manifests);
}

}  // namespace tarn::iceberg
