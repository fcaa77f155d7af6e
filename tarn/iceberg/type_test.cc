#include "tarn/iceberg/type.h"

#include <nlohmann/json.hpp>

#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

TEST(TypeTest, TextOfEveryPrimitiveRoundTrips) {
  for (const char* text : {"boolean",
                           "int",
                           "long",
                           "float",
                           "double",
                           "date",
                           "time",
                           "timestamp",
                           "timestamptz",
                           "timestamp_ns",
                           "timestamptz_ns",
                           "string",
                           "uuid",
                           "binary",
                           "unknown",
                           "variant",
                           "decimal(9, 2)",
                           "fixed[16]",
                           "geometry(OGC:CRS84)",
                           "geography"}) {
    ASSERT_OK_AND_ASSIGN(const Type type, ParsePrimitiveType(text));
    EXPECT_EQ(FormatType(type), text);
  }
}

TEST(TypeTest, BlanksInDecimalsDoNotMatter) {
  EXPECT_THAT(ParsePrimitiveType("decimal(9,2)"), IsOkAndHolds(Type::Decimal(9, 2)));
  EXPECT_THAT(ParsePrimitiveType("decimal( 9 , 2 )"), IsOkAndHolds(Type::Decimal(9, 2)));
}

TEST(TypeTest, WrongTextsAreRefused) {
  for (const char* text :
       {"", "integer", "decimal", "decimal(39, 2)", "decimal(9, 10)", "decimal(9)", "decimal(a, 2)",
        "fixed[0]", "fixed[x]", "fixed", "LONG"}) {
    EXPECT_THAT(ParsePrimitiveType(text), Fails(ErrorCode::kInvalidArgument)) << text;
  }
}

TEST(TypeTest, NestedTypesRoundTripAsJson) {
  const Type type = Type::Struct(
      {{.id = 1,
        .name = "m",
        .required = true,
        .type = Type::Map(2, Type::String(), 3, Type::List(4, Type::Decimal(38, 0), true), false),
        .doc = "a map"}});
  ASSERT_OK_AND_ASSIGN(const Json json, ParseJson(DumpJson(TypeToJson(type)), "test"));
  EXPECT_THAT(TypeFromJson(json), IsOkAndHolds(type));
  EXPECT_EQ(FormatType(type), "struct<1: m: required map<string, list<decimal(38, 0)>>>");
}

TEST(TypeTest, BrokenJsonNamesTheMember) {
  for (const auto& [text, member] : std::vector<std::pair<std::string, std::string>>{
           {R"({"type":"list","element":"int","element-required":true})", "element-id"},
           {R"({"type":"list","element-id":1,"element-required":true})", "element"},
           {R"({"type":"map","key-id":1,"key":"int","value-id":2,"value":"int"})",
            "value-required"},
           {R"({"type":"struct"})", "fields"},
           {R"({"type":"struct","fields":[{"name":"a","required":true,"type":"int"}]})", "id"},
           {R"({"type":"struct","fields":[{"id":"1","name":"a","required":true,"type":"int"}]})",
            "id"}}) {
    ASSERT_OK_AND_ASSIGN(const Json json, ParseJson(text, "test"));
    EXPECT_THAT(TypeFromJson(json), FailsWith(ErrorCode::kInvalidArgument, "'" + member + "'"));
  }
}

TEST(TypeTest, PromotionsAreThoseOfTheFormat) {
  EXPECT_TRUE(IsPromotionAllowed(Type::Int(), Type::Long(), 2));
  EXPECT_TRUE(IsPromotionAllowed(Type::Float(), Type::Double(), 2));
  EXPECT_TRUE(IsPromotionAllowed(Type::Decimal(9, 2), Type::Decimal(18, 2), 2));
  EXPECT_FALSE(IsPromotionAllowed(Type::Decimal(9, 2), Type::Decimal(18, 3), 2));
  EXPECT_FALSE(IsPromotionAllowed(Type::Decimal(9, 2), Type::Decimal(8, 2), 2));
  EXPECT_FALSE(IsPromotionAllowed(Type::Long(), Type::Int(), 2));
  EXPECT_FALSE(IsPromotionAllowed(Type::Int(), Type::String(), 3));
  EXPECT_FALSE(IsPromotionAllowed(Type::Date(), Type::Timestamp(), 2));
  EXPECT_TRUE(IsPromotionAllowed(Type::Date(), Type::Timestamp(), 3));
}

}  // namespace
}  // namespace tarn::iceberg
