// SqliteDatabase as the fixtures of the rooms open it, on a schema of PostgreSQL: linked before the
// real one, it runs the suites of a room on the other implementation, as they are.
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "tarn/metastore/postgres_database.h"
#include "tarn/metastore/sqlite_database.h"
#include "test/support/postgres_server.h"

namespace tarn::metastore {

namespace {

// One schema per path: a test that opens a file again finds what it left.
std::string UrlOf(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, std::string> urls;
  static PostgresServer server(PostgresServer::Sync::kOff);
  const std::lock_guard lock(mutex);
  std::string& url = urls[path];
  if (url.empty()) {
    url = server.NewSchema();
  }
  return url;
}

}  // namespace

class SqliteDatabase::Core {
 public:
  explicit Core(std::unique_ptr<PostgresDatabase> database) : database_(std::move(database)) {}
  PostgresDatabase& database() { return *database_; }

 private:
  std::unique_ptr<PostgresDatabase> database_;
};

SqliteDatabase::SqliteDatabase(std::unique_ptr<Core> core) : core_(std::move(core)) {}
SqliteDatabase::~SqliteDatabase() = default;

Result<std::unique_ptr<SqliteDatabase>> SqliteDatabase::Open(const SqliteOptions& options) {
  TARN_ASSIGN_OR_RETURN(std::unique_ptr<PostgresDatabase> database,
                        PostgresDatabase::Open({.url = UrlOf(options.path.string())}));
  return std::unique_ptr<SqliteDatabase>(
      new SqliteDatabase(std::make_unique<Core>(std::move(database))));
}

Status SqliteDatabase::Read(const SqlFunction& function) {
  return core_->database().Read(function);
}

Status SqliteDatabase::Write(const SqlFunction& function, Durability durability) {
  return core_->database().Write(function, durability);
}

Status SqliteDatabase::Migrate(const std::vector<Migration>& migrations) {
  return core_->database().Migrate(migrations);
}

Status SqliteDatabase::CheckIntegrity() { return core_->database().CheckTables(); }
Status SqliteDatabase::CheckReferences() { return Status::Ok(); }

SqliteStatistics SqliteDatabase::statistics() const {
  const PostgresStatistics found = core_->database().statistics();
  return {.waiting = found.waiting, .requests = found.requests, .durable_groups = found.groups};
}

}  // namespace tarn::metastore
