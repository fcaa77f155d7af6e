// The tables of this room, all named access_…, and the stamp that dates caches of them.
#pragma once

#include <cstdint>
#include <vector>

#include "tarn/metastore/database.h"

namespace tarn::access {

std::vector<metastore::Migration> Migrations();

/// A number that every change of users, groups or grants replaces by a random one, so a cache that
/// was filled under a stamp is exact while the stamp stands, also on another server and after a
/// roll back. Cost: one key look-up.
Result<int64_t> ReadAccessStamp(metastore::SqlTransaction& sql);
/// Called by every function of this room that changes who may do what.
Status RenewAccessStamp(metastore::SqlTransaction& sql);

}  // namespace tarn::access
