#include "tarn/source/kafka/kafka_source.h"

#include <fmt/core.h>
#include <librdkafka/rdkafka.h>

#include "test/support/kafka_cluster.h"
#include "test/support/matchers.h"

namespace tarn::source::kafka {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr int16_t kFetchRequest = 1;
constexpr int16_t kListOffsetsRequest = 2;

KafkaSourceOptions OptionsFor(const KafkaCluster& cluster, std::vector<std::string> topics) {
  KafkaSourceOptions options;
  options.client.brokers = {cluster.address()};
  options.client.properties = {{"fetch.wait.max.ms", "10"}};
  options.topics = std::move(topics);
  options.look_every = milliseconds(50);
  options.retry_after = milliseconds(50);
  return options;
}

class KafkaSourceTest : public ::testing::Test {
 protected:
  std::unique_ptr<KafkaSource> Open(const KafkaSourceOptions& options, const Offsets& next = {}) {
    Result<std::unique_ptr<KafkaSource>> source = TryOpen(options, next);
    EXPECT_OK(source);
    return source.ok() ? std::move(source).value() : nullptr;
  }
  Result<std::unique_ptr<KafkaSource>> TryOpen(const KafkaSourceOptions& options,
                                               const Offsets& next = {}) {
    return KafkaSource::Open(options, {.next = next, .seen = seen_, .first_start = next.empty()},
                             budget_);
  }

  // "topic[partition]@offset=value" until `count` came; what came beside them is kept.
  std::vector<std::string> Read(KafkaSource& source, size_t count) {
    std::vector<std::string> read;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (read.size() < count && std::chrono::steady_clock::now() < until) {
      Take(source, read);
    }
    EXPECT_EQ(read.size(), count);
    return read;
  }
  std::vector<std::string> ReadToEnd(KafkaSource& source) {
    std::vector<std::string> read;
    for (int i = 0; i < 1000; ++i) {
      if (Take(source, read)) {
        return read;
      }
    }
    ADD_FAILURE() << "never caught up";
    return read;
  }
  bool Take(KafkaSource& source, std::vector<std::string>& read) {
    const Result<KafkaBatch> batch = source.Next({.wait_max = milliseconds(50)});
    EXPECT_OK(batch);
    if (!batch.ok()) {
      return true;
    }
    for (const KafkaMessage& message : batch->messages) {
      read.push_back(fmt::format("{}@{}={}", NameOf(source.partition(message.partition)),
                                 message.offset, message.value));
    }
    started_.insert(started_.end(), batch->started.begin(), batch->started.end());
    lost_.insert(lost_.end(), batch->lost.begin(), batch->lost.end());
    notices_.insert(notices_.end(), batch->notices.begin(), batch->notices.end());
    return batch->caught_up;
  }

  void Put(const std::string& topic, int32_t partition, const std::string& value) {
    cluster_.Produce({.topic = topic, .partition = partition, .value = value});
  }

