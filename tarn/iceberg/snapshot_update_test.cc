#include "tarn/iceberg/snapshot_update.h"

#include <cstdlib>
#include <filesystem>

#include <arrow/api.h>

#include "tarn/format/parquet_writer.h"
#include "tarn/iceberg/commit.h"
#include "tarn/iceberg/data_file.h"
#include "tarn/iceberg/manifest_avro.h"
#include "tarn/iceberg/metadata_builder.h"
#include "tarn/iceberg/position_delete.h"
#include "tarn/iceberg/scan.h"
#include "tarn/iceberg/schema_arrow.h"
#include "tarn/iceberg/update/test_table_fixture.h"
#include "tarn/storage/faulty_store.h"
#include "tarn/storage/local_store.h"
#include "tarn/storage/memory_store.h"
#include "test/support/matchers.h"
#include "test/support/temporary_directory.h"

namespace tarn::iceberg {
namespace {

class SnapshotUpdateTest : public ::testing::Test {
 protected:
  ManualClock clock_{FromMillis(kStart)};
  storage::MemoryStore store_{clock_};
};

TEST_F(SnapshotUpdateTest, AppendsAddFilesAndTotals) {
  TestTable table(store_);
  ASSERT_OK(table.Commit({.added_data_files = {table.File("a", "x", 3)}}));
  ASSERT_OK(table.Commit({.added_data_files = {table.File("b", "x", 4), table.File("c", "y", 5)},
                          .summary = {{"tarn.change-count", "7"}}}));
  EXPECT_THAT(table.LivePaths(), ::testing::ElementsAre("a", "b", "c"));
  const Snapshot& head = *table.metadata().CurrentSnapshot();
  EXPECT_EQ(head.operation, SnapshotOperation::kAppend);
  EXPECT_EQ(head.sequence_number, 2);
  EXPECT_EQ(head.summary.at("added-data-files"), "2");
  EXPECT_EQ(head.summary.at("added-records"), "9");
  EXPECT_EQ(head.summary.at("total-records"), "12");
  EXPECT_EQ(head.summary.at("total-data-files"), "3");
  EXPECT_EQ(head.summary.at("total-delete-files"), "0");
  EXPECT_EQ(head.summary.at("changed-partition-count"), "2");
  EXPECT_EQ(head.summary.at("tarn.change-count"), "7");
  EXPECT_FALSE(head.summary.contains("deleted-data-files"));
  EXPECT_EQ(table.metadata().snapshot_log.size(), 2U);
}

TEST_F(SnapshotUpdateTest, SequenceNumbersAreInheritedByNewFilesAndKeptByOldOnes) {
  TestTable table(store_);
  ASSERT_OK(table.Commit({.added_data_files = {table.File("a", "x"), table.File("b", "x")}}));
  ASSERT_OK(table.Commit({.added_data_files = {table.File("c", "x")}}));
  ASSERT_OK(table.Commit(
      {.operation = SnapshotOperation::kDelete, .removed_data_files = {table.File("a", "x")}}));
  ASSERT_OK_AND_ASSIGN(const auto tasks, PlanScan(store_, table.cache(), table.metadata(),
                                                  std::nullopt, Expression::True(), {}));
  std::map<std::string, int64_t> numbers;
  for (const FileScanTask& task : tasks) {
    numbers[task.file.file_path.substr(task.file.file_path.size() - 1)] = task.sequence_number;
  }
  EXPECT_EQ(numbers, (std::map<std::string, int64_t>{{"b", 1}, {"c", 2}}));
  ASSERT_OK_AND_ASSIGN(const auto manifests, table.Manifests());
  int64_t deleted = 0;
  for (const ManifestFile& manifest : manifests) {
    ASSERT_OK_AND_ASSIGN(const ManifestEntries entries,
                         table.cache().ReadManifest(store_, table.metadata(), manifest));
    for (const ManifestEntry& entry : *entries) {
      if (entry.status == ManifestStatus::kDeleted) {
        ++deleted;
        EXPECT_EQ(entry.snapshot_id, table.metadata().current_snapshot_id);
        EXPECT_EQ(entry.sequence_number, 1);
        EXPECT_EQ(entry.file_sequence_number, 1);
      }
    }
  }
  EXPECT_EQ(deleted, 1);
}

TEST_F(SnapshotUpdateTest, OneOverwriteCoversSeveralSpecsDeletesAndRemovals) {
  TestTable table(store_);
  ASSERT_OK(table.Commit(
      {.added_data_files = {table.File("change", "Changes"), table.File("old", "Current", 100)}}));
  PartitionSpec next = ByPart();
  next.fields.push_back(
      {.source_id = 2, .field_id = 0, .name = "id_bucket", .transform = Transform::Bucket(4)});
  ASSERT_OK(table.CommitUpdates({table_update::AddSpec{next}, table_update::SetDefaultSpec{}}));
  DataFile current = table.File("new", "Current", 5);
  current.spec_id = 1;
  current.partition = {Literal::String("Current"), Literal::Long(2)};
  DataFile deletes = table.File("old-deletes", "Current", 1);
  deletes.content = DataFileContent::kPositionDeletes;
  deletes.referenced_data_file = table.File("old", "Current").file_path;
  ASSERT_OK(table.Commit({.operation = SnapshotOperation::kOverwrite,
                          .added_data_files = {current, table.File("state", "Asset_state", 1)},
                          .added_delete_files = {deletes},
                          .removed_data_files = {table.File("change", "Changes")}}));
  EXPECT_THAT(table.LivePaths(), ::testing::ElementsAre("new", "old", "state"));
  const auto& summary = table.metadata().CurrentSnapshot()->summary;
  EXPECT_EQ(summary.at("added-data-files"), "2");
  EXPECT_EQ(summary.at("added-position-delete-files"), "1");
  EXPECT_EQ(summary.at("deleted-data-files"), "1");
  EXPECT_EQ(summary.at("total-position-deletes"), "1");
  EXPECT_EQ(summary.at("total-records"), "106");
  ASSERT_OK_AND_ASSIGN(const auto tasks, PlanScan(store_, table.cache(), table.metadata(),
                                                  std::nullopt, Expression::True(), {}));
  for (const FileScanTask& task : tasks) {
    const bool is_old = task.file.file_path.ends_with("/old");
    EXPECT_EQ(task.deletes.size(), is_old ? 1U : 0U) << task.file.file_path;
  }
  // The old file goes: so does the delete file that is only about it.
  ASSERT_OK(table.Commit({.operation = SnapshotOperation::kOverwrite,
                          .removed_data_files = {table.File("old", "Current")}}));
  EXPECT_EQ(table.metadata().CurrentSnapshot()->summary.at("total-delete-files"), "0");
  EXPECT_EQ(table.metadata().CurrentSnapshot()->summary.at("removed-position-delete-files"), "1");
}

TEST_F(SnapshotUpdateTest, RemovingWhatIsNotLiveConflicts) {
  TestTable table(store_);
  ASSERT_OK(table.Commit({.added_data_files = {table.File("a", "x")}}));
  EXPECT_THAT(table.Commit({.operation = SnapshotOperation::kDelete,
                            .removed_data_files = {table.File("gone", "x")}}),
              FailsWith(ErrorCode::kConflict, "gone"));
  DataFile wrong_hint = table.File("a", "elsewhere");
  ASSERT_OK(
      table.Commit({.operation = SnapshotOperation::kDelete, .removed_data_files = {wrong_hint}}));
  EXPECT_TRUE(table.LivePaths().empty());
}

TEST_F(SnapshotUpdateTest, PrepareAgainOnANewerBaseReusesDataManifests) {
  TestTable table(store_);
  ASSERT_OK(table.Commit({.added_data_files = {table.File("a", "x")}}));
  const TableMetadata stale = table.metadata();
  SnapshotProducer producer({.added_data_files = {table.File("late", "x")}},
                            {store_, table.cache()});
  ASSERT_OK_AND_ASSIGN(const PreparedSnapshot first, producer.Prepare(stale, kStart + 5000));
  ASSERT_OK(table.Commit({.added_data_files = {table.File("b", "x")}}));
  EXPECT_THAT(CheckRequirements(&table.metadata(), first.requirements),
              FailsWith(ErrorCode::kConflict, "branch main has changed"));
  ASSERT_OK_AND_ASSIGN(const PreparedSnapshot second,
                       producer.Prepare(table.metadata(), kStart + 6000));
  EXPECT_EQ(second.attempt_files.size(), 1U);  // The manifest list alone.
  EXPECT_EQ(second.snapshot.sequence_number, 3);
  ASSERT_OK(table.CommitUpdates(second.updates));
  const size_t before = store_.object_count();
  producer.CleanUp(&second.snapshot);
  EXPECT_EQ(store_.object_count(), before - 1);  // The list of the first attempt is gone.
  EXPECT_THAT(table.LivePaths(), ::testing::ElementsAre("a", "b", "late"));
}

TEST_F(SnapshotUpdateTest, ValidationFindsConcurrentDeletesDataAndRemovals) {
  TestTable table(store_);
  ASSERT_OK(table.Commit({.added_data_files = {table.File("a", "x"), table.File("b", "y")}}));
  const int64_t start = *table.metadata().current_snapshot_id;
  DataFile deletes = table.File("a-deletes", "x", 1);
  deletes.content = DataFileContent::kPositionDeletes;
  deletes.referenced_data_file = table.File("a", "x").file_path;
  ASSERT_OK(
      table.Commit({.operation = SnapshotOperation::kOverwrite, .added_delete_files = {deletes}}));
  const SnapshotUpdate rewrite_a{
      .operation = SnapshotOperation::kReplace,
      .added_data_files = {table.File("a2", "x")},
      .removed_data_files = {table.File("a", "x")},
      .data_sequence_number = 1,
      .validation = {.starting_snapshot_id = start, .no_new_deletes = true}};
  EXPECT_THAT(table.Commit(rewrite_a), FailsWith(ErrorCode::kConflict, "a-deletes"));
  SnapshotUpdate rewrite_b = rewrite_a;
  rewrite_b.added_data_files = {table.File("b2", "y")};
  rewrite_b.removed_data_files = {table.File("b", "y")};
  ASSERT_OK(table.Commit(rewrite_b));
  // A rewrite adds no rows, so it does not stand against a check for new ones.
  SnapshotUpdate serializable{.operation = SnapshotOperation::kOverwrite,
                              .added_data_files = {table.File("c", "z")}};
  serializable.validation = {.starting_snapshot_id = start,
                             .no_new_data = Expression::Equal("part", Literal::String("y"))};
  ASSERT_OK(table.Commit(serializable));
  serializable.added_data_files = {table.File("d", "z")};
  serializable.validation.no_new_data = Expression::Equal("part", Literal::String("z"));
  EXPECT_THAT(table.Commit(serializable), FailsWith(ErrorCode::kConflict, "conflicting files"));
  SnapshotUpdate refers{.operation = SnapshotOperation::kOverwrite};
  refers.added_delete_files = {deletes};
  refers.added_delete_files[0].file_path += "2";
  refers.validation = {.starting_snapshot_id = start,
                       .referenced_data_files = {table.File("b", "y").file_path}};
  EXPECT_THAT(table.Commit(refers), FailsWith(ErrorCode::kConflict, "missing data files"));
}

// An update of rows is a delete and new rows: a concurrent delete must not miss the new ones.
TEST_F(SnapshotUpdateTest, RowsThatMoveConflictWithDeletesOfTheirPartition) {
  TestTable table(store_);
  ASSERT_OK(table.Commit({.added_data_files = {table.File("a", "x"), table.File("b", "y")}}));
  const int64_t start = *table.metadata().current_snapshot_id;
  const auto deletes_in = [&](const std::string& name, const std::string& part) {
    DataFile file = table.File(name, part, 1);
    file.content = DataFileContent::kPositionDeletes;
    return file;
  };
  SnapshotUpdate mine{.operation = SnapshotOperation::kOverwrite};
  mine.added_data_files = {table.File("a-new", "x")};
  mine.added_delete_files = {deletes_in("a-mine", "x")};
  mine.added_delete_files[0].referenced_data_file = table.File("a", "x").file_path;
  mine.validation = {.starting_snapshot_id = start,
                     .referenced_data_files = {table.File("a", "x").file_path},
                     .no_new_deletes = true};
  const auto commit_theirs = [&](DataFile file) {
    return StatusOf(table.Commit(
        {.operation = SnapshotOperation::kOverwrite, .added_delete_files = {std::move(file)}}));
  };
  // Deletes without rows may stand beside any others.
  SnapshotUpdate only_deletes = mine;
  only_deletes.added_data_files.clear();
  only_deletes.added_delete_files[0].file_path += "-only";
  ASSERT_OK(commit_theirs(deletes_in("y-theirs", "y")));
  SnapshotUpdate in_time = mine;
  in_time.added_data_files[0].file_path += "-in-time";
  in_time.added_delete_files[0].file_path += "-in-time";
  in_time.added_delete_files[0].referenced_data_file = table.File("b", "x").file_path;
  ASSERT_OK(table.Commit(in_time));
  DataFile by_value = deletes_in("x-by-value", "x");
  by_value.content = DataFileContent::kEqualityDeletes;
  by_value.equality_ids = {2};
  for (const DataFile& theirs : {deletes_in("x-theirs", "x"), by_value}) {
    mine.validation.starting_snapshot_id = table.metadata().current_snapshot_id;
    only_deletes.validation.starting_snapshot_id = table.metadata().current_snapshot_id;
    ASSERT_OK(commit_theirs(theirs));
    EXPECT_THAT(table.Commit(mine), FailsWith(ErrorCode::kConflict, theirs.file_path));
  }
  ASSERT_OK(table.Commit(only_deletes));
}

TEST_F(SnapshotUpdateTest, DeletesByValueWithoutPartitionConflictEverywhere) {
  TestTable table(store_);
  ASSERT_OK(table.Commit({.added_data_files = {table.File("a", "x")}}));
  ASSERT_OK(table.CommitUpdates({table_update::AddSpec{.spec = {.spec_id = 1, .fields = {}}}}));
  SnapshotUpdate mine{.operation = SnapshotOperation::kOverwrite};
  mine.added_data_files = {table.File("a-new", "x")};
  mine.added_delete_files = {table.File("a-mine", "x", 1)};
  mine.added_delete_files[0].content = DataFileContent::kPositionDeletes;
  mine.added_delete_files[0].referenced_data_file = table.File("a", "x").file_path;
  mine.validation = {.starting_snapshot_id = table.metadata().current_snapshot_id,
                     .no_new_deletes = true};
  DataFile everywhere = table.File("everywhere", "x", 1);
  everywhere.content = DataFileContent::kEqualityDeletes;
  everywhere.equality_ids = {2};
  everywhere.spec_id = 1;
  everywhere.partition.clear();
  ASSERT_OK(table.Commit(
      {.operation = SnapshotOperation::kOverwrite, .added_delete_files = {everywhere}}));
  EXPECT_THAT(table.Commit(mine), FailsWith(ErrorCode::kConflict, "everywhere"));
}

TEST_F(SnapshotUpdateTest, BadUpdatesAreRefused) {
  TestTable table(store_);
  const DataFile a = table.File("a", "x");
  EXPECT_THAT(table.Commit({.added_data_files = {a, a}}),
              FailsWith(ErrorCode::kInvalidArgument, "twice"));
  DataFile other_spec = a;
  other_spec.spec_id = 9;
  EXPECT_THAT(table.Commit({.added_data_files = {other_spec}}),
              FailsWith(ErrorCode::kInvalidArgument, "partition spec 9"));
  DataFile no_values = a;
  no_values.partition.clear();
  EXPECT_THAT(table.Commit({.added_data_files = {no_values}}),
              FailsWith(ErrorCode::kInvalidArgument, "partition values"));
  EXPECT_THAT(table.Commit({.added_data_files = {a}, .removed_data_files = {table.File("b", "x")}}),
              FailsWith(ErrorCode::kInvalidArgument, "append"));
  DataFile deletes = a;
  deletes.content = DataFileContent::kPositionDeletes;
  EXPECT_THAT(table.Commit({.added_delete_files = {deletes}}),
              FailsWith(ErrorCode::kInvalidArgument, "append"));
  EXPECT_EQ(table.metadata().CurrentSnapshot(), nullptr);
}

TEST_F(SnapshotUpdateTest, ManyAppendsKeepTheManifestListShort) {
  TestTable table(store_, {{"commit.manifest.min-count-to-merge", "5"}});
  for (int i = 0; i < 200; ++i) {
    ASSERT_OK(table.Commit({.added_data_files = {table.File("f" + std::to_string(i), "x")},
                            .expiry = ExpiryOptions{.max_age_ms = 3000, .min_keep = 2}}));
  }
  ASSERT_OK_AND_ASSIGN(const auto manifests, table.Manifests());
  EXPECT_LE(manifests.size(), 20U);
  EXPECT_EQ(table.LivePaths().size(), 200U);
  EXPECT_LE(table.metadata().snapshots.size(), 5U);
  EXPECT_EQ(table.metadata().CurrentSnapshot()->summary.at("total-data-files"), "200");
}

TEST_F(SnapshotUpdateTest, EveryFailingStoreOperationLeavesTheTableAsItWas) {
  for (const storage::FaultMode mode :
       {storage::FaultMode::kBeforeEffect, storage::FaultMode::kAfterEffect}) {
    for (int64_t n = 1; n < 200; ++n) {
      storage::MemoryStore memory(clock_);
      storage::FaultyStore faulty(memory, {});
      TestTable table(faulty);
      ASSERT_OK(table.Commit({.added_data_files = {table.File("a", "x"), table.File("b", "x")}}));
      const TableMetadata before = table.metadata();
      const size_t objects = memory.object_count();
      faulty.Rearm({.fail_at = n, .mode = mode});
      SnapshotProducer producer({.operation = SnapshotOperation::kOverwrite,
                                 .added_data_files = {table.File("c", "y")},
                                 .removed_data_files = {table.File("a", "x")}},
                                {faulty, table.cache()});
      const auto prepared = producer.Prepare(before, kStart + 9000);
      if (!prepared.ok()) {
        EXPECT_NE(prepared.status().code(), ErrorCode::kCommitStateUnknown);
        faulty.Rearm({});
        producer.CleanUp(nullptr);
        EXPECT_EQ(memory.object_count(), objects) << "after failure " << n;
        // The same producer succeeds once the store works again, with files that are there.
        ASSERT_OK_AND_ASSIGN(const PreparedSnapshot again, producer.Prepare(before, kStart + 9500));
        ASSERT_OK(table.CommitUpdates(again.updates));
        EXPECT_THAT(table.LivePaths(), ::testing::ElementsAre("b", "c"));
        continue;
      }
      EXPECT_FALSE(faulty.failed());
      EXPECT_GT(n, 2);
      break;
    }
  }
}

TEST_F(SnapshotUpdateTest, VersionThreeGivesRowIds) {
  TestTable table(store_, {{"format-version", "3"}});
  ASSERT_OK(table.Commit({.added_data_files = {table.File("a", "x", 10)}}));
  ASSERT_OK(table.Commit({.added_data_files = {table.File("b", "x", 5)}}));
  EXPECT_EQ(table.metadata().next_row_id, 15);
  ASSERT_OK_AND_ASSIGN(const auto tasks, PlanScan(store_, table.cache(), table.metadata(),
                                                  std::nullopt, Expression::True(), {}));
  for (const FileScanTask& task : tasks) {
    EXPECT_EQ(task.file.first_row_id, task.file.file_path.ends_with("a") ? 0 : 10);
  }
  DataFile deletes = table.File("d", "x", 1);
  deletes.content = DataFileContent::kPositionDeletes;
  EXPECT_THAT(
      table.Commit({.operation = SnapshotOperation::kOverwrite, .added_delete_files = {deletes}}),
      FailsWith(ErrorCode::kInvalidArgument, "version 3"));
}

TEST_F(SnapshotUpdateTest, VersionOneTablesAreReadOnly) {
  TestTable table(store_, {{"format-version", "1"}});
  EXPECT_THAT(table.Commit({.added_data_files = {table.File("a", "x")}}),
              Fails(ErrorCode::kUnimplemented));
}

// Writes a table into a directory: test/clients/iceberg_oracle_test.py has other readers read it.
// Rows 0..49 are in part x, less 7 and 13; 100..109 in part y under a second spec; the text column
// was renamed to note.
TEST_F(SnapshotUpdateTest, TableForOtherReaders) {
  const TemporaryDirectory temporary;
  const char* given = std::getenv("TARN_ICEBERG_ORACLE_DIR");
  const std::filesystem::path root = given != nullptr ? given : temporary.path() / "warehouse";
  ASSERT_OK_AND_ASSIGN(const auto local, storage::LocalStore::Open({.root = root}));
  TestTable table(*local, {}, "ns/oracle");
  ASSERT_OK_AND_ASSIGN(const DataFile x, table.WriteRows("x.parquet", "x", 0, 50));
  ASSERT_OK(table.Commit({.added_data_files = {x}}));
  PartitionSpec next = ByPart();
  next.fields.push_back(
      {.source_id = 4, .field_id = 0, .name = "at_day", .transform = Transform::Day()});
  ASSERT_OK(table.CommitUpdates({table_update::AddSpec{next}, table_update::SetDefaultSpec{}}));
  ASSERT_OK_AND_ASSIGN(const DataFile y,
                       table.WriteRows("y.parquet", "y", 100, 10, 1,
                                       {Literal::String("y"), Literal::Long(kStart / 86'400'000)}));
  ASSERT_OK_AND_ASSIGN(
      const DataFile deletes,
      WritePositionDeletes(*local,
                           {.file_path = DataFolder(table.metadata()) + "/x-deletes.parquet",
                            .data_file_path = x.file_path,
                            .partition = x.partition},
                           {13, 7, 7}));
  ASSERT_OK(table.Commit({.operation = SnapshotOperation::kOverwrite,
                          .added_data_files = {y},
                          .added_delete_files = {deletes}}));
  Schema renamed = table.metadata().CurrentSchema();
  renamed.fields[2].name = "note";
  ASSERT_OK(
      table.CommitUpdates({table_update::AddSchema{renamed}, table_update::SetCurrentSchema{}}));
  UuidGenerator uuids(clock_);
  ASSERT_OK_AND_ASSIGN(const std::string location,
                       WriteMetadata(*local, table.metadata(), "", uuids));
  ASSERT_OK_AND_ASSIGN(const TableMetadata read, ReadTableMetadata(*local, location));
  EXPECT_EQ(read, table.metadata());
  ASSERT_OK_AND_ASSIGN(const auto tasks,
                       PlanScan(*local, table.cache(), read, std::nullopt,
                                Expression::Equal("part", Literal::String("x")), {}));
  ASSERT_EQ(tasks.size(), 1U);
  ASSERT_EQ(tasks[0].deletes.size(), 1U);
  EXPECT_THAT(ReadPositionDeletesOf(*local, {tasks[0].deletes[0]->file}, x.file_path),
              IsOkAndHolds(Positions{7, 13}));
}

}  // namespace
}  // namespace tarn::iceberg
