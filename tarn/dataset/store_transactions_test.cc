#include <nlohmann/json.hpp>

#include "tarn/dataset/dataset_fixture.h"

namespace tarn::dataset {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StoreTransactionsTest : public DatasetFixture {};

TEST_F(StoreTransactionsTest, StartMovesTheBranchPointerAtOnce) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid committed,
                       Commit(TransactionType::kAppend, MakeFiles({"a"})));
  ASSERT_OK_AND_ASSIGN(const TransactionRid open, Start(TransactionType::kAppend));
  ASSERT_OK_AND_ASSIGN(Branch branch, store_->GetBranch(rid_, "master"));
  EXPECT_EQ(branch.transaction(), open);
  EXPECT_EQ(branch.head, committed);
  ASSERT_OK(store_->AbortTransaction(rid_, open, "me"));
  ASSERT_OK_AND_ASSIGN(branch, store_->GetBranch(rid_, "master"));
  EXPECT_EQ(branch.transaction(), committed);
}

TEST_F(StoreTransactionsTest, ASecondStartConflicts) {
  ASSERT_OK(Start(TransactionType::kAppend));
  const Status status = StatusOf(Start(TransactionType::kAppend));
  EXPECT_THAT(status, Fails(ErrorCode::kConflict));
  EXPECT_EQ(status.reason(), "OpenTransactionAlreadyExists");
  EXPECT_THAT(status.details(), HasSubstr(R"("branchName":"master")"));
}

TEST_F(StoreTransactionsTest, ClosedStatesAreFinal) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid committed,
                       Commit(TransactionType::kAppend, MakeFiles({"a"})));
  ASSERT_OK_AND_ASSIGN(const TransactionRid aborted, Start(TransactionType::kAppend));
  ASSERT_OK(store_->AbortTransaction(rid_, aborted, "me"));
  for (const TransactionRid& rid : {committed, aborted}) {
    const std::vector<StoredFile> files = MakeFiles({"z"});
    const std::vector<std::string> paths = {"a"};
    for (const Status& status :
         {StatusOf(store_->CommitTransaction(rid_, rid, {})),
          StatusOf(store_->AbortTransaction(rid_, rid, "me")),
          store_->RegisterFiles(rid_, rid, files),
          StatusOf(store_->RemoveFiles(rid_, rid, paths, MissingPath::kIgnore))}) {
      EXPECT_THAT(status, Fails(ErrorCode::kInvalidArgument));
      EXPECT_EQ(status.reason(), "TransactionNotOpen");
      EXPECT_THAT(status.details(), HasSubstr("transactionStatus"));
    }
  }
  EXPECT_THAT(Paths({}), IsOkAndHolds(ElementsAre("a")));
}

TEST_F(StoreTransactionsTest, AppendThatClashesStaysOpen) {
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"a", "b", "c"})));
  ASSERT_OK_AND_ASSIGN(const TransactionRid open, Start(TransactionType::kAppend));
  ASSERT_OK(store_->RegisterFiles(rid_, open, MakeFiles({"c", "d", "a"}, "2")));
  const Status status = StatusOf(store_->CommitTransaction(rid_, open, {}));
  EXPECT_THAT(status, Fails(ErrorCode::kConflict));
  EXPECT_EQ(status.reason(), "AppendOverwritesExistingFiles");
  const nlohmann::json details = nlohmann::json::parse(status.details());
  EXPECT_EQ(details["paths"], nlohmann::json({"a", "c"}));
  EXPECT_EQ(details["count"], 2);
  ASSERT_OK_AND_ASSIGN(const Transaction still, store_->GetTransaction(rid_, open));
  EXPECT_EQ(still.state, TransactionState::kOpen);
  EXPECT_THAT(Names({}), IsOkAndHolds(ElementsAre("a=at/a", "b=at/b", "c=at/c")));

  // Taking the clashing files out again makes it committable.
  const std::vector<std::string> clashing = {"a", "c", "unknown"};
  ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const int64_t removed,
                          store_->UnregisterFiles(sql, rid_, open, clashing));
    EXPECT_EQ(removed, 2);
    return Status::Ok();
  }));
  EXPECT_OK(store_->CommitTransaction(rid_, open, {}));
  EXPECT_THAT(Paths({}), IsOkAndHolds(ElementsAre("a", "b", "c", "d")));
}

