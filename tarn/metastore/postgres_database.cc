#include "tarn/metastore/postgres_database.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "tarn/base/log.h"
#include "tarn/metastore/migrations.h"
#include "tarn/metastore/postgres_connection.h"
#include "tarn/metastore/postgres_sql.h"
#include "tarn/metastore/postgres_writer.h"
#include "tarn/metastore/reader_pool.h"

namespace tarn::metastore {

namespace {

// Writers that did not start since are gone.
constexpr const char* kOwnTables =
    "CREATE TABLE IF NOT EXISTS tarn_migrations (room TEXT COLLATE \"C\" NOT NULL, version BIGINT "
    "NOT NULL, hash TEXT COLLATE \"C\" NOT NULL, PRIMARY KEY (room, version)); "
    "CREATE TABLE IF NOT EXISTS tarn_writers (name TEXT COLLATE \"C\" NOT NULL PRIMARY KEY, "
    "group_number BIGINT NOT NULL, written TIMESTAMPTZ NOT NULL); "
    "DELETE FROM tarn_writers WHERE written < now() - INTERVAL '7 days'";

PostgresConnectionOptions ReaderOptions(const PostgresOptions& options) {
  return {.url = options.url,
          .role = PostgresRole::kReader,
          .lock_wait_max = options.turn_wait_max,
          // A reader that is slow with what it read keeps nobody waiting.
          .idle_transaction_max = 30 * options.idle_transaction_max,
          .statements_max = options.statements_max};
}

Status CheckOptions(const PostgresOptions& options) {
  if (options.readers_max == 0 || options.queue_max == 0 || options.group_requests_max == 0 ||
      options.statements_max == 0 || options.turn_wait_max.count() <= 0 ||
      options.idle_transaction_max.count() <= 0) {
    return Status::InvalidArgument("metastore options: every limit must be above zero");
  }
  return {};
}

Result<std::vector<std::string>> ReadTables(SqlTransaction& sql) {
  std::vector<std::string> tables;
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1",
                {}, [&](const SqlRow& row) {
                  tables.emplace_back(row.Text(0));
                  return Result<RowAction>(RowAction::kContinue);
                }));
  return tables;
}

// In the writer's turn, so that of servers that start together one makes the tables.
Status MakeOwnTables(SqlTransaction& sql, PostgresWriter& writer, const std::string& shown) {
  TARN_ASSIGN_OR_RETURN(const std::vector<std::string> tables, ReadTables(sql));
  const bool ours = std::find(tables.begin(), tables.end(), "tarn_migrations") != tables.end();
  if (!ours && !tables.empty()) {
    return Status::FailedPrecondition(fmt::format(
        "metastore {}: schema {} holds tables of another program, as {}; name an empty database, "
        "or an empty schema by ?options=-csearch_path%3DNAME",
        shown, writer.connection().schema(), tables.front()));
  }
  return writer.connection().RunScript(kOwnTables);
}

void WarnOfLostSync(SqlTransaction& sql, const std::string& shown) {
  const Status asked = sql.Query("SELECT current_setting('fsync')", {}, [&](const SqlRow& row) {
    if (row.Text(0) == "off") {
      Log(LogLevel::kWarning, "metastore",
          shown + " has fsync = off: a power cut may destroy the metastore");
    }
    return Result<RowAction>(RowAction::kContinue);
  });
  (void)asked;  // Says nothing of the metastore.
}

}  // namespace

class PostgresDatabase::Core {
 public:
  Core(PostgresOptions options, std::string shown, std::unique_ptr<PostgresConnection> writing)
      : options_(std::move(options)),
        shown_(std::move(shown)),
        writer_(std::move(writing), options_),
        readers_({.name = shown_,
                  .readers_max = options_.readers_max,
                  .wait_max = options_.queue_wait_max},
                 [this]() -> Result<std::unique_ptr<Connection>> {
                   TARN_ASSIGN_OR_RETURN(std::unique_ptr<PostgresConnection> reader,
                                         PostgresConnection::Open(ReaderOptions(options_)));
                   return std::unique_ptr<Connection>(std::move(reader));
                 }) {}

