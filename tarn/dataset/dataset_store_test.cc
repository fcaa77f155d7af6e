#include "tarn/dataset/dataset_store.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "tarn/dataset/dataset_fixture.h"

namespace tarn::dataset {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DatasetStoreTest : public DatasetFixture {};

// The specification's worked example, word for word.
TEST_F(DatasetStoreTest, WorkedExample) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid first,
                       Commit(TransactionType::kSnapshot, MakeFiles({"A", "B"}, "1")));
  ASSERT_OK_AND_ASSIGN(const TransactionRid second,
                       Commit(TransactionType::kAppend, MakeFiles({"C"}, "2")));
  ASSERT_OK_AND_ASSIGN(const TransactionRid third,
                       Commit(TransactionType::kUpdate, MakeFiles({"A"}, "3")));
  ASSERT_OK_AND_ASSIGN(const TransactionRid fourth, CommitRemoval({"B"}));
  EXPECT_THAT(Names({}), IsOkAndHolds(ElementsAre("A=A@3", "C=C@2")));
  ASSERT_OK_AND_ASSIGN(const TransactionRid fifth,
                       Commit(TransactionType::kSnapshot, MakeFiles({"D"}, "5")));
  EXPECT_THAT(Names({}), IsOkAndHolds(ElementsAre("D=D@5")));

  ViewSelector at;
  at.end = fourth;
  EXPECT_THAT(Names(at), IsOkAndHolds(ElementsAre("A=A@3", "C=C@2")));
  at.end = first;
  EXPECT_THAT(Names(at), IsOkAndHolds(ElementsAre("A=A@1", "B=B@1")));
  at.end = third;
  EXPECT_THAT(Names(at), IsOkAndHolds(ElementsAre("A=A@3", "B=B@1", "C=C@2")));
  at.start = third;
  EXPECT_THAT(Names(at), IsOkAndHolds(ElementsAre("A=A@3")));
  at.start = second;
  EXPECT_THAT(Names(at), IsOkAndHolds(ElementsAre("A=A@3", "C=C@2")));
  at.end = fifth;
  EXPECT_THAT(Names(at), IsOkAndHolds(ElementsAre("D=D@5")));
}

TEST_F(DatasetStoreTest, ANewDatasetHasAnEmptyMasterOnly) {
  ASSERT_OK_AND_ASSIGN(const Branch branch, store_->GetBranch(rid_, "master"));
  EXPECT_EQ(branch.transaction(), std::nullopt);
  EXPECT_EQ(branch.parent, std::nullopt);
  ASSERT_OK_AND_ASSIGN(const FileView view, store_->ResolveView(rid_, {}));
  EXPECT_TRUE(view.absent());
  EXPECT_THAT(Paths({}), IsOkAndHolds(IsEmpty()));
}

TEST_F(DatasetStoreTest, UnknownNamesAreNotFound) {
  const DatasetRid other{.uuid = uuids_.NextV4()};
  EXPECT_EQ(StatusOf(store_->GetDataset(other)).reason(), "DatasetNotFound");
  EXPECT_EQ(StatusOf(store_->GetBranch(other, "master")).reason(), "DatasetNotFound");
  EXPECT_EQ(StatusOf(store_->GetBranch(rid_, "other")).reason(), "BranchNotFound");
  const TransactionRid transaction{.uuid = uuids_.NextV7()};
  EXPECT_EQ(StatusOf(store_->GetTransaction(rid_, transaction)).reason(), "TransactionNotFound");
}

// A transaction is only found through its own dataset.
TEST_F(DatasetStoreTest, ATransactionOfAnotherDatasetIsNotFound) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid transaction, Start(TransactionType::kAppend));
  const DatasetRid other = MakeDataset();
  EXPECT_EQ(StatusOf(store_->CommitTransaction(other, transaction, {})).reason(),
            "TransactionNotFound");
  ViewSelector selector;
  selector.end = transaction;
  EXPECT_EQ(StatusOf(store_->ResolveView(other, selector)).reason(), "TransactionNotFound");
}