TEST_F(StoreTransactionsTest, ClashesAreListedUpToAHundred) {
  std::vector<std::string> paths;
  for (int i = 0; i < 150; ++i) {
    paths.push_back("f" + std::to_string(1000 + i));
  }
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles(paths)));
  const Status status = StatusOf(Commit(TransactionType::kAppend, MakeFiles(paths, "2")));
  const nlohmann::json details = nlohmann::json::parse(status.details());
  EXPECT_EQ(details["paths"].size(), 100);
  EXPECT_EQ(details["count"], 150);
}

// A path that was deleted before is new again.
TEST_F(StoreTransactionsTest, AppendOfARemovedPathIsNoClash) {
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"a"})));
  ASSERT_OK(CommitRemoval({"a"}));
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"a"}, "2")));
  EXPECT_THAT(Names({}), IsOkAndHolds(ElementsAre("a=a@2")));
}

TEST_F(StoreTransactionsTest, TheNewestUploadOfAPathWins) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid open, Start(TransactionType::kAppend));
  StoredFile file = MakeFile("a", "old");
  file.size_bytes = 10;
  file.row_count = 3;
  ASSERT_OK(store_->RegisterFiles(rid_, open, {&file, 1}));
  file = MakeFile("a", "new");
  file.size_bytes = 4;
  ASSERT_OK(store_->RegisterFiles(rid_, open, {&file, 1}));
  ASSERT_OK_AND_ASSIGN(const Transaction committed, store_->CommitTransaction(rid_, open, {}));
  EXPECT_EQ(committed.file_count, 1);
  EXPECT_EQ(committed.size_bytes, 4);
  ASSERT_OK_AND_ASSIGN(const FileView view, store_->ResolveView(rid_, {}));
  ASSERT_OK_AND_ASSIGN(const File read, store_->StatFile(view, "a"));
  EXPECT_EQ(read.location, "new");
  EXPECT_EQ(read.row_count, std::nullopt);
}

TEST_F(StoreTransactionsTest, CountersTellWhatATransactionDid) {
  ASSERT_OK(Commit(TransactionType::kSnapshot, MakeFiles({"a", "b"})));
  ASSERT_OK_AND_ASSIGN(const TransactionRid update,
                       Commit(TransactionType::kUpdate, MakeFiles({"b", "c"}, "2")));
  ASSERT_OK_AND_ASSIGN(const Transaction updated, store_->GetTransaction(rid_, update));
  EXPECT_EQ(updated.file_count, 2);
  EXPECT_EQ(updated.overwritten_count, 1);
  EXPECT_EQ(updated.size_bytes, 2);
  ASSERT_OK_AND_ASSIGN(const TransactionRid removal, CommitRemoval({"a", "c"}));
  ASSERT_OK_AND_ASSIGN(const Transaction removed, store_->GetTransaction(rid_, removal));
  EXPECT_EQ(removed.removed_count, 2);
  EXPECT_EQ(removed.parent, update);
}

TEST_F(StoreTransactionsTest, FilesGoIntoOtherTypesAndRemovalsIntoDelete) {
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"a"})));
  const std::vector<std::string> paths = {"a"};
  ASSERT_OK_AND_ASSIGN(const TransactionRid removal, Start(TransactionType::kDelete));
  EXPECT_EQ(store_->RegisterFiles(rid_, removal, MakeFiles({"b"})).reason(),
            "InvalidTransactionType");
  ASSERT_OK(store_->AbortTransaction(rid_, removal, "me"));
  ASSERT_OK_AND_ASSIGN(const TransactionRid update, Start(TransactionType::kUpdate));
  EXPECT_EQ(StatusOf(store_->RemoveFiles(rid_, update, paths, MissingPath::kIgnore)).reason(),
            "InvalidTransactionType");
}

