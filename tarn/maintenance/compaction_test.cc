#include "tarn/maintenance/compaction.h"

#include <arrow/api.h>

#include "tarn/maintenance/maintenance_fixture.h"

namespace tarn::maintenance {

namespace {

using iceberg::FileScanTask;
using iceberg::Literal;
using ::testing::ElementsAre;

FileScanTask Task(int64_t size, const std::string& partition = "x", int64_t rows = 100) {
  FileScanTask task;
  task.file.file_path = "f";
  task.file.file_size_bytes = size;
  task.file.record_count = rows;
  task.file.partition = {Literal::String(partition)};
  return task;
}

std::vector<size_t> Sizes(const std::vector<CompactionGroup>& groups) {
  std::vector<size_t> sizes;
  for (const CompactionGroup& group : groups) {
    sizes.push_back(group.files.size());
  }
  return sizes;
}

TEST(PlanCompactionTest, SmallFilesOfOnePartitionMakeAGroup) {
  const CompactionOptions options{.target_bytes = 100, .group_bytes_max = 150};
  EXPECT_THAT(Sizes(PlanCompaction({Task(10), Task(10, "y"), Task(20), Task(90)}, options)),
              ElementsAre(2));
  EXPECT_TRUE(PlanCompaction({Task(10), Task(10, "y"), Task(100), Task(100)}, options).empty());
  // A group is cut at its limit; a file that is far too large is rewritten alone.
  EXPECT_THAT(Sizes(PlanCompaction({Task(70), Task(70), Task(70), Task(70)}, options)),
              ElementsAre(2, 2));
  EXPECT_THAT(Sizes(PlanCompaction({Task(200)}, options)), ElementsAre(1));
}

TEST(PlanCompactionTest, DeletesMakeAFileWorthIt) {
  const CompactionOptions options{.target_bytes = 100};
  FileScanTask task = Task(100);
  iceberg::DeleteFile deletes;
  deletes.file.content = iceberg::DataFileContent::kPositionDeletes;
  deletes.file.record_count = 29;
  deletes.file.referenced_data_file = "f";
  task.deletes = {std::make_shared<const iceberg::DeleteFile>(deletes)};
  EXPECT_TRUE(PlanCompaction({task}, options).empty());
  deletes.file.record_count = 30;
  task.deletes = {std::make_shared<const iceberg::DeleteFile>(deletes)};
  EXPECT_THAT(Sizes(PlanCompaction({task}, options)), ElementsAre(1));
  deletes.file.content = iceberg::DataFileContent::kEqualityDeletes;
  deletes.file.record_count = 1;
  task.deletes = {std::make_shared<const iceberg::DeleteFile>(deletes)};
  EXPECT_THAT(Sizes(PlanCompaction({task}, options)), ElementsAre(1));
}

class CompactTableTest : public MaintenanceFixture {};

TEST_F(CompactTableTest, FilesOfAPartitionBecomeOneWithoutDeletedRows) {
  for (const int version : {2, 3}) {
    ASSERT_OK_AND_ASSIGN(const Rid table,
                         home_.Make("orders" + std::to_string(version), version, true));
    for (int i = 0; i < 3; ++i) {
      ASSERT_OK(home_.Append(
          table, fmt::format("SELECT range + {} AS id, CASE WHEN range % 2 = 0 THEN 'a' ELSE 'b' "
                             "END AS p FROM range(4)",
                             i * 4)));
    }
    ASSERT_EQ(Plan(table).size(), 6U);
    ASSERT_OK(DeleteRows(table, 0, {0}));
    const std::vector<std::string> before = Rows(table, "p || id");
    const std::vector<std::string> lineage =
        Rows(table, "concat_ws(' ', id, _row_id, _last_updated_sequence_number)", true);
    ASSERT_EQ(before.size(), 11U);
    ASSERT_OK_AND_ASSIGN(const CompactionReport dry,
                         CompactTable(home_.catalog(), home_.engine(), table, {.dry_run = true}));
    EXPECT_EQ(dry.groups, 2);
    EXPECT_EQ(dry.files_before, 6);
    ASSERT_EQ(Plan(table).size(), 6U);
    ASSERT_OK_AND_ASSIGN(const CompactionReport report,
                         CompactTable(home_.catalog(), home_.engine(), table, {}));
    EXPECT_EQ(report.files_after, 2);
    EXPECT_EQ(report.deleted_rows, 1);
    EXPECT_EQ(report.conflicts, 0);
    for (const FileScanTask& task : Plan(table)) {
      EXPECT_TRUE(task.deletes.empty());
      EXPECT_FALSE(task.file.partition.empty());
    }
    EXPECT_EQ(Plan(table).size(), 2U);
    EXPECT_EQ(Rows(table, "p || id"), before);
    // Moved rows keep their ids and the number of the commit that wrote them.
    EXPECT_EQ(Rows(table, "concat_ws(' ', id, _row_id, _last_updated_sequence_number)", true),
              lineage);
    EXPECT_EQ(home_.Metadata(table).CurrentSnapshot()->operation,
              iceberg::SnapshotOperation::kReplace);
    ASSERT_OK_AND_ASSIGN(const CompactionReport again,
                         CompactTable(home_.catalog(), home_.engine(), table, {}));
    EXPECT_EQ(again.groups, 0);
  }
}

TEST_F(CompactTableTest, AVersionOneTableIsRefused) {
  ASSERT_OK_AND_ASSIGN(const Rid table, home_.Make("old", 1));
  EXPECT_THAT(CompactTable(home_.catalog(), home_.engine(), table, {}),
              FailsWith(ErrorCode::kUnimplemented, "version 1"));
}

}  // namespace

}  // namespace tarn::maintenance
