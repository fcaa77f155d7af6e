// KafkaClient: one connection to a cluster, over librdkafka. Only for kafka_source.
//
// Reads by explicit assignment: no group decides what is read. What may block says for how long.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/source/kafka/client_settings.h"
#include "tarn/source/kafka/kafka_position.h"

struct rd_kafka_s;
struct rd_kafka_queue_s;
struct rd_kafka_message_s;
struct rd_kafka_topic_partition_list_s;

namespace tarn::source::kafka {

using std::chrono::milliseconds;

/// A topic as the cluster describes it.
struct TopicLayout {
  std::string name;
  int32_t partition_count = 0;
  friend bool operator==(const TopicLayout&, const TopicLayout&) = default;
};

/// What to ask a partition for.
inline constexpr int64_t kFirstOffset = -2;
inline constexpr int64_t kEndOffset = -1;

/// One owner thread, but for ListTopics and last_error.
class KafkaClient {
 public:
  /// Connects in the background. Errors: kInvalidArgument for settings that contradict each other.
  static Result<std::unique_ptr<KafkaClient>> Open(const ClientSettings& settings);
  ~KafkaClient();
  KafkaClient(const KafkaClient&) = delete;
  KafkaClient& operator=(const KafkaClient&) = delete;

  /// All topics of the cluster that may be seen, by name. Threads: any.
  /// Errors: kUnavailable saying what the client met; kPermissionDenied.
  Result<std::vector<TopicLayout>> ListTopics(milliseconds wait_max);
  /// Id of the cluster; empty where it has none.
  std::string ReadClusterId(milliseconds wait_max);
  /// For each partition kFirstOffset, kEndOffset (of what is committed), or, for a time in
  /// milliseconds since 1970, the offset of the first message of then or later; -1: there is none.
  /// `wait_max` is for each 500 of them.
  /// Errors: kUnavailable naming a partition that gave no answer; kPermissionDenied.
  Result<std::vector<int64_t>> ReadOffsets(const std::vector<TopicPartition>& partitions,
                                           int64_t what, milliseconds wait_max);

  /// Reads these partitions, too. Errors: kInternal.
  Status Add(const Offsets& starts);
  /// Reads them no more; what is fetched of them is dropped.
  Status Remove(const std::vector<TopicPartition>& partitions);
  /// Nothing more is fetched, and what is fetched is dropped; Resume goes on behind what Consume
  /// gave.
  void Pause(const std::vector<TopicPartition>& partitions);
  void Resume(const std::vector<TopicPartition>& partitions);

  /// Messages and events, whose owner the caller becomes; waits for the first one only.
  size_t Consume(std::span<rd_kafka_message_s*> messages, milliseconds wait_max);
  /// Makes the library look at once whether there is room for more messages of these partitions'
  /// brokers, where it would have looked within a second: when full, its threads sleep until
  /// something comes, and nobody tells them that messages were taken. Cost: a small request for
  /// each broker, and a wait of at most a millisecond.
  void Wake(const std::vector<TopicPartition>& partitions);
  /// How much the library fetches ahead, in bytes and in messages, whichever comes first.
  [[nodiscard]] uint64_t ahead_bytes() const { return ahead_bytes_; }
  [[nodiscard]] uint64_t ahead_messages() const { return ahead_messages_; }
  /// Stores offsets in the group of the cluster, for the eyes of others: best effort.
  void CommitToGroup(const Offsets& next, milliseconds wait_max);
  /// End of a partition as the newest answers said; empty when none came yet.
  [[nodiscard]] std::optional<int64_t> KnownEnd(const TopicPartition& where) const;
  /// What went wrong last between client and cluster; empty: nothing. Threads: any.
  [[nodiscard]] std::string last_error() const;
  void ClearLastError();
  /// True when no broker was reached, or one did not let the client in.
  [[nodiscard]] bool is_hopeless() const;
  /// A failure before anything is read, with what the client met on the way to the brokers.
  Status WithCause(const Status& failure);

 private:
  KafkaClient() = default;
  static void OnError(rd_kafka_s* client, int code, const char* reason, void* self);
  Status AskOffsets(std::span<const TopicPartition> partitions, int64_t what, milliseconds wait_max,
                    std::vector<int64_t>& offsets);
  [[nodiscard]] Status Failed(int code, const std::string& what) const;

  rd_kafka_s* client_ = nullptr;
  rd_kafka_queue_s* queue_ = nullptr;
  uint64_t ahead_bytes_ = 0;
  uint64_t ahead_messages_ = 0;
  mutable std::mutex mutex_;
  std::string last_error_;     // Guarded by mutex_, as below.
  bool not_admitted_ = false;  // Authentication failed.
  bool all_down_ = false;      // No broker could be reached.
};

/// "Broker: Unknown topic or partition" and the like.
std::string KafkaErrorText(int code);

}  // namespace tarn::source::kafka