TEST_F(StoreTransactionsTest, RemovingAMissingPathIsRefusedWholeOrIgnored) {
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"a"})));
  ASSERT_OK_AND_ASSIGN(const TransactionRid removal, Start(TransactionType::kDelete));
  const std::vector<std::string> paths = {"a", "nope"};
  const Status refused = StatusOf(store_->RemoveFiles(rid_, removal, paths, MissingPath::kRefuse));
  EXPECT_THAT(refused, Fails(ErrorCode::kNotFound));
  EXPECT_EQ(refused.reason(), "FileNotFoundOnBranch");
  ASSERT_OK_AND_ASSIGN(Transaction open, store_->GetTransaction(rid_, removal));
  EXPECT_EQ(open.file_count, 0);
  EXPECT_THAT(store_->RemoveFiles(rid_, removal, paths, MissingPath::kIgnore), IsOkAndHolds(1));
  EXPECT_THAT(store_->RemoveFiles(rid_, removal, paths, MissingPath::kIgnore), IsOkAndHolds(0));
  ASSERT_OK(store_->CommitTransaction(rid_, removal, {}));
  EXPECT_THAT(Paths({}), IsOkAndHolds(IsEmpty()));
}

TEST_F(StoreTransactionsTest, BadFilesRegisterNothing) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid open, Start(TransactionType::kAppend));
  std::vector<StoredFile> files = MakeFiles({"good", "bad//path"});
  EXPECT_EQ(store_->RegisterFiles(rid_, open, files).reason(), "InvalidFilePath");
  files = MakeFiles({"good", "no-location"});
  files[1].location.clear();
  EXPECT_THAT(store_->RegisterFiles(rid_, open, files), Fails(ErrorCode::kInvalidArgument));
  files[1] = MakeFile("negative");
  files[1].size_bytes = -1;
  EXPECT_THAT(store_->RegisterFiles(rid_, open, files), Fails(ErrorCode::kInvalidArgument));
  ASSERT_OK(store_->CommitTransaction(rid_, open, {}));
  EXPECT_THAT(Paths({}), IsOkAndHolds(IsEmpty()));
}

TEST_F(StoreTransactionsTest, EmptyTransactionsMayBeCommitted) {
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"a"})));
  ASSERT_OK(Commit(TransactionType::kAppend, {}));
  EXPECT_THAT(Paths({}), IsOkAndHolds(ElementsAre("a")));
  ASSERT_OK(Commit(TransactionType::kSnapshot, {}));
  EXPECT_THAT(Paths({}), IsOkAndHolds(IsEmpty()));
  ASSERT_OK_AND_ASSIGN(const FileView view, store_->ResolveView(rid_, {}));
  EXPECT_FALSE(view.absent());
}

TEST_F(StoreTransactionsTest, AbortedFilesAreNeverVisible) {
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"a"})));
  for (const int count : {1, 3000}) {
    ASSERT_OK_AND_ASSIGN(const TransactionRid open, Start(TransactionType::kUpdate));
    std::vector<StoredFile> files = MakeFiles({"a"}, "aborted");
    for (int i = 0; i < count; ++i) {
      files.push_back(MakeFile("x" + std::to_string(i)));
    }
    ASSERT_OK(store_->RegisterFiles(rid_, open, files));
    ASSERT_OK(store_->AbortTransaction(rid_, open, "me"));
    ASSERT_OK_AND_ASSIGN(const auto names, Names({}));
    EXPECT_EQ(names.size(), count == 1 ? 1 : 2);
    EXPECT_EQ(names.front(), "a=at/a");
    const std::string next = "b" + std::to_string(count);
    ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({next})));
  }
  EXPECT_THAT(Paths({}), IsOkAndHolds(ElementsAre("a", "b1", "b3000")));
  ASSERT_OK_AND_ASSIGN(const int64_t purged, store_->PurgeDeleted(1'000'000));
  EXPECT_GE(purged, 3001);
  EXPECT_THAT(Paths({}), IsOkAndHolds(ElementsAre("a", "b1", "b3000")));
}

