#include "tarn/iceberg/scan.h"

#include <fmt/format.h>

#include "tarn/iceberg/file_filter.h"

namespace tarn::iceberg {

Status VisitLiveEntries(storage::ObjectStore& store, ManifestCache& cache,
                        const TableMetadata& metadata, const Snapshot& snapshot,
                        ManifestContent content,
                        const std::function<bool(const ManifestFile&)>& accept,
                        const std::function<Status(const ManifestEntry&)>& visit) {
  TARN_ASSIGN_OR_RETURN(const ManifestList manifests, cache.ReadList(store, metadata, snapshot));
  for (const ManifestFile& manifest : *manifests) {
    if (manifest.content != content || !manifest.has_live_files() || !accept(manifest)) {
      continue;
    }
    TARN_ASSIGN_OR_RETURN(const ManifestEntries entries,
                          cache.ReadManifest(store, metadata, manifest));
    for (const ManifestEntry& entry : *entries) {
      if (entry.is_live()) {
        TARN_RETURN_IF_ERROR(visit(entry));
      }
    }
  }
  return Status::Ok();
}

namespace {

Result<DeleteIndex> ReadDeletes(storage::ObjectStore& store, ManifestCache& cache,
                                const TableMetadata& metadata, const Snapshot& snapshot,
                                const std::function<bool(const ManifestFile&)>& accept) {
  // Keeps the entries alive while the index is built from them.
  std::vector<ManifestEntries> held;
  std::vector<const ManifestEntry*> live;
  TARN_ASSIGN_OR_RETURN(const ManifestList manifests, cache.ReadList(store, metadata, snapshot));
  for (const ManifestFile& manifest : *manifests) {
    if (manifest.content != ManifestContent::kDeletes || !manifest.has_live_files() ||
        !accept(manifest)) {
      continue;
    }
    TARN_ASSIGN_OR_RETURN(ManifestEntries entries, cache.ReadManifest(store, metadata, manifest));
    for (const ManifestEntry& entry : *entries) {
      if (entry.is_live()) {
        live.push_back(&entry);
      }
    }
    held.push_back(std::move(entries));
  }
  return DeleteIndex::Build(metadata, live);
}

}  // namespace

Result<std::vector<FileScanTask>> PlanScan(storage::ObjectStore& store, ManifestCache& cache,
                                           const TableMetadata& metadata,
                                           std::optional<int64_t> snapshot_id,
                                           const Expression& filter, const ScanOptions& options) {
  std::vector<FileScanTask> tasks;
  const Snapshot* snapshot =
      snapshot_id ? metadata.FindSnapshot(*snapshot_id) : metadata.CurrentSnapshot();
  if (snapshot == nullptr && snapshot_id) {
    return Status::NotFound(fmt::format("the table has no snapshot {}", *snapshot_id));
  }
  // A snapshot asked for by id is read as it was written; the current one by the current schema.
  const Schema& schema =
      snapshot != nullptr && snapshot_id ? metadata.SchemaOf(*snapshot) : metadata.CurrentSchema();
  TARN_ASSIGN_OR_RETURN(const Expression bound, Bind(filter, schema, options.case_rule));
  if (snapshot == nullptr || bound.kind == ExpressionKind::kFalse) {
    return tasks;
  }
  const auto accept = [&](const ManifestFile& manifest) {
    const PartitionSpec* spec = metadata.FindSpec(manifest.partition_spec_id);
    return spec == nullptr || MayMatchManifest(bound, schema, *spec, manifest);
  };
  // Global equality deletes have no partition values, so their manifests always pass.
  TARN_ASSIGN_OR_RETURN(const DeleteIndex deletes,
                        ReadDeletes(store, cache, metadata, *snapshot, accept));
  const FileFilter wanted(bound, schema);
  TARN_RETURN_IF_ERROR(VisitLiveEntries(
      store, cache, metadata, *snapshot, ManifestContent::kData, accept,
      [&](const ManifestEntry& entry) -> Status {
        const DataFile& file = entry.data_file;
        const PartitionSpec* spec = metadata.FindSpec(file.spec_id);
        if (!wanted.MayMatchPartition(*spec, file.partition) ||
            (options.prune_by_bounds && !wanted.MayMatchFile(file))) {
          return Status::Ok();
        }
        if (tasks.size() >= options.file_count_max) {
          return Status(ErrorCode::kResourceExhausted,
                        fmt::format("the scan has more than {} files", options.file_count_max));
        }
        FileScanTask task;
        task.sequence_number = entry.sequence_number.value_or(0);
        task.added_snapshot_id = entry.snapshot_id.value_or(0);
        task.deletes = deletes.Find(file, task.sequence_number);
        task.residual = ResidualOf(bound, schema, *spec, file.partition);
        task.file = file;
        tasks.push_back(std::move(task));
        return Status::Ok();
      }));
  return tasks;
}

}  // namespace tarn::iceberg
