#include "tarn/dataset/dataset_fixture.h"

namespace tarn::dataset {
namespace {

using ::testing::SizeIs;

// A home as version 1 left it: a commit of two files, one that overwrote a file and removed none,
// and an OPEN transaction with a file.
constexpr const char* kOldRows[] = {
    "INSERT INTO dataset_datasets (id, uuid, base_uri, created_at, created_by) VALUES (1, ?1, '', "
    "1, 'me')",
    "INSERT INTO dataset_lines (id, dataset_id) VALUES (1, 1)",
    "INSERT INTO dataset_branches (id, dataset_id, name, ancestry, head_id, open_id, line, "
    "next_ordinal, moved_at, created_at, created_by) VALUES (1, 1, x'6D6173746572', '', 2, 3, 1, "
    "4, 20, 1, 'me')",
    "INSERT INTO dataset_transactions (id, uuid, dataset_id, branch_id, type, state, depth, "
    "jump_depth, view_start_depth, root, line, ordinal, lineage, base_overwritten, base_removed, "
    "file_count, size_bytes, created_at, touched_at, closed_at, created_by) VALUES (1, "
    "x'01000000000070008000000000000001', 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, '1:1:0:1', 0, 0, 2, 2, 1, "
    "1, 10, 'me')",
    "INSERT INTO dataset_transactions (id, uuid, dataset_id, branch_id, type, state, parent_id, "
    "depth, jump_id, jump_depth, view_start_id, view_start_depth, root, line, ordinal, lineage, "
    "base_overwritten, base_removed, file_count, overwritten_count, size_bytes, created_at, "
    "touched_at, closed_at, created_by) VALUES (2, x'01000000000070008000000000000002', 1, 1, 2, "
    "1, 1, 1, 1, 0, 1, 0, 1, 1, 2, '1:1:0:2', 0, 0, 1, 1, 1, 11, 11, 20, 'me')",
    "INSERT INTO dataset_transactions (id, uuid, dataset_id, branch_id, type, state, parent_id, "
    "depth, jump_id, jump_depth, view_start_id, view_start_depth, root, line, ordinal, lineage, "
    "base_overwritten, base_removed, file_count, overwritten_count, size_bytes, created_at, "
    "touched_at, created_by) VALUES (3, x'01000000000070008000000000000003', 1, 1, 1, 0, 2, 2, 1, "
    "0, 1, 0, 1, 1, 3, '1:1:0:3', 1, 0, 1, 1, 1, 21, 21, 'me')",
    "INSERT INTO dataset_files (root, path, line, ordinal, operation, replaces, size_bytes, "
    "updated_at, managed, transaction_uuid, location) VALUES "
    "(1, x'61', 1, 1, 0, 0, 1, 1, 1, x'01000000000070008000000000000001', 'at/a1'), "
    "(1, x'62', 1, 1, 0, 0, 1, 1, 1, x'01000000000070008000000000000001', 'at/b1'), "
    "(1, x'61', 1, 2, 0, 1, 1, 2, 1, x'01000000000070008000000000000002', 'at/a2'), "
    "(1, x'61', 1, 3, 0, 1, 1, 3, 1, x'01000000000070008000000000000003', 'at/a3')",
    "INSERT INTO dataset_garbage (line, ordinal) VALUES (1, 9)"};

TransactionRid RidOf(uint8_t number) {
  TransactionRid rid;
  rid.uuid.bytes = {1, 0, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, number};
  return rid;
}

class MigrationsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(
        sqlite_, metastore::SqliteDatabase::Open({.path = directory_.path() / "metastore.db"}));
    ASSERT_OK(sqlite_->Migrate({Migrations().front()}));
    ASSERT_OK(sqlite_->Write([&](metastore::SqlTransaction& sql) -> Status {
      const metastore::Blob uuid{.bytes =
                                     std::string(rid_.uuid.bytes.begin(), rid_.uuid.bytes.end())};
      for (const char* const text : kOldRows) {
        const bool takes_uuid = std::string_view(text).find("?1") != std::string_view::npos;
        TARN_RETURN_IF_ERROR(sql.Execute(
            text, takes_uuid ? metastore::SqlArguments{uuid} : metastore::SqlArguments{}));
      }
      return Status::Ok();
    }));
    ASSERT_OK(sqlite_->Migrate(Migrations()));
    store_ = std::make_unique<DatasetStore>(*sqlite_, clock_, uuids_);
  }

