// LandingOffsets: how far a landing task has read the partitions of topics. Rows of the metastore
// beside LandingState, and the same in the records of transactions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/metastore/database.h"
#include "tarn/source/kafka/kafka_position.h"

namespace tarn::landing {

/// Offsets of one partition that one transaction took in: [from, to), without a break.
struct LandedRange {
  source::kafka::TopicPartition where;
  int64_t from = 0;
  int64_t to = 0;
  // The rest are holes: compacted messages, markers of transactions, and messages of batches of
  // which nothing landed.
  int64_t messages = 0;
  friend bool operator==(const LandedRange&, const LandedRange&) = default;
};

/// What the record of a transaction says of topics.
struct LandedTopics {
  std::vector<LandedRange> ranges;
  std::vector<source::kafka::LostRange> gaps;  // Passed over, as on_lost_range: continue says.
  friend bool operator==(const LandedTopics&, const LandedTopics&) = default;
};

/// JSON for the member "kafka" of a record's positions.
std::string EncodeTopics(const LandedTopics& topics);
/// Of the record of a transaction; nothing when it has none. Errors: kCorruption.
Result<std::optional<LandedTopics>> DecodeTopics(std::string_view record_json);

struct StoredOffset {
  int64_t first = 0;                                 // Where reading the partition began.
  int64_t next = 0;                                  // Behind what is landed.
  std::optional<source::kafka::SeenMessage> seen{};  // The newest message that is.
  // Where the ranges in records end, when that is before `next`: what lies between was read, and
  // nothing of it landed.
  std::optional<int64_t> recorded{};
  [[nodiscard]] int64_t recorded_to() const { return recorded.value_or(next); }
  friend bool operator==(const StoredOffset&, const StoredOffset&) = default;
};
using StoredOffsets = std::map<source::kafka::TopicPartition, StoredOffset>;

/// Of the task that writes `dataset` (a RID). Cost: O(partitions).
Result<StoredOffsets> ReadOffsets(metastore::SqlTransaction& sql, std::string_view dataset);
/// Adds partitions, or moves them. Cost: O(offsets).
Status WriteOffsets(metastore::SqlTransaction& sql, std::string_view dataset,
                    const StoredOffsets& offsets);

}  // namespace tarn::landing
