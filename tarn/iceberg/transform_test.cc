#include "tarn/iceberg/transform.h"

#include <arrow/api.h>

#include "tarn/base/hash.h"
#include "tarn/iceberg/partition_spec.h"
#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

TEST(TransformTest, HashesAreThoseOfTheSpecification) {
  const std::vector<std::tuple<Type, Literal, int32_t>> cases{
      {Type::Int(), Literal::Long(34), 2017239379},
      {Type::Long(), Literal::Long(34), 2017239379},
      {Type::Decimal(9, 2), Literal::Decimal(1420), -500754589},
      {Type::Date(), Literal::Long(17486), -653330422},
      {Type::Time(), Literal::Long(81068000000), -662762989},
      {Type::Timestamp(), Literal::Long(1510871468000000), -2047944441},
      {Type::Timestamp(), Literal::Long(1510871468000001), -1207196810},
      {Type::String(), Literal::String("iceberg"), 1210000089},
      {Type::Uuid(), Literal::String(DecodeHex("f79c3e09677c4bbda4793f349cb785e7").value()),
       1488055340},
      {Type::Binary(), Literal::String(std::string("\0\1\2\3", 4)), -188683207},
      {Type::Long(), Literal::Long(-1), 1651860712},
      {Type::Long(), Literal::Long(0), 1669671676},
      {Type::String(), Literal::String(""), 0},
      {Type::String(), Literal::String("é"), 269551495},
      {Type::Decimal(9, 2), Literal::Decimal(-100), -608597965}};
  for (const auto& [type, literal, hash] : cases) {
    EXPECT_THAT(BucketHash(type, literal), IsOkAndHolds(hash)) << FormatType(type);
  }
  Type nanos = Type::Timestamp();
  nanos.id = TypeId::kTimestampNs;
  EXPECT_THAT(BucketHash(nanos, Literal::Long(1510871468000001001)), IsOkAndHolds(-1207196810));
  EXPECT_THAT(BucketHash(Type::Double(), Literal::Double(1)), Fails(ErrorCode::kInvalidArgument));
}

TEST(TransformTest, TimesRoundDownAlsoBefore1970) {
  const Literal before = Literal::Long(-1'000'000);  // 1969-12-31T23:59:59.
  for (const Transform& transform :
       {Transform::Year(), Transform::Month(), Transform::Day(), Transform::Hour()}) {
    EXPECT_THAT(ApplyTransform(transform, Type::Timestamp(), before),
                IsOkAndHolds(Literal::Long(-1)))
        << FormatTransform(transform);
  }
  const Literal date = Literal::Long(17486);
  EXPECT_THAT(ApplyTransform(Transform::Year(), Type::Date(), date),
              IsOkAndHolds(Literal::Long(47)));
  EXPECT_THAT(ApplyTransform(Transform::Month(), Type::Date(), date),
              IsOkAndHolds(Literal::Long(574)));
  EXPECT_THAT(ApplyTransform(Transform::Hour(), Type::Date(), date),
              Fails(ErrorCode::kInvalidArgument));
}

TEST(TransformTest, TruncateRoundsTowardsMinusInfinity) {
  EXPECT_THAT(ApplyTransform(Transform::Truncate(10), Type::Int(), Literal::Long(-1)),
              IsOkAndHolds(Literal::Long(-10)));
  EXPECT_THAT(ApplyTransform(Transform::Truncate(10), Type::Long(), Literal::Long(19)),
              IsOkAndHolds(Literal::Long(10)));
  EXPECT_THAT(ApplyTransform(Transform::Truncate(50), Type::Decimal(9, 2), Literal::Decimal(1065)),
              IsOkAndHolds(Literal::Decimal(1050)));
  EXPECT_THAT(ApplyTransform(Transform::Truncate(2), Type::String(), Literal::String("äöü")),
              IsOkAndHolds(Literal::String("äö")));
  EXPECT_THAT(ApplyTransform(Transform::Truncate(2), Type::Double(), Literal::Double(1)),
              Fails(ErrorCode::kInvalidArgument));
}

TEST(TransformTest, NullAndVoidGiveNull) {
  EXPECT_THAT(ApplyTransform(Transform::Bucket(4), Type::Long(), Literal::Null()),
              IsOkAndHolds(Literal::Null()));
  EXPECT_THAT(ApplyTransform(Transform::Void(), Type::Long(), Literal::Long(1)),
              IsOkAndHolds(Literal::Null()));
}

TEST(TransformTest, TextsRoundTripAndUnknownOnesAreKept) {
  for (const char* text : {"identity", "bucket[16]", "truncate[3]", "year", "month", "day", "hour",
                           "void", "zorder[2]"}) {
    ASSERT_OK_AND_ASSIGN(const Transform transform, ParseTransform(text));
    EXPECT_EQ(FormatTransform(transform), text);
  }
  EXPECT_EQ(ParseTransform("zorder[2]")->kind, TransformKind::kUnknown);
  EXPECT_THAT(ParseTransform("bucket[0]"), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(ParseTransform("truncate[x]"), Fails(ErrorCode::kInvalidArgument));
}

TEST(TransformTest, ColumnsAreTransformedRowByRow) {
  arrow::Int64Builder builder;
  ASSERT_TRUE(builder.AppendValues({34, -1}).ok());
  ASSERT_TRUE(builder.AppendNull().ok());
  const auto column = builder.Finish().ValueOrDie();
  ASSERT_OK_AND_ASSIGN(const auto buckets,
                       ApplyTransform(Transform::Bucket(16), Type::Long(), *column));
  ASSERT_EQ(buckets->type_id(), arrow::Type::INT32);
  const auto& values = static_cast<const arrow::Int32Array&>(*buckets);
  EXPECT_EQ(values.Value(0), 2017239379 % 16);
  EXPECT_EQ(values.Value(1), 1651860712 % 16);
  EXPECT_TRUE(values.IsNull(2));
  ASSERT_OK_AND_ASSIGN(const auto same,
                       ApplyTransform(Transform::Identity(), Type::Long(), *column));
  EXPECT_TRUE(same->Equals(*column));
}

TEST(TransformTest, PartitionPathsAreEncodedAndReadable) {
  Schema schema;
  schema.fields = {{.id = 1, .name = "at", .type = Type::TimestampTz()},
                   {.id = 2, .name = "na me", .type = Type::String()},
                   {.id = 3, .name = "b", .type = Type::Binary()}};
  const PartitionSpec spec{
      .fields = {{.source_id = 1, .field_id = 1000, .name = "h", .transform = Transform::Hour()},
                 {.source_id = 1, .field_id = 1001, .name = "m", .transform = Transform::Month()},
                 {.source_id = 2, .field_id = 1002, .name = "na me"},
                 {.source_id = 3, .field_id = 1003, .name = "b"}}};
  EXPECT_THAT(FormatPartitionPath(spec, schema,
                                  {Literal::Long(-1), Literal::Long(574),
                                   Literal::String("a/b=c d*"), Literal::Null()}),
              IsOkAndHolds(std::string("h=1969-12-31-23/m=2017-11/na+me=a%2Fb%3Dc+d*/b=null")));
  EXPECT_THAT(FormatPartitionPath(spec, schema, {Literal::Null()}),
              Fails(ErrorCode::kInvalidArgument));
}

}  // namespace
}  // namespace tarn::iceberg
