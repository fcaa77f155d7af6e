// ManifestFileWriter: writes the manifests of one commit under names of their own and remembers
// them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/manifest.h"
#include "tarn/iceberg/table_metadata.h"
#include "tarn/storage/object_store.h"

namespace tarn::iceberg {

/// One owner thread; one per commit, over all attempts.
class ManifestFileWriter {
 public:
  ManifestFileWriter(storage::ObjectStore& store, int64_t snapshot_id, std::string commit_uuid)
      : store_(store), snapshot_id_(snapshot_id), commit_uuid_(std::move(commit_uuid)) {}

  /// Writes entries of one spec and content. `reuse_key`: when not empty and a manifest was written
  /// under it by an earlier attempt, that one is returned instead.
  Result<ManifestFile> Write(const TableMetadata& base, ManifestContent content, int32_t spec_id,
                             const std::vector<ManifestEntry>& entries,
                             const std::string& reuse_key);
  /// The manifest written under a key, null when there is none.
  [[nodiscard]] const ManifestFile* Find(const std::string& reuse_key) const;
  /// Writes the manifest list of one attempt; returns its URI.
  Result<std::string> WriteList(const TableMetadata& base, const Snapshot& snapshot, int attempt,
                                const std::vector<ManifestFile>& manifests);

  [[nodiscard]] int64_t snapshot_id() const { return snapshot_id_; }
  /// URIs of everything written, or possibly written when a write failed.
  [[nodiscard]] const std::vector<std::string>& written() const { return written_; }
  /// The files are gone: later attempts write their own.
  void Forget() {
    written_.clear();
    by_key_.clear();
  }

 private:
  Status Put(const std::string& uri, std::string_view bytes);

  storage::ObjectStore& store_;
  int64_t snapshot_id_;
  std::string commit_uuid_;
  int64_t count_ = 0;
  std::map<std::string, ManifestFile> by_key_;
  std::vector<std::string> written_;
};

}  // namespace tarn::iceberg
