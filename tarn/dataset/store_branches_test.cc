#include "tarn/dataset/dataset_fixture.h"

namespace tarn::dataset {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StoreBranchesTest : public DatasetFixture {
 protected:
  CreateBranchOptions FromBranch(const std::string& name) {
    CreateBranchOptions options;
    options.from_branch = name;
    options.by = "me";
    return options;
  }
  CreateBranchOptions FromTransaction(const TransactionRid& rid) {
    CreateBranchOptions options;
    options.from_transaction = rid;
    return options;
  }
  Status Reset(const std::string& name, const TransactionRid& to) {
    return database_->Write([&](metastore::SqlTransaction& sql) {
      return StatusOf(store_->ResetBranch(sql, rid_, name, to, "me"));
    });
  }
  Status FastForward(const std::string& name, const TransactionRid& to) {
    return database_->Write([&](metastore::SqlTransaction& sql) {
      return StatusOf(store_->FastForwardBranch(sql, rid_, name, to, "me"));
    });
  }
};

TEST_F(StoreBranchesTest, AChildStartsAtItsParentAndGoesItsOwnWay) {
  ASSERT_OK(Commit(TransactionType::kSnapshot, MakeFiles({"a"})));
  ASSERT_OK_AND_ASSIGN(const Branch child, store_->CreateBranch(rid_, "dev", FromBranch("master")));
  EXPECT_EQ(child.parent, "master");
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"b"}), "dev"));
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"c"})));
  EXPECT_THAT(PathsOf("dev"), IsOkAndHolds(ElementsAre("a", "b")));
  EXPECT_THAT(PathsOf("master"), IsOkAndHolds(ElementsAre("a", "c")));
}

TEST_F(StoreBranchesTest, FromNothingIsAnEmptyRoot) {
  ASSERT_OK(Commit(TransactionType::kSnapshot, MakeFiles({"a"})));
  ASSERT_OK_AND_ASSIGN(const Branch root, store_->CreateBranch(rid_, "root", {}));
  EXPECT_EQ(root.transaction(), std::nullopt);
  EXPECT_EQ(root.parent, std::nullopt);
  EXPECT_THAT(PathsOf("root"), IsOkAndHolds(IsEmpty()));
}

TEST_F(StoreBranchesTest, FromACommittedTransactionOnly) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid first,
                       Commit(TransactionType::kAppend, MakeFiles({"a"})));
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"b"})));
  ASSERT_OK(store_->CreateBranch(rid_, "old", FromTransaction(first)));
  EXPECT_THAT(PathsOf("old"), IsOkAndHolds(ElementsAre("a")));
  ASSERT_OK_AND_ASSIGN(const TransactionRid open, Start(TransactionType::kAppend));
  EXPECT_EQ(StatusOf(store_->CreateBranch(rid_, "x", FromTransaction(open))).reason(),
            "TransactionNotCommitted");
  ASSERT_OK(store_->AbortTransaction(rid_, open, "me"));
  EXPECT_EQ(StatusOf(store_->CreateBranch(rid_, "x", FromTransaction(open))).reason(),
            "TransactionNotCommitted");
  EXPECT_EQ(StatusOf(store_->GetBranch(rid_, "x")).reason(), "BranchNotFound");
}

TEST_F(StoreBranchesTest, BadAndTakenNamesAreRefused) {
  EXPECT_EQ(StatusOf(store_->CreateBranch(rid_, "", {})).reason(), "InvalidBranchName");
  EXPECT_EQ(StatusOf(store_->CreateBranch(rid_, "master", {})).reason(), "BranchAlreadyExists");
  CreateBranchOptions both = FromBranch("master");
  both.from_transaction = TransactionRid{.uuid = uuids_.NextV7()};
  EXPECT_EQ(StatusOf(store_->CreateBranch(rid_, "x", both)).reason(),
            "InvalidParameterCombination");
}

