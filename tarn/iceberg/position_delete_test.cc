#include "tarn/iceberg/position_delete.h"

#include "tarn/iceberg/delete_index.h"
#include "tarn/storage/memory_store.h"
#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

class PositionDeleteTest : public ::testing::Test {
 protected:
  Result<DataFile> Write(const std::string& name, const std::string& data, Positions positions) {
    return WritePositionDeletes(store_,
                                {.file_path = "memory://store/" + name,
                                 .data_file_path = "memory://store/" + data,
                                 .spec_id = 3,
                                 .partition = {Literal::String("p")}},
                                std::move(positions));
  }

  ManualClock clock_{FromMillis(1)};
  storage::MemoryStore store_{clock_};
};

TEST_F(PositionDeleteTest, PositionsAreSortedAndUnique) {
  ASSERT_OK_AND_ASSIGN(const DataFile file, Write("d", "data.parquet", {9, 1, 9, 5}));
  EXPECT_EQ(file.content, DataFileContent::kPositionDeletes);
  EXPECT_EQ(file.record_count, 3);
  EXPECT_EQ(file.spec_id, 3);
  EXPECT_EQ(file.referenced_data_file, "memory://store/data.parquet");
  EXPECT_EQ(*file.lower_bounds.Find(kFilePathColumnId), "memory://store/data.parquet");
  EXPECT_EQ(*file.upper_bounds.Find(kFilePathColumnId), "memory://store/data.parquet");
  EXPECT_GT(file.file_size_bytes, 0);
  ASSERT_OK_AND_ASSIGN(const auto deletes, ReadPositionDeletes(store_, file));
  EXPECT_EQ(deletes,
            (std::map<std::string, Positions>{{"memory://store/data.parquet", {1, 5, 9}}}));
}

TEST_F(PositionDeleteTest, ManyRowsAndSeveralFilesAddUp) {
  Positions many;
  for (int64_t i = 0; i < 150'000; ++i) {
    many.push_back(i * 2);
  }
  ASSERT_OK_AND_ASSIGN(const DataFile first, Write("d1", "a", many));
  ASSERT_OK_AND_ASSIGN(const DataFile second, Write("d2", "a", {1, 2, 3}));
  ASSERT_OK_AND_ASSIGN(const DataFile other, Write("d3", "b", {7}));
  ASSERT_OK_AND_ASSIGN(const Positions positions,
                       ReadPositionDeletesOf(store_, {first, second, other}, "memory://store/a"));
  EXPECT_EQ(positions.size(), 150'002U);
  EXPECT_EQ(positions[1], 1);
  EXPECT_EQ(MergePositions({1, 3}, {2, 3}), (Positions{1, 2, 3}));
}

TEST_F(PositionDeleteTest, BadInputIsRefused) {
  EXPECT_THAT(Write("d", "a", {}), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(Write("d", "a", {-1}), Fails(ErrorCode::kInvalidArgument));
  DataFile file{.file_path = "memory://store/none"};
  EXPECT_THAT(ReadPositionDeletes(store_, file), Fails(ErrorCode::kNotFound));
  ASSERT_OK(WriteObject(store_, "none", "not parquet", storage::WriteMode::kOverwrite));
  EXPECT_THAT(ReadPositionDeletes(store_, file),
              FailsWith(ErrorCode::kCorruption, "memory://store/none"));
  file.file_format = "PUFFIN";
  EXPECT_THAT(ReadPositionDeletes(store_, file), Fails(ErrorCode::kUnimplemented));
}

}  // namespace
}  // namespace tarn::iceberg
