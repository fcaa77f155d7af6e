#include "tarn/engine/row_writer.h"

#include <limits>

#include <arrow/api.h>
#include <arrow/extension/uuid.h>
#include <arrow/json/from_string.h>
#include <gtest/gtest.h>

#include "tarn/base/arrow_status.h"
#include "test/support/matchers.h"

namespace tarn::engine {
namespace {

using Batch = std::shared_ptr<arrow::RecordBatch>;

std::shared_ptr<arrow::Array> Json(const std::shared_ptr<arrow::DataType>& type,
                                   std::string_view text) {
  const auto array = arrow::json::ArrayFromJSONString(type, text);
  EXPECT_TRUE(array.ok()) << array.status().ToString();
  return *array;
}

/// JSON of each value of an array, joined by ' '.
std::string Values(const arrow::Array& array) {
  std::string out;
  for (int64_t i = 0; i < array.length(); ++i) {
    out += i > 0 ? " " : "";
    const Status status = AppendJsonValue(array, i, out);
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  return out;
}

std::string Written(RowFormat format, const std::vector<Batch>& batches,
                    const std::shared_ptr<arrow::Schema>& schema) {
  std::string text;
  auto writer = MakeRowWriter(format, schema, [&text](std::string_view piece) {
    text += piece;
    return Status::Ok();
  });
  EXPECT_TRUE(writer.ok()) << writer.status().ToString();
  for (const Batch& batch : batches) {
    EXPECT_TRUE((*writer)->Write(*batch).ok());
  }
  EXPECT_TRUE((*writer)->Finish().ok());
  return text;
}

Batch Rows(const std::shared_ptr<arrow::Schema>& schema, std::string_view json) {
  return *arrow::RecordBatch::FromStructArray(Json(arrow::struct_(schema->fields()), json));
}

TEST(RowWriterTest, JsonValuesAreExact) {
  using arrow::TimeUnit;
  EXPECT_EQ(Values(*Json(arrow::int64(), "[9223372036854775807, null, -9223372036854775808]")),
            "9223372036854775807 null -9223372036854775808");
  EXPECT_EQ(Values(*Json(arrow::uint64(), "[18446744073709551615]")), "18446744073709551615");
  EXPECT_EQ(Values(*Json(arrow::decimal128(38, 10),
                         R"(["1234567890123456789012345678.1234567890", "-0.0000000001"])")),
            "1234567890123456789012345678.1234567890 -0.0000000001");
  EXPECT_EQ(Values(*Json(arrow::boolean(), "[true, false, null]")), "true false null");
  EXPECT_EQ(Values(*Json(arrow::date32(), "[20484]")), "\"2026-01-31\"");
  EXPECT_EQ(Values(*Json(arrow::time64(TimeUnit::MICRO), "[3723000001]")), "\"01:02:03.000001\"");
  EXPECT_EQ(Values(*Json(arrow::timestamp(TimeUnit::MICRO, "UTC"), "[-1]")),
            "\"1969-12-31T23:59:59.999999Z\"");
  EXPECT_EQ(Values(*Json(arrow::timestamp(TimeUnit::MICRO), "[0]")),
            "\"1970-01-01T00:00:00.000000\"");
  EXPECT_EQ(Values(*Json(arrow::timestamp(TimeUnit::NANO, "UTC"), "[-1]")),
            "\"1969-12-31T23:59:59.999999999Z\"");
  EXPECT_EQ(Values(*Json(arrow::timestamp(TimeUnit::NANO), "[1001]")),
            "\"1970-01-01T00:00:00.000001001\"");
  EXPECT_EQ(Values(*Json(arrow::binary(), R"(["\u0000\u007fz"])")), "\"007f7a\"");
  EXPECT_EQ(Values(*Json(arrow::utf8(), R"(["a\"b\\\n\u0001ä", ""])")),
            "\"a\\\"b\\\\\\n\\u0001ä\" \"\"");
  EXPECT_EQ(Values(*arrow::ExtensionType::WrapArray(
                arrow::extension::uuid(),
                Json(arrow::fixed_size_binary(16), R"(["0123456789abcdef", null])"))),
            "\"30313233-3435-3637-3839-616263646566\" null");
  arrow::DoubleBuilder doubles;
  const double infinity = std::numeric_limits<double>::infinity();
  ASSERT_TRUE(doubles.AppendValues({0.1, 1.0, 1e300, std::nan(""), infinity, -infinity}).ok());
  EXPECT_EQ(Values(**doubles.Finish()), "0.1 1.0 1e+300 \"NaN\" \"Infinity\" \"-Infinity\"");
}

TEST(RowWriterTest, NestedValuesAreJson) {
  const auto inner = arrow::struct_(
      {arrow::field("a \"b", arrow::int32()), arrow::field("l", arrow::list(arrow::utf8()))});
  EXPECT_EQ(
      Values(*Json(arrow::list(inner), R"([[{"a \"b": 1, "l": ["x", null]}, null], [], null])")),
      R"([{"a \"b":1,"l":["x",null]},null] [] null)");
  EXPECT_EQ(
      Values(*Json(arrow::map(arrow::utf8(), arrow::int32()), R"([[["k", 1], ["l", null]], []])")),
      R"({"k":1,"l":null} {})");
  EXPECT_EQ(Values(*Json(arrow::map(arrow::int32(), arrow::int32()), "[[[1, 2]]]")),
            R"([{"key":1,"value":2}])");
  EXPECT_EQ(Values(*Json(arrow::list(arrow::int32()), "[[1], [2, 3], [4]]")->Slice(1)),
            "[2,3] [4]");
  EXPECT_EQ(
      Values(*Json(arrow::struct_({arrow::field("x", arrow::int32())}), R"([{"x": 1}, {"x": 2}])")
                  ->Slice(1)),
      R"({"x":2})");
}

