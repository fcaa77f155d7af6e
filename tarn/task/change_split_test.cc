#include "tarn/task/change_split.h"

#include <arrow/api.h>
#include <arrow/json/from_string.h>

#include "tarn/base/arrow_status.h"
#include "test/support/matchers.h"

namespace tarn::task {
namespace {

using lakehouse::Operation;
using ::testing::ElementsAre;

// Rows as a mapping gives them: id, v, then hidden columns.
std::shared_ptr<arrow::RecordBatch> Good(const std::string& json) {
  const auto type = arrow::struct_({
      arrow::field("id", arrow::int64()),
      arrow::field("v", arrow::utf8()),
      arrow::field("tarn_row", arrow::int64()),
      arrow::field("tarn_before", arrow::boolean()),
      arrow::field("tarn_delete", arrow::boolean()),
      arrow::field("hdr__cdc_operation", arrow::utf8()),
      arrow::field("hdr__cdc_timestamp", arrow::timestamp(arrow::TimeUnit::MICRO, "UTC")),
      arrow::field("hdr__absent", arrow::utf8()),
  });
  const auto array = arrow::json::ArrayFromJSONString(type, json).ValueOrDie();
  return arrow::RecordBatch::FromStructArray(array).ValueOrDie();
}

class ChangeSplitTest : public ::testing::Test {
 protected:
  ChangeSplitTest() {
    mapping_.key_columns = {0};
    landed_.files = {{.location = "f", .committed = FromMicros(500), .row_count = 9}};
    options_ = {.mapping = &mapping_,
                .landed = &landed_,
                .mode = lakehouse::Mode::kMerge,
                .table = arrow::schema({arrow::field("id", arrow::int64()),
                                        arrow::field("v", arrow::utf8()),
                                        arrow::field("later", arrow::int32())})};
  }

  static std::vector<int64_t> Ids(const ChangeSplit& split) {
    const auto& ids = static_cast<const arrow::Int64Array&>(*split.changes.rows->column(0));
    return {ids.raw_values(), ids.raw_values() + ids.length()};
  }

