// Protection of branches, and reading by the first of several branches that exists.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tarn/dataset/ids.h"
#include "tarn/metastore/database.h"

namespace tarn::dataset::branching {

enum class Protection : uint8_t { kNone, kProtected };

/// A protected branch can be neither deleted nor reset; commits, merges and fast-forwards go on.
/// Errors: BranchNotFound.
Status SetProtection(metastore::SqlTransaction& sql, const DatasetRid& dataset,
                     std::string_view branch, Protection protection);
Result<Protection> GetProtection(metastore::SqlTransaction& sql, const DatasetRid& dataset,
                                 std::string_view branch);

/// The first of `names` that the dataset has. Errors: BranchNotFound naming the first when it has
/// none of them; kInvalidArgument without names.
Result<std::string> FirstExisting(metastore::SqlTransaction& sql, const DatasetRid& dataset,
                                  std::span<const std::string> names);

}  // namespace tarn::dataset::branching
