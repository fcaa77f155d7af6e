// Pieces of a commit that are not about what changes: names of metadata files, writing and reading
// them. Who moves the pointer (a catalog) puts them together.
//
// The order of a commit: (1) check requirements on the newest metadata, (2) apply the updates,
// (3) write the new metadata file under a name nobody else has, (4) move the pointer by
// compare-and-set. After a conflict at (4) the file is deleted and the round starts again. When the
// outcome of (4) is unknown (kCommitStateUnknown: time-out, lost connection), nothing written for
// the attempt may be deleted, ever: reload the table and look for the new snapshot id, or for the
// new file as current or in the metadata log. Found = success; absent = still unknown unless the
// request can no longer be under way.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tarn/base/status.h"
#include "tarn/base/uuid.h"
#include "tarn/iceberg/table_metadata.h"
#include "tarn/iceberg/view_metadata.h"
#include "tarn/storage/object_store.h"

namespace tarn::iceberg {

/// "<5 digits>-<uuid>.metadata.json".
std::string MetadataFileName(int64_t version, const Uuid& uuid);
/// The number in a metadata file's name or location, -1 when it has none. Takes both
/// "<digits>-<uuid>.metadata.json" and "v<N>.metadata.json", also with ".gz".
int64_t MetadataVersionOf(std::string_view location);

/// Writes the metadata as a new file in the table's metadata folder. `previous_location`: of the
/// version before (its number plus one is used); empty for the first, number 0.
/// Returns the URI. Errors: those of the store.
Result<std::string> WriteMetadata(storage::ObjectStore& store, const TableMetadata& metadata,
                                  std::string_view previous_location, UuidGenerator& uuids);
Result<std::string> WriteMetadata(storage::ObjectStore& store, const ViewMetadata& metadata,
                                  std::string_view previous_location, UuidGenerator& uuids);

/// Errors: kNotFound "Failed to open input stream for file: <location>" when it is gone;
/// kInvalidArgument when it cannot be parsed.
Result<TableMetadata> ReadTableMetadata(storage::ObjectStore& store, const std::string& location);
Result<ViewMetadata> ReadViewMetadata(storage::ObjectStore& store, const std::string& location);

}  // namespace tarn::iceberg
