#include "tarn/source/kafka/kafka_client.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include <fmt/format.h>
#include <librdkafka/rdkafka.h>

#include "tarn/base/log.h"

namespace tarn::source::kafka {

namespace {

using PartitionList = std::unique_ptr<rd_kafka_topic_partition_list_t,
                                      decltype(&rd_kafka_topic_partition_list_destroy)>;

// What is set unless the file says otherwise: enough is fetched ahead for fast readers, and little
// enough that thousands of partitions stay small.
constexpr std::pair<const char*, const char*> kDefaults[] = {
    {"client.id", "tarn"},
    {"check.crcs", "true"},
    {"queued.min.messages", "1000000"},
    {"queued.max.messages.kbytes", "49152"},
    {"fetch.message.max.bytes", "1048576"},
    {"fetch.wait.max.ms", "500"},
    {"reconnect.backoff.max.ms", "2000"},
    {"socket.timeout.ms", "10000"},
    // How long closing waits for a group to be told where the brokers are gone.
    {"session.timeout.ms", "3000"},
    {"topic.metadata.refresh.interval.ms", "60000"},
};
// The library looks the answer for each partition up in a list of all that were asked for.
constexpr size_t kPartitionsPerQuestion = 500;
// What exactly once rests on.
constexpr std::pair<const char*, const char*> kFixed[] = {
    {"allow.auto.create.topics", "false"}, {"auto.offset.reset", "error"},
    {"enable.auto.commit", "false"},       {"enable.auto.offset.store", "false"},
    {"enable.partition.eof", "true"},      {"isolation.level", "read_committed"},
};

PartitionList MakeList(size_t size) {
  return {rd_kafka_topic_partition_list_new(static_cast<int>(size)),
          &rd_kafka_topic_partition_list_destroy};
}

PartitionList ListOf(const Offsets& offsets) {
  PartitionList list = MakeList(offsets.size());
  for (const auto& [where, offset] : offsets) {
    rd_kafka_topic_partition_list_add(list.get(), where.topic.c_str(), where.partition)->offset =
        offset;
  }
  return list;
}

PartitionList ListOf(const std::vector<TopicPartition>& partitions) {
  PartitionList list = MakeList(partitions.size());
  for (const TopicPartition& where : partitions) {
    rd_kafka_topic_partition_list_add(list.get(), where.topic.c_str(), where.partition);
  }
  return list;
}

rd_kafka_resp_err_t CodeOf(int code) { return static_cast<rd_kafka_resp_err_t>(code); }

// Notes of the library about its connections; they hold no values of properties.
void OnLog(const rd_kafka_t* /*client*/, int level, const char* facility, const char* text) {
  const LogLevel to = level <= 3 ? LogLevel::kWarning : LogLevel::kDebug;
  Log(to, "kafka", fmt::format("{}: {}", facility, text));
}

Status Set(rd_kafka_conf_t* conf, const std::string& name, const std::string& value) {
  std::array<char, 512> error{};
  if (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), error.data(), error.size()) !=
      RD_KAFKA_CONF_OK) {
    return Status::InvalidArgument(
        IsSecretProperty(name)
            ? fmt::format("the client takes no such {}", name)
            : fmt::format("the client takes no such {}: {}", name, error.data()));
  }
  return Status::Ok();
}

Status SetAll(rd_kafka_conf_t* conf, const ClientSettings& settings) {
  for (const auto& [name, value] : kDefaults) {
    TARN_RETURN_IF_ERROR(Set(conf, name, value));
  }
  TARN_RETURN_IF_ERROR(Set(conf, "group.id", settings.group.empty() ? "tarn" : settings.group));
  for (const auto& [name, value] : settings.properties) {
    TARN_RETURN_IF_ERROR(Set(conf, name, value));
  }
  for (const auto& [name, value] : kFixed) {
    TARN_RETURN_IF_ERROR(Set(conf, name, value));
  }
  return Set(conf, "bootstrap.servers", fmt::format("{}", fmt::join(settings.brokers, ",")));
}

