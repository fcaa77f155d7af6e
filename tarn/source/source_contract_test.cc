#include "tarn/source/source_contract.h"

#include <algorithm>
#include <fstream>

#include <fmt/core.h>

#include "tarn/source/files/files_source.h"
#include "tarn/source/kafka/kafka_source.h"
#include "tarn/storage/memory_store.h"
#include "test/support/kafka_cluster.h"
#include "test/support/temporary_directory.h"

namespace tarn::source {
namespace {

// Files 0001, 0002, … in any store; the subclasses say how a file is made.
class FilesPlace : public SourcePlace {
 public:
  void Add(const std::string& payload) override { Write(fmt::format("{:04}", ++count_), payload); }

  std::unique_ptr<Source> Open() override {
    files::FilesSourceOptions options{.piece_bytes = 3};
    options.decide.version_kind = kind_;
    return files::FilesSource::Open(
               options, {.store = store(), .ledger = ledger_, .clock = clock_, .budget = budget_})
        .value();
  }

  void Commit(const SourceBatch& batch) override {
    for (const SourceItem& item : batch.items) {
      if (const auto* listed = std::get_if<files::FilesListed>(&item.position)) {
        ledger_.complete_until = listed->until;
        continue;
      }
      const auto& position = std::get<files::FilePosition>(item.position);
      ledger_.resume =
          files::FileResume{.key = position.key,
                            .version = position.version,
                            .offset_bytes = position.offset_bytes + item.payload.size(),
                            .rows_done = 1};
      if (position.end) {
        files::Record(ledger_, position);
      }
    }
  }

  MemoryBudget& budget() override { return budget_; }

 protected:
  explicit FilesPlace(files::VersionKind kind) : kind_(kind) {}
  virtual void Write(const std::string& key, const std::string& bytes) = 0;
  virtual storage::ObjectStore& store() = 0;

  SystemClock clock_;

 private:
  const files::VersionKind kind_;
  files::FileLedger ledger_;
  MemoryBudget budget_{1000};
  int count_ = 0;
};

class LocalPlace final : public FilesPlace {
 public:
  LocalPlace()
      : FilesPlace(files::VersionKind::kSizeAndTime),
        place_(files::OpenSourceStore("file://" + directory_.path().string()).value()) {}

 private:
  void Write(const std::string& key, const std::string& bytes) override {
    std::ofstream(directory_.path() / key) << bytes;
  }
  storage::ObjectStore& store() override { return *place_.store; }

  TemporaryDirectory directory_;
  files::SourceStore place_;
};

class BucketPlace final : public FilesPlace {
 public:
  BucketPlace() : FilesPlace(files::VersionKind::kEtag) {}

 private:
  void Write(const std::string& key, const std::string& bytes) override {
    ASSERT_OK(storage::WriteObject(store_, key, bytes, storage::WriteMode::kOverwrite));
  }
  storage::ObjectStore& store() override { return store_; }

  storage::MemoryStore store_{clock_};
};

// The promises of Source, kept by KafkaSource: each message becomes an item.
class AsSource final : public Source {
 public:
  explicit AsSource(std::unique_ptr<kafka::KafkaSource> source) : source_(std::move(source)) {}

  // What is announced is passed over, and only silence of a while is the end.
  Result<SourceBatch> Next(const BatchLimits& limits) override {
    BatchLimits patient = limits;
    patient.wait_max = std::max(limits.wait_max, std::chrono::milliseconds(200));
    TARN_ASSIGN_OR_RETURN(kafka::KafkaBatch batch, source_->Next(patient));
    if (!batch.started.empty()) {
      TARN_ASSIGN_OR_RETURN(batch, source_->Next(patient));
    }
    SourceBatch items;
    for (const kafka::KafkaMessage& message : batch.messages) {
      items.items.push_back(
          {.payload = std::string(message.value),
           .position = kafka::KafkaPosition{source_->partition(message.partition), message.offset},
           .event_time = FromMicros(message.time_ms * 1000)});
    }
    items.caught_up = batch.caught_up;
    items.memory = std::move(batch.memory);
    return items;
  }
  void Cancel() override { source_->Cancel(); }

 private:
  std::unique_ptr<kafka::KafkaSource> source_;
};

class TopicPlace final : public SourcePlace {
 public:
  TopicPlace() { cluster_.CreateTopic("t", 1); }

  void Add(const std::string& payload) override {
    cluster_.Produce({.topic = "t", .value = payload});
  }
  std::unique_ptr<Source> Open() override {
    kafka::KafkaSourceOptions options;
    options.client.brokers = {cluster_.address()};
    options.client.properties = {{"fetch.wait.max.ms", "10"}};
    options.topics = {"t"};
    Result<std::unique_ptr<kafka::KafkaSource>> source =
        kafka::KafkaSource::Open(options, {.next = next_, .first_start = next_.empty()}, budget_);
    return std::make_unique<AsSource>(std::move(source).value());
  }
  void Commit(const SourceBatch& batch) override {
    for (const SourceItem& item : batch.items) {
      const auto& position = std::get<kafka::KafkaPosition>(item.position);
      next_[position.where] = position.offset + 1;
    }
  }
  MemoryBudget& budget() override { return budget_; }
  [[nodiscard]] bool cuts_items() const override { return false; }

 private:
  KafkaCluster cluster_;
  kafka::Offsets next_;
  MemoryBudget budget_{1000};
};

std::unique_ptr<SourcePlace> MakeTopicPlace() { return std::make_unique<TopicPlace>(); }

std::unique_ptr<SourcePlace> MakeLocalPlace() { return std::make_unique<LocalPlace>(); }
std::unique_ptr<SourcePlace> MakeBucketPlace() { return std::make_unique<BucketPlace>(); }

INSTANTIATE_TEST_SUITE_P(LocalFiles, SourceContract, ::testing::Values(&MakeLocalPlace));
INSTANTIATE_TEST_SUITE_P(Bucket, SourceContract, ::testing::Values(&MakeBucketPlace));
INSTANTIATE_TEST_SUITE_P(Kafka, SourceContract, ::testing::Values(&MakeTopicPlace));

}  // namespace
}  // namespace tarn::source
