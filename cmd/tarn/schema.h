// The schema of the metastore: the migrations of all rooms.
#pragma once

#include <vector>

#include "tarn/metastore/database.h"

namespace tarn {

/// In the order in which they run.
std::vector<metastore::Migration> AllMigrations();

}  // namespace tarn