// Names that a path would change are names all the same.
TEST_F(StoreBranchesTest, NamesAreByteExact) {
  for (const char* name : {"a/b", "a%2Fb", "a b", "#?", "A", "\xC3\xA4", "a\xCC\x88"}) {
    ASSERT_OK(store_->CreateBranch(rid_, name, {})) << name;
    ASSERT_OK_AND_ASSIGN(const Branch branch, store_->GetBranch(rid_, name));
    EXPECT_EQ(branch.name, name);
  }
  EXPECT_EQ(StatusOf(store_->GetBranch(rid_, "a")).reason(), "BranchNotFound");
}

TEST_F(StoreBranchesTest, AnOpenHeadIsSharedWithNewBranches) {
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"a"})));
  ASSERT_OK_AND_ASSIGN(const TransactionRid open, Start(TransactionType::kAppend));
  ASSERT_OK(store_->RegisterFiles(rid_, open, MakeFiles({"b"})));
  ASSERT_OK_AND_ASSIGN(const Branch child, store_->CreateBranch(rid_, "dev", FromBranch("master")));
  EXPECT_EQ(child.transaction(), open);
  EXPECT_EQ(StatusOf(Start(TransactionType::kAppend, "dev")).reason(),
            "OpenTransactionAlreadyExists");
  EXPECT_THAT(PathsOf("dev"), IsOkAndHolds(ElementsAre("a")));
  ASSERT_OK(store_->CommitTransaction(rid_, open, {}));
  EXPECT_THAT(PathsOf("dev"), IsOkAndHolds(ElementsAre("a", "b")));
  EXPECT_THAT(PathsOf("master"), IsOkAndHolds(ElementsAre("a", "b")));
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"c"}), "dev"));
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"d"})));
  EXPECT_THAT(PathsOf("dev"), IsOkAndHolds(ElementsAre("a", "b", "c")));
}

TEST_F(StoreBranchesTest, AbortingASharedOpenHeadFreesAllBranches) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid open, Start(TransactionType::kAppend));
  ASSERT_OK(store_->CreateBranch(rid_, "dev", FromBranch("master")));
  ASSERT_OK(store_->AbortTransaction(rid_, open, "me"));
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"a"}), "dev"));
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"b"})));
  EXPECT_THAT(PathsOf("dev"), IsOkAndHolds(ElementsAre("a")));
}

TEST_F(StoreBranchesTest, DeletingReparentsChildrenAndMovesNoTransaction) {
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"a"})));
  ASSERT_OK(store_->CreateBranch(rid_, "mid", FromBranch("master")));
  ASSERT_OK_AND_ASSIGN(const TransactionRid end,
                       Commit(TransactionType::kAppend, MakeFiles({"b"}), "mid"));
  ASSERT_OK(store_->CreateBranch(rid_, "leaf", FromBranch("mid")));
  ASSERT_OK(store_->DeleteBranch(rid_, "mid"));
  ASSERT_OK_AND_ASSIGN(const Branch leaf, store_->GetBranch(rid_, "leaf"));
  EXPECT_EQ(leaf.parent, "master");
  EXPECT_THAT(PathsOf("leaf"), IsOkAndHolds(ElementsAre("a", "b")));
  EXPECT_THAT(PathsAt(end), IsOkAndHolds(ElementsAre("a", "b")));
  EXPECT_EQ(store_->DeleteBranch(rid_, "mid").reason(), "BranchNotFound");
}

TEST_F(StoreBranchesTest, TheDefaultBranchIsNotDeleted) {
  const Status deleted = store_->DeleteBranch(rid_, "master");
  EXPECT_THAT(deleted, FailsWith(ErrorCode::kConflict, "default branch"));
  EXPECT_EQ(deleted.reason(), "BranchIsProtected");
  EXPECT_OK(store_->GetBranch(rid_, "master"));
}

