// The metastore of several servers: a PostgreSQL database.
#pragma once

#include <memory>
#include <string>

#include "tarn/base/status.h"
#include "tarn/metastore/home_lock.h"
#include "tarn/metastore/postgres_database.h"

#include "cmd/tarn/configuration.h"

namespace tarn {

/// What holds a server's home, and the database that it shares with others.
struct SharedMetastore {
  std::unique_ptr<metastore::HomeLock> lock;
  std::unique_ptr<metastore::PostgresDatabase> database;
};

/// Opens `configuration.metastore_url` for a server of `home` and brings its schema up to date.
///
/// Errors: kInvalidArgument without a warehouse, which all servers must name alike;
/// kFailedPrecondition when another server has the home, or when the database is empty though the
/// home was in use; those of PostgresDatabase.
Result<SharedMetastore> OpenSharedMetastore(const std::string& home,
                                            const Configuration& configuration);

}  // namespace tarn
