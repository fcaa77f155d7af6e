#include "tarn/query/deleted_rows.h"

#include <random>
#include <set>

#include "tarn/iceberg/deletes/row_deletes.h"
#include "tarn/lakehouse/scan/plain_table_fixture.h"
#include "test/support/matchers.h"

namespace tarn::query {

namespace {

using iceberg::Positions;

TEST(RowSetTest, HoldsWhatWasAddedInOrder) {
  std::mt19937_64 random(7);
  for (const int64_t rows : {50'000, 200'000, 5'000'000}) {
    RowSet set;
    std::set<int64_t> expected;
    for (int i = 0; i < 60'000; ++i) {
      const auto row = static_cast<int64_t>(random() % static_cast<uint64_t>(rows));
      EXPECT_EQ(set.Add(row), expected.insert(row).second);
    }
    EXPECT_EQ(set.size(), static_cast<int64_t>(expected.size()));
    EXPECT_EQ(set.ToPositions(), Positions(expected.begin(), expected.end()));
  }
}

TEST(RowSetTest, ManyRowsTakeABitEachAndFewTwoBytes) {
  constexpr int64_t kRows = 10'000'000;
  RowSet all;
  for (int64_t row = 0; row < kRows; ++row) {
    all.Add(row);
  }
  EXPECT_EQ(all.size(), kRows);
  EXPECT_LT(all.memory_bytes(), 2U * kRows / 8);
  RowSet few;
  for (int64_t row = 0; row < kRows; row += 1000) {
    few.Add(row);
  }
  EXPECT_LT(few.memory_bytes(), 10U * kRows / 1000);
}

TEST(DeletedRowsTest, FilesThatComeByTurnsAreKeptApart) {
  DeletedRows rows;
  EXPECT_TRUE(rows.Add("a", 1));
  EXPECT_TRUE(rows.Add("b", 1));
  EXPECT_TRUE(rows.Add("a", 0));
  EXPECT_FALSE(rows.Add("b", 1));
  EXPECT_EQ(rows.size(), 3);
  ASSERT_NE(rows.Find("a"), nullptr);
  EXPECT_EQ(rows.Find("a")->ToPositions(), (Positions{0, 1}));
  EXPECT_EQ(rows.Find("b")->ToPositions(), (Positions{1}));
  EXPECT_EQ(rows.Find("c"), nullptr);
}

class RemoveRowsTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(table_, home_.Make("plain", GetParam()));
    for (int i = 0; i < 3; ++i) {
      ASSERT_OK(home_.Append(table_, "SELECT range AS id, 'a' AS p FROM range(4)"));
    }
  }

  std::vector<iceberg::FileScanTask> Plan() {
    const iceberg::TableMetadata metadata = home_.Metadata(table_);
    return iceberg::PlanScan(home_.store(), home_.catalog().manifest_cache(), metadata, {},
                             iceberg::Expression::True(), {})
        .value();
  }

  // The deleted rows of each file.
  std::vector<Positions> Deleted() {
    std::vector<Positions> deleted;
    for (const iceberg::FileScanTask& task : Plan()) {
      deleted.push_back(iceberg::ReadDeletedPositions(home_.store(), task).value());
    }
    return deleted;
  }

  lakehouse::PlainTables home_;
  Rid table_;
};

// However few are written at once: whole files go, the others get one delete file each.
TEST_P(RemoveRowsTest, RowsAreRemovedInSeveralWrites) {
  for (const int64_t positions_max : {1, 1000}) {
    const iceberg::TableMetadata metadata = home_.Metadata(table_);
    const iceberg::OperationContext context{
        .store = home_.store(), .cache = home_.catalog().manifest_cache(), .metadata = metadata};
    const std::vector<iceberg::FileScanTask> before = Plan();
    DeletedRows rows;
    for (const int64_t row : {2, 0}) {
      rows.Add(before[0].file.file_path, row);
    }
    rows.Add(before[1].file.file_path, 3);
    for (const int64_t row : {0, 1, 2, 3}) {
      rows.Add(before[2].file.file_path, row);
    }
    iceberg::RowDelta delta;
    ASSERT_OK(RemoveRows(context, home_.uuids(), rows, {.positions_max = positions_max}, delta));
    ASSERT_EQ(delta.removed_files.size(), 1U);
    EXPECT_EQ(delta.removed_files[0].file_path, before[2].file.file_path);
    ASSERT_EQ(delta.deletes.added.size(), 2U);
    EXPECT_EQ(delta.deletes.deleted_rows, 3);
    const bool together = delta.deletes.added[0].file_path == delta.deletes.added[1].file_path;
    EXPECT_EQ(together, GetParam() >= 3 && positions_max > 1);
    if (positions_max == 1) {
      continue;  // Not committed: the table is as it was for the next one.
    }
    ASSERT_OK_AND_ASSIGN(const iceberg::SnapshotUpdate update,
                         iceberg::DeltaUpdate(context, delta));
    ASSERT_OK(StatusOf(lakehouse::CommitSnapshot(home_.catalog(), table_, update)));
    EXPECT_THAT(Deleted(), ::testing::UnorderedElementsAre(Positions{0, 2}, Positions{3}));
    const iceberg::TableMetadata after = home_.Metadata(table_);
    iceberg::RowDelta all;
    EXPECT_THAT(
        RemoveAllFiles(
            {.store = home_.store(), .cache = home_.catalog().manifest_cache(), .metadata = after},
            all),
        IsOkAndHolds(std::optional<int64_t>(5)));
    EXPECT_EQ(all.removed_files.size(), 2U);
  }
}

INSTANTIATE_TEST_SUITE_P(Versions, RemoveRowsTest, ::testing::Values(2, 3));

}  // namespace

}  // namespace tarn::query
