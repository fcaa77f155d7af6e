#include "tarn/dataset/retention/retention_run.h"

#include "tarn/dataset/retention/retention_fixture.h"
#include "tarn/tree/lookup.h"

namespace tarn::dataset::retention {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RetentionRunTest : public RetentionFixture {};

TEST_F(RetentionRunTest, WithoutPoliciesNothingIsMarked) {
  ASSERT_OK(CommitUploads(TransactionType::kSnapshot, {"a"}));
  ASSERT_OK(CommitUploads(TransactionType::kSnapshot, {"a"}));
  ASSERT_OK_AND_ASSIGN(const RetentionReport report, Mark());
  EXPECT_EQ(report.marked, 0);
  EXPECT_EQ(report.datasets, 0);
}

TEST_F(RetentionRunTest, TheNewestAreKept) {
  std::vector<TransactionRid> all;
  for (int i = 0; i < 5; ++i) {
    ASSERT_OK_AND_ASSIGN(const TransactionRid rid, CommitUploads(TransactionType::kUpdate, {"a"}));
    all.push_back(rid);
  }
  ASSERT_OK(Put(R"({"name":"p","datasets":{"all":true},"transactions":{"keepNewest":3}})"));
  ASSERT_OK_AND_ASSIGN(const RetentionReport planned, Mark(RunMode::kDryRun));
  EXPECT_EQ(planned.marked, 2);
  EXPECT_THAT(Marked(), IsOkAndHolds(IsEmpty()));
  ASSERT_OK_AND_ASSIGN(const RetentionReport report, Mark());
  EXPECT_THAT(Marked(), IsOkAndHolds(ElementsAre(all[0], all[1])));
  ASSERT_THAT(report.marks, SizeIs(2));
  EXPECT_EQ(report.marks[0].sweep_at, clock_.Now() + std::chrono::hours(168));
  ASSERT_OK_AND_ASSIGN(const RetentionReport again, Mark());
  EXPECT_EQ(again.waiting, 2);
  EXPECT_EQ(again.marks[0].sweep_at, report.marks[0].sweep_at);
}

TEST_F(RetentionRunTest, ViewsAreKeptWhole) {
  std::vector<TransactionRid> all;
  for (int i = 0; i < 3; ++i) {
    for (const TransactionType type : {TransactionType::kSnapshot, TransactionType::kAppend}) {
      ASSERT_OK_AND_ASSIGN(const TransactionRid rid,
                           CommitUploads(type, {type == TransactionType::kAppend ? "b" : "a"}));
      all.push_back(rid);
    }
  }
  ASSERT_OK(Put(R"({"name":"p","datasets":{"all":true},"transactions":{"keepViews":2}})"));
  ASSERT_OK(Mark());
  EXPECT_THAT(Marked(), IsOkAndHolds(ElementsAre(all[0], all[1])));
}

TEST_F(RetentionRunTest, BranchesAreChosenByName) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid first, CommitUploads(TransactionType::kUpdate, {"a"}));
  ASSERT_OK(store_->CreateBranch(rid_, "dev", {.from_branch = "master"}));
  ASSERT_OK_AND_ASSIGN(const TransactionRid dev,
                       CommitUploads(TransactionType::kUpdate, {"a"}, "dev"));
  ASSERT_OK(CommitUploads(TransactionType::kUpdate, {"a"}, "dev"));
  ASSERT_OK(CommitUploads(TransactionType::kUpdate, {"a"}));
  ASSERT_OK(Put(R"({"name":"p","datasets":{"all":true},
                    "transactions":{"olderThan":"0s","branchIn":["dev"]}})"));
  ASSERT_OK(Mark());
  EXPECT_THAT(Marked(), IsOkAndHolds(ElementsAre(dev)));
  ASSERT_OK(Put(R"({"name":"p","datasets":{"all":true},
                    "transactions":{"olderThan":"0s","branchNotIn":["dev"]}})"));
  ASSERT_OK(Mark());
  EXPECT_THAT(Marked(), IsOkAndHolds(ElementsAre(first)));
}

TEST_F(RetentionRunTest, AgesOfTransactionsAndViews) {
  clock_.Advance(std::chrono::hours(1));  // A commit is later than its branch.
  ASSERT_OK_AND_ASSIGN(const TransactionRid old, CommitUploads(TransactionType::kSnapshot, {"a"}));
  ASSERT_OK_AND_ASSIGN(const TransactionRid late, CommitUploads(TransactionType::kUpdate, {"a"}));
  ASSERT_OK(CommitUploads(TransactionType::kSnapshot, {"a"}));
  ASSERT_OK(Put(R"({"name":"p","datasets":{"all":true},"transactions":{"olderThan":"3h"}})"));
  ASSERT_OK(Mark());
  EXPECT_THAT(Marked(), IsOkAndHolds(ElementsAre(old)));
  ASSERT_OK(Put(R"({"name":"p","datasets":{"all":true},"transactions":{"viewOlderThan":"3h"}})"));
  ASSERT_OK(Mark());
  EXPECT_THAT(Marked(), IsOkAndHolds(IsEmpty()));
  clock_.Advance(std::chrono::hours(1));
  ASSERT_OK(Mark());
  EXPECT_THAT(Marked(), IsOkAndHolds(ElementsAre(old, late)));
}