TEST(RowWriterTest, JsonDocuments) {
  const auto schema =
      arrow::schema({arrow::field("id", arrow::int64()), arrow::field("name", arrow::utf8())});
  const auto first = Rows(schema, R"([{"id": 1, "name": "a"}, {"id": null, "name": null}])");
  const auto second = Rows(schema, R"([{"id": 3, "name": "c"}])");
  EXPECT_EQ(
      Written(RowFormat::kJson, {first, second}, schema),
      "[{\"id\":1,\"name\":\"a\"},\n{\"id\":null,\"name\":null},\n{\"id\":3,\"name\":\"c\"}]\n");
  EXPECT_EQ(Written(RowFormat::kJson, {}, schema), "[]\n");
  EXPECT_EQ(Written(RowFormat::kJsonLines, {first, second}, schema),
            "{\"id\":1,\"name\":\"a\"}\n{\"id\":null,\"name\":null}\n{\"id\":3,\"name\":\"c\"}\n");
}

TEST(RowWriterTest, Csv) {
  const auto schema =
      arrow::schema({arrow::field("a,b", arrow::utf8()), arrow::field("n", arrow::float64()),
                     arrow::field("l", arrow::list(arrow::int32()))});
  const auto rows = Rows(schema, R"([{"a,b": "x", "n": 1.5, "l": [1, 2]},
                                     {"a,b": "", "n": null, "l": null},
                                     {"a,b": "say \"hi\"\nthere", "n": -2, "l": []},
                                     {"a,b": " pad ", "n": 0, "l": [null]}])");
  EXPECT_EQ(
      Written(RowFormat::kCsv, {rows}, schema),
      "\"a,b\",n,l\r\nx,1.5,\"[1,2]\"\r\n\"\",,\r\n\"say \"\"hi\"\"\nthere\",-2.0,[]\r\n\" pad "
      "\",0.0,[null]\r\n");
  EXPECT_EQ(Written(RowFormat::kCsv, {}, schema), "\"a,b\",n,l\r\n");
}

TEST(RowWriterTest, AlignedTable) {
  const auto schema =
      arrow::schema({arrow::field("id", arrow::int64()), arrow::field("name", arrow::utf8())});
  const auto rows = Rows(schema, R"([{"id": 1, "name": "größe"}, {"id": 100, "name": "a\nb\u001b"},
                                     {"id": null, "name": null}])");
  EXPECT_EQ(
      Written(RowFormat::kTable, {rows}, schema),
      "  id | name\n-----+---------\n   1 | größe\n 100 | a\\nb\\x1b\nNULL | NULL\n(3 rows)\n");
  EXPECT_EQ(Written(RowFormat::kTable, {}, schema), "id | name\n---+-----\n(0 rows)\n");
}

TEST(RowWriterTest, ASinksFailureEndsTheWriting) {
  const auto schema = arrow::schema({arrow::field("id", arrow::int64())});
  auto writer = MakeRowWriter(RowFormat::kJson, schema, [](std::string_view) {
    return Status::Unavailable("the client went away");
  });
  ASSERT_OK(writer.status());
  EXPECT_THAT((*writer)->Write(*Rows(schema, R"([{"id": 1}])")), Fails(ErrorCode::kUnavailable));
}

TEST(RowWriterTest, TypesWithoutTextAreRefusedByName) {
  const TextSink sink = [](std::string_view) { return Status::Ok(); };
  for (const auto& type : {arrow::float16(), arrow::list(arrow::duration(arrow::TimeUnit::SECOND)),
                           arrow::dictionary(arrow::int32(), arrow::utf8())}) {
    EXPECT_THAT(MakeRowWriter(RowFormat::kJson, arrow::schema({arrow::field("c", type)}), sink),
                FailsWith(ErrorCode::kUnimplemented, "column \"c\""));
  }
}

}  // namespace
}  // namespace tarn::engine
