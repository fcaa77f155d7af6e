#include "tarn/task/direct_rows.h"

#include <arrow/api.h>
#include <arrow/compute/initialize.h>
#include <arrow/json/from_string.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tarn/base/arrow_status.h"
#include "tarn/engine/engine.h"
#include "tarn/format/parquet_writer.h"
#include "tarn/storage/memory_store.h"
#include "tarn/task/change_split.h"
#include "test/support/matchers.h"

namespace tarn::task {
namespace {

using ::testing::ElementsAre;

class DirectRowsTest : public ::testing::Test {
 protected:
  DirectRowsTest() {
    EXPECT_TRUE(arrow::compute::Initialize().ok());
    engine_ = std::move(engine::Engine::Open({})).value();
    session_ = std::move(engine_->OpenSession()).value();
    fields_ = {{.name = "id", .type = {.kind = format::FieldKind::kLong}},
               {.name = "v", .type = {.kind = format::FieldKind::kString}},
               {.name = "hdr__cdc_before", .type = {.kind = format::FieldKind::kString}}};
    const transform::MappingSpec spec{.target = "t", .key = {"id"}};
    mapping_ =
        std::move(transform::CompileMapping(*session_, spec, *format::ToArrowSchema(fields_)))
            .value();
    direct_ = transform::DirectMapping::Of(mapping_, *format::ToArrowSchema(fields_));
  }

  void AddFile(const arrow::FieldVector& fields, const std::string& json) {
    const auto batch =
        arrow::RecordBatch::FromStructArray(
            arrow::json::ArrayFromJSONString(arrow::struct_(fields), json).ValueOrDie())
            .ValueOrDie();
    const std::string name = "f" + std::to_string(files_made_++);
    auto object = std::move(store_.OpenWriter(name, storage::WriteMode::kPutIfAbsent)).value();
    auto writer =
        std::move(format::ParquetWriter::Open(std::move(object), batch->schema())).value();
    EXPECT_TRUE(writer->Write(*batch).ok());
    EXPECT_TRUE(writer->Close().ok());
    batch_.files.push_back({.location = name, .committed = {}, .row_count = batch->num_rows()});
  }

  ManualClock clock_{FromMicros(0)};
  storage::MemoryStore store_{clock_};
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<engine::Session> session_;
  std::vector<format::Field> fields_;
  transform::CompiledMapping mapping_;
  std::optional<transform::DirectMapping> direct_;
  LandedBatch batch_;
  int files_made_ = 0;
};

const std::shared_ptr<arrow::Field> kId = arrow::field("id", arrow::int64());
const std::shared_ptr<arrow::Field> kNarrowId = arrow::field("id", arrow::int32());
const std::shared_ptr<arrow::Field> kValue = arrow::field("v", arrow::utf8());
const std::shared_ptr<arrow::Field> kBefore = arrow::field("hdr__cdc_before", arrow::utf8());

TEST_F(DirectRowsTest, ReadsFilesInOrderInTheirWidestTypes) {
  ASSERT_TRUE(direct_.has_value());
  AddFile({kNarrowId, kBefore}, R"([[1, null], [2, null]])");
  AddFile({kValue, kId}, R"([["x", 3]])");
  ASSERT_OK_AND_ASSIGN(const auto rows, DirectRows::Open(store_, batch_, *direct_, fields_));
  ASSERT_NE(rows, nullptr);
  std::vector<int64_t> ids;
  std::vector<int64_t> numbers;
  std::string values;
  while (true) {
    ASSERT_OK_AND_ASSIGN(const auto batch, rows->Next());
    if (batch == nullptr) {
      break;
    }
    for (int64_t i = 0; i < batch->num_rows(); ++i) {
      ids.push_back(static_cast<const arrow::Int64Array&>(*batch->GetColumnByName("id")).Value(i));
      numbers.push_back(
          static_cast<const arrow::Int64Array&>(*batch->GetColumnByName("tarn_row")).Value(i));
      const auto& text = static_cast<const arrow::StringArray&>(*batch->GetColumnByName("v"));
      values += text.IsNull(i) ? "-" : text.GetString(i);
    }
  }
  EXPECT_THAT(ids, ElementsAre(1, 2, 3));
  EXPECT_THAT(numbers, ElementsAre(InputRow(0, 0), InputRow(0, 1), InputRow(1, 0)));
  EXPECT_EQ(values, "--x");
}

TEST_F(DirectRowsTest, AnImageBeforeOrANullKeyNeedsTheStatement) {
  ASSERT_TRUE(direct_.has_value());
  AddFile({kId, kBefore}, R"([[1, null]])");
  ASSERT_OK_AND_ASSIGN(auto rows, DirectRows::Open(store_, batch_, *direct_, fields_));
  EXPECT_NE(rows, nullptr);
  AddFile({kId, kBefore}, R"([[1, null], [2, "{\"id\":1}"]])");
  ASSERT_OK_AND_ASSIGN(rows, DirectRows::Open(store_, batch_, *direct_, fields_));
  EXPECT_EQ(rows, nullptr);
  batch_.files.pop_back();
  AddFile({kId}, R"([[1], [null]])");
  ASSERT_OK_AND_ASSIGN(rows, DirectRows::Open(store_, batch_, *direct_, fields_));
  EXPECT_EQ(rows, nullptr);
  batch_.files.pop_back();
  AddFile({kValue}, R"([["no key column at all"]])");
  ASSERT_OK_AND_ASSIGN(rows, DirectRows::Open(store_, batch_, *direct_, fields_));
  EXPECT_EQ(rows, nullptr);
}

TEST_F(DirectRowsTest, ABrokenFileIsNamed) {
  ASSERT_TRUE(direct_.has_value());
  auto object = std::move(store_.OpenWriter("broken", storage::WriteMode::kPutIfAbsent)).value();
  ASSERT_OK(object->Write("no parquet"));
  ASSERT_OK(object->Close());
  batch_.files.push_back({.location = "broken", .committed = {}, .row_count = 1});
  EXPECT_THAT(DirectRows::Open(store_, batch_, *direct_, fields_), Fails(ErrorCode::kCorruption));
}

}  // namespace
}  // namespace tarn::task
