#include "tarn/lakehouse/table_files.h"

#include <algorithm>

#include <fmt/format.h>

#include "tarn/iceberg/position_delete.h"
#include "tarn/lakehouse/header_columns.h"

namespace tarn::lakehouse {

namespace {

// Value of hdr__partition in a file's partition tuple; empty when its spec has no such field.
std::string PartitionOf(const iceberg::TableMetadata& metadata, const iceberg::DataFile& file) {
  const iceberg::PartitionSpec* spec = metadata.FindSpec(file.spec_id);
  if (spec == nullptr) {
    return {};
  }
  for (size_t i = 0; i < spec->fields.size() && i < file.partition.size(); ++i) {
    if (spec->fields[i].source_id == Spec(HeaderColumn::kPartition).field_id &&
        !file.partition[i].is_null()) {
      return file.partition[i].AsString();
    }
  }
  return {};
}

const std::string* BoundOf(const iceberg::FieldMap<std::string>& bounds, HeaderColumn column) {
  return bounds.Find(Spec(column).field_id);
}

}  // namespace

int64_t TableFiles::change_rows() const {
  int64_t rows = 0;
  for (const FileScanTask& task : changes) {
    rows += task.file.record_count;
  }
  return rows;
}

int64_t TableFiles::change_bytes() const {
  int64_t bytes = 0;
  for (const FileScanTask& task : changes) {
    bytes += task.file.file_size_bytes;
  }
  return bytes;
}

int64_t TableFiles::current_rows() const {
  int64_t rows = 0;
  for (const FileScanTask& task : current) {
    rows += task.file.record_count;
  }
  return rows;
}

Result<TableFiles> ListTableFiles(storage::ObjectStore& store, iceberg::ManifestCache& cache,
                                  const iceberg::TableMetadata& metadata,
                                  std::optional<int64_t> snapshot_id) {
  TARN_ASSIGN_OR_RETURN(std::vector<FileScanTask> tasks,
                        iceberg::PlanScan(store, cache, metadata, snapshot_id,
                                          iceberg::Expression{}, iceberg::ScanOptions{}));
  TableFiles files;
  for (FileScanTask& task : tasks) {
    const std::string partition = PartitionOf(metadata, task.file);
    if (partition == kChangesPartition) {
      files.changes.push_back(std::move(task));
    } else if (partition == kAssetStatePartition) {
      files.asset_state.push_back(std::move(task));
    } else if (partition == kCurrentPartition || partition.empty()) {
      files.current.push_back(std::move(task));
    } else if (partition == kPriorPartition) {
      files.prior.push_back(std::move(task));
    } else if (partition != kReloadPartition) {
      return Status::Corruption(
          fmt::format("{}: hdr__partition is \"{}\", which tarn does not write",
                      task.file.file_path, partition));
    }
  }
  std::sort(files.changes.begin(), files.changes.end(),
            [](const FileScanTask& a, const FileScanTask& b) {
              return LowestIdentifier(a.file) < LowestIdentifier(b.file);
            });
  return files;
}

bool HoldsDeletesOnly(const iceberg::DataFile& file) {
  const std::string* lower = BoundOf(file.lower_bounds, HeaderColumn::kOperation);
  const std::string* upper = BoundOf(file.upper_bounds, HeaderColumn::kOperation);
  // Files between D and d have no others: those of rows that live have neither.
  const auto deletes = [](const std::string* bound) {
    return bound != nullptr && (*bound == "D" || *bound == "d");
  };
  return deletes(lower) && deletes(upper);
}

std::string LowestIdentifier(const iceberg::DataFile& file) {
  const std::string* bound = BoundOf(file.lower_bounds, HeaderColumn::kChangeIdentifier);
  return bound == nullptr ? std::string() : *bound;
}

Result<std::vector<int64_t>> DeletedPositions(storage::ObjectStore& store,
                                              const FileScanTask& task) {
  std::vector<iceberg::DataFile> files;
  for (const iceberg::DeleteFilePtr& deletes : task.deletes) {
    if (deletes->file.content != iceberg::DataFileContent::kPositionDeletes) {
      return Status::Unimplemented(
          fmt::format("{} has equality deletes ({}): this table was written by someone else",
                      task.file.file_path, deletes->file.file_path));
    }
    files.push_back(deletes->file);
  }
  if (files.empty()) {
    return std::vector<int64_t>();
  }
  return iceberg::ReadPositionDeletesOf(store, files, task.file.file_path);
}

}  // namespace tarn::lakehouse
