#include "tarn/source/kafka/kafka_source.h"

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <librdkafka/rdkafka.h>

#include "tarn/base/log.h"

namespace tarn::source::kafka {

namespace {

using std::chrono::steady_clock;

constexpr size_t kFetchMax = 4096;  // Messages taken from the client at once.
constexpr uint32_t kNowhere = UINT32_MAX;
constexpr int kMissingMax = 3;                     // Answers without a topic until it is gone.
constexpr milliseconds kSilenceMax{10'000};        // Without any answer of the cluster.
constexpr milliseconds kReachWaitMax{2000};        // For the first answer of any broker.
constexpr milliseconds kLookWaitMax{3000};         // For the answer to one look at the topics.
constexpr milliseconds kRetryAnswerWaitMax{2000};  // While others are read.
constexpr milliseconds kConfirmAfter{300};
constexpr milliseconds kGroupWaitMax{3000};
constexpr int kConfirmations = 2;

size_t SizeOf(const rd_kafka_message_t& message) { return message.len + message.key_len; }

KafkaMessage ViewOf(const rd_kafka_message_t& native, uint32_t partition) {
  KafkaMessage message{.partition = partition,
                       .has_key = native.key != nullptr,
                       .has_value = native.payload != nullptr,
                       .offset = native.offset,
                       .key = {},
                       .value = {},
                       .time_ms = -1,
                       .native = &native};
  if (message.has_key) {
    message.key = {static_cast<const char*>(native.key), native.key_len};
  }
  if (message.has_value) {
    message.value = {static_cast<const char*>(native.payload), native.len};
  }
  rd_kafka_timestamp_type_t type{};
  const int64_t time = rd_kafka_message_timestamp(&native, &type);
  message.time_ms = type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? -1 : time;
  return message;
}

std::vector<TopicPartition> PartitionsOf(const TopicLayout& topic) {
  std::vector<TopicPartition> partitions;
  for (int32_t i = 0; i < topic.partition_count; ++i) {
    partitions.push_back({.topic = topic.name, .partition = i});
  }
  return partitions;
}

Status LostStatus(const LostRange& lost) {
  return Status::FailedPrecondition(
      Describe(lost) + "; with on_lost_range: continue the task goes on there and records the gap");
}

}  // namespace

KafkaSource::~KafkaSource() { waiting_.clear(); }

Status KafkaSource::CheckCancelled() const {
  return cancelled_.load() ? Status(ErrorCode::kCancelled, "reading was stopped") : Status::Ok();
}

Result<std::unique_ptr<KafkaSource>> KafkaSource::Open(const KafkaSourceOptions& options,
                                                       const KafkaStart& start,
                                                       MemoryBudget& budget) {
  TARN_ASSIGN_OR_RETURN(TopicSelection selection,
                        TopicSelection::Make(options.topics, options.exclude));
  std::unique_ptr<KafkaSource> self(new KafkaSource(options, std::move(selection), budget));
  TARN_RETURN_IF_ERROR(self->Begin(start));
  return self;
}

Status KafkaSource::CheckNamed(const std::vector<TopicLayout>& topics, const Offsets& stored,
                               bool first_start) const {
  for (const std::string& name : selection_.named()) {
    const bool there = std::any_of(topics.begin(), topics.end(),
                                   [&](const TopicLayout& topic) { return topic.name == name; });
    const auto known = stored.lower_bound({.topic = name, .partition = 0});
    const bool was_read = known != stored.end() && known->first.topic == name;
    if (!there && (first_start || !was_read || options_.until == ReadUntil::kEnd)) {
      return Status::NotFound(fmt::format("the cluster has no topic {}, or hides it", name));
    }
  }
  return Status::Ok();
}

// Waits for the cluster, but not long for one that cannot be reached at all.
Result<std::vector<TopicLayout>> KafkaSource::AskForTopics() {
  const auto begin = steady_clock::now();
  while (true) {
    Result<std::vector<TopicLayout>> topics =
        client_->ListTopics(std::min(kReachWaitMax, options_.answer_wait_max));
    if (topics.ok()) {
      return topics;
    }
    const Status failure = client_->WithCause(topics.status());
    const auto waited = steady_clock::now() - begin;
    const bool hopeless = client_->is_hopeless() && waited >= kReachWaitMax;
    if (failure.code() != ErrorCode::kUnavailable || hopeless ||
        waited >= options_.answer_wait_max) {
      return failure;
    }
  }
}

Status KafkaSource::Begin(const KafkaStart& start) {
  TARN_ASSIGN_OR_RETURN(client_, KafkaClient::Open(options_.client));
  ahead_ = ReadAhead(client_->ahead_bytes(), client_->ahead_messages());
  TARN_ASSIGN_OR_RETURN(const std::vector<TopicLayout> topics, AskForTopics());
  client_->ClearLastError();
  cluster_id_ = client_->ReadClusterId(options_.answer_wait_max);
  TARN_RETURN_IF_ERROR(CheckNamed(topics, start.next, start.first_start));
  for (const auto& [where, next] : start.next) {
    known_topics_.insert(where.topic);
    if (selection_.Matches(where.topic)) {
      Partition& partition = partitions_[IndexOf(where)];
      partition.next = next;
      partition.gone = true;  // Until it is found.
      const auto seen = start.seen.find(where);
      if (seen != start.seen.end() && seen->second.offset < next) {
        partition.seen = seen->second;
      }
    }
  }
  if (start.first_start || options_.on_new_topic == LaterTopics::kApply) {
    for (const TopicLayout& topic : topics) {
      known_topics_.insert(topic.name);
    }
  }
  std::vector<TopicPartition> found;
  for (const TopicLayout& topic : topics) {
    if (selection_.Matches(topic.name) && known_topics_.contains(topic.name)) {
      const std::vector<TopicPartition> partitions = PartitionsOf(topic);
      found.insert(found.end(), partitions.begin(), partitions.end());
    }
  }
  TARN_ASSIGN_OR_RETURN(const OffsetPlan plan,
                        Plan(found, start.next, start.first_start, options_.answer_wait_max));
  TARN_RETURN_IF_ERROR(TakePlan(plan));
  TARN_RETURN_IF_ERROR(TakeShrunk(topics));
  heard_ = steady_clock::now();
  watch_ = std::make_unique<TopicWatch>([this] { return client_->ListTopics(kLookWaitMax); },
                                        options_.look_every);
  return Status::Ok();
}

// A topic that was made again with fewer partitions takes what was unread in the others with it.
Status KafkaSource::TakeShrunk(const std::vector<TopicLayout>& topics) {
  for (const TopicLayout& topic : topics) {
    for (auto at = index_.lower_bound({.topic = topic.name, .partition = topic.partition_count});
         at != index_.end() && at->first.topic == topic.name; ++at) {
      Partition& partition = partitions_[at->second];
      if (partition.next == 0) {
        continue;
      }
      const LostRange lost{
          .where = at->first, .from = partition.next, .to = 0, .cause = LossCause::kRemade};
      if (options_.on_lost_range == OnLostRange::kStop) {
        return LostStatus(lost);
      }
      partition.next = 0;
      partition.seen.reset();
      if (!partition.gone) {
        partition.gone = true;
        TARN_RETURN_IF_ERROR(client_->Remove({at->first}));
      }
      passed_over_.push_back(lost);
    }
  }
  return Status::Ok();
}

Result<std::vector<PartitionFacts>> KafkaSource::ReadFacts(
    const std::vector<TopicPartition>& partitions, const Offsets& stored, milliseconds wait_max) {
  // The end first: what comes meanwhile is read.
  TARN_ASSIGN_OR_RETURN(const std::vector<int64_t> ends,
                        client_->ReadOffsets(partitions, kEndOffset, wait_max));
  TARN_ASSIGN_OR_RETURN(const std::vector<int64_t> firsts,
                        client_->ReadOffsets(partitions, kFirstOffset, wait_max));
  std::vector<int64_t> times(partitions.size(), -1);
  const bool fresh = std::any_of(partitions.begin(), partitions.end(),
                                 [&](const auto& where) { return !stored.contains(where); });
  if (fresh && options_.start.kind == StartPolicy::Kind::kTime) {
    TARN_ASSIGN_OR_RETURN(
        times, client_->ReadOffsets(partitions, ToMicros(options_.start.time) / 1000, wait_max));
  }
  std::vector<PartitionFacts> facts;
  facts.reserve(partitions.size());
  for (size_t i = 0; i < partitions.size(); ++i) {
    facts.push_back({.where = partitions[i],
                     .first = firsts[i],
                     .end = std::max(ends[i], firsts[i]),
                     .at_time = times[i] < 0 ? std::nullopt : std::optional(times[i]),
                     .remade = IsRemade(partitions[i])});
  }
  return facts;
}

Result<OffsetPlan> KafkaSource::Plan(const std::vector<TopicPartition>& partitions,
                                     const Offsets& stored, bool first_start,
                                     milliseconds wait_max) {
  OffsetPlan plan;
  // A leader that was elected just now may not know the end yet.
  for (int look = 0; look <= kConfirmations; ++look) {
    if (look > 0) {
      std::this_thread::sleep_for(kConfirmAfter);
    }
    TARN_RETURN_IF_ERROR(CheckCancelled());
    TARN_ASSIGN_OR_RETURN(const std::vector<PartitionFacts> facts,
                          ReadFacts(partitions, stored, wait_max));
    plan = PlanOffsets(facts,
                       {.start = options_.start, .first_start = first_start, .stored = &stored});
    if (std::none_of(plan.lost.begin(), plan.lost.end(),
                     [](const LostRange& lost) { return lost.cause == LossCause::kRemade; })) {
      break;
    }
  }
  if (!plan.lost.empty() && options_.on_lost_range == OnLostRange::kStop) {
    return LostStatus(plan.lost.front());
  }
  return plan;
}

bool KafkaSource::IsRemade(const TopicPartition& where) const {
  const auto at = index_.find(where);
  return at != index_.end() && partitions_[at->second].remade;
}

uint32_t KafkaSource::IndexOf(const TopicPartition& where) {
  const auto [at, made] = index_.emplace(where, static_cast<uint32_t>(partitions_.size()));
  if (made) {
    partitions_.push_back({.where = where});
  }
  return at->second;
}

Status KafkaSource::TakePlan(const OffsetPlan& plan) {
  for (const PlannedStart& start : plan.starts) {
    const uint32_t index = IndexOf(start.where);
    Partition& partition = partitions_[index];
    if (partition.remade || partition.next != start.offset) {
      partition.seen.reset();  // Something was lost.
    }
    partition.next = start.offset;
    partition.end = start.end;
    partition.gone = false;
    partition.remade = false;
    partition.failure.clear();
    const bool is_done = start.offset >= start.end;
    // Where nothing is to be read, nothing is asked for: thousands of partitions take seconds.
    const bool is_left_out = is_done && options_.until == ReadUntil::kEnd;
    partition.checking = !is_left_out && partition.seen && partition.seen->offset >= start.first;
    partition.at_end = is_done && !partition.checking;
    if (!is_left_out) {
      to_add_.push_back(index);
    }
    if (start.fresh) {
      planned_.push_back(start);
    }
  }
  passed_over_.insert(passed_over_.end(), plan.lost.begin(), plan.lost.end());
  return Status::Ok();
}

Status KafkaSource::FollowTopics(KafkaBatch& batch) {
  const WatchedTopics look = watch_->Look(seen_answer_);
  if (look.failing_for >= kSilenceMax && steady_clock::now() - heard_ >= kSilenceMax) {
    return look.failure;
  }
  if (look.answer == seen_answer_ || options_.until == ReadUntil::kEnd) {
    return Status::Ok();
  }
  seen_answer_ = look.answer;
  return TakeLayout(look.topics, batch);
}

Status KafkaSource::TakeLayout(const std::vector<TopicLayout>& topics, KafkaBatch& batch) {
  std::vector<TopicPartition> found;
  Offsets stored;
  std::set<std::string> there;
  for (const TopicLayout& topic : topics) {
    const bool known = known_topics_.contains(topic.name);
    if (!selection_.Matches(topic.name) ||
        (!known && options_.on_new_topic == LaterTopics::kIgnore)) {
      continue;
    }
    known_topics_.insert(topic.name);
    there.insert(topic.name);
    for (const TopicPartition& where : PartitionsOf(topic)) {
      const auto at = index_.find(where);
      if (at == index_.end()) {
        found.push_back(where);
      } else if (partitions_[at->second].gone) {
        found.push_back(where);
        stored[where] = partitions_[at->second].next;
      }
    }
  }
  if (!found.empty()) {
    // Questions about a topic that is being made may fail: the next look finds it again.
    const Result<OffsetPlan> plan = Plan(found, stored, false, kRetryAnswerWaitMax);
    if (plan.ok()) {
      TARN_RETURN_IF_ERROR(TakePlan(*plan));
    } else if (plan.status().code() == ErrorCode::kFailedPrecondition ||
               plan.status().code() == ErrorCode::kCancelled) {
      return plan.status();
    } else {
      Log(LogLevel::kWarning, "kafka",
          fmt::format("{} new partitions, {} the first: {}", found.size(), NameOf(found.front()),
                      plan.status().ToString()));
    }
  }
  TARN_RETURN_IF_ERROR(TakeShrunk(topics));
  return LeaveMissing(there, batch);
}

// Partitions of topics that several answers lacked are read no more.
Status KafkaSource::LeaveMissing(const std::set<std::string>& there, KafkaBatch& batch) {
  std::vector<TopicPartition> left;
  std::set<std::string> missing;
  for (const Partition& partition : partitions_) {
    if (!partition.gone && !there.contains(partition.where.topic)) {
      missing.insert(partition.where.topic);
    }
  }
  std::erase_if(missing_, [&](const auto& one) { return !missing.contains(one.first); });
  for (const std::string& topic : missing) {
    if (++missing_[topic] < kMissingMax) {
      continue;
    }
    batch.notices.push_back({.code = "topic_gone", .object = topic});
    for (Partition& partition : partitions_) {
      if (partition.where.topic == topic && !partition.gone) {
        partition.gone = true;
        left.push_back(partition.where);
      }
    }
  }
  handle_ = nullptr;
  return client_->Remove(left);
}

Status KafkaSource::RetryFailed() {
  const auto now = steady_clock::now();
  std::vector<TopicPartition> due;
  Offsets stored;
  for (const uint32_t index : failed_) {
    const Partition& partition = partitions_[index];
    if (partition.retry_at <= now) {
      due.push_back(partition.where);
      stored[partition.where] = partition.next;
    }
  }
  if (due.empty()) {
    return Status::Ok();
  }
  const Result<OffsetPlan> plan = Plan(due, stored, false, kRetryAnswerWaitMax);
  if (plan.ok()) {
    for (const TopicPartition& where : due) {
      failed_.erase(index_.at(where));
    }
    return TakePlan(*plan);
  }
  const ErrorCode code = plan.status().code();
  if (code == ErrorCode::kFailedPrecondition || code == ErrorCode::kCancelled) {
    return plan.status();
  }
  for (const TopicPartition& where : due) {
    Partition& partition = partitions_[index_.at(where)];
    ++partition.failures;
    partition.failure = plan.status().message();
    partition.retry_at = steady_clock::now() + options_.retry_after;
    if (options_.until == ReadUntil::kEnd && partition.failures > options_.retries_max) {
      return plan.status();
    }
  }
  return Status::Ok();
}

// What has to be stored before it is read, and what was passed over.
bool KafkaSource::Announce(KafkaBatch& batch) {
  batch.started = std::exchange(planned_, {});
  batch.lost = std::exchange(passed_over_, {});
  for (const LostRange& lost : batch.lost) {
    batch.notices.push_back({.code = "lost_range", .object = Describe(lost)});
  }
  return !batch.started.empty() || !batch.lost.empty() || !batch.notices.empty();
}

Status KafkaSource::AddAnnounced() {
  Offsets starts;
  for (const uint32_t index : std::exchange(to_add_, {})) {
    const Partition& partition = partitions_[index];
    starts[partition.where] = partition.checking ? partition.seen->offset : partition.next;
  }
  TARN_RETURN_IF_ERROR(client_->Add(starts));
  if (paused_ && !starts.empty()) {
    paused_ = false;
    PauseAll();
  }
  return Status::Ok();
}

std::vector<TopicPartition> KafkaSource::Live() const {
  std::vector<TopicPartition> live;
  for (const Partition& partition : partitions_) {
    if (!partition.gone && partition.failure.empty()) {
      live.push_back(partition.where);
    }
  }
  return live;
}

void KafkaSource::PauseAll() {
  if (!std::exchange(paused_, true)) {
    client_->Pause(Live());
  }
}

void KafkaSource::ResumeAll() {
  if (std::exchange(paused_, false)) {
    client_->Resume(Live());
  }
}

bool KafkaSource::IsCaughtUp() const {
  return waiting_.empty() && !paused_ && to_add_.empty() &&
         (options_.until == ReadUntil::kStopped || failed_.empty()) &&
         std::all_of(partitions_.begin(), partitions_.end(), [](const Partition& partition) {
           return partition.gone || partition.at_end || !partition.failure.empty();
         });
}

void KafkaSource::Fetch(const BatchLimits& limits) {
  const auto wanted =
      static_cast<size_t>(static_cast<double>(limits.bytes_max) / std::max(message_bytes_, 1.0));
  std::array<rd_kafka_message_t*, kFetchMax> natives;
  const size_t count =
      client_->Consume(std::span(natives).subspan(
                           0, std::clamp<size_t>(std::min(wanted, limits.items_max), 1, kFetchMax)),
                       limits.wait_max);
  size_t bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    bytes += natives[i]->err == RD_KAFKA_RESP_ERR_NO_ERROR ? SizeOf(*natives[i]) : 0;
    waiting_.emplace_back(natives[i]);
  }
  waiting_bytes_ += bytes;
  if (count > 0) {
    heard_ = steady_clock::now();
    const double average = static_cast<double>(bytes) / static_cast<double>(count);
    message_bytes_ = average > message_bytes_ ? average : (7 * message_bytes_ + average) / 8;
  }
}

uint32_t KafkaSource::FindPartition(const rd_kafka_message_t& message) {
  if (message.rkt == handle_ && message.partition == handle_partition_) {
    return handle_index_;
  }
  const auto at =
      index_.find({.topic = rd_kafka_topic_name(message.rkt), .partition = message.partition});
  handle_ = message.rkt;
  handle_partition_ = message.partition;
  handle_index_ = at == index_.end() ? kNowhere : at->second;
  return handle_index_;
}

Status KafkaSource::Fail(uint32_t index, const std::string& text, KafkaBatch& batch) {
  Partition& partition = partitions_[index];
  partition.failure = text;
  partition.at_end = false;
  ++partition.failures;
  partition.retry_at = steady_clock::now() + options_.retry_after;
  failed_.insert(index);
  handle_ = nullptr;
  batch.notices.push_back(
      {.code = "partition_failed", .object = NameOf(partition.where) + ": " + text});
  TARN_RETURN_IF_ERROR(client_->Remove({partition.where}));
  if (options_.until == ReadUntil::kEnd && partition.failures > options_.retries_max) {
    return Status::Unavailable(NameOf(partition.where) + ": " + text);
  }
  return Status::Ok();
}

Status KafkaSource::TakeEvent(const rd_kafka_message_t& event, KafkaBatch& batch) {
  const uint32_t index = event.rkt == nullptr ? kNowhere : FindPartition(event);
  if (index == kNowhere || partitions_[index].gone || !partitions_[index].failure.empty()) {
    return Status::Ok();  // Of the cluster as a whole: TopicWatch sees whether it answers.
  }
  Partition& partition = partitions_[index];
  switch (event.err) {
    case RD_KAFKA_RESP_ERR__PARTITION_EOF:
      partition.at_end = true;
      partition.checking = false;
      if (event.offset > partition.next) {
        partition.next = event.offset;
        batch.advances.push_back({.partition = index, .next = event.offset});
      }
      return Status::Ok();
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
      // The plan finds out whether anything is lost.
      partition.failure = "its offset is out of range";
      partition.retry_at = {};
      failed_.insert(index);
      handle_ = nullptr;
      return client_->Remove({partition.where});
    default: {
      const char* text = rd_kafka_message_errstr(&event);
      return Fail(index, text == nullptr ? KafkaErrorText(event.err) : text, batch);
    }
  }
}

// Messages of a partition that is read from elsewhere soon.
void KafkaSource::DropWaiting(uint32_t index) {
  std::erase_if(waiting_, [&](const NativeMessage& message) {
    const bool drop = message->rkt != nullptr && FindPartition(*message) == index;
    if (drop && message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      waiting_bytes_ -= SizeOf(*message);
    }
    return drop;
  });
}

// The first message that came of a partition whose newest one is looked for. Another offset says
// nothing: compaction takes messages away.
Status KafkaSource::CheckSeen(uint32_t index, const rd_kafka_message_t& native) {
  Partition& partition = partitions_[index];
  partition.checking = false;
  partition.at_end = options_.until == ReadUntil::kEnd && partition.next >= partition.end;
  if (native.offset != partition.seen->offset ||
      DigestOf(ViewOf(native, index)) == partition.seen->digest) {
    return Status::Ok();
  }
  partition.remade = true;
  partition.at_end = false;
  partition.failure = "it was made again";
  partition.retry_at = {};
  failed_.insert(index);
  DropWaiting(index);
  handle_ = nullptr;
  return client_->Remove({partition.where});
}

// Each partition of the batch has its newest message where its last run ends.
void KafkaSource::NoteSeen(const KafkaBatch& batch) {
  for (size_t i = 0; i < batch.messages.size(); ++i) {
    const KafkaMessage& message = batch.messages[i];
    if (i + 1 == batch.messages.size() || batch.messages[i + 1].partition != message.partition) {
      partitions_[message.partition].seen = {.offset = message.offset, .digest = DigestOf(message)};
    }
  }
}

// Moves what waits into the batch, as far as the limits allow. The memory is there.
Status KafkaSource::TakeWaiting(const BatchLimits& limits, KafkaBatch& batch, uint64_t& bytes) {
  while (!waiting_.empty() && batch.messages.size() < limits.items_max) {
    const rd_kafka_message_t& native = *waiting_.front();
    if (native.err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      const NativeMessage event = std::move(waiting_.front());
      waiting_.pop_front();
      TARN_RETURN_IF_ERROR(TakeEvent(*event, batch));
      continue;
    }
    const size_t size = SizeOf(native);
    if (!batch.messages.empty() && bytes + size > limits.bytes_max) {
      break;
    }
    NativeMessage taken = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_bytes_ -= size;
    const uint32_t index = FindPartition(native);
    const bool is_read = index != kNowhere && !partitions_[index].gone;
    if (is_read && partitions_[index].checking && partitions_[index].failure.empty()) {
      TARN_RETURN_IF_ERROR(CheckSeen(index, native));
    }
    if (!is_read || !partitions_[index].failure.empty() ||
        native.offset < partitions_[index].next) {
      continue;  // Of a partition that was left, or fetched twice.
    }
    Partition& partition = partitions_[index];
    if (options_.until == ReadUntil::kEnd && native.offset >= partition.end) {
      partition.at_end = true;
      continue;
    }
    batch.messages.push_back(ViewOf(native, index));
    batch.natives.push_back(std::move(taken));
    bytes += size;
    ahead_.Took(index, size);
    partition.next = native.offset + 1;
    partition.at_end = options_.until == ReadUntil::kEnd && partition.next >= partition.end;
    partition.failures = 0;
    partition.time_ms = batch.messages.back().time_ms;
  }
  return Status::Ok();
}

void KafkaSource::WakeIfDue() {
  std::vector<TopicPartition> read;
  for (const uint32_t index : ahead_.TakeDue()) {
    if (!partitions_[index].gone) {
      read.push_back(partitions_[index].where);
    }
  }
  client_->Wake(read);
}

Status KafkaSource::HandOver(const BatchLimits& limits, KafkaBatch& batch) {
  if (waiting_.empty()) {
    return Status::Ok();
  }
  uint64_t wanted = std::min(waiting_bytes_, limits.bytes_max);
  if (waiting_.front()->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
    wanted = std::max<uint64_t>(wanted, SizeOf(*waiting_.front()));
  }
  wanted = std::min(wanted, budget_.limit_bytes());
  Result<Reservation> memory = budget_.Reserve(wanted, "messages of Kafka", limits.wait_max);
  if (!memory.ok()) {
    PauseAll();
    return memory.status().code() == ErrorCode::kResourceExhausted ? Status::Ok() : memory.status();
  }
  ResumeAll();
  batch.memory = *std::move(memory);
  uint64_t bytes = 0;
  TARN_RETURN_IF_ERROR(TakeWaiting(limits, batch, bytes));
  WakeIfDue();
  NoteSeen(batch);
  batch.memory.ShrinkTo(bytes);
  return Status::Ok();
}

Result<KafkaBatch> KafkaSource::Next(const BatchLimits& limits) {
  if (limits.bytes_max == 0 || limits.items_max == 0) {
    return Status::InvalidArgument("a batch of nothing was asked for");
  }
  TARN_RETURN_IF_ERROR(CheckCancelled());
  KafkaBatch batch;
  TARN_RETURN_IF_ERROR(FollowTopics(batch));
  TARN_RETURN_IF_ERROR(RetryFailed());
  if (Announce(batch)) {
    return batch;
  }
  TARN_RETURN_IF_ERROR(AddAnnounced());
  if (waiting_.empty() && !(options_.until == ReadUntil::kEnd && IsCaughtUp())) {
    Fetch(limits);
    TARN_RETURN_IF_ERROR(CheckCancelled());
  }
  TARN_RETURN_IF_ERROR(HandOver(limits, batch));
  batch.caught_up = IsCaughtUp();
  return batch;
}

void KafkaSource::CommitToGroup(const Offsets& next) {
  client_->CommitToGroup(next, milliseconds(0));
  for (const auto& [where, offset] : next) {
    group_[where] = offset;
  }
}

void KafkaSource::FlushGroup() { client_->CommitToGroup(group_, kGroupWaitMax); }

std::vector<PartitionLag> KafkaSource::ReadLags() const {
  std::vector<PartitionLag> lags;
  lags.reserve(partitions_.size());
  for (const Partition& partition : partitions_) {
    if (partition.gone) {
      continue;
    }
    PartitionLag lag{.where = partition.where,
                     .next = partition.next,
                     .end = std::max(partition.end, partition.next),
                     .lag = 0,
                     .time_ms = partition.time_ms,
                     .failure = partition.failure};
    if (options_.until == ReadUntil::kStopped) {
      lag.end = std::max(lag.end, client_->KnownEnd(partition.where).value_or(lag.end));
    }
    lag.lag = partition.at_end ? 0 : lag.end - lag.next;
    lags.push_back(std::move(lag));
  }
  return lags;
}

}  // namespace tarn::source::kafka
