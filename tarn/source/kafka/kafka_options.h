// KafkaSourceOptions: what a task reads of a cluster, and how. Values.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "tarn/source/kafka/client_settings.h"
#include "tarn/source/kafka/kafka_position.h"
#include "tarn/source/kafka/offset_plan.h"

namespace tarn::source::kafka {

enum class OnLostRange : uint8_t { kStop, kContinue };
enum class LaterTopics : uint8_t { kApply, kIgnore };
enum class ReadUntil : uint8_t {
  kStopped,  // Goes on with what comes, also in new partitions and topics.
  kEnd,      // Only what was there when the source was opened.
};

struct KafkaSourceOptions {
  ClientSettings client;
  std::vector<std::string> topics;
  std::vector<std::string> exclude;
  StartPolicy start;
  OnLostRange on_lost_range = OnLostRange::kStop;
  LaterTopics on_new_topic = LaterTopics::kApply;
  ReadUntil until = ReadUntil::kStopped;
  std::chrono::milliseconds look_every{5000};         // For new topics and partitions.
  std::chrono::milliseconds answer_wait_max{10'000};  // For a question to the cluster.
  std::chrono::milliseconds retry_after{2000};        // A partition that failed is tried again.
  int retries_max = 3;  // With kEnd; then its failure is that of the source.
};

/// How far one partition is.
struct PartitionLag {
  TopicPartition where;
  int64_t next = 0;      // Offset that is read next.
  int64_t end = 0;       // Of the partition, as far as known.
  int64_t lag = 0;       // Messages between them; holes count, too.
  int64_t time_ms = -1;  // Of the newest message handed over; -1: none.
  std::string failure;   // Why it is not read at the moment; empty: it is.
};

}  // namespace tarn::source::kafka
