#include "tarn/maintenance/orphans.h"

#include <filesystem>

#include <arrow/api.h>

#include "tarn/maintenance/maintenance_fixture.h"

namespace tarn::maintenance {

namespace {

class FindOrphansTest : public MaintenanceFixture {
 protected:
  // Files of a store have the time of the real clock; the test's clock is made to stand after it.
  void SetUp() override {
    const Timestamp now = SystemClock().Now();
    if (home_.clock().Now() < now) {
      home_.clock().Advance(now - home_.clock().Now());
    }
  }

  Status Put(const std::string& name) {
    return StatusOf(
        WriteObject(home_.store(), "tables/orders/" + name, "x", storage::WriteMode::kOverwrite));
  }
};

TEST_F(FindOrphansTest, WhatNothingRefersToGoesWhenItIsOldEnough) {
  ASSERT_OK_AND_ASSIGN(const Rid table, home_.Make("orders", 3));
  ASSERT_OK(home_.Append(table, "SELECT range AS id, 'a' AS p FROM range(3)"));
  ASSERT_OK(DeleteRows(table, 0, {1}));
  ASSERT_OK(Put("data/orphan.parquet"));
  ASSERT_OK(Put("metadata/.hidden"));
  ASSERT_OK(StatusOf(WriteObject(home_.store(), "tables/orders2/data/other.parquet", "x",
                                 storage::WriteMode::kOverwrite)));
  ASSERT_OK_AND_ASSIGN(
      const OrphansReport young,
      FindOrphans(home_.catalog(), table, {.older_than = std::chrono::hours(24 * 3650)}));
  EXPECT_EQ(young.found, 0);
  EXPECT_EQ(young.too_young, 2);
  home_.clock().Advance(std::chrono::hours(24 * 3650));
  ASSERT_OK_AND_ASSIGN(const OrphansReport dry, FindOrphans(home_.catalog(), table, {}));
  EXPECT_EQ(dry.found, 2);
  EXPECT_EQ(dry.removed, 0);
  ASSERT_EQ(dry.files.size(), 2U);
  EXPECT_EQ(dry.files[0].uri, home_.store().base_uri() + "/tables/orders/data/orphan.parquet");
  ASSERT_OK_AND_ASSIGN(const OrphansReport report,
                       FindOrphans(home_.catalog(), table, {.dry_run = false}));
  EXPECT_EQ(report.removed, 2);
  EXPECT_THAT(home_.store().Head("tables/orders/data/orphan.parquet"), Fails(ErrorCode::kNotFound));
  EXPECT_OK(home_.store().Head("tables/orders2/data/other.parquet"));
  EXPECT_THAT(Rows(table, "id::VARCHAR"), ::testing::ElementsAre("0", "2"));
}

TEST_F(FindOrphansTest, AChecksumStaysWithItsFile) {
  ASSERT_OK_AND_ASSIGN(const Rid table, home_.Make("orders"));
  ASSERT_OK(home_.Append(table, "SELECT 1::BIGINT AS id, 'a' AS p"));
  ASSERT_OK_AND_ASSIGN(const catalog::LoadedTable loaded, home_.catalog().LoadTable(table));
  ASSERT_OK_AND_ASSIGN(const std::string key,
                       storage::KeyOf(home_.store(), loaded.object.metadata_location));
  const std::string name = key.substr(key.rfind('/') + 1);
  ASSERT_OK(Put("metadata/." + name + ".crc"));
  ASSERT_OK(Put("metadata/.gone.avro.crc"));
  ASSERT_OK(Put("metadata/..crc"));
  home_.clock().Advance(std::chrono::hours(24 * 3650));
  ASSERT_OK_AND_ASSIGN(const OrphansReport report,
                       FindOrphans(home_.catalog(), table, {.dry_run = false}));
  EXPECT_EQ(report.removed, 2);
  EXPECT_OK(home_.store().Head("tables/orders/metadata/." + name + ".crc"));
  EXPECT_THAT(home_.store().Head("tables/orders/metadata/.gone.avro.crc"),
              Fails(ErrorCode::kNotFound));
}

TEST_F(FindOrphansTest, YoungFilesAreNeverDeleted) {
  ASSERT_OK_AND_ASSIGN(const Rid table, home_.Make("orders"));
  EXPECT_THAT(
      FindOrphans(home_.catalog(), table, {.older_than = std::chrono::hours(71), .dry_run = false}),
      FailsWith(ErrorCode::kInvalidArgument, "72 hours"));
  EXPECT_OK(FindOrphans(home_.catalog(), table, {.older_than = std::chrono::hours(1)}));
}

TEST_F(FindOrphansTest, NothingIsDeletedWhenAManifestCannotBeRead) {
  ASSERT_OK_AND_ASSIGN(const Rid table, home_.Make("orders"));
  ASSERT_OK(home_.Append(table, "SELECT 1::BIGINT AS id, 'a' AS p"));
  ASSERT_OK(Put("data/orphan.parquet"));
  home_.clock().Advance(std::chrono::hours(24 * 3650));
  const auto list = home_.catalog().manifest_cache().ReadList(
      home_.store(), home_.Metadata(table), *home_.Metadata(table).CurrentSnapshot());
  ASSERT_OK_AND_ASSIGN(const std::string key,
                       storage::KeyOf(home_.store(), (*list)->front().manifest_path));
  ASSERT_OK(StatusOf(WriteObject(home_.store(), key, "not avro", storage::WriteMode::kOverwrite)));
  EXPECT_THAT(FindOrphans(home_.catalog(), table, {.dry_run = false}),
              Fails(ErrorCode::kCorruption));
  EXPECT_OK(home_.store().Head("tables/orders/data/orphan.parquet"));
}

}  // namespace

}  // namespace tarn::maintenance
