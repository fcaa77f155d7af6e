#include "tarn/iceberg/update/table_operation.h"

#include <cstdlib>
#include <filesystem>

#include "tarn/iceberg/commit.h"
#include "tarn/iceberg/delete_index.h"
#include "tarn/iceberg/update/test_table_fixture.h"
#include "tarn/storage/faulty_store.h"
#include "tarn/storage/local_store.h"
#include "tarn/storage/memory_store.h"
#include "test/support/temporary_directory.h"

namespace tarn::iceberg {
namespace {

using ::testing::ElementsAre;

class TableOperationTest : public ::testing::TestWithParam<int> {
 protected:
  TableOperationTest()
      : table_(store_, {{"format-version", std::to_string(GetParam())}}), uuids_(clock_) {}

  [[nodiscard]] OperationContext Context() {
    return {.store = store_, .cache = table_.cache(), .metadata = table_.metadata()};
  }

  Result<std::vector<FileScanTask>> Plan(const Expression& filter = Expression::True()) {
    return PlanScan(store_, table_.cache(), table_.metadata(), std::nullopt, filter, {});
  }

  // A delta that deletes rows of the file of that name, planned now.
  Result<SnapshotUpdate> DeleteRows(const std::string& name, Positions positions,
                                    IsolationLevel isolation = IsolationLevel::kSerializable) {
    TARN_ASSIGN_OR_RETURN(const std::vector<FileScanTask> tasks, Plan());
    for (const FileScanTask& task : tasks) {
      if (task.file.file_path.ends_with("/" + name)) {
        TARN_ASSIGN_OR_RETURN(WrittenRowDeletes written,
                              WriteRowDeletes(store_, table_.metadata(), uuids_,
                                              {{.task = task, .positions = std::move(positions)}}));
        return DeltaUpdate(Context(), {.deletes = std::move(written),
                                       .filter = Expression::Equal("part", Literal::String("x")),
                                       .isolation = isolation});
      }
    }
    return Status::NotFound(name);
  }

  // Deleted rows by the name of the file.
  std::map<std::string, Positions> Deleted() {
    std::map<std::string, Positions> deleted;
    const Result<std::vector<FileScanTask>> tasks = Plan();
    EXPECT_OK(tasks);
    for (const FileScanTask& task : *tasks) {
      const Result<Positions> positions = ReadDeletedPositions(store_, task);
      EXPECT_OK(positions);
      EXPECT_LE(task.deletes.size(), 1U);
      deleted[task.file.file_path.substr(task.file.file_path.rfind('/') + 1)] = *positions;
    }
    return deleted;
  }

