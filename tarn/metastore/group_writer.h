// GroupWriter: the one thread of this process that writes to a database, and the queue in front of
// it. Private to this room; sqlite_database.h and postgres_database.h say what a group is to each.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "tarn/metastore/connection.h"

namespace tarn::metastore {

struct GroupWriterOptions {
  std::string name;  // "metastore" and which, for messages.
  size_t queue_max = 4096;
  std::chrono::milliseconds queue_wait_max{10'000};
  size_t group_requests_max = 256;
  std::chrono::milliseconds group_time_max{20};
};

/// The SQL transaction of one group. Used by the thread of the writer alone.
class GroupTransaction {
 public:
  virtual ~GroupTransaction() = default;
  /// Opens it. After a failure nothing is open.
  virtual Status Begin(Durability durability) = 0;
  /// Runs a function whose changes can be taken out of the group by themselves.
  virtual Status RunInSavepoint(const SqlFunction& function) = 0;
  /// Where the functions of the group run, once it has begun.
  virtual Connection& connection() = 0;
  /// Commits what `request_count` functions did, or decides that the outcome is in doubt.
  virtual Status Commit(Durability durability, size_t request_count) = 0;
  virtual void Rollback() = 0;
  /// After the groups of a round have been answered.
  virtual void EndRound() {}
};

/// Threads: Submit and the counters from any.
class GroupWriter {
 public:
  /// Starts the thread. `transaction` must outlive this.
  GroupWriter(GroupTransaction& transaction, GroupWriterOptions options);
  /// Answers what is queued, then ends the thread.
  ~GroupWriter();
  GroupWriter(const GroupWriter&) = delete;
  GroupWriter& operator=(const GroupWriter&) = delete;

  /// Runs `function` in some group and waits for the answer.
  Status Submit(const SqlFunction& function, Durability durability);
  [[nodiscard]] int64_t waiting_count() const;  // Requests in the queue now.
  [[nodiscard]] int64_t request_count() const { return requests_.load(); }  // That have run.

 private:
  struct Request;
  using Requests = std::deque<std::shared_ptr<Request>>;

  void Loop();
  void RunGroup(Requests& pending, Durability durability);
  void RunMembers(Requests& pending, Requests& members);
  void Finish(Requests& members, Durability durability);
  static void Answer(Requests& members);

  GroupTransaction& transaction_;
  const GroupWriterOptions options_;

  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable room_;
  Requests queue_;         // Guarded by mutex_.
  bool stopping_ = false;  // Guarded by mutex_.

  std::atomic<int64_t> requests_{0};
  std::thread thread_;  // Last: it uses everything above.
};

}  // namespace tarn::metastore
