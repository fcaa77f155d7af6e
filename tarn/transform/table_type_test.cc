#include "tarn/transform/table_type.h"

#include <arrow/api.h>
#include <arrow/extension/uuid.h>
#include <gtest/gtest.h>

#include "test/support/matchers.h"

namespace tarn::transform {
namespace {

std::string Of(const std::shared_ptr<arrow::DataType>& type) {
  const auto result = TableType(*type);
  return result.ok() ? (*result)->ToString() : result.status().ToString();
}

TEST(TableTypeTest, EveryTypeHasItsColumnType) {
  using arrow::TimeUnit;
  EXPECT_EQ(Of(arrow::uint8()), "int32");
  EXPECT_EQ(Of(arrow::uint32()), "int64");
  EXPECT_EQ(Of(arrow::uint64()), "decimal128(20, 0)");
  EXPECT_EQ(Of(arrow::null()), "string");
  EXPECT_EQ(Of(arrow::fixed_size_binary(3)), "binary");
  EXPECT_EQ(Of(arrow::timestamp(TimeUnit::NANO, "Asia/Tokyo")), "timestamp[us, tz=UTC]");
  EXPECT_EQ(Of(arrow::timestamp(TimeUnit::SECOND)), "timestamp[us]");
  EXPECT_EQ(Of(arrow::time32(TimeUnit::SECOND)), "time64[us]");
  EXPECT_EQ(Of(arrow::extension::uuid()), "extension<arrow.uuid>");
  EXPECT_EQ(Of(arrow::large_list(arrow::field("x", arrow::int8()))), "list<element: int32>");
  EXPECT_EQ(Of(arrow::map(arrow::large_utf8(), arrow::uint16())), "map<string, int32>");
  EXPECT_EQ(Of(arrow::struct_({arrow::field("a", arrow::uint32())})), "struct<a: int64>");
}

TEST(TableTypeTest, OthersAreRefused) {
  EXPECT_THAT(TableType(*arrow::decimal256(60, 2)), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(TableType(*arrow::list(arrow::duration(arrow::TimeUnit::SECOND))),
              FailsWith(ErrorCode::kInvalidArgument, "duration"));
}

}  // namespace
}  // namespace tarn::transform
