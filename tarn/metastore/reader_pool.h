// ReaderPool: the read connections of a database. Private to this room.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tarn/metastore/connection.h"

namespace tarn::metastore {

struct ReaderPoolOptions {
  std::string name;  // Of the database, for messages.
  size_t readers_max = 8;
  std::chrono::milliseconds wait_max{10'000};  // For one of them.
};

/// Threads: any.
class ReaderPool {
 public:
  using Opener = std::function<Result<std::unique_ptr<Connection>>()>;

  ReaderPool(ReaderPoolOptions options, Opener open);

  /// Database::Read. Beyond it: kResourceExhausted when all connections stay busy. A connection
  /// that was closed while it was idle is made anew: no function has run on it yet.
  Status Read(const SqlFunction& function);

 private:
  Result<std::unique_ptr<Connection>> Take();
  Status Begin(std::unique_ptr<Connection>& reader);
  void Give(std::unique_ptr<Connection> reader);
  /// A connection that cannot be used again makes room for a fresh one.
  void Drop();

  const ReaderPoolOptions options_;
  const Opener open_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<Connection>> idle_;  // Guarded by mutex_.
  size_t open_count_ = 0;                          // Guarded by mutex_.
};

}  // namespace tarn::metastore
