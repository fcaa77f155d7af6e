#include <algorithm>
#include <map>

#include <arrow/api.h>
#include <fmt/core.h>

#include "tarn/format/parquet_reader.h"
#include "tarn/landing/landing_offsets.h"
#include "tarn/landing/landing_state.h"
#include "tarn/landing/landing_task.h"
#include "tarn/metastore/faulty_database.h"
#include "tarn/storage/local_store.h"
#include "test/support/kafka_cluster.h"
#include "test/support/metastore_fixture.h"

namespace tarn::landing {
namespace {

using source::kafka::OnLostRange;
using source::kafka::ReadUntil;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class KafkaLandingTest : public MetastoreFixture {
 protected:
  void SetUp() override {
    OpenWith({dataset::Migrations(), Migrations()});
    faulty_ = std::make_unique<metastore::FaultyDatabase>(*database_);
    ASSERT_OK_AND_ASSIGN(warehouse_, storage::LocalStore::Open({.root = folder_.path() / "lake"}));
    datasets_ = std::make_unique<dataset::DatasetStore>(*faulty_, clock_, ids_);
    StartOver();
    cluster_.CreateTopic("t", 2);
    spec_.name = "events";
    spec_.source_uri = "kafka:";
    spec_.kafka.emplace();
    spec_.kafka->source.client.brokers = {cluster_.address()};
    spec_.kafka->source.client.properties = {{"fetch.wait.max.ms", "10"}};
    spec_.kafka->source.topics = {"t"};
    spec_.kafka->source.look_every = std::chrono::milliseconds(50);
  }

  LandingDatasets MakeDatasets() {
    LandingDatasets made{
        .landing = {.uuid = ids_.NextV4()}, .rejected = {.uuid = ids_.NextV4()}, .by = "me"};
    EXPECT_OK(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
      TARN_RETURN_IF_ERROR(datasets_->InitializeDataset(sql, made.landing, "", "me"));
      return StatusOf(datasets_->InitializeDataset(sql, made.rejected, "", "me"));
    }));
    return made;
  }

  // Empty datasets of a task that never ran.
  void StartOver() {
    task_.reset();
    made_ = MakeDatasets();
  }

  void Put(int32_t partition, const std::string& value) {
    cluster_.Produce({.topic = "t", .partition = partition, .value = value});
  }

  Status Open(ReadUntil until = ReadUntil::kEnd) {
    task_.reset();
    Result<std::unique_ptr<LandingTask>> opened = LandingTask::Open(
        spec_, made_,
        LandingDeps{*faulty_, *datasets_, *warehouse_, ids_, clock_, budget_, fence_, until,
                    [this](const std::string& name) -> Result<LandingDatasets> {
                      return of_topics_.emplace(name, MakeDatasets()).first->second;
                    }});
    if (opened.ok()) {
      task_ = std::move(opened).value();
    }
    return opened.status();
  }

  Result<LandingProgress> Run() {
    TARN_RETURN_IF_ERROR(Open());
    return task_->RunUntilIdle();
  }

  // Of one column, in the order of the files; NULL is "null".
  std::vector<std::string> Column(const std::string& name, const dataset::DatasetRid& dataset) {
    std::vector<std::string> values;
    const Result<dataset::FilePage> page = datasets_->ListFiles(dataset, {}, {});
    EXPECT_OK(page);
    for (const dataset::File& file : page->files) {
      auto reader = format::ParquetReader::Open(*warehouse_->OpenReader(file.location));
      EXPECT_OK(reader);
      const std::shared_ptr<arrow::Table> table = *(*reader)->ReadAll();
      const auto column = table->GetColumnByName(name);
      for (int64_t i = 0; column != nullptr && i < table->num_rows(); ++i) {
        values.push_back((*column->GetScalar(i))->ToString());
      }
    }
    return values;
  }
  std::vector<std::string> Column(const std::string& name) { return Column(name, made_.landing); }