TEST_F(StoreBranchesTest, DeletingABranchAbortsItsOpenTransaction) {
  ASSERT_OK(store_->CreateBranch(rid_, "dev", FromBranch("master")));
  ASSERT_OK_AND_ASSIGN(const TransactionRid open, Start(TransactionType::kAppend, "dev"));
  ASSERT_OK(store_->DeleteBranch(rid_, "dev"));
  ASSERT_OK_AND_ASSIGN(const Transaction aborted, store_->GetTransaction(rid_, open));
  EXPECT_EQ(aborted.state, TransactionState::kAborted);
}

TEST_F(StoreBranchesTest, AnotherBranchKeepsASharedOpenTransactionAlive) {
  ASSERT_OK(store_->CreateBranch(rid_, "dev", {}));
  ASSERT_OK_AND_ASSIGN(const TransactionRid open, Start(TransactionType::kAppend, "dev"));
  ASSERT_OK(store_->CreateBranch(rid_, "twin", FromBranch("dev")));
  ASSERT_OK(store_->DeleteBranch(rid_, "dev"));
  ASSERT_OK(store_->RegisterFiles(rid_, open, MakeFiles({"a"})));
  ASSERT_OK(store_->CommitTransaction(rid_, open, {}));
  EXPECT_THAT(PathsOf("twin"), IsOkAndHolds(ElementsAre("a")));
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"b"}), "twin"));
  EXPECT_THAT(PathsOf("twin"), IsOkAndHolds(ElementsAre("a", "b")));
}

// V072: a branch of the same name is another branch.
TEST_F(StoreBranchesTest, ARecreatedBranchHasNoHistory) {
  ASSERT_OK(store_->CreateBranch(rid_, "dev", {}));
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"a"}), "dev"));
  ASSERT_OK(store_->DeleteBranch(rid_, "dev"));
  ASSERT_OK(store_->CreateBranch(rid_, "dev", {}));
  ASSERT_OK_AND_ASSIGN(const ReflogPage reflog, store_->ListReflog(rid_, "dev", 10, ""));
  EXPECT_EQ(reflog.entries.size(), 1);
  EXPECT_THAT(PathsOf("dev"), IsOkAndHolds(IsEmpty()));
  ASSERT_OK_AND_ASSIGN(const TransactionPage history,
                       store_->ListBranchTransactions(rid_, "dev", 10, ""));
  EXPECT_THAT(history.transactions, IsEmpty());
}

TEST_F(StoreBranchesTest, ListingIsPagedByBytes) {
  for (const char* name : {"b", "a/x", "\xC3\xA4", "B"}) {
    ASSERT_OK(store_->CreateBranch(rid_, name, {}));
  }
  std::vector<std::string> names;
  std::string token;
  do {
    ASSERT_OK_AND_ASSIGN(const BranchPage page, store_->ListBranches(rid_, 2, token));
    for (const Branch& branch : page.branches) {
      names.push_back(branch.name);
    }
    token = page.next_page_token.value_or("");
  } while (!token.empty());
  EXPECT_THAT(names, ElementsAre("B", "a/x", "b", "master", "\xC3\xA4"));
  EXPECT_EQ(StatusOf(store_->ListBranches(rid_, -1, "")).reason(), "InvalidPageSize");
  EXPECT_EQ(StatusOf(store_->ListBranches(rid_, 1, "???")).reason(), "InvalidPageToken");
}

TEST_F(StoreBranchesTest, RollBackAndForwardKeepEveryView) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid first,
                       Commit(TransactionType::kAppend, MakeFiles({"a"})));
  ASSERT_OK_AND_ASSIGN(const TransactionRid second,
                       Commit(TransactionType::kAppend, MakeFiles({"b"})));
  ASSERT_OK(Reset("master", first));
  EXPECT_THAT(Paths({}), IsOkAndHolds(ElementsAre("a")));
  ASSERT_OK_AND_ASSIGN(const TransactionRid third,
                       Commit(TransactionType::kAppend, MakeFiles({"b"}, "other")));
  EXPECT_THAT(Names({}), IsOkAndHolds(ElementsAre("a=at/a", "b=b@other")));
  EXPECT_EQ(FastForward("master", second).reason(), "NotAFastForward");
  ASSERT_OK(Reset("master", second));
  EXPECT_THAT(Names({}), IsOkAndHolds(ElementsAre("a=at/a", "b=at/b")));
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"c"})));
  EXPECT_THAT(Paths({}), IsOkAndHolds(ElementsAre("a", "b", "c")));
  EXPECT_THAT(PathsAt(third), IsOkAndHolds(ElementsAre("a", "b")));
}

