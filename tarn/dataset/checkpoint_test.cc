#include "tarn/dataset/checkpoint.h"

#include "tarn/dataset/dataset_fixture.h"

namespace tarn::dataset {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class CheckpointTest : public DatasetFixture {
 protected:
  int64_t Count(const std::string& what) {
    int64_t count = -1;
    EXPECT_OK(database_->Read([&](metastore::SqlTransaction& sql) {
      return sql.Query("SELECT count(*) FROM " + what, {},
                       [&](const metastore::SqlRow& row) -> Result<metastore::RowAction> {
                         count = row.Int(0);
                         return metastore::RowAction::kStop;
                       });
    }));
    return count;
  }
};

TEST_F(CheckpointTest, AllViewsStayWhatTheyWere) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid first,
                       Commit(TransactionType::kSnapshot, MakeFiles({"a", "b"}, "1")));
  ASSERT_OK_AND_ASSIGN(const TransactionRid second, CommitRemoval({"b"}));
  ASSERT_OK(store_->CreateBranch(rid_, "old", [&] {
    CreateBranchOptions options;
    options.from_transaction = first;
    return options;
  }()));
  EXPECT_THAT(store_->WriteCheckpoint(rid_, "master"), IsOkAndHolds(CheckpointOutcome::kPublished));
  ASSERT_OK_AND_ASSIGN(const TransactionRid third,
                       Commit(TransactionType::kAppend, MakeFiles({"b", "c"}, "3")));
  EXPECT_THAT(store_->WriteCheckpoint(rid_, "master"), IsOkAndHolds(CheckpointOutcome::kPublished));
  ASSERT_OK_AND_ASSIGN(const TransactionRid fourth,
                       Commit(TransactionType::kUpdate, MakeFiles({"a"}, "4")));
  ViewSelector at;
  at.end = fourth;
  EXPECT_THAT(Names(at), IsOkAndHolds(ElementsAre("a=a@4", "b=b@3", "c=c@3")));
  at.start = third;
  EXPECT_THAT(Names(at), IsOkAndHolds(ElementsAre("a=a@4", "b=b@3", "c=c@3")));
  at.start = second;
  EXPECT_THAT(Names(at), IsOkAndHolds(ElementsAre("a=a@4", "b=b@3", "c=c@3")));
  at.start = third;
  at.end = third;
  EXPECT_THAT(Names(at), IsOkAndHolds(ElementsAre("b=b@3", "c=c@3")));
  EXPECT_THAT(PathsAt(second), IsOkAndHolds(ElementsAre("a")));
  EXPECT_THAT(PathsAt(first), IsOkAndHolds(ElementsAre("a", "b")));
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"o"}), "old"));
  EXPECT_THAT(PathsOf("old"), IsOkAndHolds(ElementsAre("a", "b", "o")));
}

TEST_F(CheckpointTest, CopiesKeepWriterTimesAndStatistics) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid open, Start(TransactionType::kAppend));
  StoredFile file = MakeFile("a");
  file.checksum = 7;
  file.row_count = 5;
  file.statistics = "stat";
  ASSERT_OK(store_->RegisterFiles(rid_, open, {&file, 1}));
  ASSERT_OK(store_->CommitTransaction(rid_, open, {}));
  ASSERT_OK_AND_ASSIGN(const FileView before, store_->ResolveView(rid_, {}));
  ASSERT_OK_AND_ASSIGN(const File original, store_->StatFile(before, "a"));
  clock_.Advance(std::chrono::hours(1));
  ASSERT_OK(store_->WriteCheckpoint(rid_, "master"));
  ASSERT_OK_AND_ASSIGN(const FileView after, store_->ResolveView(rid_, {}));
  EXPECT_NE(after.lineage, before.lineage);
  EXPECT_THAT(store_->StatFile(after, "a"), IsOkAndHolds(original));
  ASSERT_OK(store_->StreamFiles(
      after, "",
      [&](std::span<const File> files) {
        EXPECT_EQ(files[0].statistics, "stat");
        return Status::Ok();
      },
      FileDetail::kWithStatistics));
}

TEST_F(CheckpointTest, AnOpenHeadOrNoneIsLeftAlone) {
  EXPECT_THAT(store_->WriteCheckpoint(rid_, "master"), IsOkAndHolds(CheckpointOutcome::kNotNeeded));
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"a"})));
  ASSERT_OK(Start(TransactionType::kAppend));
  EXPECT_THAT(store_->WriteCheckpoint(rid_, "master"), IsOkAndHolds(CheckpointOutcome::kHeadMoved));
}

