// BoundedQueue: hands values from producer threads to consumer threads, with a stated limit.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "tarn/base/check.h"

namespace tarn {

/// First in, first out, at most `limit` values. Threads: any, on both ends.
///
/// Close ends it: producers are refused at once, consumers still get what was queued.
template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t limit) : limit_(limit) { TARN_CHECK(limit > 0); }
  BoundedQueue(const BoundedQueue&) = delete;
  BoundedQueue& operator=(const BoundedQueue&) = delete;

  /// Waits for room. False when the queue is closed: the value was not taken.
  [[nodiscard]] bool Push(T value) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [this] { return closed_ || values_.size() < limit_; });
    return Take(std::move(value), lock);
  }

  /// False, and `value` untouched, when the queue is full or closed.
  [[nodiscard]] bool TryPush(T&& value) {
    std::unique_lock lock(mutex_);
    if (values_.size() >= limit_) {
      return false;
    }
    return Take(std::move(value), lock);
  }

  /// Waits for a value. Nothing when the queue is closed and empty.
  [[nodiscard]] std::optional<T> Pop() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return closed_ || !values_.empty(); });
    return Give(lock);
  }

  /// As Pop, but gives up after `wait`; nothing then too.
  template <typename Rep, typename Period>
  [[nodiscard]] std::optional<T> PopFor(std::chrono::duration<Rep, Period> wait) {
    std::unique_lock lock(mutex_);
    ready_.wait_for(lock, wait, [this] { return closed_ || !values_.empty(); });
    return Give(lock);
  }

  [[nodiscard]] std::optional<T> TryPop() {
    std::unique_lock lock(mutex_);
    return Give(lock);
  }

  /// Waits for a first value, then takes all that are queued, at most `count_max`; it never waits
  /// for more. Empty only when the queue is closed and empty. This is how a writer groups the
  /// requests that arrived while it was busy.
  [[nodiscard]] std::vector<T> PopAll(size_t count_max = SIZE_MAX) {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return closed_ || !values_.empty(); });
    std::vector<T> taken;
    while (!values_.empty() && taken.size() < count_max) {
      taken.push_back(std::move(values_.front()));
      values_.pop_front();
    }
    lock.unlock();
    room_.notify_all();
    return taken;
  }

  void Close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    room_.notify_all();
    ready_.notify_all();
  }

  [[nodiscard]] bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }
  [[nodiscard]] size_t size() const {
    const std::lock_guard lock(mutex_);
    return values_.size();
  }
  [[nodiscard]] size_t limit() const { return limit_; }

 private:
  bool Take(T&& value, std::unique_lock<std::mutex>& lock) {
    if (closed_) {
      return false;
    }
    values_.push_back(std::move(value));
    lock.unlock();
    ready_.notify_one();
    return true;
  }

  std::optional<T> Give(std::unique_lock<std::mutex>& lock) {
    if (values_.empty()) {
      return std::nullopt;
    }
    std::optional<T> value(std::move(values_.front()));
    values_.pop_front();
    lock.unlock();
    room_.notify_one();
    return value;
  }

  const size_t limit_;
  mutable std::mutex mutex_;
  std::condition_variable room_;
  std::condition_variable ready_;
  std::deque<T> values_;  // Guarded by mutex_.
  bool closed_ = false;   // Guarded by mutex_.
};

}  // namespace tarn
