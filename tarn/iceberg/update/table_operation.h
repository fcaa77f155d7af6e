// Table operations: the snapshot updates behind delete, overwrite, replace partitions, row delta
// and rewrite, each with the checks that keep it correct beside concurrent commits.
//
// All are planned on the head of a branch at one time; SnapshotProducer then checks that what
// happened since does not stand against them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/deletes/row_deletes.h"
#include "tarn/iceberg/expression.h"
#include "tarn/iceberg/manifest_cache.h"
#include "tarn/iceberg/scan.h"
#include "tarn/iceberg/snapshot_update.h"
#include "tarn/iceberg/table_metadata.h"
#include "tarn/storage/object_store.h"

namespace tarn::iceberg {

/// Which concurrent appends stand against a change of rows.
enum class IsolationLevel : uint8_t {
  kSerializable,  // Appended rows that match the filter: conflict.
  kSnapshot,      // Only what touches the same files.
};
/// "write.<operation>.isolation-level" of a table; `operation` is delete, update or merge.
/// Serializable when missing. Errors: kInvalidArgument for another word.
Result<IsolationLevel> IsolationOf(const TableMetadata& metadata, std::string_view operation);

struct OperationContext {
  storage::ObjectStore& store;
  ManifestCache& cache;
  const TableMetadata& metadata;
  std::string branch = std::string(kMainBranch);
};

/// The files that a filter concerns.
struct FilteredFiles {
  std::vector<FileScanTask> whole;    // Every row matches.
  std::vector<FileScanTask> partial;  // Rows must be looked at.
};
/// Errors: those of PlanScan.
Result<FilteredFiles> SplitByFilter(const OperationContext& context, const Expression& filter);

/// Removes the files whose rows all match. Errors: kInvalidArgument naming a file of which only
/// some rows may match: such rows need DeleteRows.
Result<SnapshotUpdate> DeleteByFilter(const OperationContext& context, const Expression& filter);

/// Replaces the files whose rows all match by `added`. Errors: as DeleteByFilter; kInvalidArgument
/// for an added file that may hold rows outside the filter.
Result<SnapshotUpdate> OverwriteByFilter(const OperationContext& context, const Expression& filter,
                                         std::vector<DataFile> added, IsolationLevel isolation);

/// Replaces every partition that `added` has a file in (the whole table when unpartitioned).
/// Partitions are those of the files' specs: files of other specs stay.
Result<SnapshotUpdate> ReplacePartitions(const OperationContext& context,
                                         std::vector<DataFile> added, IsolationLevel isolation);

/// Deletes rows, adds rows, removes files: what DELETE, UPDATE and MERGE do.
struct RowDelta {
  WrittenRowDeletes deletes;
  std::vector<DataFile> added;          // New rows, or new versions of rows.
  std::vector<DataFile> removed_files;  // Of which no row is left.
  Expression filter;  // Rows that were looked at; concurrent ones conflict when serializable.
  IsolationLevel isolation = IsolationLevel::kSerializable;
};
Result<SnapshotUpdate> DeltaUpdate(const OperationContext& context, RowDelta delta);

/// Replaces files by others with the same rows. New rows keep the sequence number of the starting
/// snapshot, so that equality deletes that come meanwhile still apply; concurrent position deletes
/// for a replaced file conflict.
Result<SnapshotUpdate> RewriteUpdate(const OperationContext& context,
                                     const std::vector<FileScanTask>& replaced,
                                     std::vector<DataFile> added);

}  // namespace tarn::iceberg