  TemporaryDirectory directory_;
  ManualClock clock_{FromMillis(1'800'000'000'000)};
  UuidGenerator uuids_{clock_};
  DatasetRid rid_{.uuid = uuids_.NextV4()};
  std::unique_ptr<metastore::SqliteDatabase> sqlite_;
  std::unique_ptr<DatasetStore> store_;
};

TEST_F(MigrationsTest, AHomeOfTheFirstVersionReadsAsBefore) {
  ASSERT_OK_AND_ASSIGN(const FilePage page, store_->ListFiles(rid_, {}, {}));
  ASSERT_THAT(page.files, SizeIs(2));
  EXPECT_EQ(page.files[0].location, "at/a2");
  EXPECT_EQ(page.files[1].location, "at/b1");
  ASSERT_OK_AND_ASSIGN(const IncrementPage increment,
                       store_->ReadIncrement(rid_, "master", RidOf(1), {}));
  EXPECT_EQ(increment.reason, IncrementReason::kOverwrite);
  ASSERT_THAT(increment.changed, SizeIs(1));
  EXPECT_EQ(increment.changed[0].path, "a");
  ViewSelector from;
  from.end = RidOf(1);
  ASSERT_OK_AND_ASSIGN(const ComparePage compared, store_->CompareViews(rid_, from, {}, 10, ""));
  ASSERT_THAT(compared.differences, SizeIs(1));
}

TEST_F(MigrationsTest, AnOpenTransactionOfTheFirstVersionGoesOn) {
  const Status clash = StatusOf(store_->CommitTransaction(rid_, RidOf(3), {}));
  EXPECT_EQ(clash.reason(), "AppendOverwritesExistingFiles");
  EXPECT_NE(clash.details().find(R"("paths":["a"])"), std::string::npos) << clash.details();
  const std::vector<std::string> paths = {"a"};
  ASSERT_OK(sqlite_->Write([&](metastore::SqlTransaction& sql) {
    return StatusOf(store_->UnregisterFiles(sql, rid_, RidOf(3), paths));
  }));
  ASSERT_OK(store_->RegisterFiles(rid_, RidOf(3), MakeFiles({"c"})));
  ASSERT_OK(store_->CommitTransaction(rid_, RidOf(3), {}));
  ASSERT_OK_AND_ASSIGN(const FilePage page, store_->ListFiles(rid_, {}, {}));
  EXPECT_THAT(page.files, SizeIs(3));
  EXPECT_OK(store_->PurgeDeleted(1000));
}

TEST_F(MigrationsTest, ADatasetOfTheFirstVersionCanBeRemoved) {
  ASSERT_OK(sqlite_->Write(
      [&](metastore::SqlTransaction& sql) { return store_->DeleteDataset(sql, rid_); }));
  ASSERT_OK(store_->PurgeDeleted(100'000));
  for (const char* const table : {"dataset_files", "dataset_changes", "dataset_transactions",
                                  "dataset_lines", "dataset_datasets", "dataset_garbage"}) {
    int64_t count = -1;
    ASSERT_OK(sqlite_->Read([&](metastore::SqlTransaction& sql) {
      return sql.Query(std::string("SELECT count(*) FROM ") + table, {},
                       [&](const metastore::SqlRow& row) -> Result<metastore::RowAction> {
                         count = row.Int(0);
                         return metastore::RowAction::kStop;
                       });
    }));
    EXPECT_EQ(count, 0) << table;
  }
}

}  // namespace
}  // namespace tarn::dataset