TEST_F(RetentionRunTest, TransactionsWithoutAFileInALatestView) {
  ASSERT_OK(CommitUploads(TransactionType::kUpdate, {"a", "b"}));
  ASSERT_OK_AND_ASSIGN(const TransactionRid hidden, CommitUploads(TransactionType::kUpdate, {"a"}));
  ASSERT_OK(CommitUploads(TransactionType::kUpdate, {"a"}));
  ASSERT_OK(store_->WriteCheckpoint(rid_, "master"));
  ASSERT_OK(Put(R"({"name":"p","datasets":{"all":true},
                    "transactions":{"noFileInActiveView":true}})"));
  ASSERT_OK(Mark());
  EXPECT_THAT(Marked(), IsOkAndHolds(ElementsAre(hidden)));
}

TEST_F(RetentionRunTest, AbortedOnesAreOfTheirOwnKind) {
  ASSERT_OK(CommitUploads(TransactionType::kUpdate, {"a"}));
  ASSERT_OK_AND_ASSIGN(const TransactionRid aborted, Start(TransactionType::kUpdate));
  ASSERT_OK(store_->AbortTransaction(rid_, aborted, "me"));
  ASSERT_OK(CommitUploads(TransactionType::kUpdate, {"a"}));
  ASSERT_OK(Put(R"({"name":"p","datasets":{"all":true},"transactions":{"aborted":true}})"));
  ASSERT_OK(Mark());
  EXPECT_THAT(Marked(), IsOkAndHolds(ElementsAre(aborted)));
}

TEST_F(RetentionRunTest, WhatIsNoLongerSelectedIsUnmarked) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid first, CommitUploads(TransactionType::kUpdate, {"a"}));
  ASSERT_OK_AND_ASSIGN(const TransactionRid second, CommitUploads(TransactionType::kUpdate, {"a"}));
  ASSERT_OK(CommitUploads(TransactionType::kUpdate, {"a"}));
  ASSERT_OK(Put(R"({"name":"p","datasets":{"all":true},"transactions":{"keepNewest":1}})"));
  ASSERT_OK(Mark());
  EXPECT_THAT(Marked(), IsOkAndHolds(ElementsAre(first, second)));
  ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) {
    return StatusOf(store_->ResetBranch(sql, rid_, "master", first, "me"));
  }));
  ASSERT_OK_AND_ASSIGN(const RetentionReport report, Mark());
  EXPECT_EQ(report.unmarked, 1);
  ASSERT_OK_AND_ASSIGN(const auto marked, Marked());
  EXPECT_EQ(std::count(marked.begin(), marked.end(), first), 0);
}

TEST_F(RetentionRunTest, AHandCanKeepATransaction) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid first, CommitUploads(TransactionType::kUpdate, {"a"}));
  ASSERT_OK(CommitUploads(TransactionType::kUpdate, {"a"}));
  ASSERT_OK(Put(R"({"name":"p","datasets":{"all":true},"transactions":{"keepNewest":1}})"));
  ASSERT_OK(Mark());
  ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) {
    return Unmark(sql, {.dataset = rid_, .transaction = first, .now = clock_.Now(), .by = "me"});
  }));
  EXPECT_THAT(Marked(), IsOkAndHolds(IsEmpty()));
  ASSERT_OK(Mark());
  EXPECT_THAT(Marked(), IsOkAndHolds(IsEmpty()));
}

TEST_F(RetentionRunTest, PoliciesFindDatasetsInTheTree) {
  tree::Tree tree(uuids_, clock_);
  Rid project;
  Rid folder;
  ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(tree.Bootstrap(sql, "me"));
    TARN_ASSIGN_OR_RETURN(const tree::Node node, tree::GetByPath(sql, "/Default/default"));
    project = node.rid;
    TARN_ASSIGN_OR_RETURN(const tree::Node made, tree.EnsureFolder(sql, project, "f", "me"));
    folder = made.rid;
    return Status::Ok();
  }));
  CreateDatasetOptions options{.parent_folder = folder, .name = "d", .base_uri = {}, .by = "me"};
  ASSERT_OK_AND_ASSIGN(const Dataset dataset, store_->CreateDataset(options));
  const auto applies = [&](const DatasetSelector& selector, const DatasetRid& rid) {
    bool answer = false;
    EXPECT_OK(database_->Read([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(answer, AppliesTo(sql, selector, rid));
      return Status::Ok();
    }));
    return answer;
  };
  DatasetSelector by_folder;
  by_folder.folders = {folder.ToString()};
  EXPECT_TRUE(applies(by_folder, dataset.rid));
  EXPECT_FALSE(applies(by_folder, rid_));
  DatasetSelector by_project;
  by_project.projects = {project.ToString()};
  EXPECT_TRUE(applies(by_project, dataset.rid));
  DatasetSelector trashed;
  trashed.all = true;
  trashed.in_trash = true;
  EXPECT_FALSE(applies(trashed, dataset.rid));
  ASSERT_OK(database_->Write(
      [&](metastore::SqlTransaction& sql) { return tree.Trash(sql, folder, "me"); }));
  EXPECT_TRUE(applies(trashed, dataset.rid));
  EXPECT_FALSE(applies(trashed, rid_));
  DatasetSelector derived;
  derived.all = true;
  derived.derived = true;
  EXPECT_FALSE(applies(derived, rid_));
  ASSERT_OK_AND_ASSIGN(const TransactionRid open, Start(TransactionType::kUpdate));
  CommitOptions commit;
  commit.provenance_json = "{}";
  ASSERT_OK(store_->CommitTransaction(rid_, open, commit));
  EXPECT_TRUE(applies(derived, rid_));
}