// Branches that leave each other again and again pile up intervals; the commit then asks.
TEST_F(CheckpointTest, ALongLineageAsksForOne) {
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"f"})));
  std::string branch = "master";
  for (int i = 0; i < 70; ++i) {
    ASSERT_OK(database_->Write(
        [&](metastore::SqlTransaction& sql) -> Status {
          CreateBranchOptions options;
          options.from_branch = branch;
          branch = "b" + std::to_string(i);
          TARN_RETURN_IF_ERROR(store_->CreateBranch(sql, rid_, branch, options));
          CommitFilesRequest request;
          request.dataset = rid_;
          request.branch = branch;
          request.files = MakeFiles({"f" + std::to_string(i)});
          return StatusOf(store_->CommitFiles(sql, request));
        },
        metastore::Durability::kLazy));
  }
  ASSERT_OK_AND_ASSIGN(auto requests, store_->ListCheckpointRequests(100));
  ASSERT_THAT(requests, SizeIs(7));
  ASSERT_OK_AND_ASSIGN(const auto before, PathsOf(branch));
  for (const CheckpointRequest& request : requests) {
    EXPECT_THAT(store_->WriteCheckpoint(request.dataset, request.branch),
                IsOkAndHolds(CheckpointOutcome::kPublished));
  }
  ASSERT_OK_AND_ASSIGN(requests, store_->ListCheckpointRequests(100));
  EXPECT_THAT(requests, IsEmpty());
  ViewSelector selector;
  selector.branch = branch;
  ASSERT_OK_AND_ASSIGN(const FileView view, store_->ResolveView(rid_, selector));
  EXPECT_THAT(view.lineage, SizeIs(1));
  EXPECT_THAT(PathsOf(branch), IsOkAndHolds(before));
  // An APPEND still knows every path below it.
  EXPECT_EQ(StatusOf(Commit(TransactionType::kAppend, MakeFiles({"f"}), branch)).reason(),
            "AppendOverwritesExistingFiles");
}

// A read that examined far more rows than it returned asks too.
TEST_F(CheckpointTest, AnEmptiedViewAsksForOne) {
  std::vector<std::string> paths;
  for (int i = 0; i < 1500; ++i) {
    paths.push_back("f" + std::to_string(10'000 + i));
  }
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles(paths)));
  paths.pop_back();
  ASSERT_OK(CommitRemoval(paths));
  ASSERT_OK_AND_ASSIGN(const FilePage page, store_->ListFiles(rid_, {}, {}));
  EXPECT_THAT(page.files, SizeIs(1));
  ASSERT_OK_AND_ASSIGN(const auto requests, store_->ListCheckpointRequests(100));
  ASSERT_THAT(requests, SizeIs(1));
  EXPECT_EQ(requests[0].branch, "master");
  ASSERT_OK(store_->WriteCheckpoint(rid_, "master"));
  ASSERT_OK_AND_ASSIGN(const FilePage quick, store_->ListFiles(rid_, {}, {}));
  EXPECT_LT(quick.rows_examined, 5);
}

class CheckpointFaultTest : public CheckpointTest,
                            public ::testing::WithParamInterface<metastore::Fault> {};

// Whichever operation fails, views stay, and the next checkpoint clears the leavings.
TEST_P(CheckpointFaultTest, EveryFailureLeavesTheViewsAlone) {
  std::vector<std::string> paths;
  for (int i = 0; i < 40; ++i) {
    paths.push_back("f" + std::to_string(100 + i));
  }
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles(paths)));
  bool passed = false;
  for (int64_t n = 1; !passed && n < 400; n += 3) {
    database_->FailAt(n, GetParam());
    const Result<CheckpointOutcome> outcome = store_->WriteCheckpoint(rid_, "master");
    passed = !database_->fired();
    database_->FailAt(0, GetParam());
    ASSERT_THAT(Paths({}), IsOkAndHolds(paths)) << n;
    EXPECT_EQ(outcome.ok(), passed) << n;
  }
  EXPECT_TRUE(passed);
  ASSERT_OK(store_->WriteCheckpoint(rid_, "master"));
  ASSERT_OK(store_->PurgeDeleted(1'000'000));
  EXPECT_EQ(Count("dataset_lines WHERE checkpoint_of IS NOT NULL AND published = 0"), 0);
  EXPECT_EQ(Count("dataset_files WHERE root NOT IN (SELECT id FROM dataset_lines)"), 0);
  EXPECT_THAT(Paths({}), IsOkAndHolds(paths));
}

INSTANTIATE_TEST_SUITE_P(Faults, CheckpointFaultTest,
                         ::testing::Values(metastore::Fault::kBefore, metastore::Fault::kAfter));

}  // namespace
}  // namespace tarn::dataset
