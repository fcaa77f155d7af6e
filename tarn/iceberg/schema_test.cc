#include "tarn/iceberg/schema.h"

#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

Schema Nested() {
  Schema schema;
  schema.fields = {{.id = 1, .name = "a", .required = true, .type = Type::Int()},
                   {.id = 2,
                    .name = "s",
                    .type = Type::Struct({{.id = 4, .name = "x", .type = Type::String()},
                                          {.id = 5, .name = "y.z", .type = Type::Double()}})},
                   {.id = 3, .name = "l", .type = Type::List(6, Type::Long(), false)}};
  schema.identifier_field_ids = {1};
  return schema;
}

TEST(SchemaTest, FieldsAreFoundByIdAndDottedName) {
  const Schema schema = Nested();
  EXPECT_EQ(schema.FindField(4)->name, "x");
  EXPECT_EQ(schema.FindField("s.x")->id, 4);
  EXPECT_EQ(schema.FindField("s.y.z")->id, 5);
  EXPECT_EQ(schema.FindField("l.element")->id, 6);
  EXPECT_EQ(schema.FindField("S.X"), nullptr);
  EXPECT_EQ(schema.FindField("S.X", CaseRule::kInsensitive)->id, 4);
  EXPECT_EQ(schema.FindField(99), nullptr);
  EXPECT_EQ(schema.NameOf(5), "s.y.z");
  EXPECT_EQ(schema.ParentOf(6), 3);
  EXPECT_EQ(schema.ParentOf(1), std::nullopt);
  EXPECT_EQ(schema.HighestFieldId(), 6);
}

TEST(SchemaTest, FreshIdsGoStructByStruct) {
  // a int, s struct<x, y>, b: a=1, s=2, b=3, x=4, y=5.
  Schema schema;
  schema.fields = {{.id = 10, .name = "a", .required = true, .type = Type::Int()},
                   {.id = 20,
                    .name = "s",
                    .type = Type::Struct({{.id = 30, .name = "x", .type = Type::Int()},
                                          {.id = 40, .name = "y", .type = Type::Int()}})},
                   {.id = 50, .name = "b", .type = Type::Int()}};
  schema.identifier_field_ids = {10};
  int32_t last = 0;
  const Schema fresh = AssignFreshIds(schema, last);
  EXPECT_EQ(last, 5);
  EXPECT_EQ(fresh.FindField("a")->id, 1);
  EXPECT_EQ(fresh.FindField("s")->id, 2);
  EXPECT_EQ(fresh.FindField("b")->id, 3);
  EXPECT_EQ(fresh.FindField("s.x")->id, 4);
  EXPECT_EQ(fresh.FindField("s.y")->id, 5);
  EXPECT_EQ(fresh.identifier_field_ids, std::vector<int32_t>{1});
}

TEST(SchemaTest, JsonRoundTrips) {
  EXPECT_THAT(ParseSchema(FormatSchema(Nested())), IsOkAndHolds(Nested()));
  EXPECT_THAT(ParseSchema("{"), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(ParseSchema(R"({"type":"struct"})"), Fails(ErrorCode::kInvalidArgument));
}

TEST(SchemaTest, ValidationNamesTheColumn) {
  EXPECT_OK(ValidateSchema(Nested(), 2));
  Schema twice = Nested();
  twice.fields[1].name = "a";
  EXPECT_THAT(ValidateSchema(twice, 2), FailsWith(ErrorCode::kInvalidArgument, "'a'"));
  Schema same_id = Nested();
  same_id.fields[2].id = 4;
  EXPECT_THAT(ValidateSchema(same_id, 2), FailsWith(ErrorCode::kInvalidArgument, "used twice"));
  Schema newer = Nested();
  newer.fields[0].type.id = TypeId::kTimestampNs;
  EXPECT_THAT(ValidateSchema(newer, 2), FailsWith(ErrorCode::kInvalidArgument, "v3"));
  EXPECT_OK(ValidateSchema(newer, 3));
  Schema optional_key = Nested();
  optional_key.fields[0].required = false;
  EXPECT_THAT(ValidateSchema(optional_key, 2),
              FailsWith(ErrorCode::kInvalidArgument, "not required"));
  Schema float_key = Nested();
  float_key.fields[0].type = Type::Float();
  EXPECT_THAT(ValidateSchema(float_key, 2), Fails(ErrorCode::kInvalidArgument));
}

}  // namespace
}  // namespace tarn::iceberg
