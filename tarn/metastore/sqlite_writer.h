// SqliteWriter: the one thread that writes, and the queue in front of it. Private to this room;
// sqlite_database.h says how groups are formed and when requests are answered.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tarn/metastore/sqlite_connection.h"
#include "tarn/metastore/sqlite_database.h"

namespace tarn::metastore {

/// Threads: Submit from any.
class SqliteWriter {
 public:
  /// Takes the writing connection over and starts the thread.
  SqliteWriter(std::unique_ptr<SqliteConnection> connection, const SqliteOptions& options);
  /// Answers what is queued, then ends the thread.
  ~SqliteWriter();
  SqliteWriter(const SqliteWriter&) = delete;
  SqliteWriter& operator=(const SqliteWriter&) = delete;

  /// Runs `function` in some group and waits for the answer.
  Status Submit(const SqlFunction& function, Durability durability);
  /// The connection; only for functions that run inside Submit.
  [[nodiscard]] SqliteConnection& connection() { return *connection_; }
  [[nodiscard]] SqliteStatistics statistics() const;

 private:
  struct Request;
  using Requests = std::deque<std::shared_ptr<Request>>;

  void Loop();
  void RunGroup(Requests& pending, Durability durability);
  void RunMembers(Requests& pending, Requests& members);
  Status RunInSavepoint(const SqlFunction& function);
  void Finish(Requests& members, Durability durability);
  /// COMMIT or what stands in for it; decides whether a failure leaves the outcome in doubt.
  Status Commit(const Requests& members);
  void Rollback();
  static void Answer(Requests& members);
  Status UseDurability(Durability durability);
  void CopyLogBack();
  void StopWriting(const Status& cause);

  const SqliteOptions options_;
  std::unique_ptr<SqliteConnection> connection_;

  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable room_;
  Requests queue_;         // Guarded by mutex_.
  bool stopping_ = false;  // Guarded by mutex_.

  // Of the writer thread alone.
  std::optional<Durability> durability_in_use_;
  Status stopped_;            // Not OK: no write runs any more.
  int log_pages_ = 0;         // In the log after the last commit.
  int log_pages_copied_ = 0;  // There when it was last copied back.

  std::atomic<int64_t> requests_{0};
  std::atomic<int64_t> durable_groups_{0};
  std::atomic<int64_t> lazy_groups_{0};
  std::atomic<int64_t> checkpoints_{0};
  std::thread thread_;  // Last: it uses everything above.
};

}  // namespace tarn::metastore
