// PlanOffsets: where reading begins in each partition, and what is lost. Pure.
//
// Stored offsets × what the broker has × the start policy. Holes between messages (compaction,
// markers of transactions) are no loss: only what lies before the first offset of a partition, or
// behind its end, cannot be read any more.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"
#include "tarn/source/kafka/kafka_position.h"

namespace tarn::source::kafka {

/// `start` of a landing task.
struct StartPolicy {
  enum class Kind : uint8_t { kEarliest, kNow, kTime };
  Kind kind = Kind::kEarliest;
  Timestamp time{};  // For kTime: the first message of this time or later.
  friend bool operator==(const StartPolicy&, const StartPolicy&) = default;
};

/// Reads "earliest", "now" or an ISO-8601 time. Errors: kInvalidArgument.
Result<StartPolicy> ParseStart(std::string_view text);

/// What the broker says of one partition.
struct PartitionFacts {
  TopicPartition where;
  int64_t first = 0;  // Of the messages it still has.
  int64_t end = 0;    // Behind the last one that is committed.
  // Of the first message of StartPolicy::time or later; empty when there is none, or nobody asked.
  std::optional<int64_t> at_time;
  bool remade = false;  // It is not the partition that was read, however much it has.
};

struct OffsetPlanRequest {
  StartPolicy start;
  bool first_start = false;  // The task never began: the policy holds for all partitions.
  const Offsets* stored = nullptr;
};

struct PlannedStart {
  TopicPartition where;
  int64_t offset = 0;
  int64_t end = 0;     // As PartitionFacts.
  bool fresh = false;  // Not stored: to be stored before anything of it is read.
  int64_t first = 0;   // As PartitionFacts.
  friend bool operator==(const PlannedStart&, const PlannedStart&) = default;
};

struct OffsetPlan {
  std::vector<PlannedStart> starts;  // One for each of the facts, in their order.
  std::vector<LostRange> lost;       // The starts lie behind them.
};

/// Partitions that appear after the first start are read from their beginning, unless the policy
/// is a time: nothing in them is older than the task. Cost: O(facts log stored).
OffsetPlan PlanOffsets(const std::vector<PartitionFacts>& facts, const OffsetPlanRequest& request);

}  // namespace tarn::source::kafka
