#include "tarn/base/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include "tarn/base/log.h"

namespace tarn {

ThreadPool::ThreadPool(const ThreadPoolOptions& options)
    : options_(options), tasks_(options.queued_max) {
  TARN_CHECK(options.threads > 0);
  threads_.reserve(options.threads);
  for (size_t i = 0; i < options.threads; ++i) {
    threads_.emplace_back([this] { Run(); });
    ::pthread_setname_np(threads_.back().native_handle(), options_.name.substr(0, 15).c_str());
  }
}

ThreadPool::~ThreadPool() { Shutdown(); }

Status ThreadPool::Submit(std::function<void()> task) {
  if (!tasks_.Push(std::move(task))) {
    return {ErrorCode::kCancelled, "thread pool " + options_.name + " is shut down"};
  }
  return Status::Ok();
}

Status ThreadPool::TrySubmit(std::function<void()> task) {
  if (tasks_.TryPush(std::move(task))) {
    return Status::Ok();
  }
  if (tasks_.closed()) {
    return {ErrorCode::kCancelled, "thread pool " + options_.name + " is shut down"};
  }
  return {ErrorCode::kResourceExhausted, "thread pool " + options_.name + " has " +
                                             std::to_string(options_.queued_max) +
                                             " tasks waiting"};
}

void ThreadPool::Shutdown() {
  tasks_.Close();
  const std::lock_guard lock(join_mutex_);
  for (std::thread& thread : threads_) {
    thread.join();
  }
  threads_.clear();
}

void ThreadPool::Run() {
  while (const std::optional<std::function<void()>> task = tasks_.Pop()) {
    try {
      (*task)();
    } catch (const std::exception& exception) {
      Log(LogLevel::kError, options_.name,
          std::string("a task ended with an exception: ") + exception.what());
    }
  }
}

namespace {

// Shared by the caller and the workers of one ParallelFor; the last to leave frees it.
struct ParallelRun {
  ParallelRun(size_t index_count, const std::function<Status(size_t)>& body)
      : count(index_count), function(body) {}

  // Takes indexes until none is left or one failed.
  void Work() {
    for (;;) {
      const size_t index = next.fetch_add(1);
      if (index >= count || failed.load()) {
        return;
      }
      Status status = Call(index);
      if (!status.ok()) {
        failed.store(true);
        const std::lock_guard lock(mutex);
        if (index < failed_index) {
          failed_index = index;
          failure = std::move(status);
        }
      }
    }
  }

  Status Call(size_t index) const {
    try {
      return function(index);
    } catch (const std::exception& exception) {
      return Status::Internal(std::string("exception in a parallel task: ") + exception.what());
    }
  }

  const size_t count;
  // Not touched by a worker that starts after the caller left: then no index is left either.
  const std::function<Status(size_t)>& function;
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::condition_variable idle;
  size_t working = 0;              // Guarded by mutex.
  bool finished = false;           // Guarded by mutex; later workers must not start.
  size_t failed_index = SIZE_MAX;  // Guarded by mutex.
  Status failure;                  // Guarded by mutex.
};

}  // namespace

Status ParallelFor(ThreadPool& pool, size_t count, size_t parallel_max,
                   const std::function<Status(size_t)>& function) {
  TARN_CHECK(parallel_max > 0);
  const auto run = std::make_shared<ParallelRun>(count, function);
  const size_t extra = std::min({parallel_max, count, pool.thread_count() + 1});
  for (size_t i = 1; i < extra; ++i) {
    const Status submitted = pool.TrySubmit([run] {
      {
        const std::lock_guard lock(run->mutex);
        if (run->finished) {
          return;
        }
        ++run->working;
      }
      run->Work();
      const std::lock_guard lock(run->mutex);
      --run->working;
      run->idle.notify_all();
    });
    if (!submitted.ok()) {
      break;  // The pool is busy or closing: the calling thread does the work.
    }
  }
  run->Work();
  std::unique_lock lock(run->mutex);
  run->finished = true;
  run->idle.wait(lock, [&] { return run->working == 0; });
  return run->failure;
}

}  // namespace tarn
