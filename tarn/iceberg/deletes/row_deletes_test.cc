#include "tarn/iceberg/deletes/row_deletes.h"

#include "tarn/iceberg/metadata_builder.h"
#include "tarn/storage/faulty_store.h"
#include "tarn/storage/memory_store.h"
#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

using storage::FaultyStore;
using storage::StoreOperation;
using ::testing::ElementsAre;
using ::testing::Pair;

class RowDeletesTest : public ::testing::Test {
 protected:
  static FileScanTask Task(const std::string& name) {
    FileScanTask task;
    task.file.file_path = "memory://store/" + name;
    task.file.record_count = 100;
    return task;
  }

  // A delete file of one data file that does not say so: any data file may be meant.
  DeleteFilePtr SharedDeletes(const std::string& name, const std::string& data,
                              Positions positions) {
    Result<DataFile> file = WritePositionDeletes(
        store_, {.file_path = "memory://store/" + name, .data_file_path = "memory://store/" + data},
        std::move(positions));
    EXPECT_OK(file);
    file->referenced_data_file.reset();
    file->lower_bounds.clear();
    file->upper_bounds.clear();
    return std::make_shared<const DeleteFile>(DeleteFile{*std::move(file), 1});
  }

  static TableMetadata Metadata(int version) {
    TableDefinition definition;
    definition.table_uuid = "9c12d441-03fe-4693-9a96-a0705ddf69c1";
    definition.location = "memory://store/t";
    definition.schema.fields = {{.id = 1, .name = "id", .type = Type::Long()}};
    definition.properties["format-version"] = std::to_string(version);
    return MakeTableMetadata(definition, 1).value();
  }

  std::vector<std::string> Keys() {
    std::vector<std::string> keys;
    const Result<storage::ListPage> page = store_.List({.prefix = ""});
    EXPECT_OK(page);
    for (const storage::ObjectMeta& object : page->objects) {
      keys.push_back(object.key);
    }
    return keys;
  }

  ManualClock clock_{FromMillis(1)};
  UuidGenerator uuids_{clock_};
  storage::MemoryStore store_{clock_};
};

TEST_F(RowDeletesTest, ADeleteFileOfManyDataFilesIsReadOnce) {
  const DeleteFilePtr of_a = SharedDeletes("d1", "a", {5, 1});
  const DeleteFilePtr of_b = SharedDeletes("d2", "b", {7});
  std::vector<FileScanTask> tasks = {Task("a"), Task("b"), Task("clean"), Task("c")};
  for (const size_t i : {0, 1, 3}) {
    tasks[i].deletes = {of_a, of_b};
  }
  const DeleteFilePtr own = std::make_shared<const DeleteFile>(DeleteFile{
      WritePositionDeletes(
          store_, {.file_path = "memory://store/d3", .data_file_path = "memory://store/a"}, {5, 9})
          .value(),
      1});
  tasks[0].deletes.push_back(own);
  FaultyStore counted(store_, {.only = StoreOperation::kOpenReader});
  std::vector<std::pair<size_t, Positions>> found;
  ASSERT_OK(VisitDeletedPositions(counted, tasks, [&](size_t i, const Positions& positions) {
    found.emplace_back(i, positions);
    return Status::Ok();
  }));
  EXPECT_THAT(found, ElementsAre(Pair(0U, ElementsAre(1, 5, 9)), Pair(1U, ElementsAre(7)),
                                 Pair(3U, ElementsAre())));
  EXPECT_EQ(counted.operation_count(), 3);
  for (const auto& [i, positions] : found) {
    EXPECT_THAT(ReadDeletedPositions(store_, tasks[i]), IsOkAndHolds(positions));
  }
  EXPECT_THAT(
      VisitDeletedPositions(store_, tasks,
                            [](size_t, const Positions&) { return Status::Unavailable("enough"); }),
      Fails(ErrorCode::kUnavailable));
}

TEST_F(RowDeletesTest, NothingIsLeftOfDeletesThatCouldNotBeWritten) {
  for (const int version : {2, 3}) {
    bool more = true;
    for (int64_t n = 1; more; ++n) {
      FaultyStore faulty(store_, {.fail_at = n});
      const std::vector<std::string> before = Keys();
      const Result<WrittenRowDeletes> written = WriteRowDeletes(
          faulty, Metadata(version), uuids_,
          {{.task = Task("a"), .positions = {1}}, {.task = Task("b"), .positions = {2, 3}}});
      more = faulty.failed();
      ASSERT_LT(n, 100);
      if (!written.ok()) {
        EXPECT_EQ(Keys(), before) << n;
      } else {
        EXPECT_EQ(written->deleted_rows, 3);
      }
    }
  }
}

}  // namespace
}  // namespace tarn::iceberg
