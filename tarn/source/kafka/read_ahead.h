// ReadAhead: when the client is to be told that there is room for more.
//
// The library fetches ahead up to a number of bytes or messages, then sleeps for up to a second. A
// reader that takes all of it within that second would wait for the rest of it.
#pragma once

#include <cstdint>
#include <vector>

namespace tarn::source::kafka {

/// Counts what was taken. Pure; one owner thread.
class ReadAhead {
 public:
  /// What the library fetches ahead at most; 0: no limit is known, and nothing is ever due.
  ReadAhead(uint64_t bytes_max, uint64_t messages_max);

  /// A message of `bytes` of the partition was taken.
  void Took(uint32_t partition, uint64_t bytes);

  /// Once a third of what is fetched ahead was taken since the last time: the partitions it came
  /// from, at most kPartitionsMax of them. Else empty.
  std::vector<uint32_t> TakeDue();

  static constexpr size_t kPartitionsMax = 64;

 private:
  uint64_t bytes_due_;
  uint64_t messages_due_;
  uint64_t bytes_ = 0;
  uint64_t messages_ = 0;
  std::vector<uint32_t> partitions_;
};

}  // namespace tarn::source::kafka