  KafkaCluster cluster_;
  MemoryBudget budget_{64 << 20};
  SeenMessages seen_;  // For Open.
  std::vector<PlannedStart> started_;
  std::vector<LostRange> lost_;
  std::vector<KafkaNotice> notices_;
};

TEST_F(KafkaSourceTest, ReadsTopicsOfPatterns) {
  for (const char* topic : {"shop.a", "shop.b", "shop.internal", "other"}) {
    cluster_.CreateTopic(topic, 2);
    Put(topic, 1, topic);
  }
  KafkaSourceOptions options = OptionsFor(cluster_, {"shop.%"});
  options.exclude = {"%internal"};
  options.until = ReadUntil::kEnd;
  const auto source = Open(options);
  EXPECT_THAT(ReadToEnd(*source), UnorderedElementsAre("shop.a[1]@0=shop.a", "shop.b[1]@0=shop.b"));
  EXPECT_EQ(started_.size(), 4U);
}

TEST_F(KafkaSourceTest, KeysHeadersTimesAndTombstones) {
  cluster_.CreateTopic("t", 1);
  cluster_.Produce({.topic = "t", .key = "k", .value = std::nullopt, .time_ms = 1'700'000'000'123});
  cluster_.Produce({.topic = "t",
                    .key = std::nullopt,
                    .value = "v",
                    .headers = {{"a", "1"}, {"b", std::nullopt}, {"a", "2"}}});
  cluster_.Produce({.topic = "t", .key = "", .value = ""});
  KafkaSourceOptions options = OptionsFor(cluster_, {"t"});
  const auto source = Open(options);
  std::vector<KafkaMessage> messages;
  std::vector<KafkaBatch> batches;
  while (messages.size() < 3) {
    ASSERT_OK_AND_ASSIGN(KafkaBatch batch, source->Next({}));
    messages.insert(messages.end(), batch.messages.begin(), batch.messages.end());
    batches.push_back(std::move(batch));
  }
  EXPECT_TRUE(messages[0].has_key);
  EXPECT_FALSE(messages[0].has_value);
  EXPECT_EQ(messages[0].time_ms, 1'700'000'000'123);
  EXPECT_FALSE(messages[1].has_key);
  EXPECT_EQ(messages[1].value, "v");
  std::vector<KafkaHeader> headers;
  ReadHeaders(messages[1], headers);
  EXPECT_THAT(headers, ElementsAre(KafkaHeader{"a", "1"}, KafkaHeader{"b", std::nullopt},
                                   KafkaHeader{"a", "2"}));
  ReadHeaders(messages[0], headers);
  EXPECT_THAT(headers, IsEmpty());
  EXPECT_TRUE(messages[2].has_key);
  EXPECT_TRUE(messages[2].has_value);
  batches.clear();
}

TEST_F(KafkaSourceTest, GoesOnFromStoredOffsets) {
  cluster_.CreateTopic("t", 2);
  for (int i = 0; i < 6; ++i) {
    Put("t", i % 2, std::to_string(i));
  }
  KafkaSourceOptions options = OptionsFor(cluster_, {"t"});
  options.until = ReadUntil::kEnd;
  options.start.kind = StartPolicy::Kind::kNow;  // Counts for what is not stored, at first only.
  const auto source = Open(options, {{{"t", 0}, 2}});
  EXPECT_THAT(ReadToEnd(*source),
              UnorderedElementsAre("t[0]@2=4", "t[1]@0=1", "t[1]@1=3", "t[1]@2=5"));
  EXPECT_THAT(started_, ElementsAre(PlannedStart{{"t", 1}, 0, 3, true}));
}

TEST_F(KafkaSourceTest, NowIsTheEndAtTheFirstStart) {
  cluster_.CreateTopic("t", 1);
  Put("t", 0, "before");
  KafkaSourceOptions options = OptionsFor(cluster_, {"t"});
  options.start.kind = StartPolicy::Kind::kNow;
  const auto source = Open(options);
  Put("t", 0, "after");
  EXPECT_THAT(Read(*source, 1), ElementsAre("t[0]@1=after"));
  EXPECT_THAT(started_, ElementsAre(PlannedStart{{"t", 0}, 1, 1, true}));
}

TEST_F(KafkaSourceTest, NewTopicsArePickedUp) {
  cluster_.CreateTopic("a1", 1);
  Put("a1", 0, "x");
  KafkaSourceOptions options = OptionsFor(cluster_, {"a%"});
  options.start.kind = StartPolicy::Kind::kNow;
  const auto source = Open(options);
  EXPECT_THAT(ReadToEnd(*source), IsEmpty());
  cluster_.CreateTopic("a2", 3);
  Put("a2", 2, "y");
  EXPECT_THAT(Read(*source, 1), ElementsAre("a2[2]@0=y"));
  options.on_new_topic = LaterTopics::kIgnore;
  const auto ignoring = Open(options, {{{"a1", 0}, 0}});
  EXPECT_THAT(ReadToEnd(*ignoring), ElementsAre("a1[0]@0=x"));
}

TEST_F(KafkaSourceTest, AnEndIsReachedWhileMessagesGoOnComing) {
  cluster_.CreateTopic("t", 1);
  Put("t", 0, "1");
  KafkaSourceOptions options = OptionsFor(cluster_, {"t"});
  options.until = ReadUntil::kEnd;
  const auto source = Open(options);
  Put("t", 0, "2");
  EXPECT_THAT(ReadToEnd(*source), ElementsAre("t[0]@0=1"));
}

TEST_F(KafkaSourceTest, ATopicThatIsNotThereIsNamed) {
  EXPECT_THAT(TryOpen(OptionsFor(cluster_, {"missing"})),
              FailsWith(ErrorCode::kNotFound, "missing"));
  EXPECT_OK(TryOpen(OptionsFor(cluster_, {"missing%"})));
  // It was there: it may come back.
  EXPECT_OK(TryOpen(OptionsFor(cluster_, {"missing"}), {{{"missing", 0}, 7}}));
}

TEST_F(KafkaSourceTest, ARangeThatTheBrokerRemovedStopsOrIsPassedOver) {
  cluster_.CreateTopic("t", 1);
  for (int i = 0; i < 8; ++i) {
    Put("t", 0, std::string(1 << 20, 'x'));  // The cluster keeps 5 MB.
  }
  KafkaSourceOptions options = OptionsFor(cluster_, {"t"});
  EXPECT_THAT(TryOpen(options, {{{"t", 0}, 1}}),
              FailsWith(ErrorCode::kFailedPrecondition, "offsets 1 to"));
  options.on_lost_range = OnLostRange::kContinue;
  options.until = ReadUntil::kEnd;
  const auto source = Open(options, {{{"t", 0}, 1}});
  const std::vector<std::string> read = ReadToEnd(*source);
  ASSERT_EQ(lost_.size(), 1U);
  EXPECT_EQ(lost_[0].from, 1);
  EXPECT_EQ(lost_[0].cause, LossCause::kRetention);
  EXPECT_EQ(read.size(), static_cast<size_t>(8 - lost_[0].to));
  EXPECT_THAT(notices_, Contains(Field(&KafkaNotice::code, "lost_range")));
}

TEST_F(KafkaSourceTest, ATopicThatEndsBeforeTheStoredOffsetWasMadeAgain) {
  cluster_.CreateTopic("t", 1);
  Put("t", 0, "new");
  KafkaSourceOptions options = OptionsFor(cluster_, {"t"});
  EXPECT_THAT(TryOpen(options, {{{"t", 0}, 5}}),
              FailsWith(ErrorCode::kFailedPrecondition, "made again"));
  EXPECT_THAT(TryOpen(options, {{{"t", 0}, 1}, {{"t", 1}, 9}}),
              FailsWith(ErrorCode::kFailedPrecondition, "t[1]"));
  options.on_lost_range = OnLostRange::kContinue;
  options.until = ReadUntil::kEnd;
  const auto source = Open(options, {{{"t", 0}, 5}, {{"t", 1}, 9}});
  EXPECT_THAT(ReadToEnd(*source), ElementsAre("t[0]@0=new"));
  EXPECT_THAT(lost_, UnorderedElementsAre(LostRange{{"t", 0}, 5, 0, LossCause::kRemade},
                                          LostRange{{"t", 1}, 9, 0, LossCause::kRemade}));
}

TEST_F(KafkaSourceTest, ATopicThatWasMadeAgainIsNoticedHoweverLongItIs) {
  cluster_.CreateTopic("t", 2);
  for (int i = 0; i < 6; ++i) {
    Put("t", i % 2, std::to_string(i));
  }
  KafkaSourceOptions options = OptionsFor(cluster_, {"t"});
  options.until = ReadUntil::kEnd;
  Offsets next;
  {
    const auto source = Open(options);
    EXPECT_THAT(ReadToEnd(*source), SizeIs(6));
    for (uint32_t i = 0; i < 2; ++i) {
      ASSERT_TRUE(source->seen(i));
      EXPECT_EQ(source->seen(i)->offset, 2);
      seen_[source->partition(i)] = *source->seen(i);
      next[source->partition(i)] = 3;
    }
  }
  Put("t", 1, "more");
  {
    const auto source = Open(options, next);  // The same topic.
    EXPECT_THAT(ReadToEnd(*source), ElementsAre("t[1]@3=more"));
  }
  KafkaCluster other;  // Another topic of the same name.
  other.CreateTopic("t", 2);
  for (int i = 0; i < 10; ++i) {
    other.Produce({.topic = "t", .partition = 0, .value = "new " + std::to_string(i)});
  }
  options.client.brokers = {other.address()};
  next.erase({"t", 1});
  const auto stopping = Open(options, next);
  Status failure;
  while (failure.ok()) {
    const Result<KafkaBatch> batch = stopping->Next({.wait_max = milliseconds(50)});
    failure = batch.status();
    ASSERT_TRUE(!batch.ok() || (batch->messages.empty() && !batch->caught_up));
  }
  EXPECT_THAT(failure, FailsWith(ErrorCode::kFailedPrecondition, "made again"));
  options.on_lost_range = OnLostRange::kContinue;
  const auto going_on = Open(options, next);
  EXPECT_THAT(ReadToEnd(*going_on), SizeIs(10));
  EXPECT_THAT(lost_, ElementsAre(LostRange{{"t", 0}, 3, 0, LossCause::kRemade}));
  EXPECT_EQ(going_on->seen(0)->offset, 9);
}

TEST_F(KafkaSourceTest, AMessageThatIsNotThereAnyMoreProvesNothing) {
  cluster_.CreateTopic("t", 1);
  for (int i = 0; i < 8; ++i) {
    Put("t", 0, std::string(1 << 20, 'x'));  // The cluster keeps 5 MB.
  }
  seen_[{"t", 0}] = {.offset = 0, .digest = 1};
  KafkaSourceOptions options = OptionsFor(cluster_, {"t"});
  options.until = ReadUntil::kEnd;
  const auto source = Open(options, {{{"t", 0}, 8}});
  EXPECT_THAT(ReadToEnd(*source), IsEmpty());
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(KafkaSourceTest, AnOffsetThatGoesOutOfRangeWhileReadingIsPlannedAgain) {
  cluster_.CreateTopic("t", 1);
  Put("t", 0, "1");
  const auto source = Open(OptionsFor(cluster_, {"t"}));
  EXPECT_THAT(Read(*source, 1), ElementsAre("t[0]@0=1"));
  cluster_.FailRequests(kFetchRequest, {RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE});
  Put("t", 0, "2");
  EXPECT_THAT(Read(*source, 1), ElementsAre("t[0]@1=2"));
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(KafkaSourceTest, ErrorsThatPassAreOvercome) {
  cluster_.CreateTopic("t", 1);
  Put("t", 0, "1");
  cluster_.FailRequests(kListOffsetsRequest, {RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE});
  cluster_.FailRequests(kFetchRequest,
                        {RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, RD_KAFKA_RESP_ERR__TRANSPORT});
  Result<std::unique_ptr<KafkaSource>> opened = TryOpen(OptionsFor(cluster_, {"t"}));
  if (!opened.ok()) {
    EXPECT_EQ(opened.status().code(), ErrorCode::kUnavailable);  // The task tries again.
    opened = TryOpen(OptionsFor(cluster_, {"t"}));
  }
  ASSERT_OK(opened);
  EXPECT_THAT(Read(**opened, 1), ElementsAre("t[0]@0=1"));
}

TEST_F(KafkaSourceTest, APartitionThatFailsDoesNotHoldTheOthers) {
  cluster_.CreateTopic("bad", 1);
  cluster_.CreateTopic("good", 1);
  Put("bad", 0, "b");
  const auto source = Open(OptionsFor(cluster_, {"bad", "good"}));
  EXPECT_THAT(Read(*source, 1), ElementsAre("bad[0]@0=b"));
  cluster_.FailRequests(kFetchRequest, {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED});
  Put("good", 0, "g");
  Put("bad", 0, "c");
  EXPECT_THAT(Read(*source, 2), UnorderedElementsAre("good[0]@0=g", "bad[0]@1=c"));
}

TEST_F(KafkaSourceTest, ABrokerThatIsAwayComesBack) {
  cluster_.CreateTopic("t", 1);
  Put("t", 0, "1");
  const auto source = Open(OptionsFor(cluster_, {"t"}));
  EXPECT_THAT(Read(*source, 1), ElementsAre("t[0]@0=1"));
  cluster_.SetDown();
  ASSERT_OK(source->Next({.wait_max = milliseconds(100)}));
  cluster_.SetUp();
  Put("t", 0, "2");
  EXPECT_THAT(Read(*source, 1), ElementsAre("t[0]@1=2"));
}

TEST_F(KafkaSourceTest, NobodyAnswers) {
  KafkaSourceOptions options = OptionsFor(cluster_, {"t"});
  options.client.brokers = {"127.0.0.1:1"};
  options.answer_wait_max = milliseconds(300);
  EXPECT_THAT(TryOpen(options), FailsWith(ErrorCode::kUnavailable, "127.0.0.1:1"));
}

TEST_F(KafkaSourceTest, LagCountsWhatIsNotHandedOver) {
  cluster_.CreateTopic("t", 1);
  for (int i = 0; i < 5; ++i) {
    Put("t", 0, "x");
  }
  const auto source = Open(OptionsFor(cluster_, {"t"}));
  ASSERT_OK(source->Next({}));  // Announces the partition.
  ASSERT_OK_AND_ASSIGN(const KafkaBatch batch, source->Next({.items_max = 2}));
  const auto lag = static_cast<int64_t>(5 - batch.messages.size());
  EXPECT_THAT(source->ReadLags(), ElementsAre(Field(&PartitionLag::lag, lag)));
}

TEST_F(KafkaSourceTest, ManyPartitionsAreOneClient) {
  for (int i = 0; i < 40; ++i) {
    cluster_.CreateTopic(fmt::format("many{}", i), 25);
  }
  for (int i = 0; i < 3; ++i) {
    Put(fmt::format("many{}", 15 * i), 12 * i, std::to_string(i));
  }
  KafkaSourceOptions options = OptionsFor(cluster_, {"many%"});
  options.until = ReadUntil::kEnd;
  const auto source = Open(options);
  EXPECT_THAT(ReadToEnd(*source),
              UnorderedElementsAre("many0[0]@0=0", "many15[12]@0=1", "many30[24]@0=2"));
  EXPECT_EQ(source->partition_count(), 1000U);
}

}  // namespace
}  // namespace tarn::source::kafka
