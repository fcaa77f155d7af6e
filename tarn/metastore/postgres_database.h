// PostgresDatabase: the metastore in a PostgreSQL database that several servers share.
//
// Writes take turns, as they do on SQLite, across all servers of a schema: each SQL transaction
// that writes first takes an advisory lock of the schema and holds it to its end. So a function
// sees what was committed before it and nobody commits beside it, which is more than SERIALIZABLE
// gives: it is never run twice, and numbers that tables give out are committed in their order. Each
// server has one thread that writes. It takes every request that queued up while the group before
// was being committed, runs each in a savepoint, and commits them with one sync of the database's
// log; lazy ones in a transaction of their own that does not wait for it.
//
// A server that dies loses its connection and so its turn. One that is cut off, or stopped inside
// of a turn, is put out by PostgreSQL after `idle_transaction_max`; its statements then fail.
//
// Each group leaves its number in tarn_writers. When the connection is lost inside of COMMIT, the
// writer connects again, waits for its turn (the backend that it lost is then done) and looks for
// that number: the answer is the outcome, and kCommitStateUnknown is left for a database that does
// not come back in time. Until it is known, this server reads nothing either.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tarn/metastore/database.h"

namespace tarn::metastore {

struct PostgresOptions {
  std::string url;          // postgresql://…; a password may also be in PGPASSWORD or PGPASSFILE.
  size_t readers_max = 8;   // Read connections; further readers wait for one.
  size_t queue_max = 4096;  // Requests waiting for the writer.
  std::chrono::milliseconds queue_wait_max{10'000};        // For room in it, or a read connection.
  std::chrono::milliseconds turn_wait_max{10'000};         // For other servers' transactions.
  std::chrono::milliseconds idle_transaction_max{10'000};  // Of a writer that went silent.
  std::chrono::milliseconds doubt_wait_max{20'000};        // For the outcome of a lost commit.
  size_t group_requests_max = 256;                         // Requests of one transaction.
  std::chrono::milliseconds group_time_max{20};  // Then the rest waits for the next group.
  size_t statements_max = 512;                   // Prepared statements kept per connection.
};

/// Counters since opening, and the queue. Value.
struct PostgresStatistics {
  int64_t waiting = 0;     // Requests in the queue now.
  int64_t requests = 0;    // Writes that ran.
  int64_t groups = 0;      // Commits.
  int64_t reconnects = 0;  // Times the writer lost its connection.
};

/// True for the URLs that this class opens.
bool IsPostgresUrl(const std::string& url);
/// Errors: kInvalidArgument, without its text, when the URL cannot be read.
Status CheckPostgresUrl(const std::string& url);
/// Whether the URL itself holds a password.
bool HoldsPassword(const std::string& url);

/// Threads: any. A write function runs on the writer thread, with the turn of all servers: it must
/// not call Write, and should compute nothing that could be computed before. Texts hold UTF-8
/// without NUL (kInvalidArgument); an indexed value has at most about 2,600 bytes.
class PostgresDatabase final : public Database {
 public:
  /// Connects, and makes the two tables that this class needs in an empty schema.
  ///
  /// Errors: kInvalidArgument on the URL or options; kUnavailable when the server does not answer
  /// or refuses; kFailedPrecondition when it is too old or the schema is another program's. No
  /// message shows the URL's user or password.
  static Result<std::unique_ptr<PostgresDatabase>> Open(const PostgresOptions& options);
  /// Answers what is queued, then closes. No call may be running or start.
  ~PostgresDatabase() override;
  PostgresDatabase(const PostgresDatabase&) = delete;
  PostgresDatabase& operator=(const PostgresDatabase&) = delete;

  Status Read(const SqlFunction& function) override;
  /// Beyond the interface: kUnavailable, with nothing changed, also when the turn does not come in
  /// time or the connection is lost before COMMIT. Later calls connect again.
  Status Write(const SqlFunction& function, Durability durability) override;
  using Database::Write;
  Status Migrate(const std::vector<Migration>& migrations) override;
  /// Migrate, then `rows`, all in one SQL transaction: after a failure neither has been.
  Status MigrateAndFill(const std::vector<Migration>& migrations, const SqlFunction& rows);

  /// Whether no migration has run in the schema.
  Result<bool> IsEmpty();
  /// Takes each table's rows through the server, which checks what it reads. Cost: O(rows).
  Status CheckTables();
  /// "postgresql://HOST:PORT/DATABASE", for people.
  [[nodiscard]] const std::string& shown() const;
  [[nodiscard]] PostgresStatistics statistics() const;

 private:
  class Core;
  explicit PostgresDatabase(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace tarn::metastore
