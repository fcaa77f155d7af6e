// FailedAnswers: why answers were broken off after their first bytes, for the clients that got
// those: the answer itself has no place left for it.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "tarn/base/status.h"

namespace tarn::server {

/// The newest failures of this process. Threads: any.
class FailedAnswers {
 public:
  explicit FailedAnswers(size_t count_max = 1000) : count_max_(count_max) {}

  void Add(std::string request_id, std::string user_id, Status failure);
  /// Nothing when the request is not known, or was another user's.
  [[nodiscard]] std::optional<Status> Find(std::string_view request_id,
                                           std::string_view user_id) const;

 private:
  struct Entry {
    std::string request_id;
    std::string user_id;
    Status failure;
  };

  const size_t count_max_;
  mutable std::mutex mutex_;
  std::deque<Entry> entries_;  // Oldest first.
};

}  // namespace tarn::server
