// SnapshotUpdate: what one commit does to the files of a table, and SnapshotProducer, which writes
// the manifests of it.
//
// One update may add data files under several partition specs, add delete files, and remove data
// and delete files, all in one snapshot. Data manifests are written once; what derives from the
// head of the branch (the manifest list, rewritten manifests, totals) is made anew for each
// attempt.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/base/uuid.h"
#include "tarn/iceberg/expression.h"
#include "tarn/iceberg/manifest.h"
#include "tarn/iceberg/manifest_cache.h"
#include "tarn/iceberg/snapshot.h"
#include "tarn/iceberg/snapshot_expiry.h"
#include "tarn/iceberg/table_metadata.h"
#include "tarn/iceberg/table_requirement.h"
#include "tarn/iceberg/table_update.h"
#include "tarn/storage/object_store.h"

namespace tarn::iceberg {

/// One partition under one spec.
struct PartitionOfSpec {
  int32_t spec_id = 0;
  PartitionValues values;
  friend bool operator==(const PartitionOfSpec&, const PartitionOfSpec&) = default;
};

/// What is always checked: removed files are live, and no deletion vector was added since the start
/// for a data file that gets one by this update.
struct SnapshotValidation {
  /// Snapshot the caller planned on; changes of the branch since then are checked. Empty = nothing
  /// was there. It must be an ancestor of the head, unless no check below needs history.
  std::optional<int64_t> starting_snapshot_id;
  /// Data files that added position deletes refer to: each must be live.
  std::vector<std::string> referenced_data_files;
  /// Fails when delete files for removed or referenced data files were added since the start; when
  /// the update adds rows, too, also those of a partition that its deletes are in.
  bool no_new_deletes = false;
  /// Fails when data files that may hold rows matching this were added since the start.
  std::optional<Expression> no_new_data;
  /// Fails when data files were added to one of these partitions since the start.
  std::vector<PartitionOfSpec> no_new_data_in;
};

struct SnapshotUpdate {
  SnapshotOperation operation = SnapshotOperation::kAppend;
  std::string branch = std::string(kMainBranch);
  std::vector<DataFile> added_data_files;  // Under any spec of the table.
  std::vector<DataFile> added_delete_files;
  /// Files to remove: found by path; spec and partition only make the search shorter. A file that
  /// is not live fails the update. Delete files that refer to one removed data file go with it.
  /// A data file that gets a deletion vector loses the one it had, which must be named here and be
  /// part of the new one.
  std::vector<DataFile> removed_data_files;
  std::vector<DataFile> removed_delete_files;
  std::map<std::string, std::string> summary;  // Own keys; counted keys are added.
  /// Data sequence number of the added data files (compaction keeps the old one).
  std::optional<int64_t> data_sequence_number;
  SnapshotValidation validation;
  /// Expires snapshots of the table in the same commit.
  std::optional<ExpiryOptions> expiry;
  /// Rewrites the manifests of the branch into few: no file changes needed.
  bool merge_all_manifests = false;
};

/// What an attempt wrote and what to commit.
struct PreparedSnapshot {
  Snapshot snapshot;
  std::vector<TableUpdate> updates;            // add-snapshot, set-snapshot-ref, expiry.
  std::vector<TableRequirement> requirements;  // Table uuid and head of the branch.
  std::vector<std::string> attempt_files;  // URIs written for this attempt only: its manifest list
                                           // and manifests that derive from the head.
  std::vector<int64_t> expired_snapshot_ids;
};

struct SnapshotProducerDeps {
  storage::ObjectStore& store;
  ManifestCache& cache;
};

/// Prepares one update against one head after another until a commit succeeds. One owner thread.
///
/// Usage: Prepare(base); commit; on kConflict refresh the base and Prepare again; at the end
/// CleanUp(). On kCommitStateUnknown do not call CleanUp: nothing may be deleted.
class SnapshotProducer {
 public:
  SnapshotProducer(SnapshotUpdate update, SnapshotProducerDeps deps);
  ~SnapshotProducer();
  SnapshotProducer(const SnapshotProducer&) = delete;
  SnapshotProducer& operator=(const SnapshotProducer&) = delete;

  /// Validates against `base`, writes manifests and the manifest list, and says what to commit.
  /// `now_ms`: time of the snapshot, raised to be after its parent's.
  /// Errors: kInvalidArgument for an update that is wrong in itself; kConflict when the table moved
  /// against it (a removed file is gone, a validation failed); those of the store.
  /// Cost: O(files added + manifests of the head + entries of the manifests that are rewritten).
  Result<PreparedSnapshot> Prepare(const TableMetadata& base, int64_t now_ms);

  /// Deletes what attempts wrote and `committed` (null = none was) does not use. Failures to delete
  /// are left to orphan clean-up and not reported.
  void CleanUp(const Snapshot* committed);

  [[nodiscard]] const SnapshotUpdate& update() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Where metadata files of a table go: property "write.metadata.path", else "<location>/metadata".
std::string MetadataFolder(const TableMetadata& metadata);
/// Where data files go: property "write.data.path", else "<location>/data".
std::string DataFolder(const TableMetadata& metadata);

}  // namespace tarn::iceberg