// A numeric setting as it is in force, whoever gave it.
uint64_t ReadNumber(const rd_kafka_conf_t* conf, const char* name) {
  std::array<char, 32> text{};
  size_t size = text.size();
  if (rd_kafka_conf_get(conf, name, text.data(), &size) != RD_KAFKA_CONF_OK) {
    return 0;
  }
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + std::strlen(text.data()), number);
  return number;
}

}  // namespace

std::string KafkaErrorText(int code) { return rd_kafka_err2str(CodeOf(code)); }

void KafkaClient::OnError(rd_kafka_t* /*client*/, int code, const char* reason, void* self) {
  auto* client = static_cast<KafkaClient*>(self);
  const std::lock_guard lock(client->mutex_);
  const rd_kafka_resp_err_t error = CodeOf(code);
  client->not_admitted_ = client->not_admitted_ || error == RD_KAFKA_RESP_ERR__AUTHENTICATION ||
                          error == RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED;
  client->all_down_ = client->all_down_ || error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN;
  // "All brokers are down" says less than the reason that came before it.
  if (error != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || client->last_error_.empty()) {
    client->last_error_ = fmt::format("{}: {}", rd_kafka_err2str(error), reason);
  }
}

Result<std::unique_ptr<KafkaClient>> KafkaClient::Open(const ClientSettings& settings) {
  std::unique_ptr<KafkaClient> self(new KafkaClient());
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  const Status set = SetAll(conf, settings);
  if (!set.ok()) {
    rd_kafka_conf_destroy(conf);
    return set;
  }
  self->ahead_bytes_ = ReadNumber(conf, "queued.max.messages.kbytes") << 10;
  self->ahead_messages_ = ReadNumber(conf, "queued.min.messages");
  rd_kafka_conf_set_opaque(conf, self.get());
  rd_kafka_conf_set_error_cb(conf, &KafkaClient::OnError);
  rd_kafka_conf_set_log_cb(conf, &OnLog);
  std::array<char, 512> error{};
  self->client_ = rd_kafka_new(RD_KAFKA_CONSUMER, conf, error.data(), error.size());
  if (self->client_ == nullptr) {
    rd_kafka_conf_destroy(conf);
    return Status::InvalidArgument(fmt::format("the Kafka client: {}", error.data()));
  }
  rd_kafka_poll_set_consumer(self->client_);
  self->queue_ = rd_kafka_queue_get_consumer(self->client_);
  return self;
}