  // "partition@offset=id", sorted.
  std::vector<std::string> Landed() {
    const std::vector<std::string> partitions = Column("hdr__kafka_partition");
    const std::vector<std::string> offsets = Column("hdr__kafka_offset");
    const std::vector<std::string> ids = Column("id");
    std::vector<std::string> rows;
    for (size_t i = 0; i < partitions.size(); ++i) {
      rows.push_back(fmt::format("{}@{}={}", partitions[i], offsets[i], ids.at(i)));
    }
    std::sort(rows.begin(), rows.end());
    return rows;
  }

  std::vector<dataset::Transaction> Transactions() {
    return datasets_->ListTransactions(made_.landing, 100, "")->transactions;
  }
  LandedTopics Topics(const dataset::Transaction& transaction) {
    const Result<std::optional<LandedTopics>> topics = DecodeTopics(*transaction.record_json);
    EXPECT_OK(topics);
    return topics->value_or(LandedTopics{});
  }

  KafkaCluster cluster_;
  std::unique_ptr<metastore::FaultyDatabase> faulty_;
  std::unique_ptr<storage::LocalStore> warehouse_;
  std::unique_ptr<dataset::DatasetStore> datasets_;
  MemoryBudget budget_{64 << 20};
  metastore::SqlFunction fence_;
  LandingDatasets made_;
  std::map<std::string, LandingDatasets> of_topics_;  // By name of the dataset.
  LandingSpec spec_;
  std::unique_ptr<LandingTask> task_;
};

TEST_F(KafkaLandingTest, MessagesBecomeRowsWithTheirHeaders) {
  cluster_.Produce({.topic = "t",
                    .partition = 1,
                    .key = "k\xff",
                    .value = R"({"id": 1})",
                    .headers = {{"h", "x"}},
                    .time_ms = 1'700'000'000'123});
  cluster_.Produce({.topic = "t", .partition = 1, .key = "", .value = R"([{"id": 2}, {"id": 3}])"});
  ASSERT_OK_AND_ASSIGN(const LandingProgress progress, Run());
  EXPECT_EQ(progress.counts.rows, 3);
  EXPECT_EQ(progress.lag_rows, 0);
  EXPECT_THAT(Landed(), ElementsAre("1@0=1", "1@1=2", "1@1=3"));
  EXPECT_THAT(Column("hdr__kafka_topic"), ElementsAre("t", "t", "t"));
  EXPECT_THAT(Column("hdr__kafka_key"), ElementsAre("a/8=", "", ""));
  EXPECT_THAT(Column("hdr__kafka_headers"), ElementsAre(R"({"h":"x"})", "null", "null"));
  EXPECT_THAT(Column("hdr__kafka_tombstone"), ElementsAre("false", "false", "false"));
  EXPECT_THAT(Column("hdr__event_timestamp")[0], HasSubstr("2023-11-14 22:13:20.123"));
  EXPECT_THAT(Topics(Transactions().front()).ranges, ElementsAre(LandedRange{{"t", 1}, 0, 2, 2}));
}

TEST_F(KafkaLandingTest, AnotherLifeGoesOnBehindTheLastCommit) {
  spec_.commit.rows = 3;
  for (int i = 0; i < 10; ++i) {
    Put(i % 2, fmt::format(R"({{"id": {}}})", i));
  }
  ASSERT_OK_AND_ASSIGN(const LandingProgress progress, Run());
  EXPECT_EQ(progress.counts.rows, 10);
  EXPECT_THAT(Landed(), SizeIs(10));
  Put(0, R"({"id": 10})");
  ASSERT_OK(Run());
  EXPECT_THAT(Landed(), SizeIs(11));
  EXPECT_THAT(Topics(Transactions().front()).ranges, ElementsAre(LandedRange{{"t", 0}, 5, 6, 1}));
  ASSERT_OK_AND_ASSIGN(const LandingProgress nothing, Run());
  EXPECT_EQ(nothing.commits, 0);
}