TEST_F(DatasetStoreTest, DatasetsAreMadeOnce) {
  EXPECT_THAT(database_->Write([&](metastore::SqlTransaction& sql) {
    return StatusOf(store_->InitializeDataset(sql, rid_, "", "me"));
  }),
              Fails(ErrorCode::kAlreadyExists));
}

TEST_F(DatasetStoreTest, SettingsAreKept) {
  DatasetSettings settings;
  settings.inherit_schema_on_snapshot = true;
  settings.validate = SchemaValidation::kReject;
  settings.idle_abort = std::chrono::seconds(60);
  ASSERT_OK(database_->Write(
      [&](metastore::SqlTransaction& sql) { return store_->UpdateSettings(sql, rid_, settings); }));
  ASSERT_OK_AND_ASSIGN(const Dataset dataset, store_->GetDataset(rid_));
  EXPECT_EQ(dataset.settings, settings);
  settings.idle_abort = std::chrono::seconds(0);
  EXPECT_THAT(database_->Write([&](metastore::SqlTransaction& sql) {
    return store_->UpdateSettings(sql, rid_, settings);
  }),
              Fails(ErrorCode::kInvalidArgument));
}

// V037: identity is checked at commit, not the name.
TEST_F(DatasetStoreTest, ADeletedDatasetTakesNoCommit) {
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"a", "b"})));
  ASSERT_OK_AND_ASSIGN(const TransactionRid transaction, Start(TransactionType::kAppend));
  ASSERT_OK(store_->RegisterFiles(rid_, transaction, MakeFiles({"c"})));
  ASSERT_OK(database_->Write(
      [&](metastore::SqlTransaction& sql) { return store_->DeleteDataset(sql, rid_); }));
  EXPECT_EQ(StatusOf(store_->CommitTransaction(rid_, transaction, {})).reason(), "DatasetNotFound");
  const DatasetRid kept = MakeDataset();
  ASSERT_OK_AND_ASSIGN(const int64_t removed, store_->PurgeDeleted(1'000'000));
  EXPECT_GT(removed, 0);
  EXPECT_THAT(store_->PurgeDeleted(1), IsOkAndHolds(0));
  int64_t rows = -1;
  ASSERT_OK(database_->Read([&](metastore::SqlTransaction& sql) {
    return sql.Query(
        "SELECT (SELECT count(*) FROM dataset_files) + (SELECT count(*) FROM "
        "dataset_transactions) + (SELECT count(*) FROM dataset_lines) + (SELECT count(*) FROM "
        "dataset_garbage) + (SELECT count(*) FROM dataset_schemas)",
        {}, [&](const metastore::SqlRow& row) -> Result<metastore::RowAction> {
          rows = row.Int(0);
          return metastore::RowAction::kStop;
        });
  }));
  EXPECT_EQ(rows, 0);
  EXPECT_OK(store_->GetDataset(kept));
}

