#include "test/support/kafka_cluster.h"

#include <array>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include "tarn/base/check.h"

namespace tarn {

namespace {

void Set(rd_kafka_conf_t* conf, const char* name, const char* value) {
  std::array<char, 256> error{};
  TARN_CHECK(rd_kafka_conf_set(conf, name, value, error.data(), error.size()) == RD_KAFKA_CONF_OK);
}

void OnDelivery(rd_kafka_t* /*client*/, const rd_kafka_message_t* message, void* /*opaque*/) {
  TARN_CHECK(message->err == RD_KAFKA_RESP_ERR_NO_ERROR);
}

}  // namespace

KafkaCluster::KafkaCluster() {
  std::array<char, 256> error{};
  // The cluster lives in a client of its own; another one sends to it.
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  rd_kafka_conf_set_log_cb(conf, [](const rd_kafka_t*, int, const char*, const char*) {});
  rd_kafka_t* host = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error.data(), error.size());
  TARN_CHECK(host != nullptr);
  cluster_ = rd_kafka_mock_cluster_new(host, 1);
  TARN_CHECK(cluster_ != nullptr);
  conf = rd_kafka_conf_new();
  Set(conf, "bootstrap.servers", address().c_str());
  Set(conf, "linger.ms", "0");
  Set(conf, "message.max.bytes", "20000000");
  rd_kafka_conf_set_log_cb(conf, [](const rd_kafka_t*, int, const char*, const char*) {});
  rd_kafka_conf_set_dr_msg_cb(conf, &OnDelivery);
  producer_ = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error.data(), error.size());
  TARN_CHECK(producer_ != nullptr);
}

KafkaCluster::~KafkaCluster() {
  rd_kafka_destroy(producer_);
  rd_kafka_t* host = rd_kafka_mock_cluster_handle(cluster_);
  rd_kafka_mock_cluster_destroy(cluster_);
  rd_kafka_destroy(host);
}

std::string KafkaCluster::address() const { return rd_kafka_mock_cluster_bootstraps(cluster_); }

void KafkaCluster::CreateTopic(const std::string& topic, int partition_count) {
  TARN_CHECK(rd_kafka_mock_topic_create(cluster_, topic.c_str(), partition_count, 1) ==
             RD_KAFKA_RESP_ERR_NO_ERROR);
  // The producer looks for the leaders of a topic that it does not know once a second only.
  const rd_kafka_metadata_t* metadata = nullptr;
  if (rd_kafka_metadata(producer_, 1, nullptr, &metadata, 10'000) == RD_KAFKA_RESP_ERR_NO_ERROR) {
    rd_kafka_metadata_destroy(metadata);
  }
}

void KafkaCluster::Produce(const KafkaTestMessage& message) {
  rd_kafka_headers_t* headers = rd_kafka_headers_new(message.headers.size());
  for (const auto& [name, value] : message.headers) {
    rd_kafka_header_add(headers, name.data(), static_cast<ssize_t>(name.size()),
                        value ? value->data() : nullptr,
                        value ? static_cast<ssize_t>(value->size()) : 0);
  }
  const auto* key = message.key ? message.key->data() : nullptr;
  const auto* value = message.value ? message.value->data() : nullptr;
  const size_t key_size = message.key ? message.key->size() : 0;
  const size_t value_size = message.value ? message.value->size() : 0;
  const rd_kafka_resp_err_t sent = rd_kafka_producev(
      producer_, RD_KAFKA_V_TOPIC(message.topic.c_str()), RD_KAFKA_V_PARTITION(message.partition),
      RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(key, key_size),
      RD_KAFKA_V_VALUE(const_cast<char*>(value), value_size), RD_KAFKA_V_TIMESTAMP(message.time_ms),
      RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END);
  TARN_CHECK(sent == RD_KAFKA_RESP_ERR_NO_ERROR);
  TARN_CHECK(rd_kafka_flush(producer_, 10'000) == RD_KAFKA_RESP_ERR_NO_ERROR);
}

void KafkaCluster::FailRequests(int16_t kind, const std::vector<int>& errors) {
  std::vector<rd_kafka_resp_err_t> codes;
  codes.reserve(errors.size());
  for (const int error : errors) {
    codes.push_back(static_cast<rd_kafka_resp_err_t>(error));
  }
  rd_kafka_mock_push_request_errors_array(cluster_, kind, codes.size(), codes.data());
}

void KafkaCluster::SetDown() { rd_kafka_mock_broker_set_down(cluster_, 1); }
void KafkaCluster::SetUp() { rd_kafka_mock_broker_set_up(cluster_, 1); }

}  // namespace tarn
