// Where a message stands in a Kafka cluster: the vocabulary between the Kafka source and landing.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>

namespace tarn::source::kafka {

struct TopicPartition {
  std::string topic;
  int32_t partition = 0;
  friend auto operator<=>(const TopicPartition&, const TopicPartition&) = default;
};

/// "orders[3]", as messages name it.
std::string NameOf(const TopicPartition& where);

/// The next offset to read of each partition.
using Offsets = std::map<TopicPartition, int64_t>;

/// Of one message.
struct KafkaPosition {
  TopicPartition where;
  int64_t offset = 0;
  friend bool operator==(const KafkaPosition&, const KafkaPosition&) = default;
};

/// The newest message of a partition that was taken in. As long as the broker keeps it, it is what
/// tells the partition from one of the same name that was made later.
struct SeenMessage {
  int64_t offset = 0;
  uint64_t digest = 0;  // DigestOf.
  friend bool operator==(const SeenMessage&, const SeenMessage&) = default;
};
using SeenMessages = std::map<TopicPartition, SeenMessage>;

/// Why messages that were to be read are not there any more.
enum class LossCause : uint8_t {
  kRetention,  // The broker removed them before they were read.
  kRemade,     // What was read is not there: topic made again, or cut back.
};

/// Offsets [from, to) of a partition that nobody can read any more. After kRemade `to` is where
/// the partition begins now and may be less than `from`.
struct LostRange {
  TopicPartition where;
  int64_t from = 0;
  int64_t to = 0;
  LossCause cause = LossCause::kRetention;
  friend bool operator==(const LostRange&, const LostRange&) = default;
};

/// For people: the partition, the offsets and why.
std::string Describe(const LostRange& lost);

}  // namespace tarn::source::kafka
