// KafkaCluster: brokers inside the process of a test, as librdkafka makes them. Enough of the
// protocol for readers; no transactions, no compaction, and topics are never removed. A partition
// keeps its newest 5 MB.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct rd_kafka_s;
struct rd_kafka_mock_cluster_s;

namespace tarn {

/// A message for KafkaCluster::Produce.
struct KafkaTestMessage {
  std::string topic;
  int32_t partition = 0;
  std::optional<std::string> key = std::nullopt;
  std::optional<std::string> value = std::nullopt;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers = {};
  int64_t time_ms = 0;  // 0: now.
};

/// One owner thread. Listens on loopback.
class KafkaCluster {
 public:
  KafkaCluster();
  ~KafkaCluster();
  KafkaCluster(const KafkaCluster&) = delete;
  KafkaCluster& operator=(const KafkaCluster&) = delete;

  /// host:port.
  [[nodiscard]] std::string address() const;
  void CreateTopic(const std::string& topic, int partition_count);
  /// Sends one and waits until the broker has it. Aborts the process when it does not take it.
  void Produce(const KafkaTestMessage& message);
  /// The next requests of this kind (number of the protocol) are answered with these errors.
  void FailRequests(int16_t kind, const std::vector<int>& errors);
  void SetDown();
  void SetUp();

 private:
  rd_kafka_s* producer_ = nullptr;
  rd_kafka_mock_cluster_s* cluster_ = nullptr;
};

}  // namespace tarn
