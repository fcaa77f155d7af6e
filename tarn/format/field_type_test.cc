#include "tarn/format/field_type.h"

#include <arrow/api.h>

#include "test/support/matchers.h"

namespace tarn::format {
namespace {

FieldType Type(std::string_view name) {
  auto type = ParseTypeName(name);
  EXPECT_TRUE(type.ok()) << type.status().ToString();
  return type.ok() ? *type : FieldType{};
}

TEST(FieldTypeTest, TypeNamesRoundTrip) {
  for (const char* name :
       {"boolean", "byte", "short", "int", "long", "float", "double", "decimal(10,2)", "string",
        "binary", "date", "time", "timestamp", "timestamptz", "uuid", "array<int>",
        "struct<a:int,b:array<string>>", "map<string,struct<x:decimal(38,0)>>",
        "struct<\"a b\":int,`q\"`:long>"}) {
    EXPECT_EQ(FormatTypeName(Type(name)), name);
  }
  EXPECT_EQ(Type(" DECIMAL( 5 ) "), Type("decimal(5,0)"));
  EXPECT_EQ(Type("Array<Struct<A: Int, b : BIGINT>>"), Type("array<struct<A:int,b:long>>"));
}

TEST(FieldTypeTest, BadTypeNamesSayWhere) {
  for (const char* name :
       {"", "it", "decimal", "decimal(0,0)", "decimal(39,1)", "decimal(5,6)", "decimal(5,2",
        "array", "array<>", "array<int", "array<int>x", "struct<a>", "struct<a:>", "struct<>",
        "map<int>", "map<int,long", "map<array<int>,int>", "struct<\"a:int>"}) {
    EXPECT_THAT(ParseTypeName(name), FailsWith(ErrorCode::kInvalidArgument, "position")) << name;
  }
  std::string deep;
  for (int i = 0; i < 500; ++i) {
    deep += "array<";
  }
  EXPECT_THAT(ParseTypeName(deep), Fails(ErrorCode::kInvalidArgument));
}

TEST(FieldTypeTest, ArrowRoundTrip) {
  std::vector<Field> fields;
  for (const char* name :
       {"boolean", "byte", "short", "int", "long", "float", "double", "decimal(10,2)", "string",
        "binary", "date", "time", "timestamp", "timestamptz", "uuid", "array<int>",
        "struct<a:int,b:array<string>>", "map<string,struct<x:decimal(38,0)>>"}) {
    fields.push_back(
        {.name = std::string("f") + std::to_string(fields.size()), .type = Type(name)});
  }
  fields.push_back({.name = "u", .type = {.detail = FieldDetail::kUntyped}});
  EXPECT_THAT(FromArrowSchema(*ToArrowSchema(fields)), IsOkAndHolds(fields));
  EXPECT_THAT(DecodeFields(EncodeFields(fields)), IsOkAndHolds(fields));
}

TEST(FieldTypeTest, ForeignArrowTypesGetTheNearestType) {
  const auto type = [](const std::shared_ptr<arrow::DataType>& arrow_type) {
    const auto found = FromArrowType(*arrow_type);
    return found.ok() ? FormatTypeName(*found) : std::string(ErrorCodeName(found.status().code()));
  };
  EXPECT_EQ(type(arrow::uint8()), "short");
  EXPECT_EQ(type(arrow::uint32()), "long");
  EXPECT_EQ(type(arrow::uint64()), "decimal(20,0)");
  EXPECT_EQ(type(arrow::large_utf8()), "string");
  EXPECT_EQ(type(arrow::fixed_size_binary(20)), "binary");
  EXPECT_EQ(type(arrow::dictionary(arrow::int32(), arrow::utf8())), "string");
  EXPECT_EQ(type(arrow::timestamp(arrow::TimeUnit::NANO, "Europe/Paris")), "timestamptz");
  EXPECT_EQ(type(arrow::time32(arrow::TimeUnit::SECOND)), "time");
  EXPECT_EQ(type(arrow::large_list(arrow::int8())), "array<byte>");
  EXPECT_EQ(type(arrow::decimal256(60, 2)), "Unimplemented");
  EXPECT_EQ(type(arrow::dense_union({arrow::field("a", arrow::int8())})), "Unimplemented");
}

TEST(FieldTypeTest, BadFieldTextIsRefused) {
  for (const char* text :
       {"", "{}", "[1]", R"([{"name":"a"}])", R"([{"name":"a","type":"INT"}])",
        R"([{"name":1,"type":"LONG"}])", R"([{"name":"a","type":"DECIMAL"}])",
        R"([{"name":"a","type":"DECIMAL","precision":5,"scale":6}])",
        R"([{"name":"a","type":"ARRAY"}])", R"([{"name":"a","type":"MAP","children":[]}])",
        R"([{"name":"a","type":"LONG","detail":"x"}])",
        R"([{"name":"a","type":"STRUCT","children":7}])"}) {
    EXPECT_THAT(DecodeFields(text), Fails(ErrorCode::kInvalidArgument)) << text;
  }
}

TEST(FieldTypeTest, Widening) {
  const auto widen = [](const char* a, const char* b) {
    const std::string one = FormatTypeName(WidenType(Type(a), Type(b)));
    EXPECT_EQ(one, FormatTypeName(WidenType(Type(b), Type(a)))) << a << " " << b;
    return one;
  };
  EXPECT_EQ(widen("int", "long"), "long");
  EXPECT_EQ(widen("byte", "short"), "short");
  EXPECT_EQ(widen("float", "double"), "double");
  EXPECT_EQ(widen("long", "double"), "double");
  EXPECT_EQ(widen("long", "decimal(10,2)"), "decimal(21,2)");
  EXPECT_EQ(widen("decimal(38,0)", "decimal(10,2)"), "string");
  EXPECT_EQ(widen("double", "decimal(10,2)"), "string");
  EXPECT_EQ(widen("timestamp", "timestamptz"), "string");
  EXPECT_EQ(widen("time", "long"), "string");
  EXPECT_EQ(widen("date", "boolean"), "string");
  EXPECT_EQ(widen("array<int>", "array<long>"), "array<long>");
  EXPECT_EQ(widen("array<int>", "int"), "string");
  EXPECT_EQ(FormatTypeName(WidenType(Type("struct<a:int,b:long>"), Type("struct<A:string,c:int>"))),
            "struct<a:string,b:long,c:int>");
  EXPECT_EQ(WidenType({.detail = FieldDetail::kUntyped}, Type("date")), Type("date"));
}

}  // namespace
}  // namespace tarn::format
