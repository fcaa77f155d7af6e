#include "tarn/iceberg/update/snapshot_validation.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "tarn/iceberg/delete_index.h"
#include "tarn/iceberg/scan.h"
#include "tarn/iceberg/update/manifest_filter.h"

namespace tarn::iceberg {
namespace {

Status CheckAdded(const DataFile& file, const SnapshotUpdate& update, const TableMetadata& base,
                  std::unordered_set<std::string>& paths) {
  const auto fail = [&](std::string_view why) {
    return Status::InvalidArgument(fmt::format("file {}: {}", file.file_path, why));
  };
  if (!paths.insert(RemovalKey(file)).second) {
    return fail("it is added twice");
  }
  const PartitionSpec* spec = base.FindSpec(file.spec_id);
  if (spec == nullptr) {
    return fail(fmt::format("the table has no partition spec {}", file.spec_id));
  }
  if (file.content == DataFileContent::kPositionDeletes && base.format_version >= 3 &&
      !file.is_deletion_vector()) {
    return fail("position delete files cannot be added to a table of format version 3");
  }
  if (file.content == DataFileContent::kPositionDeletes && base.format_version < 3 &&
      file.is_deletion_vector()) {
    return fail("deletion vectors need format version 3");
  }
  if (file.is_deletion_vector() && !file.referenced_data_file) {
    return fail("a deletion vector without its data file");
  }
  if (file.content == DataFileContent::kEqualityDeletes && file.equality_ids.empty()) {
    return fail("equality deletes without columns");
  }
  const bool appends = update.operation == SnapshotOperation::kAppend;
  if (appends && file.content != DataFileContent::kData) {
    return fail("an append cannot add delete files");
  }
  return Status::Ok();
}

// Files whose rows the update relies on: what it removes and what its deletes refer to.
struct Concern {
  std::unordered_set<std::string> paths;
  std::unordered_set<std::string> vectors;  // Data files that get a deletion vector.
  std::vector<const DataFile*> removed;
  // Deletes that come with rows: the rows may be new versions of deleted ones, which another delete
  // of those would miss.
  std::vector<const DataFile*> moved;
  bool keeps_number = false;
};

bool IsOfPartition(const std::vector<const DataFile*>& files, const DataFile& deletes) {
  return std::any_of(files.begin(), files.end(), [&](const DataFile* file) {
    return file->spec_id == deletes.spec_id && file->partition == deletes.partition;
  });
}

// Equality deletes without a partition hold in all partitions of all specs.
bool IsGlobal(const DataFile& deletes, const TableMetadata& base) {
  const PartitionSpec* spec = base.FindSpec(deletes.spec_id);
  return deletes.content == DataFileContent::kEqualityDeletes && spec != nullptr &&
         spec->is_unpartitioned();
}

bool AddsVectors(const SnapshotUpdate& update) {
  return std::any_of(update.added_delete_files.begin(), update.added_delete_files.end(),
                     [](const DataFile& file) { return file.is_deletion_vector(); });
}

Status CheckDelete(const ManifestEntry& entry, const Concern& concern, const TableMetadata& base) {
  const DataFile& file = entry.data_file;
  const auto conflict = [&](const std::string& about) {
    return Status::Conflict(
        fmt::format("Found new conflicting delete file {} for {}: read the table again and retry",
                    file.file_path, about));
  };
  if (const std::optional<std::string> path = ReferencedDataFile(file)) {
    const bool about = concern.paths.contains(*path) ||
                       (file.is_deletion_vector() && concern.vectors.contains(*path));
    return about ? conflict(*path) : Status::Ok();
  }
  if (file.content == DataFileContent::kEqualityDeletes && concern.keeps_number) {
    return Status::Ok();  // Still newer than the rewritten rows, so it goes on to apply.
  }
  const bool is_global = IsGlobal(file, base);
  if (is_global ? !concern.removed.empty() : IsOfPartition(concern.removed, file)) {
    return conflict("files that are replaced");
  }
  if (is_global ? !concern.moved.empty() : IsOfPartition(concern.moved, file)) {
    return conflict("rows that are changed");
  }
  return Status::Ok();
}

Status CheckReferenced(const SnapshotUpdate& update, const TableMetadata& base,
                       const Snapshot* head, storage::ObjectStore& store, ManifestCache& cache) {
  std::unordered_set<std::string> missing(update.validation.referenced_data_files.begin(),
                                          update.validation.referenced_data_files.end());
  if (missing.empty()) {
    return Status::Ok();
  }
  if (head != nullptr) {
    TARN_RETURN_IF_ERROR(VisitLiveEntries(
        store, cache, base, *head, ManifestContent::kData,
        [&](const ManifestFile&) { return !missing.empty(); },
        [&](const ManifestEntry& entry) {
          missing.erase(entry.data_file.file_path);
          return Status::Ok();
        }));
  }
  if (!missing.empty()) {
    return Status::Conflict(fmt::format("Cannot commit, missing data files: {} ({} in all)",
                                        *std::min_element(missing.begin(), missing.end()),
                                        missing.size()));
  }
  return Status::Ok();
}

Status CheckNewDeletes(const SnapshotUpdate& update, const TableMetadata& base,
                       const Snapshot& head, int64_t start_number, storage::ObjectStore& store,
                       ManifestCache& cache) {
  Concern concern;
  concern.keeps_number = update.data_sequence_number.has_value();
  for (const DataFile& file : update.added_delete_files) {
    if (file.is_deletion_vector()) {
      concern.vectors.insert(file.referenced_data_file.value_or(""));
    }
  }
  if (update.validation.no_new_deletes) {
    for (const DataFile& file : update.removed_data_files) {
      concern.paths.insert(file.file_path);
      concern.removed.push_back(&file);
    }
    for (const DataFile& file : update.added_delete_files) {
      if (!update.added_data_files.empty()) {
        concern.moved.push_back(&file);
      }
    }
    concern.paths.insert(update.validation.referenced_data_files.begin(),
                         update.validation.referenced_data_files.end());
  }
  return VisitLiveEntries(
      store, cache, base, head, ManifestContent::kDeletes,
      [&](const ManifestFile& manifest) { return manifest.sequence_number > start_number; },
      [&](const ManifestEntry& entry) {
        return entry.file_sequence_number.value_or(0) > start_number
                   ? CheckDelete(entry, concern, base)
                   : Status::Ok();
      });
}

Status CheckNewData(const SnapshotUpdate& update, const TableMetadata& base, const Snapshot& head,
                    int64_t start_number, storage::ObjectStore& store, ManifestCache& cache) {
  const SnapshotValidation& validation = update.validation;
  const Schema& schema = base.CurrentSchema();
  TARN_ASSIGN_OR_RETURN(const Expression filter,
                        Bind(validation.no_new_data.value_or(Expression::False()), schema));
  const auto in_partition = [&](const DataFile& file) {
    return std::any_of(validation.no_new_data_in.begin(), validation.no_new_data_in.end(),
                       [&](const PartitionOfSpec& partition) {
                         return partition.spec_id == file.spec_id &&
                                partition.values == file.partition;
                       });
  };
  return VisitLiveEntries(
      store, cache, base, head, ManifestContent::kData,
      [&](const ManifestFile& manifest) {
        const PartitionSpec* spec = base.FindSpec(manifest.partition_spec_id);
        return manifest.sequence_number > start_number &&
               (spec == nullptr || !validation.no_new_data_in.empty() ||
                MayMatchManifest(filter, schema, *spec, manifest));
      },
      [&](const ManifestEntry& entry) -> Status {
        const DataFile& file = entry.data_file;
        const PartitionSpec* spec = base.FindSpec(file.spec_id);
        // Rewritten files keep their old data sequence number: their rows are not new.
        if (entry.sequence_number.value_or(0) <= start_number) {
          return Status::Ok();
        }
        if (in_partition(file)) {
          return Status::Conflict(fmt::format(
              "Found conflicting files in a partition that is replaced: {}", file.file_path));
        }
        const bool conflicts = MayMatchPartition(filter, schema, *spec, file.partition) &&
                               MayMatchFile(filter, schema, file);
        return conflicts ? Status::Conflict(fmt::format(
                               "Found conflicting files that can contain records matching {}: {}",
                               FormatExpression(*validation.no_new_data), file.file_path))
                         : Status::Ok();
      });
}

}  // namespace

Status ValidateUpdate(const SnapshotUpdate& update, const TableMetadata& base) {
  std::unordered_set<std::string> paths;
  for (const DataFile& file : update.added_data_files) {
    if (file.content != DataFileContent::kData) {
      return Status::InvalidArgument(
          fmt::format("file {}: it holds deletes, not data", file.file_path));
    }
    TARN_RETURN_IF_ERROR(CheckAdded(file, update, base, paths));
  }
  for (const DataFile& file : update.added_delete_files) {
    if (file.content == DataFileContent::kData) {
      return Status::InvalidArgument(
          fmt::format("file {}: it holds data, not deletes", file.file_path));
    }
    TARN_RETURN_IF_ERROR(CheckAdded(file, update, base, paths));
  }
  std::unordered_set<std::string> removed;
  for (const auto* files : {&update.removed_data_files, &update.removed_delete_files}) {
    for (const DataFile& file : *files) {
      if (paths.contains(RemovalKey(file))) {
        return Status::InvalidArgument(
            fmt::format("file {}: it is both added and removed", file.file_path));
      }
      removed.insert(RemovalKey(file));
    }
  }
  for (const std::string& path : update.validation.referenced_data_files) {
    if (removed.contains(path)) {
      return Status::InvalidArgument(
          fmt::format("file {}: rows of it are deleted while it is removed", path));
    }
  }
  if (update.operation == SnapshotOperation::kAppend && !removed.empty()) {
    return Status::InvalidArgument("an append cannot remove files");
  }
  if (update.data_sequence_number && *update.data_sequence_number > base.last_sequence_number) {
    return Status::InvalidArgument(
        fmt::format("data sequence number {} is above the table's last one, {}",
                    *update.data_sequence_number, base.last_sequence_number));
  }
  return Status::Ok();
}

Status ValidateHistory(const SnapshotUpdate& update, const TableMetadata& base,
                       const Snapshot* head, storage::ObjectStore& store, ManifestCache& cache) {
  const SnapshotValidation& validation = update.validation;
  const bool unmoved = head == nullptr ? !validation.starting_snapshot_id
                                       : validation.starting_snapshot_id == head->snapshot_id;
  if (unmoved) {
    return Status::Ok();
  }
  TARN_RETURN_IF_ERROR(CheckReferenced(update, base, head, store, cache));
  const bool deletes_count = validation.no_new_deletes || AddsVectors(update);
  const bool data_counts = validation.no_new_data || !validation.no_new_data_in.empty();
  if (head == nullptr || (!deletes_count && !data_counts)) {
    return Status::Ok();
  }
  int64_t start_number = -1;
  if (validation.starting_snapshot_id) {
    const Snapshot* start = base.FindSnapshot(*validation.starting_snapshot_id);
    if (start == nullptr ||
        !IsAncestorOf(base, *validation.starting_snapshot_id, head->snapshot_id)) {
      return Status::Conflict(fmt::format(
          "Cannot determine history between starting snapshot {} and the last known ancestor {}",
          *validation.starting_snapshot_id, head->snapshot_id));
    }
    start_number = start->sequence_number;
  }
  if (deletes_count) {
    TARN_RETURN_IF_ERROR(CheckNewDeletes(update, base, *head, start_number, store, cache));
  }
  return data_counts ? CheckNewData(update, base, *head, start_number, store, cache) : Status::Ok();
}

}  // namespace tarn::iceberg