TEST_F(KafkaLandingTest, AFailureOfTheMetastoreAnywhereLosesAndRepeatsNothing) {
  for (int i = 0; i < 6; ++i) {
    Put(i % 2, i == 3 ? "no JSON" : fmt::format(R"({{"id": {}}})", i));
  }
  for (const metastore::Fault fault : {metastore::Fault::kBefore, metastore::Fault::kAfter}) {
    for (int64_t n = 1;; ++n) {
      StartOver();
      faulty_->FailAt(n, fault);
      const bool passed = Run().ok();
      const bool fired = faulty_->fired();
      faulty_->FailAt(0, fault);
      ASSERT_OK(Run());
      ASSERT_THAT(Landed(), ElementsAre("0@0=0", "0@1=2", "0@2=4", "1@0=1", "1@2=5"))
          << "failure at operation " << n;
      ASSERT_THAT(Column("raw", made_.rejected), SizeIs(1)) << "failure at operation " << n;
      if (passed && !fired) {
        EXPECT_GT(n, 10);
        break;
      }
    }
  }
}

TEST_F(KafkaLandingTest, ALostLeaseCommitsNothing) {
  Put(0, R"({"id": 1})");
  ASSERT_OK(Open());
  fence_ = [](metastore::SqlTransaction&) { return Status::Conflict("another epoch"); };
  EXPECT_THAT(Run(), Fails(ErrorCode::kConflict));
  EXPECT_THAT(Landed(), IsEmpty());
}

TEST_F(KafkaLandingTest, BadMessagesAreDeadLettersWithTheirPlace) {
  Put(1, R"({"id": 1})");
  Put(1, R"({"id": )");
  Put(1, "");
  Put(1, "7");
  ASSERT_OK_AND_ASSIGN(const LandingProgress progress, Run());
  EXPECT_EQ(progress.counts.rejected, 3);
  EXPECT_THAT(Column("source", made_.rejected), ElementsAre("t", "t", "t"));
  EXPECT_THAT(Column("position", made_.rejected), ElementsAre("1", "2", "3"));
  EXPECT_THAT(Column("error_code", made_.rejected),
              ElementsAre("truncated", "truncated", "not_an_object"));
  EXPECT_THAT(Column("error_text", made_.rejected)[0], HasSubstr("partition 1"));
  ASSERT_OK_AND_ASSIGN(const LandingProgress nothing, Run());
  EXPECT_EQ(nothing.counts.rejected, 0);
}

TEST_F(KafkaLandingTest, OnBadRecordStopNamesTheOffset) {
  spec_.on_bad_record = OnBadRecord::kStop;
  Put(0, R"({"id": 1})");
  Put(0, "{");
  EXPECT_THAT(Run(), FailsWith(ErrorCode::kFailedPrecondition, "topic t, offset 1: truncated"));
  EXPECT_THAT(Landed(), IsEmpty());
}

TEST_F(KafkaLandingTest, TombstonesAreRowsOfTheirKey) {
  spec_.kafka->key_columns.names = {"id"};
  cluster_.Produce({.topic = "t", .key = "7", .value = R"({"name": "a"})"});
  cluster_.Produce({.topic = "t", .key = "7", .value = std::nullopt});
  cluster_.Produce({.topic = "t", .key = "no JSON", .value = std::nullopt});
  ASSERT_OK(Run());
  EXPECT_THAT(Column("id"), ElementsAre("7", "7"));
  EXPECT_THAT(Column("name"), ElementsAre("a", "null"));
  EXPECT_THAT(Column("hdr__kafka_tombstone"), ElementsAre("false", "true"));
  EXPECT_THAT(Column("error_text", made_.rejected), ElementsAre(HasSubstr("message key")));
  spec_.kafka->tombstone = Tombstone::kReject;
  cluster_.Produce({.topic = "t", .key = "7", .value = std::nullopt});
  ASSERT_OK(Run());
  EXPECT_THAT(Column("error_code", made_.rejected), ElementsAre("bad_json", "tombstone"));
}

