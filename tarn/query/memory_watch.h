// MemoryWatch: stops statements of people that make the process larger than it may become.
//
// The engine's own limit covers its tables, sorts and hash tables. The values of single rows are
// made outside of it, and so are the rows on their way to a client: `repeat('x', 2000000000)` is
// one value. So the process itself is looked at while statements run.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "tarn/base/status.h"

namespace tarn::query {

struct MemoryWatchOptions {
  uint64_t limit_bytes = 0;   // Up to here nobody is stopped.
  uint64_t growth_bytes = 0;  // Beyond, a statement is, once this much came since it began.
  std::chrono::milliseconds interval{10};
  // After one was stopped: how many looks its memory has to go before the next one is.
  int looks_of_grace = 50;
  std::function<uint64_t()> used_bytes{};  // Empty = the resident bytes of this process.
};

/// Threads: any. Must outlive what it watches.
class MemoryWatch {
 public:
  /// One statement, from its start until it is destroyed. Threads: any.
  class Watched {
   public:
    Watched(MemoryWatch& watch, std::function<void()> interrupt);
    ~Watched();
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;

    /// kResourceExhausted once the statement was stopped, else OK.
    [[nodiscard]] Status status() const;

   private:
    friend class MemoryWatch;
    MemoryWatch& watch_;
    const std::function<void()> interrupt_;  // Called at most once, on the thread of the watch.
    const uint64_t began_bytes_;
    std::atomic<bool> stopped_{false};
    std::list<Watched*>::iterator place_;
  };

  /// Starts the thread that looks.
  explicit MemoryWatch(MemoryWatchOptions options);
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

  /// Looks once and stops at most one statement: the youngest of those that may be.
  void Look();

 private:
  void Run(const std::stop_token& stop);

  const MemoryWatchOptions options_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::list<Watched*> watched_;  // Oldest first.
  int grace_ = 0;
  std::jthread thread_;  // Last: it uses the rest.
};

}  // namespace tarn::query
