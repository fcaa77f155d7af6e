// SnapshotCommit: one update of a table that is not a target's, committed through the catalog.
#pragma once

#include "tarn/base/status.h"
#include "tarn/catalog/catalog.h"
#include "tarn/iceberg/snapshot_update.h"

namespace tarn::lakehouse {

struct SnapshotCommit {
  catalog::LoadedTable before;
  catalog::LoadedTable after;
  int64_t snapshot_id = 0;
};

/// Commits `update`, planned on an earlier state of the table, on its newest one. A lost race for
/// the pointer is tried again on the new head as long as the update's own checks hold there. What
/// `also` does is done in the SQL transaction that moves the pointer.
///
/// Errors: kConflict when another commit stands against the update (plan again) or after ten lost
/// races; kPermissionDenied for tables that only tarn's tasks may write; kCommitStateUnknown: its
/// files must stay. On other errors no manifest is left, and the caller removes its data files.
/// Crash: before the pointer moves, the files are orphans; after it, the commit is whole.
Result<SnapshotCommit> CommitSnapshot(catalog::Catalog& catalog, const Rid& table,
                                      const iceberg::SnapshotUpdate& update,
                                      const metastore::SqlFunction& also = {});

}  // namespace tarn::lakehouse