TEST_F(KafkaLandingTest, ChangeEventsHaveTheirKeyInTheMessage) {
  spec_.envelope = Envelope::kDebezium;
  const auto event = [](int id, const char* table) {
    return fmt::format(
        R"({{"op":"c","after":{{"id":{}}},"source":{{"schema":"s","table":"{}","ts_ms":1}}}})", id,
        table);
  };
  spec_.tables = {"s.a%"};
  cluster_.Produce({.topic = "t", .key = R"({"id":1})", .value = event(1, "a")});
  cluster_.Produce({.topic = "t", .key = R"({"id":2})", .value = event(2, "b")});
  cluster_.Produce({.topic = "t",
                    .key = R"({"schema":{"type":"struct","fields":[]},"payload":{"id":1}})",
                    .value = R"({"schema":null,"payload":)" + event(3, "aa") + "}"});
  cluster_.Produce({.topic = "t", .key = R"({"id":1})", .value = std::nullopt});
  ASSERT_OK_AND_ASSIGN(const LandingProgress progress, Run());
  EXPECT_EQ(progress.counts.rows, 2);
  EXPECT_EQ(progress.counts.filtered, 2);
  EXPECT_THAT(Column("hdr__cdc_table"), ElementsAre("s.a", "s.aa"));
  EXPECT_THAT(Column("hdr__event_timestamp")[0], HasSubstr("1970-01-01 00:00:00.001"));
  ASSERT_OK(database_->Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const SourceKeys keys, ReadKeys(sql, made_.landing.ToString()));
    EXPECT_EQ(keys.Encode(), R"({"s.a":["id"],"s.aa":["id"]})");
    return Status::Ok();
  }));
}

TEST_F(KafkaLandingTest, NowIsStoredBeforeAnythingIsRead) {
  spec_.kafka->source.start.kind = source::kafka::StartPolicy::Kind::kNow;
  Put(0, R"({"id": 1})");
  ASSERT_OK(Run());
  EXPECT_THAT(Landed(), IsEmpty());
  Put(0, R"({"id": 2})");
  ASSERT_OK(Run());
  EXPECT_THAT(Landed(), ElementsAre("0@1=2"));
}

TEST_F(KafkaLandingTest, AFollowerCutsByTime) {
  spec_.commit.interval = std::chrono::milliseconds(200);
  ASSERT_OK(Open(ReadUntil::kStopped));
  Put(0, R"({"id": 1})");
  int64_t commits = 0;
  for (int i = 0; i < 50 && commits == 0; ++i) {
    ASSERT_OK_AND_ASSIGN(const LandingProgress progress, task_->Step());
    commits += progress.commits;
  }
  EXPECT_EQ(commits, 1);
  EXPECT_THAT(Landed(), ElementsAre("0@0=1"));
  ASSERT_OK_AND_ASSIGN(const LandingProgress idle, task_->Step());
  EXPECT_TRUE(idle.caught_up);
  EXPECT_EQ(idle.lag_rows, 0);
}

TEST_F(KafkaLandingTest, ALostRangeIsInTheRecord) {
  Put(0, R"({"id": 0})");
  ASSERT_OK(Run());
  for (int i = 1; i < 9; ++i) {
    Put(0, fmt::format(R"({{"id": {}, "x": "{}"}})", i, std::string(1 << 20, 'x')));
  }
  EXPECT_THAT(Run(), FailsWith(ErrorCode::kFailedPrecondition, "on_lost_range"));
  spec_.kafka->source.on_lost_range = OnLostRange::kContinue;
  ASSERT_OK_AND_ASSIGN(const LandingProgress progress, Run());
  ASSERT_THAT(progress.warnings, SizeIs(1));
  EXPECT_EQ(progress.warnings[0].code, "lost_range");
  const LandedTopics topics = Topics(Transactions().front());
  ASSERT_THAT(topics.gaps, SizeIs(1));
  EXPECT_EQ(topics.gaps[0].from, 1);
  EXPECT_THAT(topics.ranges,
              ElementsAre(LandedRange{{"t", 0}, topics.gaps[0].to, 9, 9 - topics.gaps[0].to}));
  ASSERT_OK_AND_ASSIGN(const LandingProgress nothing, Run());
  EXPECT_THAT(nothing.warnings, IsEmpty());
}