  transform::CompiledMapping mapping_;
  LandedBatch landed_;
  ChangeSplitOptions options_;
};

TEST_F(ChangeSplitTest, OperationsAndTimesComeFromTheSource) {
  ASSERT_OK_AND_ASSIGN(const ChangeSplit split, SplitChanges(options_, *Good(R"([
    [1, "a", 0, false, false, "L", 10, null],
    [2, "b", 1, false, false, "D", 11, null],
    [3, "c", 2, false, true, "I", null, null]])")));
  EXPECT_THAT(split.changes.operations,
              ElementsAre(Operation::kLoad, Operation::kDelete, Operation::kDelete));
  EXPECT_THAT(split.changes.timestamps_micros, ElementsAre(10, 11, 500));
  EXPECT_THAT(split.changes.source_micros, ElementsAre(10, 11, 500));
  EXPECT_THAT(split.changes.landed_micros, ElementsAre(500, 500, 500));
  EXPECT_EQ(split.changes.rows->column(2)->null_count(), 3) << "columns the rows lack are NULL";
}

TEST_F(ChangeSplitTest, ColumnsThatDifferInCaseAreOne) {
  options_.table = arrow::schema({arrow::field("ID", arrow::int64())});
  ASSERT_OK_AND_ASSIGN(const ChangeSplit split, SplitChanges(options_, *Good(R"([
    [7, "a", 0, false, false, "I", 10, null]])")));
  EXPECT_THAT(Ids(split), ElementsAre(7));
}

TEST_F(ChangeSplitTest, AKeyChangeIsADeleteOfTheOldAndAnInsertOfTheNew) {
  ASSERT_OK_AND_ASSIGN(const ChangeSplit split, SplitChanges(options_, *Good(R"([
    [2, "b", 0, false, false, "U", 10, null],
    [1, "a", 0, true, false, "U", 10, null]])")));
  EXPECT_THAT(Ids(split), ElementsAre(1, 2));
  EXPECT_THAT(split.changes.operations, ElementsAre(Operation::kDelete, Operation::kInsert));
}

TEST_F(ChangeSplitTest, AnImageBeforeWithTheSameKeyChangesNothing) {
  ASSERT_OK_AND_ASSIGN(const ChangeSplit split, SplitChanges(options_, *Good(R"([
    [1, "b", 0, false, false, "U", 10, null],
    [1, "a", 0, true, false, "U", 10, null]])")));
  EXPECT_THAT(Ids(split), ElementsAre(1));
  EXPECT_THAT(split.changes.operations, ElementsAre(Operation::kUpdate));
}

TEST_F(ChangeSplitTest, RowsThatLackValuesAreDeadLetters) {
  ASSERT_OK_AND_ASSIGN(const ChangeSplit split, SplitChanges(options_, *Good(R"([
    [1, null, 3, false, false, "U", 10, "[\"v\"]"],
    [2, "b", 4, false, false, "U", 10, null],
    [null, "a", 4, true, false, "U", 10, null]])")));
  EXPECT_EQ(split.changes.rows->num_rows(), 0);
  ASSERT_EQ(split.rejected.size(), 2U);
  EXPECT_EQ(split.rejected[0].row, 3);
  EXPECT_EQ(split.rejected[0].code, "partial_without_base");
  EXPECT_EQ(split.rejected[1].row, 4);
  EXPECT_EQ(split.rejected[1].code, transform::kNullKey);
}

TEST_F(ChangeSplitTest, AnUpdateThatLeavesTheFilterDeletesUnlessItNeverWasThere) {
  ASSERT_OK_AND_ASSIGN(const ChangeSplit split, SplitChanges(options_, *Good(R"([
    [1, "a", 0, false, true, "U", 10, null],
    [3, "b", 1, false, true, "U", 10, null],
    [2, "a", 1, true, false, "U", 10, null],
    [5, "b", 2, false, true, "U", 10, null],
    [4, "a", 2, true, true, "U", 10, null]])")));
  EXPECT_THAT(Ids(split), ElementsAre(1, 2, 3));
  EXPECT_THAT(split.changes.operations,
              ElementsAre(Operation::kDelete, Operation::kDelete, Operation::kDelete));
  EXPECT_EQ(split.filtered, 1);
}

TEST_F(ChangeSplitTest, TruncatesAreCountedAndNeverRows) {
  for (const lakehouse::Mode mode : {lakehouse::Mode::kMerge, lakehouse::Mode::kAppend}) {
    options_.mode = mode;
    ASSERT_OK_AND_ASSIGN(const ChangeSplit split, SplitChanges(options_, *Good(R"([
      [1, "a", 0, false, false, "I", 10, null],
      [null, null, 1, false, false, "T", 10, "[\"id\"]"],
      [2, "b", 2, false, false, "I", 10, null]])")));
    EXPECT_THAT(Ids(split), ElementsAre(1, 2));
    EXPECT_EQ(split.truncates, 1);
    EXPECT_TRUE(split.rejected.empty());
  }
}

TEST_F(ChangeSplitTest, AppendModeKeepsEveryRowAsAnInsert) {
  options_.mode = lakehouse::Mode::kAppend;
  ASSERT_OK_AND_ASSIGN(const ChangeSplit split, SplitChanges(options_, *Good(R"([
    [1, "a", 0, false, false, "D", 10, null],
    [1, "a", 1, false, false, "U", 10, null]])")));
  EXPECT_THAT(split.changes.operations, ElementsAre(Operation::kInsert, Operation::kInsert));
}

TEST_F(ChangeSplitTest, RowsOutOfOrderAreABug) {
  EXPECT_THAT(SplitChanges(options_, *Good(R"([
    [1, "a", 1, false, false, "I", 10, null],
    [2, "b", 0, false, false, "I", 10, null]])")),
              Fails(ErrorCode::kInternal));
}

TEST_F(ChangeSplitTest, DeadLettersOfTheMappingPointIntoTheSource) {
  const landing::DeadLetter letter =
      MakeDeadLetter({.code = "cast_failed",
                      .text = "x is no int",
                      .landed_json = R"({"hdr__file_name":"/in/a","hdr__file_row":7,"x":"x"})"},
                     "t");
  EXPECT_EQ(letter.source, "/in/a");
  EXPECT_EQ(letter.position, "7");
  EXPECT_EQ(letter.rejected_by, "t");
}

// Rows of topics: id, v, tarn_row, tarn_before, hdr__kafka_tombstone.
std::shared_ptr<arrow::RecordBatch> Messages(const std::string& json) {
  const auto type = arrow::struct_(
      {arrow::field("id", arrow::int64()), arrow::field("v", arrow::utf8()),
       arrow::field("tarn_row", arrow::int64()), arrow::field("tarn_before", arrow::boolean()),
       arrow::field("hdr__kafka_tombstone", arrow::boolean())});
  const auto array = arrow::json::ArrayFromJSONString(type, json).ValueOrDie();
  return arrow::RecordBatch::FromStructArray(array).ValueOrDie();
}

constexpr const char* kTwoMessages = R"([[1, "a", 0, false, false], [1, null, 1, false, true]])";

TEST_F(ChangeSplitTest, ATombstoneDeletesWhereItsKeyIsTheRows) {
  options_.tombstones_delete = true;
  ASSERT_OK_AND_ASSIGN(const ChangeSplit split, SplitChanges(options_, *Messages(kTwoMessages)));
  EXPECT_THAT(split.changes.operations, ElementsAre(Operation::kInsert, Operation::kDelete));
  EXPECT_TRUE(split.rejected.empty());
}

TEST_F(ChangeSplitTest, ElseATombstoneIsRejected) {
  ASSERT_OK_AND_ASSIGN(const ChangeSplit split, SplitChanges(options_, *Messages(kTwoMessages)));
  EXPECT_THAT(split.changes.operations, ElementsAre(Operation::kInsert));
  ASSERT_EQ(split.rejected.size(), 1U);
  EXPECT_EQ(split.rejected[0].code, "tombstone");
  EXPECT_EQ(split.rejected[0].row, 1);
}

TEST_F(ChangeSplitTest, AppendedTombstonesAreRows) {
  options_.mode = lakehouse::Mode::kAppend;
  ASSERT_OK_AND_ASSIGN(const ChangeSplit split, SplitChanges(options_, *Messages(kTwoMessages)));
  EXPECT_THAT(split.changes.operations, ElementsAre(Operation::kInsert, Operation::kInsert));
}

TEST(DeadLetterOfARowTest, SaysWhereAMessageStood) {
  const landing::DeadLetter letter = MakeDeadLetter(
      {.row = 0,
       .code = "null_key",
       .text = "id is NULL",
       .landed_json =
           R"({"hdr__kafka_topic":"t","hdr__kafka_offset":7,"hdr__kafka_tombstone":true})"},
      "task");
  EXPECT_EQ(letter.source, "t");
  EXPECT_EQ(letter.position, "7");
  EXPECT_EQ(letter.error_code, "tombstone");
  const landing::DeadLetter file =
      MakeDeadLetter({.row = 0,
                      .code = "null_key",
                      .text = "id is NULL",
                      .landed_json = R"({"hdr__file_name":"f","hdr__file_row":3})"},
                     "task");
  EXPECT_EQ(file.source, "f");
  EXPECT_EQ(file.position, "3");
  EXPECT_EQ(file.error_code, "null_key");
}

}  // namespace
}  // namespace tarn::task