KafkaClient::~KafkaClient() {
  if (queue_ != nullptr) {
    rd_kafka_queue_destroy(queue_);
  }
  if (client_ != nullptr) {
    // Without leaving the group properly: there is none to leave.
    rd_kafka_destroy_flags(client_, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
  }
}

bool KafkaClient::is_hopeless() const {
  const std::lock_guard lock(mutex_);
  return not_admitted_ || all_down_;
}

std::string KafkaClient::last_error() const {
  const std::lock_guard lock(mutex_);
  return last_error_;
}

void KafkaClient::ClearLastError() {
  const std::lock_guard lock(mutex_);
  last_error_.clear();
  all_down_ = false;
}

Status KafkaClient::WithCause(const Status& failure) {
  rd_kafka_poll(client_, 0);  // Calls OnError.
  const std::lock_guard lock(mutex_);
  if (failure.code() != ErrorCode::kUnavailable || last_error_.empty() ||
      failure.message().find(last_error_) != std::string::npos) {
    return failure;
  }
  return Status(not_admitted_ ? ErrorCode::kPermissionDenied : failure.code(),
                fmt::format("{} ({})", failure.message(), last_error_));
}

Status KafkaClient::Failed(int code, const std::string& what) const {
  const std::lock_guard lock(mutex_);
  const rd_kafka_resp_err_t error = CodeOf(code);
  std::string text = fmt::format("{}: {}", what, rd_kafka_err2str(error));
  const bool vague = error == RD_KAFKA_RESP_ERR__TRANSPORT ||
                     error == RD_KAFKA_RESP_ERR__TIMED_OUT ||
                     error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN;
  if (vague && !last_error_.empty()) {
    text += " (" + last_error_ + ")";
  }
  switch (error) {
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
      return Status::PermissionDenied(std::move(text));
    case RD_KAFKA_RESP_ERR__INVALID_ARG:
    case RD_KAFKA_RESP_ERR__STATE:
      return Status::Internal(std::move(text));
    default:
      return vague && not_admitted_ ? Status::PermissionDenied(std::move(text))
                                    : Status::Unavailable(std::move(text));
  }
}

Result<std::vector<TopicLayout>> KafkaClient::ListTopics(milliseconds wait_max) {
  const rd_kafka_metadata_t* metadata = nullptr;
  const rd_kafka_resp_err_t error =
      rd_kafka_metadata(client_, 1, nullptr, &metadata, static_cast<int>(wait_max.count()));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return Failed(error, "the topics of the cluster");
  }
  std::vector<TopicLayout> topics;
  for (int i = 0; i < metadata->topic_cnt; ++i) {
    const rd_kafka_metadata_topic_t& topic = metadata->topics[i];
    if (topic.err == RD_KAFKA_RESP_ERR_NO_ERROR && topic.partition_cnt > 0) {
      topics.push_back({.name = topic.topic, .partition_count = topic.partition_cnt});
    }
  }
  rd_kafka_metadata_destroy(metadata);
  std::sort(topics.begin(), topics.end(),
            [](const TopicLayout& a, const TopicLayout& b) { return a.name < b.name; });
  return topics;
}

std::string KafkaClient::ReadClusterId(milliseconds wait_max) {
  char* id = rd_kafka_clusterid(client_, static_cast<int>(wait_max.count()));
  if (id == nullptr) {
    return {};
  }
  std::string text = id;
  rd_kafka_mem_free(client_, id);
  return text;
}

Status KafkaClient::AskOffsets(std::span<const TopicPartition> partitions, int64_t what,
                               milliseconds wait_max, std::vector<int64_t>& offsets) {
  const PartitionList list = MakeList(partitions.size());
  for (const TopicPartition& where : partitions) {
    rd_kafka_topic_partition_list_add(list.get(), where.topic.c_str(), where.partition)->offset =
        what;
  }
  const rd_kafka_resp_err_t error =
      rd_kafka_offsets_for_times(client_, list.get(), static_cast<int>(wait_max.count()));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return Failed(error, fmt::format("the offsets of {} partitions, {} the first",
                                     partitions.size(), NameOf(partitions.front())));
  }
  Offsets found;
  for (int i = 0; i < list->cnt; ++i) {
    const rd_kafka_topic_partition_t& one = list->elems[i];
    const TopicPartition where{.topic = one.topic, .partition = one.partition};
    if (one.err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return Failed(one.err, NameOf(where));
    }
    found[where] = one.offset;
  }
  for (const TopicPartition& where : partitions) {
    const auto one = found.find(where);
    if (one == found.end()) {
      return Status::Unavailable(NameOf(where) + ": the broker gave no offset");
    }
    offsets.push_back(one->second);
  }
  return Status::Ok();
}

Result<std::vector<int64_t>> KafkaClient::ReadOffsets(const std::vector<TopicPartition>& partitions,
                                                      int64_t what, milliseconds wait_max) {
  std::vector<int64_t> offsets;
  offsets.reserve(partitions.size());
  const std::span<const TopicPartition> all(partitions);
  for (size_t at = 0; at < all.size(); at += kPartitionsPerQuestion) {
    TARN_RETURN_IF_ERROR(
        AskOffsets(all.subspan(at, std::min(kPartitionsPerQuestion, all.size() - at)), what,
                   wait_max, offsets));
  }
  return offsets;
}

