// ThreadPool: a fixed number of threads behind a bounded queue of tasks.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tarn/base/bounded_queue.h"
#include "tarn/base/status.h"

namespace tarn {

struct ThreadPoolOptions {
  std::string name = "pool";  // Shown in logs; at most 15 characters name the threads.
  size_t threads = 2;
  size_t queued_max = 1024;  // Tasks that wait; Submit waits beyond it.
};

/// Runs tasks in order of submission, several at a time. Threads: any may submit.
///
/// A task reports its own failures; an exception that escapes one is logged and the thread goes on.
/// The destructor runs what is queued, then joins.
class ThreadPool {
 public:
  explicit ThreadPool(const ThreadPoolOptions& options);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Queues `task`, waiting while the queue is full: not to be called by a task of this pool.
  /// Errors: kCancelled after Shutdown; the task will not run.
  Status Submit(std::function<void()> task);
  /// As Submit, without waiting. Errors: also kResourceExhausted when the queue is full.
  Status TrySubmit(std::function<void()> task);
  /// Refuses further tasks, runs those queued, joins. Not to be called by a task. Idempotent.
  void Shutdown();

  [[nodiscard]] size_t thread_count() const { return options_.threads; }

 private:
  void Run();

  const ThreadPoolOptions options_;
  BoundedQueue<std::function<void()>> tasks_;
  std::mutex join_mutex_;
  std::vector<std::thread> threads_;  // Guarded by join_mutex_ after construction.
};

/// Calls `function(0 … count - 1)`, at most `parallel_max` at a time, on the pool and on the
/// calling thread, which always takes part: a task of the same pool may call this without deadlock.
///
/// After the first failure no further index starts. Returns the failure with the lowest index among
/// those that ran; an exception of `function` is kInternal.
Status ParallelFor(ThreadPool& pool, size_t count, size_t parallel_max,
                   const std::function<Status(size_t)>& function);

}  // namespace tarn