// V032, V035: ten writers on ten branches never meet.
TEST_F(DatasetStoreTest, EightThreadsOnEightBranchesNeverConflict) {
  constexpr int kThreads = 8;
  constexpr int kCommits = 25;
  for (int i = 0; i < kThreads; ++i) {
    ASSERT_OK(store_->CreateBranch(rid_, "b" + std::to_string(i), {}));
  }
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < kCommits; ++n) {
        const std::string path = "f" + std::to_string(n);
        if (!Commit(TransactionType::kAppend, MakeFiles({path}), "b" + std::to_string(i)).ok()) {
          ++failures;
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(failures, 0);
  for (int i = 0; i < kThreads; ++i) {
    ASSERT_OK_AND_ASSIGN(const auto paths, PathsOf("b" + std::to_string(i)));
    EXPECT_EQ(paths.size(), kCommits);
  }
}

// V027: on one branch a writer either commits or is told that another transaction is open.
TEST_F(DatasetStoreTest, EightThreadsOnOneBranchAllGetThroughByRetry) {
  constexpr int kThreads = 8;
  constexpr int kCommits = 10;
  std::atomic<int> wrong = 0;
  std::atomic<int> conflicts = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < kCommits;) {
        const std::string path = std::to_string(i) + "/" + std::to_string(n);
        const Status status = StatusOf(Commit(TransactionType::kAppend, MakeFiles({path})));
        if (status.ok()) {
          ++n;
        } else if (status.reason() == "OpenTransactionAlreadyExists") {
          ++conflicts;
        } else {
          ++wrong;
          ++n;
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
  ASSERT_OK_AND_ASSIGN(const auto paths, Paths({}));
  EXPECT_EQ(paths.size(), kThreads * kCommits);
  ASSERT_OK_AND_ASSIGN(const TransactionPage page,
                       store_->ListBranchTransactions(rid_, "master", 1000, ""));
  ASSERT_EQ(page.transactions.size(), kThreads * kCommits);
  for (size_t i = 1; i < page.transactions.size(); ++i) {
    EXPECT_GE(*page.transactions[i - 1].closed_at,
              *page.transactions[i].closed_at + std::chrono::milliseconds(1));
  }
}

// V041: of many threads that create the same branch, one succeeds.
TEST_F(DatasetStoreTest, OneOfManyCreatorsWins) {
  std::atomic<int> made = 0;
  std::atomic<int> refused = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      const Status status = StatusOf(store_->CreateBranch(rid_, "x", {}));
      made += status.ok() ? 1 : 0;
      refused += status.reason() == "BranchAlreadyExists" ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(made, 1);
  EXPECT_EQ(refused, 15);
}

// Each operation of a commit path fails in turn; readers see the old or the new state.
class FailTheNth : public DatasetFixture, public ::testing::WithParamInterface<metastore::Fault> {};

TEST_P(FailTheNth, CommitIsAllOrNothing) {
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"a"})));
  bool passed = false;
  for (int64_t n = 1; !passed && n < 200; ++n) {
    const std::string path = "f" + std::to_string(n);
    ASSERT_OK_AND_ASSIGN(const auto before, Paths({}));
    database_->FailAt(n, GetParam());
    const Status status = StatusOf(Commit(TransactionType::kUpdate, MakeFiles({"a", path})));
    passed = !database_->fired();
    database_->FailAt(0, GetParam());
    ASSERT_OK_AND_ASSIGN(const auto after, Paths({}));
    const bool visible = std::find(after.begin(), after.end(), path) != after.end();
    EXPECT_EQ(after.size(), before.size() + (visible ? 1 : 0)) << n;
    if (status.ok()) {
      EXPECT_TRUE(visible) << n;
    } else if (status.code() != ErrorCode::kCommitStateUnknown) {
      EXPECT_FALSE(visible) << n << " " << status.ToString();
    }
    // Whatever happened, the branch can be worked with again.
    ASSERT_OK_AND_ASSIGN(const Branch branch, store_->GetBranch(rid_, "master"));
    if (branch.open) {
      ASSERT_OK(store_->AbortTransaction(rid_, *branch.open, "me"));
    }
  }
  EXPECT_TRUE(passed);
}

TEST_P(FailTheNth, CommitFilesInOneTransactionLeavesNothingBehind) {
  bool passed = false;
  for (int64_t n = 1; !passed && n < 200; ++n) {
    const std::string path = "f" + std::to_string(n);
    database_->FailAt(n, GetParam());
    CommitFilesRequest request;
    request.dataset = rid_;
    request.files = MakeFiles({path});
    const Status status = database_->Write([&](metastore::SqlTransaction& sql) {
      return StatusOf(store_->CommitFiles(sql, request));
    });
    passed = !database_->fired();
    database_->FailAt(0, GetParam());
    ASSERT_OK_AND_ASSIGN(const Branch branch, store_->GetBranch(rid_, "master"));
    EXPECT_EQ(branch.open, std::nullopt) << n;
    ASSERT_OK_AND_ASSIGN(const auto paths, Paths({}));
    const bool visible = std::find(paths.begin(), paths.end(), path) != paths.end();
    if (status.code() != ErrorCode::kCommitStateUnknown) {
      EXPECT_EQ(visible, status.ok()) << n << status.ToString();
    }
  }
  EXPECT_TRUE(passed);
}

INSTANTIATE_TEST_SUITE_P(Faults, FailTheNth,
                         ::testing::Values(metastore::Fault::kBefore, metastore::Fault::kAfter));

}  // namespace
}  // namespace tarn::dataset