Status KafkaClient::Add(const Offsets& starts) {
  if (starts.empty()) {
    return Status::Ok();
  }
  rd_kafka_error_t* error = rd_kafka_incremental_assign(client_, ListOf(starts).get());
  if (error == nullptr) {
    return Status::Ok();
  }
  const Status failed = Status::Internal(
      fmt::format("reading {} partitions: {}", starts.size(), rd_kafka_error_string(error)));
  rd_kafka_error_destroy(error);
  return failed;
}

Status KafkaClient::Remove(const std::vector<TopicPartition>& partitions) {
  if (partitions.empty()) {
    return Status::Ok();
  }
  rd_kafka_error_t* error = rd_kafka_incremental_unassign(client_, ListOf(partitions).get());
  if (error == nullptr) {
    return Status::Ok();
  }
  const Status failed = Status::Internal(
      fmt::format("leaving {} partitions: {}", partitions.size(), rd_kafka_error_string(error)));
  rd_kafka_error_destroy(error);
  return failed;
}

void KafkaClient::Pause(const std::vector<TopicPartition>& partitions) {
  if (!partitions.empty()) {
    rd_kafka_pause_partitions(client_, ListOf(partitions).get());
  }
}

void KafkaClient::Resume(const std::vector<TopicPartition>& partitions) {
  if (!partitions.empty()) {
    rd_kafka_resume_partitions(client_, ListOf(partitions).get());
  }
}

size_t KafkaClient::Consume(std::span<rd_kafka_message_t*> messages, milliseconds wait_max) {
  const auto take = [&](std::span<rd_kafka_message_t*> into, int wait_ms) -> size_t {
    if (into.empty()) {
      return 0;
    }
    const ssize_t count = rd_kafka_consume_batch_queue(queue_, wait_ms, into.data(), into.size());
    return count < 0 ? 0 : static_cast<size_t>(count);
  };
  // The library waits for a full array; we only wait for the first message.
  size_t count = take(messages, 0);
  if (count == 0 && wait_max.count() > 0) {
    count = take(messages.subspan(0, 1), static_cast<int>(wait_max.count()));
    count += count > 0 ? take(messages.subspan(count), 0) : 0;
  }
  return count;
}

// Any request wakes the thread of its broker, which then looks at what may be fetched, too. The
// answer is of no use, so that nobody waits for it.
void KafkaClient::Wake(const std::vector<TopicPartition>& partitions) {
  if (partitions.empty()) {
    return;
  }
  const PartitionList list = ListOf(partitions);
  for (int i = 0; i < list->cnt; ++i) {
    list->elems[i].offset = kEndOffset;
  }
  rd_kafka_offsets_for_times(client_, list.get(), /*timeout_ms=*/1);
}

void KafkaClient::CommitToGroup(const Offsets& next, milliseconds wait_max) {
  if (next.empty()) {
    return;
  }
  const PartitionList list = ListOf(next);
  if (wait_max.count() == 0) {
    rd_kafka_commit(client_, list.get(), /*async=*/1);
    return;
  }
  rd_kafka_queue_t* answers = rd_kafka_queue_new(client_);
  if (rd_kafka_commit_queue(client_, list.get(), answers, nullptr, nullptr) ==
      RD_KAFKA_RESP_ERR_NO_ERROR) {
    rd_kafka_event_t* answer = rd_kafka_queue_poll(answers, static_cast<int>(wait_max.count()));
    if (answer != nullptr) {
      rd_kafka_event_destroy(answer);
    }
  }
  rd_kafka_queue_destroy(answers);
}

std::optional<int64_t> KafkaClient::KnownEnd(const TopicPartition& where) const {
  int64_t first = 0;
  int64_t end = 0;
  if (rd_kafka_get_watermark_offsets(client_, where.topic.c_str(), where.partition, &first, &end) !=
          RD_KAFKA_RESP_ERR_NO_ERROR ||
      end < 0) {
    return std::nullopt;
  }
  return end;
}

}  // namespace tarn::source::kafka
