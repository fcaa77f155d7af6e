#include "tarn/base/retry.h"

#include <algorithm>
#include <cmath>

namespace tarn {

namespace {

// SplitMix64: a full-period generator in five operations, so a seed reproduces every wait.
uint64_t NextRandom(uint64_t& state) {
  state += 0x9E3779B97F4A7C15ULL;
  uint64_t mixed = state;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ULL;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBULL;
  return mixed ^ (mixed >> 31);
}

}  // namespace

Status SystemSleeper::Sleep(std::chrono::microseconds duration) {
  std::unique_lock lock(mutex_);
  if (wake_.wait_for(lock, duration, [this] { return stopped_; })) {
    return {ErrorCode::kCancelled, "stopped while waiting"};
  }
  return Status::Ok();
}

void SystemSleeper::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_all();
}

std::optional<std::chrono::microseconds> RetrySchedule::Next(ErrorCode code, Timestamp now) {
  ++attempts_;
  const bool may_retry =
      IsRetryable(code) || (options_.retry_conflicts && code == ErrorCode::kConflict);
  if (!may_retry || attempts_ >= options_.attempts_max) {
    return std::nullopt;
  }
  const double grown = static_cast<double>(options_.wait_first.count()) * 1000.0 *
                       std::pow(options_.factor, attempts_ - 1);
  const double capped = std::min(grown, static_cast<double>(options_.wait_max.count()) * 1000.0);
  const double fraction = static_cast<double>(NextRandom(random_) >> 11) * 0x1.0p-53;
  const double shortened = capped * (1.0 - options_.jitter * fraction);
  const std::chrono::microseconds wait{static_cast<int64_t>(shortened)};
  if (now + wait - start_ > options_.elapsed_max) {
    return std::nullopt;
  }
  return wait;
}

namespace internal {

Status AfterAttempts(const Status& last, int attempts) {
  return attempts <= 1 ? last : last.WithContext("after " + std::to_string(attempts) + " attempts");
}

}  // namespace internal

}  // namespace tarn