TEST_F(StoreBranchesTest, RePointingABranchWithAnOpenTransactionIsRefused) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid first, Commit(TransactionType::kAppend, {}));
  ASSERT_OK(Start(TransactionType::kAppend));
  EXPECT_EQ(Reset("master", first).reason(), "OpenTransactionAlreadyExists");
  EXPECT_EQ(FastForward("master", first).reason(), "OpenTransactionAlreadyExists");
}

TEST_F(StoreBranchesTest, FastForwardTakesADescendant) {
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"a"})));
  ASSERT_OK(store_->CreateBranch(rid_, "dev", FromBranch("master")));
  ASSERT_OK_AND_ASSIGN(const TransactionRid ahead,
                       Commit(TransactionType::kAppend, MakeFiles({"b"}), "dev"));
  ASSERT_OK(FastForward("master", ahead));
  EXPECT_THAT(Paths({}), IsOkAndHolds(ElementsAre("a", "b")));
}

// Roll back does not rewrite the past: a view by time reads the reflog.
TEST_F(StoreBranchesTest, ViewsByTimeFollowTheReflog) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid first,
                       Commit(TransactionType::kAppend, MakeFiles({"a"})));
  clock_.Advance(std::chrono::seconds(10));
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"b"})));
  const Timestamp with_both = clock_.Now() + std::chrono::seconds(1);
  clock_.Advance(std::chrono::seconds(10));
  ASSERT_OK(Reset("master", first));
  const auto at = [&](Timestamp time) {
    ViewSelector selector;
    selector.at = time;
    return Paths(selector);
  };
  EXPECT_THAT(at(with_both), IsOkAndHolds(ElementsAre("a", "b")));
  EXPECT_THAT(at(clock_.Now() + std::chrono::seconds(1)), IsOkAndHolds(ElementsAre("a")));
  EXPECT_THAT(at(FromMillis(0)), IsOkAndHolds(IsEmpty()));
  ASSERT_OK_AND_ASSIGN(const ReflogPage reflog, store_->ListReflog(rid_, "master", 2, ""));
  ASSERT_EQ(reflog.entries.size(), 2);
  EXPECT_EQ(reflog.entries[0].to, first);
  EXPECT_EQ(reflog.entries[0].moved_by, "me");
  ASSERT_OK_AND_ASSIGN(const ReflogPage rest,
                       store_->ListReflog(rid_, "master", 10, *reflog.next_page_token));
  EXPECT_EQ(rest.entries.size(), 2);
}

// Before a branch existed, its time is that of where it came from.
TEST_F(StoreBranchesTest, AViewByTimeBeforeTheBranchWasMade) {
  std::vector<TransactionRid> committed;
  std::vector<Timestamp> times;
  for (int i = 0; i < 30; ++i) {
    clock_.Advance(std::chrono::seconds(1));
    ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"f" + std::to_string(i)})));
    times.push_back(clock_.Now());
  }
  clock_.Advance(std::chrono::hours(1));
  ASSERT_OK(store_->CreateBranch(rid_, "late", FromBranch("master")));
  for (size_t i = 0; i < times.size(); ++i) {
    ViewSelector selector;
    selector.branch = "late";
    selector.at = times[i];
    ASSERT_OK_AND_ASSIGN(const auto paths, Paths(selector));
    EXPECT_EQ(paths.size(), i + 1);
  }
}

}  // namespace
}  // namespace tarn::dataset