// Many paths at once look at the view in one go where it has few files there, else one by one.
TEST_F(StoreTransactionsTest, ManyPathsAtOnceKnowWhatTheyReplace) {
  const auto numbered = [](int first, int last, int step) {
    std::vector<std::string> paths;
    for (int i = first; i < last; i += step) {
      paths.push_back("f" + std::to_string(100'000 + i));
    }
    return paths;
  };
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles(numbered(0, 100, 1))));
  ASSERT_OK(CommitRemoval(numbered(10, 20, 1)));
  ASSERT_OK(Commit(TransactionType::kUpdate, MakeFiles(numbered(30, 40, 1), "2")));
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles(numbered(1000, 6000, 1))));
  ASSERT_OK_AND_ASSIGN(const TransactionRid few, Start(TransactionType::kAppend));
  for (int round = 0; round < 2; ++round) {
    ASSERT_OK(store_->RegisterFiles(rid_, few, MakeFiles(numbered(0, 300, 1))));
  }
  ASSERT_OK_AND_ASSIGN(const Transaction sparse, store_->GetTransaction(rid_, few));
  EXPECT_EQ(sparse.file_count, 300);
  EXPECT_EQ(sparse.overwritten_count, 90);
  ASSERT_OK(store_->AbortTransaction(rid_, few, "me"));
  ASSERT_OK_AND_ASSIGN(const TransactionRid many, Start(TransactionType::kAppend));
  ASSERT_OK(store_->RegisterFiles(rid_, many, MakeFiles(numbered(500, 7000, 50))));
  ASSERT_OK_AND_ASSIGN(const Transaction dense, store_->GetTransaction(rid_, many));
  EXPECT_EQ(dense.file_count, 130);
  EXPECT_EQ(dense.overwritten_count, 100);
  EXPECT_EQ(StatusOf(store_->CommitTransaction(rid_, many, {})).reason(),
            "AppendOverwritesExistingFiles");
}

TEST_F(StoreTransactionsTest, AnAbortedTransactionIsNoEndOfAView) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid open, Start(TransactionType::kAppend));
  ASSERT_OK(store_->AbortTransaction(rid_, open, "me"));
  EXPECT_EQ(StatusOf(PathsAt(open)).reason(), "TransactionNotCommitted");
}

TEST_F(StoreTransactionsTest, TheClockNeverGoesBackOnABranch) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid first, Commit(TransactionType::kAppend, {}));
  clock_.Advance(std::chrono::minutes(-10));
  ASSERT_OK_AND_ASSIGN(const TransactionRid second, Commit(TransactionType::kAppend, {}));
  ASSERT_OK_AND_ASSIGN(const Transaction before, store_->GetTransaction(rid_, first));
  ASSERT_OK_AND_ASSIGN(const Transaction after, store_->GetTransaction(rid_, second));
  EXPECT_EQ(*after.closed_at, *before.closed_at + std::chrono::milliseconds(1));
}

TEST_F(StoreTransactionsTest, RecordAndProvenanceComeBack) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid open, Start(TransactionType::kAppend));
  CommitOptions options;
  options.record_json = R"({"positions":{"0":7}})";
  options.provenance_json = "[]";
  options.by_retention = true;
  ASSERT_OK(store_->CommitTransaction(rid_, open, options));
  ASSERT_OK_AND_ASSIGN(const Transaction read, store_->GetTransaction(rid_, open));
  EXPECT_EQ(read.record_json, options.record_json);
  EXPECT_EQ(read.provenance_json, options.provenance_json);
  EXPECT_TRUE(read.by_retention);
}

TEST_F(StoreTransactionsTest, TypeMayChangeWhileThereAreNoFiles) {
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"a"})));
  ASSERT_OK_AND_ASSIGN(const TransactionRid open, Start(TransactionType::kAppend));
  const auto set_type = [&](TransactionType type) {
    return database_->Write([&](metastore::SqlTransaction& sql) {
      return StatusOf(store_->SetTransactionType(sql, rid_, open, type));
    });
  };
  ASSERT_OK(set_type(TransactionType::kSnapshot));
  ASSERT_OK(set_type(TransactionType::kDelete));
  ASSERT_OK(set_type(TransactionType::kUpdate));
  ASSERT_OK(store_->RegisterFiles(rid_, open, MakeFiles({"a", "b"}, "2")));
  EXPECT_EQ(set_type(TransactionType::kSnapshot).reason(), "InvalidTransactionType");
  EXPECT_EQ(set_type(TransactionType::kDelete).reason(), "InvalidTransactionType");
  // The root stays, so this is fine, and the clash is found at commit.
  ASSERT_OK(set_type(TransactionType::kAppend));
  EXPECT_THAT(store_->CommitTransaction(rid_, open, {}), Fails(ErrorCode::kConflict));
  ASSERT_OK(set_type(TransactionType::kUpdate));
  ASSERT_OK(store_->CommitTransaction(rid_, open, {}));
  EXPECT_THAT(Names({}), IsOkAndHolds(ElementsAre("a=a@2", "b=b@2")));
}