TEST_F(KafkaLandingTest, RecordsHaveNoBreakWhereNothingLanded) {
  Put(0, R"({"id": 0})");
  ASSERT_OK(Run());
  Put(0, "{");
  Put(0, "[");
  ASSERT_OK(Run());
  EXPECT_THAT(Transactions(), SizeIs(1));
  Put(0, R"({"id": 3})");
  ASSERT_OK(Run());
  EXPECT_THAT(Topics(Transactions().front()).ranges, ElementsAre(LandedRange{{"t", 0}, 1, 4, 1}));
  Put(0, R"({"id": 4})");
  ASSERT_OK(Run());
  EXPECT_THAT(Topics(Transactions().front()).ranges, ElementsAre(LandedRange{{"t", 0}, 4, 5, 1}));
}

TEST_F(KafkaLandingTest, AGapIsRecordedThoughNothingLandsBehindIt) {
  Put(0, R"({"id": 0})");
  ASSERT_OK(Run());
  Put(0, "{");
  ASSERT_OK(Run());
  for (int i = 2; i < 10; ++i) {
    Put(0, "[" + std::string(1 << 20, 'x'));
  }
  spec_.kafka->source.on_lost_range = OnLostRange::kContinue;
  ASSERT_OK(Run());
  ASSERT_THAT(Transactions(), SizeIs(2));
  const LandedTopics topics = Topics(Transactions().front());
  ASSERT_THAT(topics.gaps, SizeIs(1));
  EXPECT_EQ(topics.gaps[0].from, 2);
  EXPECT_THAT(topics.ranges,
              ElementsAre(LandedRange{{"t", 0}, topics.gaps[0].to, 10, 10 - topics.gaps[0].to},
                          LandedRange{{"t", 0}, 1, 2, 0}));
  EXPECT_THAT(Landed(), ElementsAre("0@0=0"));
  ASSERT_OK_AND_ASSIGN(const LandingProgress nothing, Run());
  EXPECT_THAT(nothing.warnings, IsEmpty());
}

TEST_F(KafkaLandingTest, ATopicsDatasetThatWasDeletedBeginsAnew) {
  spec_.kafka->one_dataset = false;
  Put(0, R"({"id": 1})");
  Put(1, R"({"id": 2})");
  ASSERT_OK(Run());
  of_topics_.clear();
  Put(0, R"({"id": 3})");
  ASSERT_OK(Run());
  EXPECT_THAT(Column("id", of_topics_.at("t").landing), SizeIs(3));
  ASSERT_OK(Run());
  EXPECT_THAT(Column("id", of_topics_.at("t").landing), SizeIs(3));
}

TEST_F(KafkaLandingTest, ATopicThatIsReadNoMoreNeedsNoDataset) {
  spec_.kafka->one_dataset = false;
  spec_.kafka->source.topics = {"%"};
  Put(0, R"({"id": 1})");
  ASSERT_OK(Run());
  ASSERT_TRUE(of_topics_.contains("t"));
  of_topics_.clear();
  spec_.kafka->source.exclude = {"t"};
  ASSERT_OK(Run());
  EXPECT_FALSE(of_topics_.contains("t"));
}

