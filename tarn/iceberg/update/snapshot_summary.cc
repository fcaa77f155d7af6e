#include "tarn/iceberg/update/snapshot_summary.h"

#include <charconv>
#include <optional>

namespace tarn::iceberg {
namespace {

std::string PartitionKeyOf(const DataFile& file) {
  std::string key;
  for (const Literal& literal : file.partition) {
    key += std::to_string(literal.value.index()) + ":";
    if (const auto* text = std::get_if<std::string>(&literal.value)) {
      key += std::to_string(text->size()) + ":" + *text;
    } else {
      key += std::to_string(HashLiteral(literal));
    }
    key += ";";
  }
  return key;
}

std::optional<int64_t> FindTotal(const Snapshot* parent, const std::string& key) {
  if (parent == nullptr) {
    return 0;
  }
  const auto at = parent->summary.find(key);
  if (at == parent->summary.end()) {
    return std::nullopt;
  }
  int64_t value = 0;
  const char* end = at->second.data() + at->second.size();
  const auto [stop, error] = std::from_chars(at->second.data(), end, value);
  return error == std::errc() && stop == end && value >= 0 ? std::optional<int64_t>(value)
                                                           : std::nullopt;
}

}  // namespace

void SnapshotSummary::Count(const DataFile& file, Counts& counts) {
  partitions_.emplace(file.spec_id, PartitionKeyOf(file));
  counts.size_bytes +=
      file.is_deletion_vector() ? file.content_size_bytes.value_or(0) : file.file_size_bytes;
  switch (file.content) {
    case DataFileContent::kData:
      ++counts.data_files;
      counts.records += file.record_count;
      break;
    case DataFileContent::kPositionDeletes:
      ++counts.delete_files;
      ++(file.is_deletion_vector() ? counts.vectors : counts.position_delete_files);
      counts.position_deletes += file.record_count;
      break;
    case DataFileContent::kEqualityDeletes:
      ++counts.delete_files;
      ++counts.equality_delete_files;
      counts.equality_deletes += file.record_count;
      break;
  }
}

std::map<std::string, std::string> SnapshotSummary::Build(
    const std::map<std::string, std::string>& own, const Snapshot* parent) const {
  std::map<std::string, std::string> summary = own;
  const auto put = [&](const std::string& key, int64_t value) {
    if (value > 0) {
      summary[key] = std::to_string(value);
    }
  };
  put("added-data-files", added_.data_files);
  put("deleted-data-files", removed_.data_files);
  put("added-delete-files", added_.delete_files);
  put("removed-delete-files", removed_.delete_files);
  put("added-position-delete-files", added_.position_delete_files);
  put("removed-position-delete-files", removed_.position_delete_files);
  put("added-equality-delete-files", added_.equality_delete_files);
  put("removed-equality-delete-files", removed_.equality_delete_files);
  put("added-dvs", added_.vectors);
  put("removed-dvs", removed_.vectors);
  put("added-records", added_.records);
  put("deleted-records", removed_.records);
  put("added-files-size", added_.size_bytes);
  put("removed-files-size", removed_.size_bytes);
  put("added-position-deletes", added_.position_deletes);
  put("removed-position-deletes", removed_.position_deletes);
  put("added-equality-deletes", added_.equality_deletes);
  put("removed-equality-deletes", removed_.equality_deletes);
  put("changed-partition-count", static_cast<int64_t>(partitions_.size()));
  const auto total = [&](const std::string& key, int64_t added, int64_t removed) {
    const std::optional<int64_t> before = FindTotal(parent, key);
    // A total that would be negative was wrong before: better none than a lie.
    if (before && *before + added - removed >= 0) {
      summary[key] = std::to_string(*before + added - removed);
    }
  };
  total("total-data-files", added_.data_files, removed_.data_files);
  total("total-delete-files", added_.delete_files, removed_.delete_files);
  total("total-records", added_.records, removed_.records);
  total("total-files-size", added_.size_bytes, removed_.size_bytes);
  total("total-position-deletes", added_.position_deletes, removed_.position_deletes);
  total("total-equality-deletes", added_.equality_deletes, removed_.equality_deletes);
  return summary;
}

}  // namespace tarn::iceberg
