#include "tarn/task/landed_json.h"

#include <arrow/api.h>
#include <arrow/compute/initialize.h>
#include <arrow/json/from_string.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tarn/format/parquet_writer.h"
#include "tarn/storage/memory_store.h"
#include "tarn/task/change_split.h"
#include "test/support/matchers.h"

namespace tarn::task {
namespace {

class LandedJsonTest : public ::testing::Test {
 protected:
  LandedJsonTest() {
    EXPECT_TRUE(arrow::compute::Initialize().ok());
    fields_ = {{.name = "id", .type = {.kind = format::FieldKind::kLong}},
               {.name = "v", .type = {.kind = format::FieldKind::kString}}};
  }

  // `group_rows` rows in a row group.
  void AddFile(const arrow::FieldVector& fields, const std::string& json, int64_t group_rows) {
    const auto batch =
        arrow::RecordBatch::FromStructArray(
            arrow::json::ArrayFromJSONString(arrow::struct_(fields), json).ValueOrDie())
            .ValueOrDie();
    const std::string name = "f" + std::to_string(batch_.files.size());
    auto object = std::move(store_.OpenWriter(name, storage::WriteMode::kPutIfAbsent)).value();
    format::ParquetWriterOptions options;
    options.row_group_rows = group_rows;
    auto writer =
        std::move(format::ParquetWriter::Open(std::move(object), batch->schema(), options)).value();
    EXPECT_TRUE(writer->Write(*batch).ok());
    EXPECT_TRUE(writer->Close().ok());
    batch_.files.push_back({.location = name, .committed = {}, .row_count = batch->num_rows()});
  }

  ManualClock clock_{FromMicros(0)};
  storage::MemoryStore store_{clock_};
  std::vector<format::Field> fields_;
  LandedBatch batch_;
};

const std::shared_ptr<arrow::Field> kId = arrow::field("id", arrow::int64());
const std::shared_ptr<arrow::Field> kNarrowId = arrow::field("id", arrow::int32());
const std::shared_ptr<arrow::Field> kValue = arrow::field("v", arrow::utf8());

TEST_F(LandedJsonTest, RowsOfSeveralGroupsAndFilesInTheirWidestTypes) {
  AddFile({kNarrowId}, "[[1], [2], [3], [4], [5]]", 2);
  AddFile({kValue, kId}, R"([["x", 6], ["\"", 7]])", 100);
  LandedJson json(store_, batch_, fields_);
  EXPECT_THAT(json.Read(InputRow(0, 1)), IsOkAndHolds(R"({"id":2,"v":null})"));
  EXPECT_THAT(json.Read(InputRow(0, 1)), IsOkAndHolds(R"({"id":2,"v":null})"));
  EXPECT_THAT(json.Read(InputRow(0, 4)), IsOkAndHolds(R"({"id":5,"v":null})"));
  EXPECT_THAT(json.Read(InputRow(1, 0)), IsOkAndHolds(R"({"id":6,"v":"x"})"));
  EXPECT_THAT(json.Read(InputRow(1, 1)), IsOkAndHolds(R"({"id":7,"v":"\""})"));
}

TEST_F(LandedJsonTest, EveryRowOfManyReads) {
  std::string rows = "[";
  constexpr int64_t kRows = 20'000;  // More than one read takes.
  for (int64_t i = 0; i < kRows; ++i) {
    rows += (i > 0 ? ",[" : "[") + std::to_string(i) + "]";
  }
  AddFile({kId}, rows + "]", 15'000);
  LandedJson json(store_, batch_, fields_);
  for (int64_t i = 0; i < kRows; i += 7) {
    ASSERT_THAT(json.Read(InputRow(0, i)),
                IsOkAndHolds(R"({"id":)" + std::to_string(i) + R"(,"v":null})"));
  }
}

TEST_F(LandedJsonTest, RowsThatGoBackOrAreNotThereAreRefused) {
  AddFile({kId}, "[[1], [2]]", 100);
  LandedJson json(store_, batch_, fields_);
  EXPECT_THAT(json.Read(InputRow(0, 1)), IsOk());
  EXPECT_THAT(json.Read(InputRow(0, 0)), Fails(ErrorCode::kInternal));
  EXPECT_THAT(json.Read(InputRow(0, 2)), Fails(ErrorCode::kInternal));
  EXPECT_THAT(json.Read(InputRow(1, 0)), Fails(ErrorCode::kInternal));
}

TEST_F(LandedJsonTest, ABrokenFileIsNamed) {
  auto object = std::move(store_.OpenWriter("broken", storage::WriteMode::kPutIfAbsent)).value();
  ASSERT_OK(object->Write("no parquet"));
  ASSERT_OK(object->Close());
  batch_.files.push_back({.location = "broken", .committed = {}, .row_count = 1});
  LandedJson json(store_, batch_, fields_);
  EXPECT_THAT(json.Read(InputRow(0, 0)), FailsWith(ErrorCode::kCorruption, "broken"));
}

}  // namespace
}  // namespace tarn::task