  ManualClock clock_{FromMillis(kStart)};
  storage::MemoryStore store_{clock_};
  TestTable table_;
  UuidGenerator uuids_;
};

TEST_P(TableOperationTest, ADataFileKeepsOneDeleteFile) {
  ASSERT_OK(table_.Commit({.added_data_files = {table_.File("a", "x"), table_.File("b", "x")}}));
  ASSERT_OK_AND_ASSIGN(const SnapshotUpdate first, DeleteRows("a", {3, 1, 3}));
  EXPECT_EQ(first.operation, SnapshotOperation::kDelete);
  ASSERT_OK(table_.Commit(first));
  ASSERT_OK_AND_ASSIGN(const SnapshotUpdate second, DeleteRows("a", {5, 1}));
  ASSERT_EQ(second.removed_delete_files.size(), 1U);
  ASSERT_OK(table_.Commit(second));
  EXPECT_EQ(Deleted(), (std::map<std::string, Positions>{{"a", {1, 3, 5}}, {"b", {}}}));
  const Snapshot& head = *table_.metadata().CurrentSnapshot();
  EXPECT_EQ(head.summary.at("total-position-deletes"), "3");
  EXPECT_EQ(head.summary.at("total-delete-files"), "1");
  EXPECT_EQ(head.summary.contains("added-dvs"), GetParam() == 3);
  EXPECT_THAT(DeleteRows("a", {10}), FailsWith(ErrorCode::kInvalidArgument, "10 rows"));
  EXPECT_THAT(DeleteRows("a", {-1}), Fails(ErrorCode::kInvalidArgument));
}

TEST_P(TableOperationTest, DeletingDeletedRowsWritesNothing) {
  ASSERT_OK(table_.Commit({.added_data_files = {table_.File("a", "x")}}));
  ASSERT_OK_AND_ASSIGN(const SnapshotUpdate first, DeleteRows("a", {1}));
  ASSERT_OK(table_.Commit(first));
  ASSERT_OK_AND_ASSIGN(const SnapshotUpdate again, DeleteRows("a", {1}));
  EXPECT_TRUE(again.added_delete_files.empty());
  EXPECT_TRUE(again.removed_delete_files.empty());
}

TEST_P(TableOperationTest, SeveralFilesAreDeletedFromAtOnce) {
  ASSERT_OK(table_.Commit({.added_data_files = {table_.File("a", "x"), table_.File("b", "y")}}));
  ASSERT_OK_AND_ASSIGN(const auto tasks, Plan());
  ASSERT_OK_AND_ASSIGN(WrittenRowDeletes written,
                       WriteRowDeletes(store_, table_.metadata(), uuids_,
                                       {{.task = tasks[0], .positions = {0}},
                                        {.task = tasks[1], .positions = {1, 2}}}));
  EXPECT_EQ(written.deleted_rows, 3);
  const bool one_file = written.added[0].file_path == written.added[1].file_path;
  EXPECT_EQ(one_file, GetParam() == 3);
  ASSERT_OK_AND_ASSIGN(const SnapshotUpdate delta,
                       DeltaUpdate(Context(), {.deletes = std::move(written)}));
  ASSERT_OK(table_.Commit(delta));
  EXPECT_EQ(Deleted(), (std::map<std::string, Positions>{{"a", {0}}, {"b", {1, 2}}}));
  // Taking one vector out of the file they share leaves the other.
  ASSERT_OK_AND_ASSIGN(const SnapshotUpdate more, DeleteRows("a", {4}));
  ASSERT_OK(table_.Commit(more));
  EXPECT_EQ(Deleted(), (std::map<std::string, Positions>{{"a", {0, 4}}, {"b", {1, 2}}}));
}

TEST_P(TableOperationTest, ConcurrentDeletesOfOneFileConflict) {
  ASSERT_OK(table_.Commit({.added_data_files = {table_.File("a", "x"), table_.File("b", "y")}}));
  ASSERT_OK_AND_ASSIGN(const SnapshotUpdate mine, DeleteRows("a", {1}, IsolationLevel::kSnapshot));
  ASSERT_OK_AND_ASSIGN(const SnapshotUpdate theirs, DeleteRows("a", {2}));
  ASSERT_OK_AND_ASSIGN(const SnapshotUpdate other, DeleteRows("b", {2}));
  ASSERT_OK(table_.Commit(other));
  ASSERT_OK(table_.Commit(theirs));
  EXPECT_THAT(table_.Commit(mine), FailsWith(ErrorCode::kConflict, "delete file"));
  EXPECT_EQ(Deleted(), (std::map<std::string, Positions>{{"a", {2}}, {"b", {2}}}));
}

TEST_P(TableOperationTest, AVectorNeverStandsBesideAnother) {
  if (GetParam() < 3) {
    GTEST_SKIP() << "deletion vectors are of version 3";
  }
  ASSERT_OK(table_.Commit({.added_data_files = {table_.File("a", "x")}}));
  ASSERT_OK_AND_ASSIGN(SnapshotUpdate first, DeleteRows("a", {1}));
  ASSERT_OK_AND_ASSIGN(SnapshotUpdate second, DeleteRows("a", {2}));
  ASSERT_OK(table_.Commit(first));
  // Even a writer that checks nothing, and one that knows of no history.
  second.validation = {};
  EXPECT_THAT(table_.Commit(second), Fails(ErrorCode::kConflict));
  second.validation.starting_snapshot_id = table_.metadata().current_snapshot_id;
  EXPECT_THAT(table_.Commit(second), FailsWith(ErrorCode::kConflict, "already"));
  EXPECT_EQ(Deleted().at("a"), (Positions{1}));
}

TEST_P(TableOperationTest, AFileThatIsGoneCannotBeDeletedFrom) {
  ASSERT_OK(table_.Commit({.added_data_files = {table_.File("a", "x")}}));
  ASSERT_OK_AND_ASSIGN(const SnapshotUpdate mine, DeleteRows("a", {1}));
  ASSERT_OK(table_.Commit(
      {.operation = SnapshotOperation::kDelete, .removed_data_files = {table_.File("a", "x")}}));
  EXPECT_THAT(table_.Commit(mine), FailsWith(ErrorCode::kConflict, "missing data files"));
}

TEST_P(TableOperationTest, NewRowsConflictOnlyWhenSerializable) {
  ASSERT_OK(table_.Commit({.added_data_files = {table_.File("a", "x")}}));
  ASSERT_OK_AND_ASSIGN(const SnapshotUpdate strict, DeleteRows("a", {1}));
  ASSERT_OK_AND_ASSIGN(const SnapshotUpdate loose, DeleteRows("a", {1}, IsolationLevel::kSnapshot));
  ASSERT_OK(table_.Commit({.added_data_files = {table_.File("b", "x")}}));
  EXPECT_THAT(table_.Commit(strict), FailsWith(ErrorCode::kConflict, "/b"));
  EXPECT_OK(table_.Commit(loose));
}

TEST_P(TableOperationTest, DeleteByFilterTakesWholeFiles) {
  ASSERT_OK(table_.Commit(
      {.added_data_files = {table_.File("a", "x"), table_.File("b", "y"), table_.File("c", "x")}}));
  const Expression x = Expression::Equal("part", Literal::String("x"));
  ASSERT_OK_AND_ASSIGN(const SnapshotUpdate update, DeleteByFilter(Context(), x));
  ASSERT_OK(table_.Commit(update));
  EXPECT_THAT(table_.LivePaths(), ElementsAre("b"));
  EXPECT_EQ(table_.metadata().CurrentSnapshot()->operation, SnapshotOperation::kDelete);
  EXPECT_THAT(DeleteByFilter(Context(), Expression::Equal("id", Literal::Long(1))),
              FailsWith(ErrorCode::kInvalidArgument, "/b"));
}

TEST_P(TableOperationTest, OverwriteByFilterReplacesAndChecks) {
  ASSERT_OK(table_.Commit({.added_data_files = {table_.File("a", "x"), table_.File("b", "y")}}));
  const Expression x = Expression::Equal("part", Literal::String("x"));
  EXPECT_THAT(
      OverwriteByFilter(Context(), x, {table_.File("n", "y")}, IsolationLevel::kSerializable),
      FailsWith(ErrorCode::kInvalidArgument, "/n"));
  ASSERT_OK_AND_ASSIGN(
      const SnapshotUpdate strict,
      OverwriteByFilter(Context(), x, {table_.File("n", "x")}, IsolationLevel::kSerializable));
  ASSERT_OK_AND_ASSIGN(
      const SnapshotUpdate loose,
      OverwriteByFilter(Context(), x, {table_.File("m", "x")}, IsolationLevel::kSnapshot));
  ASSERT_OK(table_.Commit({.added_data_files = {table_.File("c", "y")}}));
  ASSERT_OK(table_.Commit({.added_data_files = {table_.File("d", "x")}}));
  EXPECT_THAT(table_.Commit(strict), FailsWith(ErrorCode::kConflict, "/d"));
  ASSERT_OK(table_.Commit(loose));
  EXPECT_THAT(table_.LivePaths(), ElementsAre("b", "c", "d", "m"));
}

TEST_P(TableOperationTest, ReplacedPartitionsLoseTheirFiles) {
  ASSERT_OK(table_.Commit({.added_data_files = {table_.File("a", "x"), table_.File("b", "y")}}));
  ASSERT_OK_AND_ASSIGN(const SnapshotUpdate update,
                       ReplacePartitions(Context(), {table_.File("n", "x"), table_.File("z", "z")},
                                         IsolationLevel::kSerializable));
  ASSERT_OK_AND_ASSIGN(
      const SnapshotUpdate late,
      ReplacePartitions(Context(), {table_.File("late", "q")}, IsolationLevel::kSerializable));
  ASSERT_OK(table_.Commit({.added_data_files = {table_.File("c", "y")}}));
  ASSERT_OK(table_.Commit(update));
  EXPECT_EQ(table_.metadata().CurrentSnapshot()->summary.at("replace-partitions"), "true");
  EXPECT_THAT(table_.LivePaths(), ElementsAre("b", "c", "n", "z"));
  ASSERT_OK(table_.Commit({.added_data_files = {table_.File("q", "q")}}));
  EXPECT_THAT(table_.Commit(late), FailsWith(ErrorCode::kConflict, "/q"));
}

TEST_P(TableOperationTest, RewrittenRowsKeepTheirNumberAndLoseTheirDeletes) {
  ASSERT_OK(table_.Commit({.added_data_files = {table_.File("a", "x"), table_.File("b", "x")}}));
  ASSERT_OK_AND_ASSIGN(const SnapshotUpdate deletes, DeleteRows("a", {1}));
  ASSERT_OK(table_.Commit(deletes));
  ASSERT_OK_AND_ASSIGN(const auto tasks, Plan());
  ASSERT_OK_AND_ASSIGN(const SnapshotUpdate rewrite,
                       RewriteUpdate(Context(), tasks, {table_.File("ab", "x", 19)}));
  ASSERT_OK_AND_ASSIGN(const SnapshotUpdate late,
                       RewriteUpdate(Context(), tasks, {table_.File("late", "x", 19)}));
  ASSERT_OK(table_.Commit({.added_data_files = {table_.File("c", "x")}}));
  ASSERT_OK(table_.Commit(rewrite));
  const Snapshot& head = *table_.metadata().CurrentSnapshot();
  EXPECT_EQ(head.operation, SnapshotOperation::kReplace);
  EXPECT_EQ(head.summary.at("total-delete-files"), "0");
  ASSERT_OK_AND_ASSIGN(const auto after, Plan());
  for (const FileScanTask& task : after) {
    EXPECT_EQ(task.sequence_number, task.file.file_path.ends_with("/ab") ? 2 : 3);
    EXPECT_TRUE(task.deletes.empty());
  }
  EXPECT_THAT(table_.Commit(late), Fails(ErrorCode::kConflict));
}

TEST_P(TableOperationTest, ARewriteGivesWayToConcurrentDeletes) {
  ASSERT_OK(table_.Commit({.added_data_files = {table_.File("a", "x"), table_.File("b", "x")}}));
  ASSERT_OK_AND_ASSIGN(const auto tasks, Plan());
  ASSERT_OK_AND_ASSIGN(const SnapshotUpdate rewrite,
                       RewriteUpdate(Context(), tasks, {table_.File("ab", "x", 20)}));
  ASSERT_OK_AND_ASSIGN(const SnapshotUpdate deletes, DeleteRows("b", {7}));
  ASSERT_OK(table_.Commit(deletes));
  EXPECT_THAT(table_.Commit(rewrite), FailsWith(ErrorCode::kConflict, "/b"));
  EXPECT_EQ(Deleted().at("b"), (Positions{7}));
}

TEST_P(TableOperationTest, AnIsolationLevelIsAWordOfTwo) {
  EXPECT_THAT(IsolationOf(table_.metadata(), "delete"),
              IsOkAndHolds(IsolationLevel::kSerializable));
  ASSERT_OK(table_.CommitUpdates({table_update::SetProperties{
      {{"write.delete.isolation-level", "snapshot"}, {"write.update.isolation-level", "none"}}}}));
  EXPECT_THAT(IsolationOf(table_.metadata(), "delete"), IsOkAndHolds(IsolationLevel::kSnapshot));
  EXPECT_THAT(IsolationOf(table_.metadata(), "update"),
              FailsWith(ErrorCode::kInvalidArgument, "none"));
}

TEST_P(TableOperationTest, RowIdsGoOnOverCommits) {
  if (GetParam() < 3) {
    GTEST_SKIP() << "row ids are of version 3";
  }
  ASSERT_OK(table_.Commit({.added_data_files = {table_.File("a", "x", 7)}}));
  ASSERT_OK(table_.Commit({.added_data_files = {table_.File("b", "x", 5), table_.File("c", "y")}}));
  EXPECT_EQ(table_.metadata().next_row_id, 22);
  ASSERT_OK(table_.Commit(
      {.operation = SnapshotOperation::kDelete, .removed_data_files = {table_.File("b", "x", 5)}}));
  ASSERT_OK_AND_ASSIGN(const auto tasks, Plan());
  std::map<std::string, int64_t> first;
  for (const FileScanTask& task : tasks) {
    first[task.file.file_path.substr(task.file.file_path.rfind('/') + 1)] =
        task.file.first_row_id.value_or(-1);
  }
  EXPECT_EQ(first, (std::map<std::string, int64_t>{{"a", 0}, {"c", 12}}));
  // The rewritten manifest may take ids of its own for what it says is there, never fewer.
  EXPECT_GE(table_.metadata().next_row_id, 22);
}

TEST_P(TableOperationTest, AFailedWriteLeavesTheTableAsItWas) {
  ASSERT_OK(table_.Commit({.added_data_files = {table_.File("a", "x")}}));
  ASSERT_OK_AND_ASSIGN(const auto tasks, Plan());
  for (int64_t n = 1;; ++n) {
    storage::FaultyStore faulty(store_, {.fail_at = n, .mode = storage::FaultMode::kBeforeEffect});
    const Result<WrittenRowDeletes> written = WriteRowDeletes(
        faulty, table_.metadata(), uuids_, {{.task = tasks[0], .positions = {n % 10}}});
    EXPECT_EQ(written.ok(), !faulty.failed());
    EXPECT_EQ(Deleted().at("a"), Positions());
    if (!faulty.failed()) {
      break;
    }
  }
}

// Writes a table of version 3 with deletion vectors into a directory, for other readers:
// test/clients/iceberg_oracle_test.py. Rows 0..49 in part x less 3, 4, 5, 30; 50..99 in part y less
// 99; the vectors share one Puffin file, that of x was replaced by a second one.
TEST(TableOperationOracleTest, VectorsForOtherReaders) {
  const TemporaryDirectory temporary;
  const char* given = std::getenv("TARN_ICEBERG_ORACLE_DIR");
  const std::filesystem::path root = given != nullptr ? given : temporary.path() / "warehouse";
  ASSERT_OK_AND_ASSIGN(const auto local, storage::LocalStore::Open({.root = root}));
  TestTable table(*local, {{"format-version", "3"}}, "ns/vectors");
  ASSERT_OK_AND_ASSIGN(const DataFile x, table.WriteRows("x.parquet", "x", 0, 50));
  ASSERT_OK_AND_ASSIGN(const DataFile y, table.WriteRows("y.parquet", "y", 50, 50));
  ASSERT_OK(table.Commit({.added_data_files = {x, y}}));
  ManualClock clock{FromMillis(kStart)};
  UuidGenerator uuids(clock);
  for (const Positions& positions : {Positions{3, 4, 5}, Positions{30}}) {
    ASSERT_OK_AND_ASSIGN(const auto tasks, PlanScan(*local, table.cache(), table.metadata(), {},
                                                    Expression::True(), {}));
    std::vector<RowDeletion> deletions;
    for (const FileScanTask& task : tasks) {
      const bool is_x = task.file.file_path == x.file_path;
      deletions.push_back({.task = task, .positions = is_x ? positions : Positions{49}});
    }
    ASSERT_OK_AND_ASSIGN(WrittenRowDeletes written,
                         WriteRowDeletes(*local, table.metadata(), uuids, deletions));
    ASSERT_OK_AND_ASSIGN(
        const SnapshotUpdate update,
        DeltaUpdate({.store = *local, .cache = table.cache(), .metadata = table.metadata()},
                    {.deletes = std::move(written)}));
    ASSERT_OK(table.Commit(update));
  }
  ASSERT_OK(WriteMetadata(*local, table.metadata(), "", uuids));
  EXPECT_EQ(table.metadata().CurrentSnapshot()->summary.at("total-position-deletes"), "5");
}

INSTANTIATE_TEST_SUITE_P(Versions, TableOperationTest, ::testing::Values(2, 3));

}  // namespace
}  // namespace tarn::iceberg
