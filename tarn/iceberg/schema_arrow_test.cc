#include "tarn/iceberg/schema_arrow.h"

#include <arrow/api.h>
#include <arrow/util/key_value_metadata.h>

#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

Schema EveryType() {
  Schema schema;
  schema.fields = {
      {.id = 1, .name = "b", .required = true, .type = Type::Boolean()},
      {.id = 2, .name = "i", .type = Type::Int()},
      {.id = 3, .name = "l", .type = Type::Long()},
      {.id = 4, .name = "f", .type = Type::Float()},
      {.id = 5, .name = "d", .type = Type::Double()},
      {.id = 6, .name = "dec", .type = Type::Decimal(9, 2)},
      {.id = 7, .name = "date", .type = Type::Date()},
      {.id = 8, .name = "time", .type = Type::Time()},
      {.id = 9, .name = "ts", .type = Type::Timestamp()},
      {.id = 10, .name = "tz", .type = Type::TimestampTz()},
      {.id = 11, .name = "s", .type = Type::String()},
      {.id = 12, .name = "fix", .type = Type::Fixed(20)},
      {.id = 13, .name = "bin", .type = Type::Binary()},
      {.id = 14,
       .name = "st",
       .type = Type::Struct({{.id = 15, .name = "x", .required = true, .type = Type::Int()}})},
      {.id = 16, .name = "list", .type = Type::List(17, Type::String(), true)},
      {.id = 18, .name = "map", .type = Type::Map(19, Type::String(), 20, Type::Long(), false)}};
  return schema;
}

TEST(SchemaArrowTest, EveryTypeRoundTripsWithItsId) {
  ASSERT_OK_AND_ASSIGN(const auto arrow_schema, ToArrowSchema(EveryType()));
  EXPECT_EQ(arrow_schema->field(9)->type()->ToString(), "timestamp[us, tz=UTC]");
  EXPECT_THAT(FromArrowSchema(*arrow_schema), IsOkAndHolds(EveryType()));
}

TEST(SchemaArrowTest, SchemasWithoutIdsGetFreshOnes) {
  const auto arrow_schema =
      arrow::schema({arrow::field("a", arrow::int16(), false),
                     arrow::field("s", arrow::struct_({arrow::field("x", arrow::uint64())})),
                     arrow::field("t", arrow::timestamp(arrow::TimeUnit::MILLI, "Europe/Berlin")),
                     arrow::field("d", arrow::dictionary(arrow::int32(), arrow::utf8()))});
  ASSERT_OK_AND_ASSIGN(const Schema schema, FromArrowSchema(*arrow_schema));
  EXPECT_EQ(schema.FindField("a")->type, Type::Int());
  EXPECT_TRUE(schema.FindField("a")->required);
  EXPECT_EQ(schema.FindField("s.x")->id, 5);
  EXPECT_EQ(schema.FindField("s.x")->type, Type::Decimal(20, 0));
  EXPECT_EQ(schema.FindField("t")->type, Type::TimestampTz());
  EXPECT_EQ(schema.FindField("d")->type, Type::String());
}

TEST(SchemaArrowTest, TypesWithoutCounterpartNameTheColumn) {
  EXPECT_THAT(FromArrowSchema(
                  *arrow::schema({arrow::field("odd", arrow::duration(arrow::TimeUnit::SECOND))})),
              FailsWith(ErrorCode::kInvalidArgument, "odd"));
  Schema variant;
  variant.fields = {{.id = 1, .name = "v"}};
  variant.fields[0].type.id = TypeId::kVariant;
  EXPECT_THAT(ToArrowSchema(variant), FailsWith(ErrorCode::kUnimplemented, "'v'"));
}

}  // namespace
}  // namespace tarn::iceberg
