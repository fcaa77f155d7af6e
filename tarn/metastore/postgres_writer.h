// PostgresWriter: the groups of writes of this process to PostgreSQL. Private to this room;
// postgres_database.h says how servers take turns.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "tarn/metastore/group_writer.h"
#include "tarn/metastore/postgres_connection.h"
#include "tarn/metastore/postgres_database.h"

namespace tarn::metastore {

/// Threads: Submit, IsInDoubt and statistics from any.
class PostgresWriter final : private GroupTransaction {
 public:
  /// Takes a writing connection over and starts the thread.
  PostgresWriter(std::unique_ptr<PostgresConnection> connection, const PostgresOptions& options);
  ~PostgresWriter() override = default;
  PostgresWriter(const PostgresWriter&) = delete;
  PostgresWriter& operator=(const PostgresWriter&) = delete;

  /// Runs `function` in some group and waits for the answer.
  Status Submit(const SqlFunction& function, Durability durability) {
    return groups_.Submit(function, durability);
  }
  /// The connection; only for functions that run inside Submit.
  [[nodiscard]] PostgresConnection& connection() override { return *connection_; }
  /// True after a commit whose outcome was not found out, until the turn of this server shows that
  /// the server of the database is done with it.
  [[nodiscard]] bool IsInDoubt() const { return in_doubt_.load(); }
  [[nodiscard]] PostgresStatistics statistics() const;

 private:
  /// Opens a SQL transaction and waits for this server's turn to write.
  Status Begin(Durability durability) override;
  Status RunInSavepoint(const SqlFunction& function) override;
  Status Commit(Durability durability, size_t request_count) override;
  void Rollback() override;
  Status Connect();
  /// Whether group `number` is in the database, after the connection was lost inside its COMMIT.
  Result<bool> WasCommitted(int64_t number);

  const PostgresOptions options_;
  const std::string name_;  // Of this writer in tarn_writers: unique per start.
  std::unique_ptr<PostgresConnection> connection_;

  int64_t group_ = 0;  // Number of the newest group, of the writer thread alone.
  std::atomic<bool> in_doubt_{false};
  std::atomic<int64_t> commits_{0};
  std::atomic<int64_t> reconnects_{0};
  GroupWriter groups_;  // Last: its thread uses everything above.
};

}  // namespace tarn::metastore
