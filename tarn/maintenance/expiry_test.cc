#include "tarn/maintenance/expiry.h"

#include <arrow/api.h>

#include "tarn/maintenance/compaction.h"
#include "tarn/maintenance/maintenance_fixture.h"

namespace tarn::maintenance {

namespace {

class ExpireSnapshotsTest : public MaintenanceFixture {
 protected:
  // Two files, compacted into a third: the first two belong to old snapshots only.
  Result<Rid> MakeCompacted(std::map<std::string, std::string> properties = {}) {
    TARN_ASSIGN_OR_RETURN(const Rid table, home_.Make("orders", 2, false, std::move(properties)));
    TARN_RETURN_IF_ERROR(home_.Append(table, "SELECT 1::BIGINT AS id, 'a' AS p"));
    TARN_RETURN_IF_ERROR(home_.Append(table, "SELECT 2::BIGINT AS id, 'a' AS p"));
    TARN_RETURN_IF_ERROR(CompactTable(home_.catalog(), home_.engine(), table, {}));
    return table;
  }

  int64_t CountFiles(const std::string& part) {
    const auto page = home_.store().List({.prefix = "tables/orders/" + part, .start_after = {}});
    return static_cast<int64_t>(page.value().objects.size());
  }
};

TEST_F(ExpireSnapshotsTest, OldSnapshotsGoWithTheirFiles) {
  ASSERT_OK_AND_ASSIGN(const Rid table, MakeCompacted());
  ASSERT_EQ(CountFiles("data"), 3);
  home_.clock().Advance(std::chrono::hours(1));
  const ExpiryRequest request{.older_than = std::chrono::minutes(1), .keep = 1, .dry_run = true};
  ASSERT_OK_AND_ASSIGN(const ExpiryReport dry, ExpireSnapshots(home_.catalog(), table, request));
  EXPECT_EQ(dry.snapshot_ids.size(), 2U);
  EXPECT_EQ(dry.data_files, 2);
  EXPECT_EQ(CountFiles("data"), 3);
  EXPECT_EQ(home_.Metadata(table).snapshots.size(), 3U);
  ASSERT_OK_AND_ASSIGN(
      const ExpiryReport report,
      ExpireSnapshots(home_.catalog(), table,
                      {.older_than = std::chrono::minutes(1), .keep = 1, .dry_run = false}));
  EXPECT_EQ(report.snapshot_ids, dry.snapshot_ids);
  EXPECT_EQ(report.data_files, 2);
  EXPECT_EQ(report.manifest_lists, 2);
  EXPECT_EQ(report.left_behind, 0);
  EXPECT_EQ(CountFiles("data"), 1);
  EXPECT_EQ(home_.Metadata(table).snapshots.size(), 1U);
  EXPECT_THAT(Rows(table, "id::VARCHAR"), ::testing::ElementsAre("1", "2"));
}

TEST_F(ExpireSnapshotsTest, WhatATagReachesStays) {
  ASSERT_OK_AND_ASSIGN(const Rid table, MakeCompacted());
  ASSERT_OK_AND_ASSIGN(const catalog::LoadedTable loaded, home_.catalog().LoadTable(table));
  const int64_t first = loaded.metadata->snapshots.front()->snapshot_id;
  ASSERT_OK(home_.catalog().CommitTables(
      {{.table = loaded.object,
        .requirements = {},
        .updates = {iceberg::table_update::SetSnapshotRef{
            .name = "kept",
            .ref = {.snapshot_id = first, .type = iceberg::SnapshotRefType::kTag}}}}}));
  home_.clock().Advance(std::chrono::hours(1));
  ASSERT_OK_AND_ASSIGN(
      const ExpiryReport report,
      ExpireSnapshots(home_.catalog(), table, {.older_than = std::chrono::minutes(1), .keep = 1}));
  EXPECT_EQ(report.snapshot_ids.size(), 1U);
  EXPECT_EQ(CountFiles("data"), 2);  // That of the tag and the compacted one.
}

TEST_F(ExpireSnapshotsTest, GarbageCollectionCanBeForbidden) {
  ASSERT_OK_AND_ASSIGN(const Rid table, MakeCompacted({{"gc.enabled", "false"}}));
  EXPECT_THAT(ExpireSnapshots(home_.catalog(), table, {.older_than = std::chrono::minutes(0)}),
              FailsWith(ErrorCode::kFailedPrecondition, "gc.enabled"));
}

}  // namespace

}  // namespace tarn::maintenance
