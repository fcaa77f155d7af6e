#include "tarn/metastore/sqlite_database.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "tarn/metastore/home_lock.h"
#include "tarn/metastore/migrations.h"
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

}  // namespace

class SqliteDatabase::Core {
 public:
  Core(SqliteOptions options, std::unique_ptr<HomeLock> lock,
       std::unique_ptr<SqliteConnection> writing)
      : options_(std::move(options)),
        lock_(std::move(lock)),
        writer_(std::move(writing), options_) {}

  Status Read(const SqlFunction& function) {
    TARN_ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> reader, TakeReader());
    const Result<int64_t> begun = reader->Execute("BEGIN", {});
    Status status = begun.status();
    if (status.ok()) {
      status = RunFunction(*reader, function);
      if (reader->InTransaction()) {
        const Result<int64_t> ended = reader->Execute("ROLLBACK", {});
        if (!ended.ok()) {
          DropReader();
          return status.ok() ? ended.status() : status;
        }
      }
    }
    GiveReader(std::move(reader));
    return status;
  }

  SqliteWriter& writer() { return writer_; }

 private:
  Result<std::unique_ptr<SqliteConnection>> TakeReader() {
    {
      std::unique_lock lock(mutex_);
      if (!returned_.wait_for(lock, options_.queue_wait_max, [&] {
            return !idle_.empty() || open_count_ < options_.readers_max;
          })) {
        return Status(ErrorCode::kResourceExhausted,
                      "metastore " + options_.path.string() + ": all " +
                          std::to_string(options_.readers_max) + " read connections are busy");
      }
      if (!idle_.empty()) {
        std::unique_ptr<SqliteConnection> reader = std::move(idle_.back());
        idle_.pop_back();
        return reader;
      }
      ++open_count_;
    }
    Result<std::unique_ptr<SqliteConnection>> opened =
        SqliteConnection::Open(OptionsFor(options_, ConnectionMode::kReader));
    if (!opened.ok()) {
      DropReader();
    }
    return opened;
  }

  void GiveReader(std::unique_ptr<SqliteConnection> reader) {
    {
      const std::lock_guard lock(mutex_);
      idle_.push_back(std::move(reader));
    }
    returned_.notify_one();
  }

  // A connection that cannot be used again makes room for a fresh one.
  void DropReader() {
    {
      const std::lock_guard lock(mutex_);
      --open_count_;
    }
    returned_.notify_one();
  }

  const SqliteOptions options_;
  std::unique_ptr<HomeLock> lock_;  // Freed last.
  SqliteWriter writer_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<SqliteConnection>> idle_;  // Guarded by mutex_.
  size_t open_count_ = 0;                                // Guarded by mutex_.
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
    std::vector<AppliedMigration> applied;
    TARN_RETURN_IF_ERROR(
        sql.Query("SELECT room, version, hash FROM tarn_migrations", {}, [&](const SqlRow& row) {
          applied.push_back({.room = std::string(row.Text(0)),
                             .version = static_cast<int>(row.Int(1)),
                             .hash = std::string(row.Text(2))});
          return Result<RowAction>(RowAction::kContinue);
        }));
    TARN_ASSIGN_OR_RETURN(const std::vector<Migration> plan, PlanMigrations(applied, migrations));
    for (const Migration& step : plan) {
      TARN_RETURN_IF_ERROR(connection.RunScript(step.sql).WithContext(
          "migration " + std::to_string(step.version) + " of room " + step.room));
      TARN_RETURN_IF_ERROR(
          sql.Execute("INSERT INTO tarn_migrations (room, version, hash) VALUES (?1, ?2, ?3)",
                      {step.room, static_cast<int64_t>(step.version), HashOf(step)}));
    }
    return {};
  });
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

SqliteStatistics SqliteDatabase::statistics() const { return core_->writer().statistics(); }

}  // namespace tarn::metastore
