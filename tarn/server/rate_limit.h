// RateLimit: how many requests one caller may make: a token bucket per caller.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

#include "tarn/base/status.h"

namespace tarn::server {

struct RateLimitOptions {
  int64_t requests_per_minute = 0;  // 0 = no limit. A full minute's worth may come at once.
  size_t callers_max = 10'000;      // Remembered; those that are idle longest go first.
};

/// Threads: any.
class RateLimit {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit RateLimit(RateLimitOptions options) : options_(options) {}

  /// Counts a request of `caller`. Errors: kResourceExhausted, reason TooManyRequests, when it has
  /// used up its requests; the answer is 429 and worth a retry.
  Status Admit(const std::string& caller, Time now);

 private:
  struct Bucket {
    double left = 0;  // Requests, as of `seen`.
    Time seen{};
  };

  void MakeRoom();  // Called with mutex_ held.

  const RateLimitOptions options_;
  std::mutex mutex_;
  std::unordered_map<std::string, Bucket> buckets_;
};

}  // namespace tarn::server
