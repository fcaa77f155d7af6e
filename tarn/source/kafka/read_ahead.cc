#include "tarn/source/kafka/read_ahead.h"

#include <algorithm>
#include <utility>

namespace tarn::source::kafka {

namespace {

constexpr uint64_t kShare = 3;

// Of a limit that is not known nothing is ever due.
uint64_t DueAt(uint64_t limit) {
  return limit == 0 ? UINT64_MAX : std::max<uint64_t>(limit / kShare, 1);
}

}  // namespace

ReadAhead::ReadAhead(uint64_t bytes_max, uint64_t messages_max)
    : bytes_due_(DueAt(bytes_max)), messages_due_(DueAt(messages_max)) {}

void ReadAhead::Took(uint32_t partition, uint64_t bytes) {
  bytes_ += bytes;
  ++messages_;
  // Messages come in runs of one partition; few of those runs make up what is due.
  if (partitions_.size() < kPartitionsMax &&
      (partitions_.empty() || partitions_.back() != partition) &&
      std::find(partitions_.begin(), partitions_.end(), partition) == partitions_.end()) {
    partitions_.push_back(partition);
  }
}

std::vector<uint32_t> ReadAhead::TakeDue() {
  if (bytes_ < bytes_due_ && messages_ < messages_due_) {
    return {};
  }
  bytes_ = 0;
  messages_ = 0;
  return std::exchange(partitions_, {});
}

}  // namespace tarn::source::kafka
