#include "tarn/metastore/sqlite_database.h"

#include <filesystem>
#include <utility>

#include "tarn/metastore/home_lock.h"
#include "tarn/metastore/migrations.h"
#include "tarn/metastore/published_file.h"
#include "tarn/metastore/reader_pool.h"
#include "tarn/metastore/sqlite_connection.h"
#include "tarn/metastore/sqlite_writer.h"

namespace tarn::metastore {

namespace {

constexpr int64_t kReaderCacheShare = 4;

ConnectionOptions OptionsFor(const SqliteOptions& options, ConnectionMode mode) {
  return {.path = options.path,
          .mode = mode,
          .vfs = options.vfs,
          .busy_wait_max = options.busy_wait_max,
          .cache_bytes = mode == ConnectionMode::kWriter ? options.cache_bytes
                                                         : options.cache_bytes / kReaderCacheShare,
          .statements_max = options.statements_max};
}

Status CheckOptions(const SqliteOptions& options) {
  if (options.path.empty() || options.readers_max == 0 || options.queue_max == 0 ||
      options.group_requests_max == 0 || options.statements_max == 0 ||
      options.cache_bytes < 1024 || options.log_pages_max < 1) {
    return Status::InvalidArgument("metastore options: path \"" + options.path.string() +
                                   "\" must be given and every limit be above zero");
  }
  return {};
}

// Whether any program has filled the file yet.
Result<bool> HasMigrations(SqlTransaction& sql) {
  bool found = false;
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'tarn_migrations'", {},
                [&](const SqlRow&) {
                  found = true;
                  return Result<RowAction>(RowAction::kStop);
                }));
  return found;
}

}  // namespace

class SqliteDatabase::Core {
 public:
  Core(SqliteOptions options, std::unique_ptr<HomeLock> lock,
       std::unique_ptr<SqliteConnection> writing)
      : options_(std::move(options)),
        lock_(std::move(lock)),
        writer_(std::move(writing), options_),
        readers_({.name = options_.path.string(),
                  .readers_max = options_.readers_max,
                  .wait_max = options_.queue_wait_max},
                 [this]() -> Result<std::unique_ptr<Connection>> {
                   TARN_ASSIGN_OR_RETURN(
                       std::unique_ptr<SqliteConnection> reader,
                       SqliteConnection::Open(OptionsFor(options_, ConnectionMode::kReader)));
                   return std::unique_ptr<Connection>(std::move(reader));
                 }) {}

  Status Read(const SqlFunction& function) { return readers_.Read(function); }

  SqliteWriter& writer() { return writer_; }
  [[nodiscard]] const SqliteOptions& options() const { return options_; }

 private:
  const SqliteOptions options_;
  std::unique_ptr<HomeLock> lock_;  // Freed last.
  SqliteWriter writer_;
  ReaderPool readers_;
};

SqliteDatabase::SqliteDatabase(std::unique_ptr<Core> core) : core_(std::move(core)) {}
SqliteDatabase::~SqliteDatabase() = default;

Result<std::unique_ptr<SqliteDatabase>> SqliteDatabase::Open(const SqliteOptions& options) {
  TARN_RETURN_IF_ERROR(CheckOptions(options));
  TARN_ASSIGN_OR_RETURN(std::unique_ptr<HomeLock> lock,
                        HomeLock::Acquire(options.path.parent_path()));
  TARN_ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> writing,
                        SqliteConnection::Open(OptionsFor(options, ConnectionMode::kWriter)));
  return std::unique_ptr<SqliteDatabase>(
      new SqliteDatabase(std::make_unique<Core>(options, std::move(lock), std::move(writing))));
}

Status SqliteDatabase::Read(const SqlFunction& function) { return core_->Read(function); }

Status SqliteDatabase::Write(const SqlFunction& function, Durability durability) {
  return core_->writer().Submit(function, durability);
}

Status SqliteDatabase::Migrate(const std::vector<Migration>& migrations) {
  return Write([&](SqlTransaction& sql) -> Status {
    SqliteConnection& connection = core_->writer().connection();
    TARN_RETURN_IF_ERROR(connection.RunScript(
        "CREATE TABLE IF NOT EXISTS tarn_migrations (room TEXT NOT NULL, version INTEGER NOT "
        "NULL, hash TEXT NOT NULL, PRIMARY KEY (room, version))"));
    return RunMigrations(sql, migrations,
                         [&](const std::string& script) { return connection.RunScript(script); });
  });
}

Result<bool> SqliteDatabase::BackUpBefore(const std::vector<Migration>& migrations) {
  std::vector<Migration> plan;
  TARN_RETURN_IF_ERROR(Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const bool filled, HasMigrations(sql));
    if (!filled) {
      return Status::Ok();
    }
    TARN_ASSIGN_OR_RETURN(const std::vector<AppliedMigration> applied, ReadAppliedMigrations(sql));
    if (!applied.empty()) {
      TARN_ASSIGN_OR_RETURN(plan, PlanMigrations(applied, migrations));
    }
    return Status::Ok();
  }));
  if (plan.empty()) {
    return false;
  }
  const std::filesystem::path& path = core_->options().path;
  const std::string copy = path.string() + ".before-upgrade";
  const std::string part = copy + ".part";
  std::error_code ignored;
  std::filesystem::remove(part, ignored);  // Of an attempt that was cut short.
  TARN_ASSIGN_OR_RETURN(
      const std::unique_ptr<SqliteConnection> connection,
      SqliteConnection::Open(OptionsFor(core_->options(), ConnectionMode::kWriter)));
  TARN_RETURN_IF_ERROR(
      connection->Execute("VACUUM INTO ?1", {part}).status().WithContext("back up the metastore"));
  std::filesystem::permissions(
      part, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write, ignored);
  TARN_RETURN_IF_ERROR(PublishFile(part, copy));
  return true;
}

Status SqliteDatabase::CheckIntegrity() {
  std::string problems;
  TARN_RETURN_IF_ERROR(Read([&](SqlTransaction& sql) {
    return sql.Query("PRAGMA integrity_check(20)", {}, [&](const SqlRow& row) {
      problems += problems.empty() ? "" : "; ";
      problems += row.Text(0);
      return Result<RowAction>(RowAction::kContinue);
    });
  }));
  if (problems != "ok") {
    return Status::Corruption("the metastore is damaged: " + problems +
                              "; stop the server, keep a copy of the file with its -wal and -shm, "
                              "then restore a backup or an export");
  }
  return {};
}

Status SqliteDatabase::CheckReferences() {
  std::string problems;
  TARN_RETURN_IF_ERROR(Read([&](SqlTransaction& sql) {
    return sql.Query("SELECT DISTINCT \"table\", parent FROM pragma_foreign_key_check", {},
                     [&](const SqlRow& row) {
                       problems += problems.empty() ? "" : "; ";
                       problems += std::string(row.Text(0)) + " names rows that " +
                                   std::string(row.Text(1)) + " does not have";
                       return Result<RowAction>(RowAction::kContinue);
                     });
  }));
  return problems.empty() ? Status::Ok()
                          : Status::Corruption("the metastore is damaged: " + problems);
}

SqliteStatistics SqliteDatabase::statistics() const { return core_->writer().statistics(); }

}  // namespace tarn::metastore
