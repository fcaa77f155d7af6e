// SqliteWriter: the groups of writes of an SQLite file. Private to this room; sqlite_database.h
// says how groups are formed and when requests are answered.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "tarn/metastore/group_writer.h"
#include "tarn/metastore/sqlite_connection.h"
#include "tarn/metastore/sqlite_database.h"

namespace tarn::metastore {

/// Threads: Submit and statistics from any.
class SqliteWriter final : private GroupTransaction {
 public:
  /// Takes the writing connection over and starts the thread.
  SqliteWriter(std::unique_ptr<SqliteConnection> connection, const SqliteOptions& options);
  ~SqliteWriter() override = default;
  SqliteWriter(const SqliteWriter&) = delete;
  SqliteWriter& operator=(const SqliteWriter&) = delete;

  /// Runs `function` in some group and waits for the answer.
  Status Submit(const SqlFunction& function, Durability durability) {
    return groups_.Submit(function, durability);
  }
  /// The connection; only for functions that run inside Submit.
  [[nodiscard]] SqliteConnection& connection() override { return *connection_; }
  [[nodiscard]] SqliteStatistics statistics() const;

 private:
  Status Begin(Durability durability) override;
  Status RunInSavepoint(const SqlFunction& function) override;
  /// COMMIT or what stands in for it; decides whether a failure leaves the outcome in doubt.
  Status Commit(Durability durability, size_t request_count) override;
  void Rollback() override;
  void EndRound() override { CopyLogBack(); }
  Status UseDurability(Durability durability);
  void CopyLogBack();
  void StopWriting(const Status& cause);

  const SqliteOptions options_;
  std::unique_ptr<SqliteConnection> connection_;

  // Of the writer thread alone.
  std::optional<Durability> durability_in_use_;
  Status stopped_;            // Not OK: no write runs any more.
  int log_pages_ = 0;         // In the log after the last commit.
  int log_pages_copied_ = 0;  // There when it was last copied back.

  std::atomic<int64_t> durable_groups_{0};
  std::atomic<int64_t> lazy_groups_{0};
  std::atomic<int64_t> checkpoints_{0};
  GroupWriter groups_;  // Last: its thread uses everything above.
};

}  // namespace tarn::metastore
