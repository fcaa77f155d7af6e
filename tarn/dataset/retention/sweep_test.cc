#include "tarn/dataset/retention/sweep.h"

#include "tarn/dataset/physical_name.h"
#include "tarn/dataset/retention/retention_fixture.h"
#include "tarn/storage/faulty_store.h"

namespace tarn::dataset::retention {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class SweepTest : public RetentionFixture {
 protected:
  // Two overwritten files whose only views are marked, one that stays, one in the latest view.
  struct Case {
    TransactionRid first;
    TransactionRid second;
    TransactionRid third;
    std::string a1;
    std::string b1;
    std::string a2;
    std::string a3;
  };
  Result<Case> MakeCase() {
    Case made;
    TARN_ASSIGN_OR_RETURN(made.first, CommitUploads(TransactionType::kUpdate, {"a", "b"}));
    TARN_ASSIGN_OR_RETURN(made.second, CommitUploads(TransactionType::kUpdate, {"a"}));
    TARN_ASSIGN_OR_RETURN(made.third, CommitUploads(TransactionType::kUpdate, {"a"}));
    TARN_ASSIGN_OR_RETURN(made.a1, LocationAt(made.first, "a"));
    TARN_ASSIGN_OR_RETURN(made.b1, LocationAt(made.first, "b"));
    TARN_ASSIGN_OR_RETURN(made.a2, LocationAt(made.second, "a"));
    TARN_ASSIGN_OR_RETURN(made.a3, LocationAt(made.third, "a"));
    TARN_RETURN_IF_ERROR(
        Put(R"({"name":"p","datasets":{"all":true},"transactions":{"keepNewest":1}})"));
    return made;
  }
};

TEST_F(SweepTest, MarkWaitSweep) {
  ASSERT_OK_AND_ASSIGN(const Case made, MakeCase());
  ASSERT_OK(Mark());
  clock_.Advance(std::chrono::hours(167));
  ASSERT_OK_AND_ASSIGN(const SweepReport early, Sweep());
  EXPECT_EQ(early.condemned + early.removed, 0);
  clock_.Advance(std::chrono::hours(2));
  ASSERT_OK_AND_ASSIGN(const SweepReport planned, Sweep(RunMode::kDryRun));
  EXPECT_EQ(planned.condemned, 2);
  EXPECT_EQ(planned.removed, 2);
  EXPECT_EQ(objects_.object_count(), 4U);
  EXPECT_THAT(PathsAt(made.first), IsOkAndHolds(SizeIs(2)));
  ASSERT_OK_AND_ASSIGN(const SweepReport report, Sweep());
  EXPECT_EQ(report.condemned, 2);
  EXPECT_EQ(report.removed, 2);
  EXPECT_EQ(report.removed_bytes, 14);
  EXPECT_THAT(report.entries, SizeIs(2));
  EXPECT_FALSE(Exists(made.a1));
  EXPECT_FALSE(Exists(made.a2));
  EXPECT_TRUE(Exists(made.b1));  // The latest view shows it, whoever wrote it.
  EXPECT_TRUE(Exists(made.a3));
  EXPECT_THAT(Paths({}), IsOkAndHolds(ElementsAre("a", "b")));
}

TEST_F(SweepTest, ASweptViewIsRefusedEverywhere) {
  ASSERT_OK_AND_ASSIGN(const Case made, MakeCase());
  ASSERT_OK(Mark());
  clock_.Advance(std::chrono::hours(200));
  ASSERT_OK(Sweep());
  const char* const reason = "TransactionDataRemovedByRetention";
  EXPECT_EQ(StatusOf(PathsAt(made.first)).reason(), reason);
  CreateBranchOptions from;
  from.from_transaction = made.first;
  EXPECT_EQ(StatusOf(store_->CreateBranch(rid_, "b", from)).reason(), reason);
  EXPECT_EQ(database_
                ->Write([&](metastore::SqlTransaction& sql) {
                  return StatusOf(store_->ResetBranch(sql, rid_, "master", made.first, "me"));
                })
                .reason(),
            reason);
  // Increments since it go on: they need rows, not bytes.
  ASSERT_OK_AND_ASSIGN(const IncrementPage page,
                       store_->ReadIncrement(rid_, "master", made.first, {}));
  EXPECT_EQ(page.reason, IncrementReason::kOverwrite);
  EXPECT_THAT(page.changed, SizeIs(1));
}

TEST_F(SweepTest, WhatIsStoodOnAgainIsUnmarked) {
  ASSERT_OK_AND_ASSIGN(const Case made, MakeCase());
  ASSERT_OK(Mark());
  clock_.Advance(std::chrono::hours(200));
  CreateBranchOptions from;
  from.from_transaction = made.first;
  ASSERT_OK(store_->CreateBranch(rid_, "b", from));
  ASSERT_OK_AND_ASSIGN(const SweepReport report, Sweep());
  EXPECT_EQ(report.unmarked, 1);
  EXPECT_EQ(report.condemned, 1);
  EXPECT_TRUE(Exists(made.a1));
  EXPECT_FALSE(Exists(made.a2));
}

TEST_F(SweepTest, OrphansGoOnceTheyAreOld) {
  ASSERT_OK(CommitUploads(TransactionType::kUpdate, {"a"}));
  ASSERT_OK_AND_ASSIGN(const StoredFile lost, Upload("lost"));
  ASSERT_OK_AND_ASSIGN(const TransactionRid aborted, Start(TransactionType::kAppend));
  ASSERT_OK_AND_ASSIGN(const auto files, UploadAll({"x"}));
  ASSERT_OK(store_->RegisterFiles(rid_, aborted, files));
  ASSERT_OK(store_->AbortTransaction(rid_, aborted, "me"));
  ASSERT_OK_AND_ASSIGN(const TransactionRid open, Start(TransactionType::kAppend));
  ASSERT_OK_AND_ASSIGN(const auto open_files, UploadAll({"open"}));
  ASSERT_OK(store_->RegisterFiles(rid_, open, open_files));
  ASSERT_OK_AND_ASSIGN(const SweepReport young, Sweep());
  EXPECT_EQ(young.removed, 0);
  EXPECT_EQ(young.too_young, 2);
  clock_.Advance(std::chrono::hours(25));
  ASSERT_OK_AND_ASSIGN(const SweepReport report, Sweep());
  EXPECT_EQ(report.removed, 2);
  EXPECT_FALSE(Exists(lost.location));
  EXPECT_TRUE(Exists(open_files[0].location));
}

TEST_F(SweepTest, ForeignObjectsAndImportsStay) {
  StoredFile imported = MakeFile("i", rid_.uuid.ToString() + "/mine.csv");
  imported.managed = false;
  ASSERT_OK(Commit(TransactionType::kUpdate, {imported}));
  ASSERT_OK(storage::WriteObject(objects_, imported.location, "x", storage::WriteMode::kOverwrite));
  ASSERT_OK(storage::WriteObject(objects_, "tables/t/data/x.parquet", "x",
                                 storage::WriteMode::kOverwrite));
  clock_.Advance(std::chrono::hours(1000));
  ASSERT_OK_AND_ASSIGN(const SweepReport report, Sweep());
  EXPECT_EQ(report.removed, 0);
  EXPECT_EQ(objects_.object_count(), 2U);
}

TEST_F(SweepTest, DeletedDatasetsLeaveNothing) {
  ASSERT_OK(CommitUploads(TransactionType::kUpdate, {"a", "b"}));
  ASSERT_OK(database_->Write(
      [&](metastore::SqlTransaction& sql) { return store_->DeleteDataset(sql, rid_); }));
  clock_.Advance(std::chrono::hours(25));
  ASSERT_OK(Sweep());
  EXPECT_EQ(objects_.object_count(), 2U);  // Its rows are not purged yet.
  ASSERT_OK(store_->PurgeDeleted(1'000'000));
  ASSERT_OK_AND_ASSIGN(const SweepReport report, Sweep());
  EXPECT_EQ(report.removed, 2);
  EXPECT_EQ(objects_.object_count(), 0U);
  ASSERT_OK_AND_ASSIGN(const SweepReport forgets, Sweep());
  EXPECT_EQ(forgets.datasets, 1);
  ASSERT_OK_AND_ASSIGN(const SweepReport forgot, Sweep());
  EXPECT_EQ(forgot.datasets, 0);
}

TEST_F(SweepTest, OtherOwnersAreAskedAndTheirFailureStopsIt) {
  ASSERT_OK_AND_ASSIGN(const StoredFile lost, Upload("lost"));
  clock_.Advance(std::chrono::hours(25));
  SweepOptions options;
  options.other_owners = {
      [](const DatasetRid&, const auto&) { return Status::Unavailable("cannot read the table"); }};
  EXPECT_THAT(RunSweep(Deps(), objects_, options), Fails(ErrorCode::kUnavailable));
  options.other_owners = {[&](const DatasetRid&, const auto& needs) {
    needs(lost.location);
    return Status::Ok();
  }};
  ASSERT_OK(RunSweep(Deps(), objects_, options));
  EXPECT_TRUE(Exists(lost.location));
}

TEST_F(SweepTest, ManyFilesAreTakenInParts) {
  std::vector<StoredFile> files;
  for (int i = 0; i < 5000; ++i) {
    StoredFile file = MakeFile("f" + std::to_string(i), PhysicalName(rid_, uuids_.NextV7(), "x"));
    ASSERT_OK(storage::WriteObject(objects_, file.location, "x", storage::WriteMode::kOverwrite));
    if (i % 2 == 0) {
      files.push_back(std::move(file));
    }
  }
  ASSERT_OK(Commit(TransactionType::kUpdate, files));
  clock_.Advance(std::chrono::hours(25));
  SweepOptions options;
  options.hashes_max = 1024;
  ASSERT_OK_AND_ASSIGN(const SweepReport report, RunSweep(Deps(), objects_, options));
  EXPECT_EQ(report.objects, 5000);
  EXPECT_EQ(report.removed, 2500);
  for (const StoredFile& file : files) {
    ASSERT_TRUE(Exists(file.location));
  }
}

TEST_F(SweepTest, ItCanBeStopped) {
  ASSERT_OK(Upload("lost"));
  clock_.Advance(std::chrono::hours(25));
  SweepOptions options;
  options.stop = [] { return true; };
  ASSERT_OK_AND_ASSIGN(const SweepReport report, RunSweep(Deps(), objects_, options));
  EXPECT_TRUE(report.stopped);
  EXPECT_EQ(objects_.object_count(), 1U);
}

class SweepFaultTest : public SweepTest, public ::testing::WithParamInterface<metastore::Fault> {};

// Whichever operation of metastore or store fails, what is shown stays, and the end is the same.
TEST_P(SweepFaultTest, EveryMetastoreFailureLeavesWhatIsShown) {
  ASSERT_OK_AND_ASSIGN(const Case made, MakeCase());
  ASSERT_OK(Mark());
  clock_.Advance(std::chrono::hours(200));
  bool passed = false;
  for (int64_t n = 1; !passed && n < 500; ++n) {
    database_->FailAt(n, GetParam());
    const Status status = StatusOf(Sweep());
    passed = !database_->fired();
    database_->FailAt(0, GetParam());
    ASSERT_EQ(status.ok(), passed) << n;
    ASSERT_TRUE(Exists(made.b1) && Exists(made.a3)) << n;
    ASSERT_TRUE(Exists(made.a1) || !PathsAt(made.first).ok()) << n;
  }
  EXPECT_TRUE(passed);
  EXPECT_FALSE(Exists(made.a1));
}

INSTANTIATE_TEST_SUITE_P(Faults, SweepFaultTest,
                         ::testing::Values(metastore::Fault::kBefore, metastore::Fault::kAfter));

TEST_F(SweepTest, EveryStoreFailureLeavesWhatIsShown) {
  ASSERT_OK_AND_ASSIGN(const Case made, MakeCase());
  ASSERT_OK(Mark());
  clock_.Advance(std::chrono::hours(200));
  for (const storage::FaultMode mode :
       {storage::FaultMode::kBeforeEffect, storage::FaultMode::kAfterEffect}) {
    bool passed = false;
    for (int64_t n = 1; !passed && n < 50; ++n) {
      storage::FaultyStore faulty(objects_, {.fail_at = n, .mode = mode});
      const Status status = StatusOf(RunSweep(Deps(), faulty, {}));
      passed = !faulty.failed();
      ASSERT_EQ(status.ok(), passed) << n;
      ASSERT_TRUE(Exists(made.b1) && Exists(made.a3)) << n;
    }
    EXPECT_TRUE(passed);
  }
  EXPECT_FALSE(Exists(made.a1));
  EXPECT_FALSE(Exists(made.a2));
}

}  // namespace
}  // namespace tarn::dataset::retention
