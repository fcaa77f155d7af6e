#include "tarn/format/widen_batch.h"

#include <arrow/api.h>
#include <arrow/json/from_string.h>

#include "test/support/matchers.h"

namespace tarn::format {
namespace {

using ArrayPtr = std::shared_ptr<arrow::Array>;

ArrayPtr Array(const std::shared_ptr<arrow::DataType>& type, std::string_view json) {
  return *arrow::json::ArrayFromJSONString(type, json);
}

Result<ArrayPtr> Widen(const ArrayPtr& array, std::string_view type) {
  return WidenArray(array, *ParseTypeName(type), "c");
}

void ExpectWiden(const ArrayPtr& array, std::string_view type, std::string_view json) {
  ASSERT_OK_AND_ASSIGN(const ArrayPtr found, Widen(array, type));
  ASSERT_TRUE(found->ValidateFull().ok());
  const ArrayPtr expected = Array(ToArrowType(*ParseTypeName(type)), json);
  EXPECT_TRUE(found->Equals(expected)) << found->ToString() << "\n" << expected->ToString();
}

TEST(WidenBatchTest, ScalarsWidenExactly) {
  ExpectWiden(Array(arrow::int32(), "[1,null,-5]"), "long", "[1,null,-5]");
  ExpectWiden(Array(arrow::int64(), "[1,null]"), "decimal(38,2)", "[\"1.00\",null]");
  ExpectWiden(Array(arrow::int64(), "[9007199254740992]"), "double", "[9007199254740992]");
  ExpectWiden(Array(arrow::float64(), "[0.1,1e20,null]"), "decimal(38,1)",
              "[\"0.1\",\"100000000000000000000.0\",null]");
  ExpectWiden(Array(arrow::decimal128(10, 2), "[\"1.50\"]"), "decimal(38,4)", "[\"1.5000\"]");
  ExpectWiden(Array(arrow::uint64(), "[18446744073709551615]"), "decimal(20,0)",
              "[\"18446744073709551615\"]");
  ExpectWiden(Array(arrow::large_utf8(), "[\"a\"]"), "string", "[\"a\"]");
  ExpectWiden(Array(arrow::timestamp(arrow::TimeUnit::MILLI, "UTC"), "[5]"), "timestamptz",
              "[5000]");
}

TEST(WidenBatchTest, AnythingBecomesText) {
  ExpectWiden(Array(arrow::int64(), "[1,null]"), "string", "[\"1\",null]");
  ExpectWiden(Array(arrow::float64(), "[1,0.5]"), "string", "[\"1.0\",\"0.5\"]");
  ExpectWiden(Array(arrow::boolean(), "[true]"), "string", "[\"true\"]");
  ExpectWiden(Array(arrow::decimal128(5, 2), "[\"-0.05\"]"), "string", "[\"-0.05\"]");
  ExpectWiden(Array(arrow::date32(), "[20512]"), "string", "[\"2026-02-28\"]");
  ExpectWiden(Array(arrow::timestamp(arrow::TimeUnit::MICRO), "[-1]"), "string",
              "[\"1969-12-31T23:59:59.999999\"]");
  const auto nested = arrow::struct_(
      {arrow::field("a", arrow::list(arrow::int64())), arrow::field("s", arrow::utf8())});
  ExpectWiden(Array(nested, R"([{"a":[1,null],"s":"q\""},null,{"a":[],"s":null}])"), "string",
              R"(["{\"a\":[1,null],\"s\":\"q\\\"\"}",null,"{\"a\":[],\"s\":null}"])");
}

TEST(WidenBatchTest, NestedTypesWidenInside) {
  const auto type = arrow::list(
      arrow::struct_({arrow::field("A", arrow::int32()), arrow::field("b", arrow::utf8())}));
  const ArrayPtr array = Array(type, R"([[{"A":1,"b":"x"}],null,[],[{"A":2,"b":null},null]])");
  ExpectWiden(array, "array<struct<a:long,b:string,c:double>>",
              R"([[{"a":1,"b":"x","c":null}],null,[],[{"a":2,"b":null,"c":null},null]])");
  ExpectWiden(array->Slice(2), "array<struct<a:string>>", R"([[],[{"a":"2"},null]])");
  ExpectWiden(Array(arrow::list(arrow::utf8()), "[[],null]"), "array<struct<a:int>>", "[[],null]");
  const auto structs = Array(arrow::struct_({arrow::field("a", arrow::int32())}),
                             R"([{"a":1},{"a":2},null,{"a":4}])");
  ExpectWiden(structs->Slice(1, 2), "struct<b:int,a:long>", R"([{"b":null,"a":2},null])");
  ExpectWiden(Array(arrow::map(arrow::utf8(), arrow::int32()), R"([[["k",1]],null])"),
              "map<string,long>", R"([[["k",1]],null])");
}

TEST(WidenBatchTest, NullsFitEveryType) {
  ExpectWiden(Array(arrow::utf8(), "[null,null]"), "array<int>", "[null,null]");
  ExpectWiden(Array(arrow::null(), "[null]"), "date", "[null]");
}

TEST(WidenBatchTest, WhatDoesNotFitIsAnError) {
  EXPECT_THAT(Widen(Array(arrow::int64(), "[3000000000]"), "int"),
              FailsWith(ErrorCode::kInvalidArgument, "column c"));
  EXPECT_THAT(Widen(Array(arrow::float64(), "[0.123]"), "decimal(10,2)"),
              FailsWith(ErrorCode::kInvalidArgument, "0.123"));
  EXPECT_THAT(Widen(Array(arrow::int64(), "[9007199254740993]"), "double"),
              Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(Widen(Array(arrow::utf8(), "[\"x\"]"), "long"), Fails(ErrorCode::kInvalidArgument));
}

TEST(WidenBatchTest, ColumnsAreMatchedByName) {
  const auto batch = arrow::RecordBatch::Make(
      arrow::schema({arrow::field("B", arrow::int32()), arrow::field("x", arrow::utf8())}), 2,
      {Array(arrow::int32(), "[1,2]"), Array(arrow::utf8(), "[\"p\",\"q\"]")});
  ASSERT_OK_AND_ASSIGN(const auto widened,
                       WidenBatch(batch, {{.name = "a", .type = *ParseTypeName("double")},
                                          {.name = "b", .type = *ParseTypeName("long")}}));
  EXPECT_EQ(widened->num_columns(), 2);
  EXPECT_EQ(widened->column(0)->null_count(), 2);
  EXPECT_TRUE(widened->column(1)->Equals(Array(arrow::int64(), "[1,2]")));
}

}  // namespace
}  // namespace tarn::format