TEST_F(StoreTransactionsTest, AppendTurnedSnapshotReplacesTheView) {
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"a"})));
  ASSERT_OK_AND_ASSIGN(const TransactionRid open, Start(TransactionType::kAppend));
  ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) {
    return StatusOf(store_->SetTransactionType(sql, rid_, open, TransactionType::kSnapshot));
  }));
  ASSERT_OK(store_->RegisterFiles(rid_, open, MakeFiles({"b"})));
  ASSERT_OK(store_->CommitTransaction(rid_, open, {}));
  EXPECT_THAT(Paths({}), IsOkAndHolds(ElementsAre("b")));
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"c"})));
  EXPECT_THAT(Paths({}), IsOkAndHolds(ElementsAre("b", "c")));
}

TEST_F(StoreTransactionsTest, ListingIsPagedNewestFirst) {
  std::vector<TransactionRid> committed;
  for (int i = 0; i < 7; ++i) {
    ASSERT_OK_AND_ASSIGN(const TransactionRid rid, Commit(TransactionType::kAppend, {}));
    committed.insert(committed.begin(), rid);
  }
  ASSERT_OK_AND_ASSIGN(const TransactionRid aborted, Start(TransactionType::kAppend));
  ASSERT_OK(store_->AbortTransaction(rid_, aborted, "me"));
  std::vector<TransactionRid> listed;
  std::vector<TransactionRid> of_branch;
  std::string token;
  do {
    ASSERT_OK_AND_ASSIGN(const TransactionPage page, store_->ListTransactions(rid_, 3, token));
    for (const Transaction& transaction : page.transactions) {
      listed.push_back(transaction.rid);
    }
    token = page.next_page_token.value_or("");
  } while (!token.empty());
  do {
    ASSERT_OK_AND_ASSIGN(const TransactionPage page,
                         store_->ListBranchTransactions(rid_, "master", 7, token));
    for (const Transaction& transaction : page.transactions) {
      of_branch.push_back(transaction.rid);
    }
    token = page.next_page_token.value_or("");
  } while (!token.empty());
  EXPECT_EQ(of_branch, committed);
  committed.insert(committed.begin(), aborted);
  EXPECT_EQ(listed, committed);
  EXPECT_EQ(StatusOf(store_->ListTransactions(rid_, 0, "")).reason(), "InvalidPageSize");
  EXPECT_EQ(StatusOf(store_->ListTransactions(rid_, 1, "x")).reason(), "InvalidPageToken");
}

TEST_F(StoreTransactionsTest, VisitingStopsWhereTheVisitorSays) {
  ASSERT_OK(Commit(TransactionType::kAppend, {}));
  ASSERT_OK_AND_ASSIGN(const TransactionRid second, Commit(TransactionType::kAppend, {}));
  ASSERT_OK(Commit(TransactionType::kAppend, {}));
  int visited = 0;
  ASSERT_OK(database_->Read([&](metastore::SqlTransaction& sql) {
    return store_->VisitCommitted(sql, rid_, "master", [&](const Transaction& transaction) {
      ++visited;
      return Result<metastore::RowAction>(transaction.rid == second
                                              ? metastore::RowAction::kStop
                                              : metastore::RowAction::kContinue);
    });
  }));
  EXPECT_EQ(visited, 2);
}

TEST_F(StoreTransactionsTest, IdleTransactionsAreAbortedWhenTheDatasetSaysSo) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid open, Start(TransactionType::kAppend));
  clock_.Advance(std::chrono::hours(100));
  EXPECT_THAT(store_->AbortIdleTransactions(), IsOkAndHolds(0));
  DatasetSettings settings;
  settings.idle_abort = std::chrono::seconds(10);
  ASSERT_OK(database_->Write(
      [&](metastore::SqlTransaction& sql) { return store_->UpdateSettings(sql, rid_, settings); }));
  ASSERT_OK(store_->RegisterFiles(rid_, open, MakeFiles({"a"})));
  EXPECT_THAT(store_->AbortIdleTransactions(), IsOkAndHolds(0));
  clock_.Advance(std::chrono::seconds(10));
  EXPECT_THAT(store_->AbortIdleTransactions(), IsOkAndHolds(1));
  ASSERT_OK_AND_ASSIGN(const Transaction aborted, store_->GetTransaction(rid_, open));
  EXPECT_EQ(aborted.state, TransactionState::kAborted);
}

}  // namespace
}  // namespace tarn::dataset
