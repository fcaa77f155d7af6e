#include "tarn/server/failed_answers.h"

#include <algorithm>
#include <utility>

namespace tarn::server {

void FailedAnswers::Add(std::string request_id, std::string user_id, Status failure) {
  const std::lock_guard lock(mutex_);
  entries_.push_back({std::move(request_id), std::move(user_id), std::move(failure)});
  if (entries_.size() > count_max_) {
    entries_.pop_front();
  }
}

std::optional<Status> FailedAnswers::Find(std::string_view request_id,
                                          std::string_view user_id) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.request_id == request_id && entry.user_id == user_id;
  });
  return found == entries_.end() ? std::nullopt : std::optional(found->failure);
}

}  // namespace tarn::server