  Status Read(const SqlFunction& function) {
    if (writer_.IsInDoubt()) {
      // The outcome of a commit of ours is open: what is read before it is known may change.
      TARN_RETURN_IF_ERROR(
          writer_.Submit([](SqlTransaction&) { return Status::Ok(); }, Durability::kLazy));
    }
    return readers_.Read(function);
  }

  PostgresWriter& writer() { return writer_; }
  [[nodiscard]] const std::string& shown() const { return shown_; }

 private:
  const PostgresOptions options_;
  const std::string shown_;
  PostgresWriter writer_;
  ReaderPool readers_;
};

bool IsPostgresUrl(const std::string& url) {
  return url.starts_with("postgresql://") || url.starts_with("postgres://");
}

PostgresDatabase::PostgresDatabase(std::unique_ptr<Core> core) : core_(std::move(core)) {}
PostgresDatabase::~PostgresDatabase() = default;

Result<std::unique_ptr<PostgresDatabase>> PostgresDatabase::Open(const PostgresOptions& options) {
  TARN_RETURN_IF_ERROR(CheckOptions(options));
  TARN_ASSIGN_OR_RETURN(std::string shown, ShownPostgresUrl(options.url));
  TARN_ASSIGN_OR_RETURN(
      std::unique_ptr<PostgresConnection> writing,
      PostgresConnection::Open({.url = options.url,
                                .role = PostgresRole::kWriter,
                                .lock_wait_max = options.turn_wait_max,
                                .idle_transaction_max = options.idle_transaction_max,
                                .statements_max = options.statements_max}));
  std::unique_ptr<PostgresDatabase> database(
      new PostgresDatabase(std::make_unique<Core>(options, std::move(shown), std::move(writing))));
  TARN_RETURN_IF_ERROR(database->Write([&](SqlTransaction& sql) -> Status {
    WarnOfLostSync(sql, database->shown());
    return MakeOwnTables(sql, database->core_->writer(), database->shown());
  }));
  return database;
}

Status PostgresDatabase::Read(const SqlFunction& function) { return core_->Read(function); }

Status PostgresDatabase::Write(const SqlFunction& function, Durability durability) {
  return core_->writer().Submit(function, durability);
}

Status PostgresDatabase::Migrate(const std::vector<Migration>& migrations) {
  return MigrateAndFill(migrations, [](SqlTransaction&) { return Status::Ok(); });
}

Status PostgresDatabase::MigrateAndFill(const std::vector<Migration>& migrations,
                                        const SqlFunction& rows) {
  return Write([&](SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(RunMigrations(sql, migrations, [&](const std::string& script) {
      return core_->writer().connection().RunScript(TranslateSchema(script));
    }));
    return rows(sql);
  });
}

Result<bool> PostgresDatabase::IsEmpty() {
  bool empty = true;
  TARN_RETURN_IF_ERROR(Read([&](SqlTransaction& sql) {
    return sql.Query("SELECT 1 FROM tarn_migrations LIMIT 1", {}, [&](const SqlRow&) {
      empty = false;
      return Result<RowAction>(RowAction::kContinue);
    });
  }));
  return empty;
}

Status PostgresDatabase::CheckTables() {
  return Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const std::vector<std::string> tables, ReadTables(sql));
    for (const std::string& table : tables) {
      // Takes every value out of its place, also those that are stored aside.
      TARN_RETURN_IF_ERROR(
          sql.Query(fmt::format("SELECT sum(length(row_of::text)) FROM \"{}\" AS row_of", table),
                    {}, [](const SqlRow&) { return Result<RowAction>(RowAction::kContinue); })
              .WithContext("table " + table));
    }
    return {};
  });
}

const std::string& PostgresDatabase::shown() const { return core_->shown(); }
PostgresStatistics PostgresDatabase::statistics() const { return core_->writer().statistics(); }

}  // namespace tarn::metastore
