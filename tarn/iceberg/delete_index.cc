#include "tarn/iceberg/delete_index.h"

#include <algorithm>

namespace tarn::iceberg {

std::optional<std::string> ReferencedDataFile(const DataFile& delete_file) {
  if (delete_file.content != DataFileContent::kPositionDeletes) {
    return std::nullopt;
  }
  if (delete_file.referenced_data_file) {
    return delete_file.referenced_data_file;
  }
  const std::string* lower = delete_file.lower_bounds.Find(kFilePathColumnId);
  const std::string* upper = delete_file.upper_bounds.Find(kFilePathColumnId);
  // Equal bounds are not truncated: a cut upper bound is always greater.
  return lower != nullptr && upper != nullptr && *lower == *upper
             ? std::optional<std::string>(*lower)
             : std::nullopt;
}

size_t DeleteIndex::PartitionKeyHash::operator()(const PartitionKey& key) const {
  return PartitionValuesHash{}(key.values) ^ static_cast<size_t>(key.spec_id) * 0x9E3779B1U;
}

DeleteIndex DeleteIndex::Build(const TableMetadata& metadata,
                               const std::vector<const ManifestEntry*>& entries) {
  DeleteIndex index;
  for (const ManifestEntry* entry : entries) {
    const DataFile& file = entry->data_file;
    auto deletes =
        std::make_shared<const DeleteFile>(DeleteFile{file, entry->sequence_number.value_or(0)});
    ++index.size_;
    if (file.content == DataFileContent::kEqualityDeletes) {
      const PartitionSpec* spec = metadata.FindSpec(file.spec_id);
      if (spec != nullptr && spec->is_unpartitioned()) {
        index.global_equality_.push_back(std::move(deletes));
      } else {
        index.equality_by_partition_[{file.spec_id, file.partition}].push_back(std::move(deletes));
      }
      continue;
    }
    const std::optional<std::string> path = ReferencedDataFile(file);
    if (file.is_deletion_vector() && path) {
      index.vectors_by_path_[*path].push_back(std::move(deletes));
    } else if (path) {
      index.positions_by_path_[*path].push_back(std::move(deletes));
    } else {
      index.positions_by_partition_[{file.spec_id, file.partition}].push_back(std::move(deletes));
    }
  }
  return index;
}

std::vector<DeleteFilePtr> DeleteIndex::Find(const DataFile& file, int64_t sequence_number) const {
  std::vector<DeleteFilePtr> found;
  if (size_ == 0) {
    return found;
  }
  const auto add = [&](const Files& files, int64_t first_number) {
    for (const DeleteFilePtr& candidate : files) {
      if (candidate->sequence_number >= first_number) {
        found.push_back(candidate);
      }
    }
  };
  const PartitionKey key{file.spec_id, file.partition};
  if (const auto at = vectors_by_path_.find(file.file_path); at != vectors_by_path_.end()) {
    add(at->second, sequence_number);
  }
  if (found.empty()) {
    if (const auto at = positions_by_path_.find(file.file_path); at != positions_by_path_.end()) {
      add(at->second, sequence_number);
    }
    if (const auto at = positions_by_partition_.find(key); at != positions_by_partition_.end()) {
      add(at->second, sequence_number);
    }
  }
  // Equality deletes never touch rows of their own commit.
  if (const auto at = equality_by_partition_.find(key); at != equality_by_partition_.end()) {
    add(at->second, sequence_number + 1);
  }
  add(global_equality_, sequence_number + 1);
  return found;
}

}  // namespace tarn::iceberg
