// Locations: which folders of the warehouse a table or view may call its own.
//
// No two objects may overlap, and the folders of datasets are nobody else's, so that a role on one
// object never reaches the files of another, and a purge never deletes what something else needs.
// "file:///w/t", "file:/w/t" and "/w/t/" are one location.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/rid.h"
#include "tarn/iceberg/table_metadata.h"
#include "tarn/metastore/database.h"
#include "tarn/storage/object_store.h"

namespace tarn::catalog {

/// The one form of a location: below the store's base, without a trailing slash.
/// Errors: kInvalidArgument when it lies outside of the store or is the whole of it.
Result<std::string> CanonicalLocation(const storage::ObjectStore& store, std::string_view location);

/// Who a folder is for. Value.
struct LocationClaim {
  std::string location;  // Canonical.
  Rid owner;             // The object that has it, or empty for one that is being made.
  Rid folder;            // Where the owner is or will be: may take what was dropped there.
};
/// Errors: kPermissionDenied when a dataset, another object, or an object that was dropped in
/// another folder has the location, a part of it, or a folder around it.
Status RequireFreeLocation(metastore::SqlTransaction& sql, const storage::ObjectStore& store,
                           const LocationClaim& claim);

/// Checks a file that an object refers to: it must lie in the store and not belong to another
/// object or a dataset. Errors: kInvalidArgument; kPermissionDenied.
Status RequireOwnFile(metastore::SqlTransaction& sql, const storage::ObjectStore& store,
                      const LocationClaim& claim, std::string_view file);

/// Values of the properties that say where writers put files ("write.data.path" and the like),
/// without those that `base` (or null) has too.
std::vector<std::string> NewWritePaths(const iceberg::TableMetadata* base,
                                       const iceberg::TableMetadata& next);

/// Makes the folders that writers expect to be there, where the store has folders at all: some
/// write files into a new table's "data" and "metadata" without making them.
Status MakeWriteFolders(const storage::ObjectStore& store, const std::string& location);

}  // namespace tarn::catalog
