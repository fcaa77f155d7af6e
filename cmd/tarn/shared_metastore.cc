#include "cmd/tarn/shared_metastore.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "cmd/tarn/schema.h"

namespace tarn {

namespace {

Result<bool> HasUsers(metastore::Database& database) {
  bool any = false;
  TARN_RETURN_IF_ERROR(database.Read([&](metastore::SqlTransaction& sql) {
    return sql.Query("SELECT 1 FROM access_users LIMIT 1", {}, [&](const metastore::SqlRow&) {
      any = true;
      return Result<metastore::RowAction>(metastore::RowAction::kStop);
    });
  }));
  return any;
}

}  // namespace

Result<SharedMetastore> OpenSharedMetastore(const std::string& home,
                                            const Configuration& configuration) {
  if (configuration.warehouse.empty()) {
    return Status::InvalidArgument(
        "warehouse must be set when metastore is postgresql://…: all servers of one metastore name "
        "the same");
  }
  SharedMetastore shared;
  TARN_ASSIGN_OR_RETURN(shared.lock, metastore::HomeLock::Acquire(home));
  TARN_ASSIGN_OR_RETURN(shared.database,
                        metastore::PostgresDatabase::Open({.url = configuration.metastore_url}));
  TARN_ASSIGN_OR_RETURN(const bool empty, shared.database->IsEmpty());
  std::error_code error;
  if (empty && std::filesystem::exists(home + "/admin-token", error)) {
    // A new and empty metastore would hide everything that the home knew.
    return Status::FailedPrecondition(fmt::format(
        "the metastore {} is empty, but the home {} was in use: bring an export into it with "
        "`tarn metastore import`, or name the database that was used; to begin anew, use an empty "
        "home",
        shared.database->shown(), home));
  }
  TARN_RETURN_IF_ERROR(shared.database->Migrate(AllMigrations()));
  TARN_ASSIGN_OR_RETURN(const bool has_users, HasUsers(*shared.database));
  if (!has_users && std::filesystem::exists(home + "/admin-token", error)) {
    return Status::FailedPrecondition(fmt::format(
        "the metastore {} has tables but no users, and the home {} was in use: an import into it "
        "did not end. Drop its tables, or name an empty database, and import again",
        shared.database->shown(), home));
  }
  return shared;
}

}  // namespace tarn
