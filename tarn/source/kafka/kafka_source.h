// KafkaSource: the messages of some topics of a cluster, from given offsets on.
//
// One client for all topics. It stores and decides nothing about what is committed: whoever commits
// the messages stores the offsets behind them, and opens the source anew from those.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tarn/base/memory_budget.h"
#include "tarn/base/status.h"
#include "tarn/source/kafka/kafka_client.h"
#include "tarn/source/kafka/kafka_message.h"
#include "tarn/source/kafka/kafka_options.h"
#include "tarn/source/kafka/offset_plan.h"
#include "tarn/source/kafka/read_ahead.h"
#include "tarn/source/kafka/topic_selection.h"
#include "tarn/source/kafka/topic_watch.h"
#include "tarn/source/source.h"

namespace tarn::source::kafka {

/// Where a task stands.
struct KafkaStart {
  Offsets next;             // Stored; empty on the first start.
  SeenMessages seen{};      // Before those; of partitions that no message was read of: none.
  bool first_start = true;  // No offset was ever stored.
};

/// One owner thread; Cancel from any. Memory: what the client fetches ahead (its property
/// queued.max.messages.kbytes), one batch, and some hundred bytes a partition.
class KafkaSource {
 public:
  /// Errors: kInvalidArgument for bad options; kUnavailable when the cluster does not answer;
  /// kPermissionDenied; kNotFound naming a topic that is not there and never was read;
  /// kFailedPrecondition naming a lost range, unless it is to go on.
  static Result<std::unique_ptr<KafkaSource>> Open(const KafkaSourceOptions& options,
                                                   const KafkaStart& start, MemoryBudget& budget);
  ~KafkaSource();
  KafkaSource(const KafkaSource&) = delete;
  KafkaSource& operator=(const KafkaSource&) = delete;

  /// The next messages; waits for the first one only. Empty and not caught up without anything
  /// else: paused, as the budget has nothing left, or nothing came in time.
  /// Errors: kCancelled after Cancel; kUnavailable when the cluster has not answered for a while;
  /// kFailedPrecondition naming a lost range. After an error: open another one.
  Result<KafkaBatch> Next(const BatchLimits& limits);
  void Cancel() { cancelled_.store(true); }

  /// Tells the cluster's group how far this is, for lag tools: best effort, never read here.
  void CommitToGroup(const Offsets& next);
  /// Says it again and waits for the answer, at most three seconds: before the source ends.
  void FlushGroup();

  [[nodiscard]] const TopicPartition& partition(uint32_t index) const {
    return partitions_[index].where;
  }
  [[nodiscard]] size_t partition_count() const { return partitions_.size(); }
  /// The newest message that was handed over, or else that of the start.
  [[nodiscard]] const std::optional<SeenMessage>& seen(uint32_t index) const {
    return partitions_[index].seen;
  }
  [[nodiscard]] const std::string& cluster_id() const { return cluster_id_; }
  /// Cost: a look-up per partition.
  [[nodiscard]] std::vector<PartitionLag> ReadLags() const;

 private:
  struct Partition {
    TopicPartition where;
    int64_t next = 0;
    int64_t end = 0;      // When it was planned; with kEnd where it is to stop.
    bool gone = false;    // Its topic is.
    bool at_end = false;  // Nothing more was there.
    std::optional<SeenMessage> seen;
    bool checking = false;  // Reading begins with `seen`, to find it unchanged.
    bool remade = false;    // It was not: the next plan begins anew.
    int64_t time_ms = -1;
    std::string failure;
    int failures = 0;
    std::chrono::steady_clock::time_point retry_at;
  };
  KafkaSource(const KafkaSourceOptions& options, TopicSelection selection, MemoryBudget& budget)
      : options_(options), selection_(std::move(selection)), budget_(budget) {}

  [[nodiscard]] Status CheckCancelled() const;
  Result<std::vector<TopicLayout>> AskForTopics();
  Status Begin(const KafkaStart& start);
  [[nodiscard]] Status CheckNamed(const std::vector<TopicLayout>& topics, const Offsets& stored,
                                  bool first_start) const;
  Result<std::vector<PartitionFacts>> ReadFacts(const std::vector<TopicPartition>& partitions,
                                                const Offsets& stored, milliseconds wait_max);
  Result<OffsetPlan> Plan(const std::vector<TopicPartition>& partitions, const Offsets& stored,
                          bool first_start, milliseconds wait_max);
  Status TakePlan(const OffsetPlan& plan);
  [[nodiscard]] bool IsRemade(const TopicPartition& where) const;
  uint32_t IndexOf(const TopicPartition& where);
  Status FollowTopics(KafkaBatch& batch);
  Status TakeLayout(const std::vector<TopicLayout>& topics, KafkaBatch& batch);
  Status TakeShrunk(const std::vector<TopicLayout>& topics);
  Status LeaveMissing(const std::set<std::string>& there, KafkaBatch& batch);
  Status RetryFailed();
  Status AddAnnounced();
  bool Announce(KafkaBatch& batch);
  void Fetch(const BatchLimits& limits);
  Status HandOver(const BatchLimits& limits, KafkaBatch& batch);
  Status TakeEvent(const rd_kafka_message_s& event, KafkaBatch& batch);
  void DropWaiting(uint32_t index);
  Status CheckSeen(uint32_t index, const rd_kafka_message_s& native);
  void NoteSeen(const KafkaBatch& batch);
  Status TakeWaiting(const BatchLimits& limits, KafkaBatch& batch, uint64_t& bytes);
  Status Fail(uint32_t index, const std::string& text, KafkaBatch& batch);
  void WakeIfDue();
  void PauseAll();
  void ResumeAll();
  [[nodiscard]] std::vector<TopicPartition> Live() const;
  [[nodiscard]] bool IsCaughtUp() const;
  uint32_t FindPartition(const rd_kafka_message_s& message);

  const KafkaSourceOptions options_;
  const TopicSelection selection_;
  MemoryBudget& budget_;
  std::atomic<bool> cancelled_{false};
  std::unique_ptr<KafkaClient> client_;
  std::string cluster_id_;
  std::vector<Partition> partitions_;
  std::map<TopicPartition, uint32_t> index_;
  const void* handle_ = nullptr;  // The library's, of the topic of the newest message; its index.
  int32_t handle_partition_ = -1;
  uint32_t handle_index_ = 0;
  std::deque<NativeMessage> waiting_;  // Fetched, not handed over.
  uint64_t waiting_bytes_ = 0;
  double message_bytes_ = 256;         // Of an average message.
  std::vector<PlannedStart> planned_;  // To be announced, then added.
  std::vector<LostRange> passed_over_;
  std::vector<uint32_t> to_add_;
  std::set<std::string> known_topics_;
  std::set<uint32_t> failed_;
  std::map<std::string, int> missing_;  // Topics that the newest answers lack, and how many.
  ReadAhead ahead_{0, 0};
  Offsets group_;  // What the group was told.
  bool paused_ = false;
  uint64_t seen_answer_ = 0;
  std::chrono::steady_clock::time_point heard_;  // Of a message or an end.
  std::unique_ptr<TopicWatch> watch_;            // Dies before the client.
};

}  // namespace tarn::source::kafka