TEST_F(RetentionRunTest, LatestViewsLoseFilesByADeleteOfRetention) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid old,
                       CommitUploads(TransactionType::kAppend, {"a", "b"}));
  ASSERT_OK(CommitUploads(TransactionType::kAppend, {"c"}));
  clock_.Advance(std::chrono::hours(24));
  ASSERT_OK(CommitUploads(TransactionType::kAppend, {"d"}));
  const char* const policy = R"({"name":"p","datasets":{"all":true},"latestView":"delete",
                                 "transactions":{"olderThan":"24h"}})";
  ASSERT_OK(Put(policy));
  ASSERT_OK_AND_ASSIGN(const RetentionReport planned, Mark(RunMode::kDryRun));
  EXPECT_EQ(planned.files_removed, 3);
  EXPECT_THAT(Paths({}), IsOkAndHolds(ElementsAre("a", "b", "c", "d")));
  ASSERT_OK_AND_ASSIGN(const TransactionRid open, Start(TransactionType::kAppend));
  ASSERT_OK_AND_ASSIGN(const RetentionReport busy, Mark());
  EXPECT_EQ(busy.files_removed, 0);
  ASSERT_THAT(busy.removals, SizeIs(1));
  EXPECT_TRUE(busy.removals[0].busy);
  ASSERT_OK(store_->AbortTransaction(rid_, open, "me"));
  ASSERT_OK_AND_ASSIGN(const RetentionReport report, Mark());
  EXPECT_EQ(report.files_removed, 3);
  EXPECT_THAT(Paths({}), IsOkAndHolds(ElementsAre("d")));
  ASSERT_OK_AND_ASSIGN(const Branch branch, store_->GetBranch(rid_, "master"));
  ASSERT_OK_AND_ASSIGN(const Transaction head, store_->GetTransaction(rid_, *branch.head));
  EXPECT_TRUE(head.by_retention);
  EXPECT_EQ(head.type, TransactionType::kDelete);
  ASSERT_OK_AND_ASSIGN(const IncrementPage increment,
                       store_->ReadIncrement(rid_, "master", old, {}));
  EXPECT_TRUE(increment.incremental);
  EXPECT_THAT(increment.removed_by_retention, SizeIs(2));
}

class RetentionFaultTest : public RetentionFixture,
                           public ::testing::WithParamInterface<metastore::Fault> {};

// Whatever fails, the branch is never left OPEN, and a later run ends where an undisturbed one
// does.
TEST_P(RetentionFaultTest, EveryFailureIsMadeGoodByTheNextRun) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid old,
                       CommitUploads(TransactionType::kAppend, {"a", "b"}));
  ASSERT_OK(CommitUploads(TransactionType::kAppend, {"c"}));
  clock_.Advance(std::chrono::hours(24));
  ASSERT_OK(CommitUploads(TransactionType::kAppend, {"d"}));
  ASSERT_OK(Put(R"({"name":"p","datasets":{"all":true},"latestView":"delete",
                    "transactions":{"olderThan":"24h"}})"));
  bool passed = false;
  for (int64_t n = 1; !passed && n < 500; ++n) {
    database_->FailAt(n, GetParam());
    const Status status = StatusOf(Mark());
    passed = !database_->fired();
    database_->FailAt(0, GetParam());
    ASSERT_EQ(status.ok(), passed) << n;
    ASSERT_OK_AND_ASSIGN(const Branch branch, store_->GetBranch(rid_, "master"));
    ASSERT_FALSE(branch.open.has_value()) << n;
    ASSERT_OK_AND_ASSIGN(const auto paths, Paths({}));
    ASSERT_TRUE(paths.size() == 4 || paths.size() == 1) << n;
  }
  EXPECT_TRUE(passed);
  EXPECT_THAT(Paths({}), IsOkAndHolds(ElementsAre("d")));
  ASSERT_OK_AND_ASSIGN(const auto marked, Marked());
  EXPECT_EQ(std::count(marked.begin(), marked.end(), old), 1);
}

INSTANTIATE_TEST_SUITE_P(Faults, RetentionFaultTest,
                         ::testing::Values(metastore::Fault::kBefore, metastore::Fault::kAfter));

}  // namespace
}  // namespace tarn::dataset::retention
