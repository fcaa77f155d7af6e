// TopicWatch: asks a cluster for its topics over and over, beside the reading thread. Only for
// kafka_source.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/source/kafka/kafka_client.h"

namespace tarn::source::kafka {

/// What the newest answers said. Value.
struct WatchedTopics {
  uint64_t answer = 0;  // Number of the newest answer; 0: none yet.
  std::vector<TopicLayout> topics;
  Status failure;               // Of the newest question.
  milliseconds failing_for{0};  // Since when all questions have failed.
};

/// Threads: any. The destructor waits for a question under way: at most `wait_max`.
class TopicWatch {
 public:
  using Ask = std::function<Result<std::vector<TopicLayout>>()>;

  TopicWatch(Ask ask, milliseconds every);
  ~TopicWatch();
  TopicWatch(const TopicWatch&) = delete;
  TopicWatch& operator=(const TopicWatch&) = delete;

  /// The topics, when there is an answer newer than `seen`; the failure in any case.
  [[nodiscard]] WatchedTopics Look(uint64_t seen) const;

 private:
  void Run();

  const Ask ask_;
  const milliseconds every_;
  mutable std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;  // Guarded by mutex_, as below.
  WatchedTopics newest_;
  std::optional<std::chrono::steady_clock::time_point> failing_since_;
  std::thread thread_;
};

}  // namespace tarn::source::kafka
