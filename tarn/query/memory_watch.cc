#include "tarn/query/memory_watch.h"

#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>

namespace tarn::query {

namespace {

// 0 where the system does not say: then nobody is stopped.
uint64_t ResidentBytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) {
    return 0;
  }
  unsigned long long size = 0;
  unsigned long long resident = 0;
  const int found = std::fscanf(file, "%llu %llu", &size, &resident);
  std::fclose(file);
  return found == 2 ? resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

MemoryWatchOptions WithDefaults(MemoryWatchOptions options) {
  if (!options.used_bytes) {
    options.used_bytes = &ResidentBytes;
  }
  return options;
}

}  // namespace

MemoryWatch::Watched::Watched(MemoryWatch& watch, std::function<void()> interrupt)
    : watch_(watch), interrupt_(std::move(interrupt)), began_bytes_(watch.options_.used_bytes()) {
  const std::lock_guard lock(watch_.mutex_);
  place_ = watch_.watched_.insert(watch_.watched_.end(), this);
  watch_.changed_.notify_one();
}

MemoryWatch::Watched::~Watched() {
  const std::lock_guard lock(watch_.mutex_);
  watch_.watched_.erase(place_);
}

Status MemoryWatch::Watched::status() const {
  if (!stopped_) {
    return Status::Ok();
  }
  return {ErrorCode::kResourceExhausted,
          fmt::format("the statement was stopped: it needs more memory than is there for values of "
                      "rows and results (the server may grow to {} MiB); make its values smaller, "
                      "read fewer rows, or raise engine_memory in tarn.toml",
                      watch_.options_.limit_bytes >> 20)};
}

MemoryWatch::MemoryWatch(MemoryWatchOptions options)
    : options_(WithDefaults(std::move(options))),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

MemoryWatch::~MemoryWatch() = default;

void MemoryWatch::Look() {
  const uint64_t used = options_.used_bytes();
  const std::lock_guard lock(mutex_);
  if (grace_ > 0) {
    --grace_;
    return;
  }
  if (used <= options_.limit_bytes) {
    return;
  }
  for (auto one = watched_.rbegin(); one != watched_.rend(); ++one) {
    Watched& statement = **one;
    if (!statement.stopped_ && used > statement.began_bytes_ + options_.growth_bytes) {
      statement.stopped_ = true;
      statement.interrupt_();
      grace_ = options_.looks_of_grace;
      return;
    }
  }
}

void MemoryWatch::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, stop, [this] { return !watched_.empty(); });
      changed_.wait_for(lock, stop, options_.interval, [] { return false; });
    }
    Look();
  }
}

}  // namespace tarn::query
