// Checks that a change planned on an older snapshot still holds on the head of its branch.
#pragma once

#include "tarn/base/status.h"
#include "tarn/iceberg/manifest_cache.h"
#include "tarn/iceberg/snapshot_update.h"
#include "tarn/iceberg/table_metadata.h"
#include "tarn/storage/object_store.h"

namespace tarn::iceberg {

/// Checks of an update that need no table: paths named once, removed files not referred to.
/// Errors: kInvalidArgument.
Status ValidateUpdate(const SnapshotUpdate& update, const TableMetadata& base);

/// `head`: of the branch, null when it has none. Errors: kConflict naming the file that is in the
/// way; those of the store. Cost: nothing when the head is the starting snapshot.
Status ValidateHistory(const SnapshotUpdate& update, const TableMetadata& base,
                       const Snapshot* head, storage::ObjectStore& store, ManifestCache& cache);

}  // namespace tarn::iceberg
