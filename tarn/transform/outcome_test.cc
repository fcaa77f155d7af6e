#include "tarn/transform/outcome.h"

#include <arrow/api.h>
#include <arrow/json/from_string.h>
#include <gtest/gtest.h>

#include "test/support/matchers.h"

namespace tarn::transform {
namespace {

/// A mapping of one column with two expectations, as CompileMapping would describe it.
CompiledMapping SmallMapping() {
  CompiledMapping mapping;
  mapping.spec.target = "t";
  mapping.spec.expect = {{"first", "x"}, {"second", "y"}};
  mapping.columns = {{.name = "a", .type = arrow::int32()}};
  mapping.result = arrow::schema(
      {arrow::field("a", arrow::int32()), arrow::field("tarn_row", arrow::int64()),
       arrow::field("tarn_element", arrow::int64()), arrow::field("tarn_before", arrow::boolean()),
       arrow::field("tarn_outcome", arrow::utf8()),
       arrow::field("tarn_outcome_text", arrow::utf8()),
       arrow::field("tarn_warnings", arrow::int64()),
       arrow::field("tarn_null_checks", arrow::int64()),
       arrow::field("tarn_null_casts", arrow::int64()),
       arrow::field("tarn_delete", arrow::boolean()),
       arrow::field("tarn_event_time", arrow::timestamp(arrow::TimeUnit::MICRO, "UTC"))});
  return mapping;
}

std::shared_ptr<arrow::RecordBatch> Rows(const CompiledMapping& mapping, std::string_view json) {
  return *arrow::RecordBatch::FromStructArray(
      *arrow::json::ArrayFromJSONString(arrow::struct_(mapping.result->fields()), json));
}

TEST(OutcomeTest, RowsAreSorted) {
  const CompiledMapping mapping = SmallMapping();
  ASSERT_OK_AND_ASSIGN(const MappedBatch out, SplitOutcome(mapping, *Rows(mapping, R"([
        [1, 10, 0, false, null, null, 1, 2, 0, false, null],
        [2, 11, 0, false, "cast_failed", "why", 3, 3, 0, false, null],
        [3, 12, 1, false, "expectation_dropped", "x", 0, 0, 0, false, null],
        [4, 13, 0, false, "empty_array", null, 0, 0, 0, false, null],
        [5, 14, 0, true, null, null, 0, 0, 0, false, null],
        [6, 15, 0, false, null, null, 3, 0, 0, true, null]])")));
  EXPECT_EQ(out.good->num_rows(), 3);
  EXPECT_EQ(out.good->schema()->ToString(), GoodSchema(mapping)->ToString());
  EXPECT_EQ(out.good->column(0)->ToString(),
            (*arrow::json::ArrayFromJSONString(arrow::int32(), "[1, 5, 6]"))->ToString());
  ASSERT_EQ(out.rejected.size(), 1U);
  EXPECT_EQ(out.rejected[0].row, 11);
  EXPECT_EQ(out.rejected[0].code, "cast_failed");
  EXPECT_EQ(out.rejected[0].text, "why");
  EXPECT_EQ(out.counts, (OutcomeCounts{.good = 2,
                                       .rejected = 1,
                                       .dropped = 1,
                                       .empty_arrays = 1,
                                       .warnings = {{"first", 2}, {"second", 1}},
                                       .null_checks = {{"second", 1}}}));
}

TEST(OutcomeTest, AStopNamesTheRow) {
  const CompiledMapping mapping = SmallMapping();
  EXPECT_THAT(
      SplitOutcome(mapping, *Rows(mapping, R"([[1, 7, 0, false, "expectation_stopped",
                                        "expect.e: the check is false", 0, 0, 0, false, null]])")),
      FailsWith(ErrorCode::kFailedPrecondition, "expect.e: the check is false for input row 7"));
}

TEST(OutcomeTest, InputRowsCountOnceHoweverManyRowsComeOfThem) {
  const CompiledMapping mapping = SmallMapping();
  InputRowCount count;
  count.Add(mapping, *Rows(mapping, R"([
        [1, 0, 0, false, null, null, 0, 0, 0, false, null],
        [1, 0, 1, false, null, null, 0, 0, 0, false, null],
        [1, 2, 0, false, "cast_failed", "why", 0, 0, 0, false, null]])"));
  count.Add(mapping, *Rows(mapping, R"([
        [1, 2, 0, true, null, null, 0, 0, 0, false, null],
        [1, 5, 0, false, null, null, 0, 0, 0, false, null]])"));
  EXPECT_EQ(count.rows(), 3);
}

TEST(OutcomeTest, CountsAddUp) {
  OutcomeCounts total = {.good = 1, .warnings = {{"a", 1}}};
  AddCounts({.good = 2, .rejected = 3, .warnings = {{"a", 1}, {"b", 2}}}, total);
  EXPECT_EQ(total, (OutcomeCounts{.good = 3, .rejected = 3, .warnings = {{"a", 2}, {"b", 2}}}));
}

}  // namespace
}  // namespace tarn::transform
