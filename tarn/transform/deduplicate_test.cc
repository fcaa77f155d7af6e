#include "tarn/transform/deduplicate.h"

#include <arrow/api.h>
#include <arrow/json/from_string.h>
#include <gtest/gtest.h>

#include "test/support/matchers.h"

namespace tarn::transform {
namespace {

const auto kSchema =
    arrow::schema({arrow::field("id", arrow::int32()), arrow::field("name", arrow::utf8()),
                   arrow::field("t", arrow::timestamp(arrow::TimeUnit::MICRO))});

std::shared_ptr<arrow::RecordBatch> Rows(std::string_view json) {
  return *arrow::RecordBatch::FromStructArray(
      *arrow::json::ArrayFromJSONString(arrow::struct_(kSchema->fields()), json));
}

std::string Kept(Deduplicator& deduplicator, std::string_view json) {
  const auto mask = deduplicator.Keep(*Rows(json));
  if (!mask.ok()) {
    return mask.status().ToString();
  }
  std::string out;
  for (int64_t i = 0; i < (*mask)->length(); ++i) {
    out += static_cast<const arrow::BooleanArray&>(**mask).Value(i) ? '1' : '0';
  }
  return out;
}

TEST(DeduplicateTest, DuplicatesInsideTheWindowAreDropped) {
  Deduplicator deduplicator({.by = {"ID"}, .window = std::chrono::microseconds(10)}, "t");
  EXPECT_EQ(Kept(deduplicator, R"([[1, "a", 0], [1, "b", 5], [2, "a", 5], [1, "a", 10]])"), "1010");
  // The window counts from the row that was kept.
  EXPECT_EQ(Kept(deduplicator, R"([[1, "a", 11], [1, "a", 15], [2, "a", 15], [2, "x", 16]])"),
            "1001");
}

TEST(DeduplicateTest, NullsAreValuesAndTextsDoNotRunTogether) {
  Deduplicator deduplicator({.by = {"id", "name"}, .window = std::chrono::microseconds(10)}, "t");
  EXPECT_EQ(Kept(deduplicator, R"([[null, "a", 0], [null, "a", 1], [null, null, 1], [1, "1", 1],
                                   [11, "", 1], [1, "1", null]])"),
            "101111");
}

TEST(DeduplicateTest, OldRowsAreForgotten) {
  Deduplicator deduplicator({.by = {"id"}, .window = std::chrono::microseconds(10)}, "t");
  for (int i = 0; i < 1000; ++i) {
    const std::string number = std::to_string(i);
    EXPECT_EQ(Kept(deduplicator, "[[" + number + ", \"a\", " + number + "]]"), "1");
  }
  EXPECT_EQ(deduplicator.remembered(), 11U);
}

TEST(DeduplicateTest, LearntRowsCount) {
  Deduplicator deduplicator({.by = {"id"}, .window = std::chrono::microseconds(10)}, "t");
  ASSERT_OK(deduplicator.Learn(*Rows(R"([[1, "a", 0]])")));
  EXPECT_EQ(Kept(deduplicator, R"([[1, "a", 1]])"), "0");
}

TEST(DeduplicateTest, MissingColumnsAreNamed) {
  Deduplicator no_column({.by = {"x"}, .window = std::chrono::microseconds(10)}, "t");
  EXPECT_THAT(no_column.Keep(*Rows("[]")), FailsWith(ErrorCode::kInvalidArgument, "\"x\""));
  Deduplicator no_time({.by = {"id"}, .window = std::chrono::microseconds(10)}, "name");
  EXPECT_THAT(no_time.Keep(*Rows("[]")), FailsWith(ErrorCode::kInvalidArgument, "\"name\""));
}

}  // namespace
}  // namespace tarn::transform
