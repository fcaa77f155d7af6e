// A fixed number of threads that run handlers, behind a bounded queue.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tarn::server::http {

/// Threads: any may submit. Join (or the destructor) runs what is queued, then ends the threads.
class WorkerPool {
 public:
  WorkerPool(int thread_count, size_t queued_count_max);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// False when the queue is full or the pool has been joined; `job` is then not run.
  [[nodiscard]] bool TrySubmit(std::function<void()> job);
  void Join();

 private:
  void Run();

  const size_t queued_count_max_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::function<void()>> jobs_;  // Guarded by mutex_.
  bool joined_ = false;                     // Guarded by mutex_.
  std::vector<std::thread> threads_;
};

}  // namespace tarn::server::http