TEST_F(KafkaLandingTest, ATopicThatWasMadeAgainAndHasMoreIsALostRange) {
  Put(0, R"({"id": 0})");
  Put(0, R"({"id": 1})");
  ASSERT_OK(Run());
  ASSERT_OK(Run());  // Nothing has changed.
  // As if another message had been read there.
  ASSERT_OK(database_->Write([](metastore::SqlTransaction& sql) {
    return StatusOf(
        sql.Execute("UPDATE landing_offset SET seen_digest = seen_digest + 1 WHERE "
                    "seen_offset = 1",
                    {}));
  }));
  ASSERT_OK(Run());  // Nobody looks while there is nothing to read.
  Put(0, R"({"id": 2})");
  EXPECT_THAT(Run(), FailsWith(ErrorCode::kFailedPrecondition, "made again"));
  spec_.kafka->source.on_lost_range = OnLostRange::kContinue;
  ASSERT_OK_AND_ASSIGN(const LandingProgress progress, Run());
  ASSERT_THAT(progress.warnings, SizeIs(1));
  EXPECT_EQ(progress.warnings[0].code, "lost_range");
  EXPECT_THAT(Landed(), ElementsAre("0@0=0", "0@0=0", "0@1=1", "0@1=1", "0@2=2"));
  EXPECT_THAT(
      Topics(Transactions().front()).gaps,
      ElementsAre(source::kafka::LostRange{{"t", 0}, 2, 0, source::kafka::LossCause::kRemade}));
  ASSERT_OK_AND_ASSIGN(const LandingProgress nothing, Run());
  EXPECT_THAT(nothing.warnings, IsEmpty());
  EXPECT_THAT(Landed(), SizeIs(5));
}

TEST_F(KafkaLandingTest, ABranchThatWasSetBackIsLandedAgain) {
  Put(0, R"({"id": 1})");
  ASSERT_OK(Run());
  const dataset::TransactionRid first = Transactions().front().rid;
  Put(0, R"({"id": 2})");
  Put(1, R"({"id": 3})");
  ASSERT_OK(Run());
  ASSERT_OK(faulty_->Write([&](metastore::SqlTransaction& sql) {
    return StatusOf(
        datasets_->ResetBranch(sql, made_.landing, dataset::kDefaultBranch, first, "me"));
  }));
  EXPECT_THAT(Landed(), SizeIs(1));
  ASSERT_OK(Run());
  EXPECT_THAT(Landed(), ElementsAre("0@0=1", "0@1=2", "1@0=3"));
}

TEST_F(KafkaLandingTest, EachTopicMayHaveItsDataset) {
  spec_.kafka->one_dataset = false;
  spec_.kafka->source.topics = {"t", "My-%"};
  cluster_.CreateTopic("My-topic", 1);
  for (int turn = 0; turn < 2; ++turn) {
    Put(0, R"({"id": 1})");
    cluster_.Produce({.topic = "My-topic", .value = R"({"other": 2})"});
    cluster_.Produce({.topic = "My-topic", .value = "no JSON"});
    ASSERT_OK(Run());
  }
  ASSERT_THAT(of_topics_, SizeIs(2));
  EXPECT_THAT(Column("id", of_topics_.at("t").landing), ElementsAre("1", "1"));
  EXPECT_THAT(Column("other", of_topics_.at("my_topic").landing), ElementsAre("2", "2"));
  EXPECT_THAT(Column("id", of_topics_.at("my_topic").landing), IsEmpty());
  EXPECT_THAT(Column("source", made_.rejected), ElementsAre("My-topic", "My-topic"));
  EXPECT_THAT(Landed(), IsEmpty());
  cluster_.CreateTopic("My-Topic", 1);
  EXPECT_THAT(Run(), FailsWith(ErrorCode::kFailedPrecondition, "would both land in"));
}

TEST_F(KafkaLandingTest, AnotherClusterIsRefused) {
  Put(0, R"({"id": 1})");
  ASSERT_OK(Run());
  const KafkaCluster other;
  KafkaCluster again;
  again.CreateTopic("t", 2);
  spec_.kafka->source.client.brokers = {again.address()};
  const Status opened = Open();
  EXPECT_EQ(opened.code(), ErrorCode::kFailedPrecondition) << opened.ToString();
}

}  // namespace
}  // namespace tarn::landing
