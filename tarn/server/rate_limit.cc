#include "tarn/server/rate_limit.h"

#include <algorithm>

namespace tarn::server {

Status RateLimit::Admit(const std::string& caller, Time now) {
  if (options_.requests_per_minute <= 0) {
    return Status::Ok();
  }
  const auto full = static_cast<double>(options_.requests_per_minute);
  const std::lock_guard lock(mutex_);
  const auto [place, is_new] = buckets_.try_emplace(caller, Bucket{.left = full, .seen = now});
  Bucket& bucket = place->second;
  const std::chrono::duration<double, std::ratio<60>> passed = now - bucket.seen;
  bucket.left = std::min(full, bucket.left + std::max(0.0, passed.count()) * full);
  bucket.seen = std::max(bucket.seen, now);
  if (bucket.left < 1) {
    return Status(ErrorCode::kResourceExhausted, "more than " +
                                                     std::to_string(options_.requests_per_minute) +
                                                     " requests in a minute; slow down")
        .WithReason("TooManyRequests");
  }
  bucket.left -= 1;
  if (is_new && buckets_.size() > options_.callers_max) {
    MakeRoom();
  }
  return Status::Ok();
}

void RateLimit::MakeRoom() {
  const auto oldest =
      std::ranges::min_element(buckets_, {}, [](const auto& entry) { return entry.second.seen; });
  buckets_.erase(oldest);
}

}  // namespace tarn::server
