#include "tarn/transform/direct_mapping.h"

#include <arrow/api.h>
#include <arrow/json/from_string.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tarn/base/arrow_status.h"
#include "tarn/engine/engine.h"
#include "tarn/transform/outcome.h"
#include "test/support/matchers.h"

namespace tarn::transform {
namespace {

using ::testing::ElementsAre;

const std::shared_ptr<arrow::DataType> kInstant = arrow::timestamp(arrow::TimeUnit::MICRO, "UTC");

std::shared_ptr<arrow::Schema> Landed() {
  return arrow::schema(
      {arrow::field("id", arrow::int64()), arrow::field("name", arrow::utf8()),
       arrow::field("amount", arrow::float64()), arrow::field("made", arrow::date32()),
       arrow::field("tags", arrow::list(arrow::field("element", arrow::utf8()))),
       arrow::field("hdr__file_name", arrow::utf8()),
       arrow::field("hdr__cdc_operation", arrow::utf8()),
       arrow::field("hdr__cdc_timestamp", kInstant), arrow::field("hdr__cdc_before", arrow::utf8()),
       arrow::field("hdr__event_timestamp", kInstant), arrow::field("title", arrow::utf8())});
}

std::shared_ptr<arrow::RecordBatch> Rows() {
  return arrow::RecordBatch::FromStructArray(
             arrow::json::ArrayFromJSONString(arrow::struct_(Landed()->fields()), R"([
    [1, "a", 1.5, 100, ["x", null], "f", "I", 10, null, 7, "t"],
    [2, null, null, null, null, "f", "U", null, null, 8, null],
    [3, "ü", -0.0, -1, [], "f", "D", 12, null, 9, "u"]])")
                 .ValueOrDie())
      .ValueOrDie();
}

class DirectMappingTest : public ::testing::Test {
 protected:
  DirectMappingTest() {
    engine_ = std::move(engine::Engine::Open({})).value();
    session_ = std::move(engine_->OpenSession()).value();
  }

  CompiledMapping Compile(MappingSpec spec) {
    spec.target = "orders";
    return std::move(CompileMapping(*session_, spec, *Landed())).value();
  }
  bool IsDirect(MappingSpec spec) {
    return DirectMapping::Of(Compile(std::move(spec)), *Landed()).has_value();
  }

  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<engine::Session> session_;
};

TEST_F(DirectMappingTest, GivesTheRowsOfTheStatement) {
  const CompiledMapping mapping = Compile({.drop = {"amount"}, .key = {"id"}});
  const auto direct = DirectMapping::Of(mapping, *Landed());
  ASSERT_TRUE(direct.has_value());
  arrow::ArrayVector columns;
  arrow::FieldVector fields;
  for (const std::string& name : direct->landed_columns()) {
    columns.push_back(Rows()->GetColumnByName(name));
    fields.push_back(Landed()->GetFieldByName(name));
  }
  ASSERT_OK_AND_ASSIGN(
      const std::shared_ptr<arrow::RecordBatch> mapped,
      direct->Map(*arrow::RecordBatch::Make(arrow::schema(fields), 3, columns), 0));

  arrow::Int64Builder numbers;
  ASSERT_TRUE(numbers.AppendValues({0, 1, 2}).ok());
  const auto input =
      *Rows()->AddColumn(Rows()->num_columns(), "tarn_row", numbers.Finish().ValueOrDie());
  ASSERT_OK(session_->RegisterBatches("tarn_input", input->schema(), {input}));
  ASSERT_OK_AND_ASSIGN(const auto stream, session_->Query(mapping.sql));
  ASSERT_OK_AND_ASSIGN(const auto batch, stream->Next());
  ASSERT_OK_AND_ASSIGN(const MappedBatch expected, SplitOutcome(mapping, *batch));
  ASSERT_EQ(mapped->num_rows(), expected.good->num_rows());
  for (const std::shared_ptr<arrow::Field>& field : mapped->schema()->fields()) {
    const auto want = expected.good->GetColumnByName(field->name());
    ASSERT_NE(want, nullptr) << field->name();
    EXPECT_TRUE(mapped->GetColumnByName(field->name())->Equals(*want)) << field->name();
  }
  for (const MappedColumn& column : mapping.columns) {
    EXPECT_NE(mapped->GetColumnByName(column.name), nullptr) << column.name;
  }
}

TEST_F(DirectMappingTest, NamesWhatStatisticsMustShow) {
  const auto direct = DirectMapping::Of(Compile({.key = {"id"}}), *Landed());
  ASSERT_TRUE(direct.has_value());
  EXPECT_THAT(direct->null_columns(), ElementsAre("hdr__cdc_before"));
  EXPECT_THAT(direct->full_columns(), ElementsAre("id"));
  const auto allowed =
      DirectMapping::Of(Compile({.key = {"id"}, .null_keys = NullKeys::kAllow}), *Landed());
  ASSERT_TRUE(allowed.has_value());
  EXPECT_THAT(allowed->full_columns(), ElementsAre());
}

TEST_F(DirectMappingTest, AnyRuleThatLooksAtValuesNeedsTheStatement) {
  EXPECT_TRUE(IsDirect({.columns = {{"id", ""}, {"name", ""}}, .only = true, .key = {"id"}}));
  EXPECT_FALSE(IsDirect({.where = "id > 1", .key = {"id"}}));
  EXPECT_FALSE(IsDirect({.expect = {{"e", "id > 1", ExpectAction::kWarn}}, .key = {"id"}}));
  EXPECT_FALSE(IsDirect({.key = {"id"}, .delete_when = "name = 'a'"}));
  EXPECT_FALSE(IsDirect({.key = {"id"}, .event_time = "hdr__event_timestamp"}));
  EXPECT_FALSE(IsDirect({.columns = {{"id", "id + 1"}}, .key = {"id"}}));
  EXPECT_FALSE(IsDirect({.columns = {{"amount", "", "decimal(10,2)"}}, .key = {"id"}}));
  EXPECT_FALSE(
      IsDirect({.columns = {{.name = "name", .expression = "", .hash = true}}, .key = {"id"}}));
  EXPECT_FALSE(IsDirect({.rename = {{"name", "label"}}, .key = {"id"}}));
  EXPECT_FALSE(IsDirect({.drop = {"name"}, .rename = {{"title", "name"}}, .key = {"id"}}))
      << "a landed column of the target's name is another one";
  EXPECT_FALSE(IsDirect({.columns = {{"tag", "tags[]"}}, .key = {"id"}}));
}

}  // namespace
}  // namespace tarn::transform
