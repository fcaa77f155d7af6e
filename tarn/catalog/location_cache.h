// LocationCache: values by the name of the immutable file they were read from.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace tarn::catalog {

/// Keeps the values used last, up to a count and a size. Threads: any.
template <typename T>
class LocationCache {
 public:
  LocationCache(size_t count_max, size_t bytes_max)
      : count_max_(count_max), bytes_max_(bytes_max) {}

  /// Null when it is not kept.
  std::shared_ptr<const T> Find(const std::string& location) {
    const std::lock_guard lock(mutex_);
    const auto found = index_.find(location);
    if (found == index_.end()) {
      return nullptr;
    }
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->value;
  }

  /// `bytes`: about what the value takes.
  void Add(const std::string& location, std::shared_ptr<const T> value, size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes > bytes_max_ || index_.contains(location)) {
      return;
    }
    entries_.push_front({location, std::move(value), bytes});
    index_[location] = entries_.begin();
    bytes_ += bytes;
    while (entries_.size() > count_max_ || bytes_ > bytes_max_) {
      bytes_ -= entries_.back().bytes;
      index_.erase(entries_.back().location);
      entries_.pop_back();
    }
  }

 private:
  struct Entry {
    std::string location;
    std::shared_ptr<const T> value;
    size_t bytes = 0;
  };
  using Entries = std::list<Entry>;

  const size_t count_max_;
  const size_t bytes_max_;
  std::mutex mutex_;
  Entries entries_;                                                    // Guarded by mutex_.
  std::unordered_map<std::string, typename Entries::iterator> index_;  // Guarded by mutex_.
  size_t bytes_ = 0;                                                   // Guarded by mutex_.
};

}  // namespace tarn::catalog
