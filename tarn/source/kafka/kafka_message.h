// KafkaBatch: messages as the cluster gave them, without a copy, and what else happened meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/memory_budget.h"
#include "tarn/source/kafka/offset_plan.h"

struct rd_kafka_message_s;

namespace tarn::source::kafka {

/// One message. Views live as long as its batch.
struct KafkaMessage {
  uint32_t partition = 0;  // Index for KafkaSource::partition.
  bool has_key = false;
  bool has_value = false;  // False: a tombstone.
  int64_t offset = 0;
  std::string_view key;
  std::string_view value;
  int64_t time_ms = -1;  // Since 1970; -1: it has none.
  const rd_kafka_message_s* native = nullptr;
};

struct KafkaHeader {
  std::string_view name;
  std::optional<std::string_view> value;
  friend bool operator==(const KafkaHeader&, const KafkaHeader&) = default;
};

/// The headers of a message in their order, in place of what `headers` held. Cheap without any.
void ReadHeaders(const KafkaMessage& message, std::vector<KafkaHeader>& headers);

/// Of time, key and value: two messages at one offset that differ are of two topics.
uint64_t DigestOf(const KafkaMessage& message);

/// Something that a person should look at.
struct KafkaNotice {
  std::string code;    // "topic_gone", "partition_failed", "lost_range".
  std::string object;  // The topic or partition, and why.
  friend bool operator==(const KafkaNotice&, const KafkaNotice&) = default;
};

/// A partition that has nothing before `next` that was not handed over: where messages that nobody
/// can read (markers of transactions) stand before its end.
struct PartitionAdvance {
  uint32_t partition = 0;
  int64_t next = 0;
  friend bool operator==(const PartitionAdvance&, const PartitionAdvance&) = default;
};

struct FreeNative {
  void operator()(rd_kafka_message_s* message) const;
};
using NativeMessage = std::unique_ptr<rd_kafka_message_s, FreeNative>;

/// Movable value; dies before its source. Keep `memory` as long as the messages.
struct KafkaBatch {
  std::vector<KafkaMessage> messages;  // Of one partition in their order.
  std::vector<PartitionAdvance> advances;
  /// Partitions that are read from now on. Store their offsets before the next call: it may hand
  /// over messages of them.
  std::vector<PlannedStart> started;
  std::vector<LostRange> lost;  // Passed over, as OnLostRange::kContinue says.
  std::vector<KafkaNotice> notices;
  bool caught_up = false;
  Reservation memory;                  // What keys and values hold of the budget.
  std::vector<NativeMessage> natives;  // What the views point into.
};

}  // namespace tarn::source::kafka
