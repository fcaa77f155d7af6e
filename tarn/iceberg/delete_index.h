// DeleteIndex: which delete files apply to a data file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/manifest.h"
#include "tarn/iceberg/table_metadata.h"

namespace tarn::iceberg {

/// A delete file with the number that decides what it applies to.
struct DeleteFile {
  DataFile file;
  int64_t sequence_number = 0;
  friend bool operator==(const DeleteFile&, const DeleteFile&) = default;
};
using DeleteFilePtr = std::shared_ptr<const DeleteFile>;

/// The one data file that a position delete file is about: its referenced_data_file, else equal
/// full bounds of file_path. Empty when it may cover several.
std::optional<std::string> ReferencedDataFile(const DataFile& delete_file);

/// Built once per scan; immutable afterwards.
class DeleteIndex {
 public:
  /// `entries`: live entries of delete manifests after inheritance.
  static DeleteIndex Build(const TableMetadata& metadata,
                           const std::vector<const ManifestEntry*>& entries);

  /// Delete files of a data file with that data sequence number. A deletion vector stands alone
  /// among position deletes.
  [[nodiscard]] std::vector<DeleteFilePtr> Find(const DataFile& file,
                                                int64_t sequence_number) const;
  [[nodiscard]] bool empty() const { return size_ == 0; }

 private:
  struct PartitionKey {
    int32_t spec_id = 0;
    PartitionValues values;
    friend bool operator==(const PartitionKey&, const PartitionKey&) = default;
  };
  struct PartitionKeyHash {
    size_t operator()(const PartitionKey& key) const;
  };
  using Files = std::vector<DeleteFilePtr>;

  std::unordered_map<std::string, Files> vectors_by_path_;
  std::unordered_map<std::string, Files> positions_by_path_;
  std::unordered_map<PartitionKey, Files, PartitionKeyHash> positions_by_partition_;
  std::unordered_map<PartitionKey, Files, PartitionKeyHash> equality_by_partition_;
  Files global_equality_;
  size_t size_ = 0;
};

}  // namespace tarn::iceberg
