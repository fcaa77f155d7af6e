#include "tarn/source/kafka/topic_watch.h"

#include <utility>

#include "tarn/base/thread_name.h"

namespace tarn::source::kafka {

TopicWatch::TopicWatch(Ask ask, milliseconds every)
    : ask_(std::move(ask)), every_(every), thread_([this] { Run(); }) {}

TopicWatch::~TopicWatch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  thread_.join();
}

void TopicWatch::Run() {
  NameThisThread("topic-watch");
  std::unique_lock lock(mutex_);
  while (!stopped_.wait_for(lock, every_, [&] { return stop_; })) {
    lock.unlock();
    Result<std::vector<TopicLayout>> topics = ask_();
    lock.lock();
    if (topics.ok()) {
      ++newest_.answer;
      newest_.topics = *std::move(topics);
      newest_.failure = Status::Ok();
      failing_since_.reset();
    } else {
      newest_.failure = topics.status();
      failing_since_ = failing_since_.value_or(std::chrono::steady_clock::now());
    }
  }
}

WatchedTopics TopicWatch::Look(uint64_t seen) const {
  const std::lock_guard lock(mutex_);
  WatchedTopics look{.answer = newest_.answer,
                     .topics = {},
                     .failure = newest_.failure,
                     .failing_for = milliseconds(0)};
  if (newest_.answer > seen) {
    look.topics = newest_.topics;
  }
  if (failing_since_) {
    look.failing_for = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() -
                                                                *failing_since_);
  }
  return look;
}

}  // namespace tarn::source::kafka
