#include "tarn/dataset/upkeep/upkeep.h"

#include <condition_variable>

#include "tarn/dataset/retention/retention_fixture.h"
#include "tarn/metastore/lease.h"

namespace tarn::dataset::upkeep {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class UpkeepTest : public retention::RetentionFixture {
 protected:
  std::unique_ptr<Upkeep> Make(const std::string& owner,
                               std::chrono::milliseconds period = std::chrono::hours(1)) {
    UpkeepOptions options;
    options.owner = owner;
    options.periods.fill(period);
    return std::make_unique<Upkeep>(Deps(), objects_, options);
  }

  void AskForACheckpoint() {
    std::vector<std::string> paths;
    for (int i = 0; i < 1500; ++i) {
      paths.push_back("f" + std::to_string(10'000 + i));
    }
    ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles(paths)));
    paths.pop_back();
    ASSERT_OK(CommitRemoval(paths));
    ASSERT_OK(store_->ListFiles(rid_, {}, {}));
    ASSERT_OK_AND_ASSIGN(const auto requests, store_->ListCheckpointRequests(10));
    ASSERT_THAT(requests, SizeIs(1));
  }
};

TEST_F(UpkeepTest, EachJobDoesItsWork) {
  const auto upkeep = Make("one");
  AskForACheckpoint();
  EXPECT_THAT(upkeep->RunNow(Job::kCheckpoints), IsOkAndHolds(1));
  EXPECT_THAT(store_->ListCheckpointRequests(10), IsOkAndHolds(IsEmpty()));

  const DatasetRid gone = MakeDataset();
  ASSERT_OK(database_->Write(
      [&](metastore::SqlTransaction& sql) { return store_->DeleteDataset(sql, gone); }));
  ASSERT_OK_AND_ASSIGN(const int64_t purged, upkeep->RunNow(Job::kPurge));
  EXPECT_GT(purged, 0);
  EXPECT_THAT(upkeep->RunNow(Job::kPurge), IsOkAndHolds(0));

  ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) {
    DatasetSettings settings;
    settings.idle_abort = std::chrono::seconds(10);
    return store_->UpdateSettings(sql, rid_, settings);
  }));
  ASSERT_OK(Start(TransactionType::kAppend));
  EXPECT_THAT(upkeep->RunNow(Job::kIdle), IsOkAndHolds(0));
  clock_.Advance(std::chrono::seconds(11));
  EXPECT_THAT(upkeep->RunNow(Job::kIdle), IsOkAndHolds(1));

  ASSERT_OK(Put(R"({"name":"a","datasets":{"all":true},"transactions":{"keepNewest":1}})"));
  ASSERT_OK_AND_ASSIGN(const int64_t marked, upkeep->RunNow(Job::kRetention));
  EXPECT_EQ(marked, 1);
  ASSERT_OK(Upload("lost"));
  clock_.Advance(std::chrono::hours(25));
  EXPECT_THAT(upkeep->RunNow(Job::kSweep), IsOkAndHolds(1));
  EXPECT_EQ(upkeep->counters(Job::kSweep).done, 1);
  EXPECT_EQ(upkeep->counters(Job::kPurge).runs, 2);
}

TEST_F(UpkeepTest, OnlyOneServerWorksAtATime) {
  const auto upkeep = Make("one");
  ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) {
    return StatusOf(metastore::TryAcquireLease(sql, {.name = "dataset-upkeep-sweep",
                                                     .owner = "other",
                                                     .now = clock_.Now(),
                                                     .duration = std::chrono::minutes(1)}));
  }));
  EXPECT_EQ(upkeep->RunNow(Job::kSweep).status().reason(), "LeaseHeld");
  EXPECT_EQ(upkeep->counters(Job::kSweep).skipped, 1);
  EXPECT_OK(upkeep->RunNow(Job::kPurge));
  clock_.Advance(std::chrono::minutes(2));
  EXPECT_OK(upkeep->RunNow(Job::kSweep));
}

// A request that cannot be served, an OPEN head here, goes behind the others.
TEST_F(UpkeepTest, ABusyBranchLetsOthersPass) {
  AskForACheckpoint();
  ASSERT_OK(Start(TransactionType::kAppend));
  UpkeepOptions options;
  options.owner = "one";
  options.checkpoints_max = 1;
  Upkeep upkeep(Deps(), objects_, options);
  const DatasetRid busy = rid_;
  rid_ = MakeDataset();
  std::vector<std::string> paths;
  for (int i = 0; i < 1500; ++i) {
    paths.push_back("f" + std::to_string(10'000 + i));
  }
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles(paths)));
  paths.pop_back();
  ASSERT_OK(CommitRemoval(paths));
  clock_.Advance(std::chrono::seconds(1));
  ASSERT_OK(store_->ListFiles(rid_, {}, {}));
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_THAT(upkeep.RunNow(Job::kCheckpoints), IsOkAndHolds(0));
  EXPECT_THAT(upkeep.RunNow(Job::kCheckpoints), IsOkAndHolds(1));
  ASSERT_OK_AND_ASSIGN(const auto left, store_->ListCheckpointRequests(10));
  ASSERT_THAT(left, SizeIs(1));
  EXPECT_EQ(left[0].dataset, busy);
}

TEST_F(UpkeepTest, AFailureIsCountedAndTheNextRunWorks) {
  const auto upkeep = Make("one");
  ASSERT_OK(Upload("lost"));
  clock_.Advance(std::chrono::hours(25));
  database_->FailAt(6, metastore::Fault::kBefore);
  EXPECT_FALSE(upkeep->RunNow(Job::kSweep).ok());
  database_->FailAt(0, metastore::Fault::kBefore);
  EXPECT_EQ(upkeep->counters(Job::kSweep).failures, 1);
  EXPECT_EQ(objects_.object_count(), 1U);
  EXPECT_THAT(upkeep->RunNow(Job::kSweep), IsOkAndHolds(1));
}

TEST_F(UpkeepTest, TheThreadRunsAllJobsAndStops) {
  const auto upkeep = Make("one", std::chrono::milliseconds(1));
  upkeep->Start();
  const auto all_ran = [&] {
    for (size_t i = 0; i < kJobCount; ++i) {
      if (upkeep->counters(static_cast<Job>(i)).runs == 0) {
        return false;
      }
    }
    return true;
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!all_ran() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(all_ran());
  upkeep->Stop();
  const int64_t runs = upkeep->counters(Job::kPurge).runs;
  std::this_thread::yield();
  EXPECT_EQ(upkeep->counters(Job::kPurge).runs, runs);
  upkeep->Stop();
}

}  // namespace
}  // namespace tarn::dataset::upkeep
