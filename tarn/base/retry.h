// Retry: the one place that decides whether a failed call is made again, by its code, and when.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"

namespace tarn {

/// Limits of one retried call. Waits grow by `factor`; each is shortened by up to `jitter`.
struct RetryOptions {
  int attempts_max = 5;  // Calls in total; 1 = no retry.
  std::chrono::milliseconds wait_first{50};
  std::chrono::milliseconds wait_max{5'000};
  std::chrono::milliseconds elapsed_max{60'000};  // No attempt starts later than this.
  double factor = 2.0;
  double jitter = 0.5;           // 0 = exact waits, for tests.
  uint64_t jitter_seed = 1;      // Callers that must not march in step pass different seeds.
  bool retry_conflicts = false;  // Also kConflict: only when the call re-reads what moved.
};

/// Waits between attempts. Threads: any.
class Sleeper {
 public:
  virtual ~Sleeper() = default;
  /// Errors: kCancelled when told to stop before the time was over.
  virtual Status Sleep(std::chrono::microseconds duration) = 0;
};

/// Sleeps for real; Stop wakes all sleepers, now and in future.
class SystemSleeper final : public Sleeper {
 public:
  Status Sleep(std::chrono::microseconds duration) override;
  void Stop();

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false;  // Guarded by mutex_.
};

/// Moves a ManualClock instead of waiting: for tests.
class ManualSleeper final : public Sleeper {
 public:
  explicit ManualSleeper(ManualClock& clock) : clock_(clock) {}
  Status Sleep(std::chrono::microseconds duration) override {
    clock_.Advance(duration);
    return Status::Ok();
  }

 private:
  ManualClock& clock_;
};

/// The waits of one retried call. Pure but for its counter. One owner thread.
class RetrySchedule {
 public:
  RetrySchedule(const RetryOptions& options, Timestamp start)
      : options_(options), start_(start), random_(options.jitter_seed) {}

  /// How long to wait after a failure with `code` at `now`; nothing when it is final.
  std::optional<std::chrono::microseconds> Next(ErrorCode code, Timestamp now);
  /// Attempts that Next has judged.
  [[nodiscard]] int attempts() const { return attempts_; }

 private:
  RetryOptions options_;
  Timestamp start_;
  uint64_t random_;
  int attempts_ = 0;
};

/// What a retried call needs of the world. Both must outlive the call.
struct RetryWorld {
  const Clock& clock;
  Sleeper& sleeper;
};

namespace internal {
Status AfterAttempts(const Status& last, int attempts);
}  // namespace internal

/// Calls `function` (returning Status or Result<T>) until it succeeds, fails for good or the limits
/// are reached; then returns the last failure, saying how many attempts were made.
///
/// kCommitStateUnknown is never retried: the outcome must be looked up first.
/// Errors: those of `function`; kCancelled when the sleeper was stopped.
template <typename Function>
auto Retry(const RetryOptions& options, RetryWorld world, Function&& function)
    -> decltype(function()) {
  RetrySchedule schedule(options, world.clock.Now());
  for (;;) {
    auto result = function();
    if (result.ok()) {
      return result;
    }
    const Status status = StatusOf(result);
    const auto wait = schedule.Next(status.code(), world.clock.Now());
    if (!wait) {
      return internal::AfterAttempts(status, schedule.attempts());
    }
    const Status slept = world.sleeper.Sleep(*wait);
    if (!slept.ok()) {
      return slept.WithContext("stopped while retrying after " + status.ToString());
    }
  }
}

}  // namespace tarn
