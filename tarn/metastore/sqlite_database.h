// SqliteDatabase: the metastore in one SQLite file, the default of a single server.
//
// One writer thread owns the only connection that writes. It takes every request that queued up
// while the previous group was being made safe, and never waits for more to come:
//   1. the lazy ones of the round run in one SQL transaction that commits without fsync;
//   2. the durable ones run in a second one, whose commit syncs the write-ahead log, and with it
//      everything that was committed before.
// A request is answered after the commit of its transaction, so whatever was acknowledged is seen
// by every read that starts later, lazy or not. A power cut may take acknowledged lazy requests,
// newest first, never a durable one, and never a lazy one that a durable one came after.
// A killed process loses nothing: the log is in the operating system's hands by then.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tarn/metastore/database.h"

namespace tarn::metastore {

struct SqliteOptions {
  std::filesystem::path path;  // The database file; its folder must exist and is locked.
  size_t readers_max = 8;      // Read connections; further readers wait for one.
  size_t queue_max = 4096;     // Requests waiting for the writer.
  std::chrono::milliseconds queue_wait_max{10'000};  // Then kResourceExhausted.
  size_t group_requests_max = 256;                   // Requests of one durable transaction.
  std::chrono::milliseconds group_time_max{20};      // Then the rest waits for the next group.
  std::chrono::milliseconds busy_wait_max{5'000};    // For locks of foreign processes.
  size_t statements_max = 512;                       // Prepared statements kept per connection.
  int64_t cache_bytes = 32LL << 20;  // Page cache of the writer; a reader has a quarter.
  int64_t log_pages_max = 4096;      // Write-ahead log beyond which it is copied back.
  std::string vfs;  // SQLite's name of the file layer; empty = default. Tests inject faults.
};

/// Counters since opening, and the queue. Value.
struct SqliteStatistics {
  int64_t waiting = 0;         // Requests in the queue now.
  int64_t requests = 0;        // Writes that ran.
  int64_t durable_groups = 0;  // Commits that waited for fsync.
  int64_t lazy_groups = 0;     // Commits that did not.
  int64_t checkpoints = 0;     // Times the log was copied back.
};

/// Threads: any. A write function runs on the writer thread: it must not call Write, and should
/// compute nothing that could be computed before.
class SqliteDatabase final : public Database {
 public:
  /// Opens or creates the file and starts the writer.
  ///
  /// Errors: kFailedPrecondition when another process has the folder open (names the folder and
  /// that process); kCorruption when the file is no database or damaged; kUnavailable when it
  /// cannot be opened or written; kInvalidArgument on options.
  static Result<std::unique_ptr<SqliteDatabase>> Open(const SqliteOptions& options);
  /// Answers what is queued, then closes. No call may be running or start.
  ~SqliteDatabase() override;
  SqliteDatabase(const SqliteDatabase&) = delete;
  SqliteDatabase& operator=(const SqliteDatabase&) = delete;

  Status Read(const SqlFunction& function) override;
  /// Beyond the interface: after a commit that failed in doubt (fsync reported an error) the
  /// state of the file cannot be known without a restart, so every later write is refused with
  /// kUnavailable; reads go on. kResourceExhausted when the queue stays full.
  Status Write(const SqlFunction& function, Durability durability) override;
  using Database::Write;
  Status Migrate(const std::vector<Migration>& migrations) override;

  /// Copies the file to "<file>.before-upgrade" if `migrations` holds steps that a filled database
  /// still needs: the way back to the older program. One that is there is replaced, whole or not
  /// at all. Returns whether it did. Errors: those of PlanMigrations; kUnavailable when the copy
  /// cannot be written. Cost: O(file).
  Result<bool> BackUpBefore(const std::vector<Migration>& migrations);
  /// Reads every page. Errors: kCorruption with what is wrong. Cost: O(file).
  Status CheckIntegrity();
  /// Looks for rows that name rows which are not there. Errors: kCorruption naming the tables.
  Status CheckReferences();
  [[nodiscard]] SqliteStatistics statistics() const;

 private:
  class Core;
  explicit SqliteDatabase(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace tarn::metastore
