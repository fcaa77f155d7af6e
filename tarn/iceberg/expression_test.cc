#include "tarn/iceberg/expression.h"

#include <cmath>
#include <random>

#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

using Kind = ExpressionKind;

Schema TestSchema() {
  Schema schema;
  schema.fields = {{.id = 1, .name = "id", .type = Type::Long()},
                   {.id = 2, .name = "name", .type = Type::String()},
                   {.id = 3, .name = "x", .type = Type::Double()},
                   {.id = 4, .name = "at", .type = Type::Timestamp()}};
  return schema;
}

Expression Bound(const Expression& expression) {
  Result<Expression> bound = Bind(expression, TestSchema());
  EXPECT_OK(bound);
  return bound.ok() ? *bound : Expression::True();
}

DataFile FileWith(int32_t id, const Type& type, const Literal& lower, const Literal& upper,
                  int64_t nulls = 0, int64_t nans = 0) {
  DataFile file;
  file.record_count = 10;
  file.value_counts = {{id, 10}};
  file.null_value_counts = {{id, nulls}};
  file.nan_value_counts = {{id, nans}};
  if (!lower.is_null()) {
    file.lower_bounds.Set(id, EncodeLiteral(type, lower).value());
    file.upper_bounds.Set(id, EncodeLiteral(type, upper).value());
  }
  return file;
}

bool May(const Expression& expression, const DataFile& file) {
  return MayMatchFile(Bound(expression), TestSchema(), file);
}
bool Must(const Expression& expression, const DataFile& file) {
  return MustMatchFile(Bound(expression), TestSchema(), file);
}

TEST(ExpressionTest, BoundsDecideComparisons) {
  const DataFile file = FileWith(1, Type::Long(), Literal::Long(30), Literal::Long(79));
  const auto compare = [&](Kind kind, int64_t value) {
    return Expression::Compare(kind, "id", Literal::Long(value));
  };
  EXPECT_FALSE(May(compare(Kind::kLess, 30), file));
  EXPECT_TRUE(May(compare(Kind::kLess, 31), file));
  EXPECT_FALSE(May(compare(Kind::kLessOrEqual, 29), file));
  EXPECT_FALSE(May(compare(Kind::kGreater, 79), file));
  EXPECT_TRUE(May(compare(Kind::kGreaterOrEqual, 79), file));
  EXPECT_FALSE(May(compare(Kind::kEqual, 80), file));
  EXPECT_TRUE(May(compare(Kind::kNotEqual, 50), file));
  EXPECT_FALSE(May(Expression::In("id", {Literal::Long(1), Literal::Long(99)}), file));
  EXPECT_TRUE(May(Expression::In("id", {Literal::Long(1), Literal::Long(50)}), file));
  EXPECT_TRUE(Must(compare(Kind::kLess, 80), file));
  EXPECT_FALSE(Must(compare(Kind::kLess, 79), file));
  EXPECT_TRUE(Must(compare(Kind::kNotEqual, 5), file));
  EXPECT_FALSE(May(Expression::Not(compare(Kind::kLess, 80)), file));
  EXPECT_FALSE(May(Expression::And(compare(Kind::kLess, 40), compare(Kind::kLess, 20)), file));
  EXPECT_TRUE(May(Expression::Or(compare(Kind::kLess, 40), compare(Kind::kLess, 20)), file));
}

TEST(ExpressionTest, NullsAndNan) {
  const DataFile none = FileWith(3, Type::Double(), Literal::Double(1), Literal::Double(2));
  const DataFile nan = FileWith(3, Type::Double(), Literal::Double(1), Literal::Double(2), 0, 1);
  const DataFile all_null = FileWith(3, Type::Double(), Literal::Null(), Literal::Null(), 10);
  EXPECT_FALSE(May(Expression::IsNull("x"), none));
  EXPECT_TRUE(May(Expression::IsNull("x"), all_null));
  EXPECT_FALSE(May(Expression::NotNull("x"), all_null));
  EXPECT_TRUE(Must(Expression::IsNull("x"), all_null));
  EXPECT_FALSE(May(Expression::IsNan("x"), none));
  EXPECT_TRUE(May(Expression::IsNan("x"), nan));
  const auto above = Expression::Compare(Kind::kGreater, "x", Literal::Double(5));
  EXPECT_FALSE(May(above, none));
  EXPECT_TRUE(May(above, nan));  // Some engines take NaN for the greatest number.
  EXPECT_TRUE(May(Expression::Compare(Kind::kGreater, "x", Literal::Double(1)), nan));
  EXPECT_FALSE(May(above, all_null));
  const DataFile zero = FileWith(3, Type::Double(), Literal::Double(0.0), Literal::Double(0.0));
  EXPECT_TRUE(May(Expression::Equal("x", Literal::Double(-0.0)), zero));
}

TEST(ExpressionTest, StringsAndCutBounds) {
  const DataFile file = FileWith(2, Type::String(), Literal::String("car"), Literal::String("dp"));
  const auto starts = [](const char* text) {
    return Expression::Compare(Kind::kStartsWith, "name", Literal::String(text));
  };
  EXPECT_TRUE(May(starts("cargo"), file));
  EXPECT_TRUE(May(starts("d"), file));
  EXPECT_FALSE(May(starts("e"), file));
  EXPECT_FALSE(May(starts("b"), file));
  EXPECT_FALSE(May(starts("dq"), file));
  EXPECT_FALSE(May(Expression::Equal("name", Literal::String("abc")), file));
}

TEST(ExpressionTest, FilesWithoutStatisticsAlwaysMayMatch) {
  DataFile file;
  file.record_count = 1;
  EXPECT_TRUE(May(Expression::Equal("id", Literal::Long(1)), file));
  EXPECT_TRUE(May(Expression::IsNull("id"), file));
  EXPECT_FALSE(Must(Expression::Equal("id", Literal::Long(1)), file));
  file.record_count = 0;
  EXPECT_FALSE(May(Expression::True(), file));
}

TEST(ExpressionTest, BindFindsColumnsAndCasts) {
  const Schema schema = TestSchema();
  EXPECT_THAT(Bind(Expression::IsNull("nothing"), schema),
              FailsWith(ErrorCode::kInvalidArgument, "nothing"));
  EXPECT_THAT(Bind(Expression::IsNull("ID"), schema), Fails(ErrorCode::kInvalidArgument));
  EXPECT_OK(Bind(Expression::IsNull("ID"), schema, CaseRule::kInsensitive));
  EXPECT_THAT(Bind(Expression::Equal("id", Literal::Null()), schema),
              Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(Bind(Expression::Equal("at", Literal::String("not a time")), schema),
              Fails(ErrorCode::kInvalidArgument));
  const Expression at = Bound(Expression::Equal("at", Literal::String("1970-01-01T00:00:01")));
  EXPECT_EQ(at.values[0], Literal::Long(1'000'000));
  EXPECT_EQ(Bound(Expression::In("id", {})).kind, Kind::kFalse);
  EXPECT_EQ(Bound(Expression::Not(Expression::And(Expression::True(), Expression::False()))).kind,
            Kind::kTrue);
}

TEST(ExpressionTest, PartitionsAreLeftOutThroughTheirTransforms) {
  const PartitionSpec spec{
      .fields = {
          {.source_id = 1, .field_id = 1000, .name = "b", .transform = Transform::Bucket(16)},
          {.source_id = 4, .field_id = 1001, .name = "d", .transform = Transform::Day()},
          {.source_id = 2, .field_id = 1002, .name = "t", .transform = Transform::Truncate(2)}}};
  const Schema schema = TestSchema();
  const PartitionValues values{
      ApplyTransform(Transform::Bucket(16), Type::Long(), Literal::Long(34)).value(),
      Literal::Long(10), Literal::String("ab")};
  const auto may = [&](const Expression& e) {
    return MayMatchPartition(Bound(e), schema, spec, values);
  };
  EXPECT_TRUE(may(Expression::Equal("id", Literal::Long(34))));
  EXPECT_FALSE(may(Expression::Equal("id", Literal::Long(35))));
  EXPECT_TRUE(may(Expression::Compare(Kind::kLess, "id", Literal::Long(0))));
  EXPECT_FALSE(may(Expression::IsNull("id")));
  const auto at = [](Kind kind, const char* time) {
    return Expression::Compare(kind, "at", Literal::String(time));
  };
  EXPECT_TRUE(may(at(Kind::kEqual, "1970-01-11T12:00:00")));
  EXPECT_FALSE(may(at(Kind::kEqual, "1970-01-12T12:00:00")));
  EXPECT_FALSE(may(at(Kind::kLess, "1970-01-11T00:00:00")));
  EXPECT_TRUE(may(at(Kind::kLessOrEqual, "1970-01-11T00:00:00")));
  EXPECT_FALSE(may(at(Kind::kGreater, "1970-01-11T23:59:59.999999")));
  EXPECT_TRUE(may(Expression::Compare(Kind::kStartsWith, "name", Literal::String("abc"))));
  EXPECT_FALSE(may(Expression::Compare(Kind::kStartsWith, "name", Literal::String("b"))));
  EXPECT_FALSE(may(Expression::Equal("name", Literal::String("ba"))));
  ManifestFile manifest;
  manifest.partitions = {{.lower_bound = EncodeLiteral(Type::Int(), values[0]).value(),
                          .upper_bound = EncodeLiteral(Type::Int(), values[0]).value()},
                         {.lower_bound = EncodeLiteral(Type::Date(), Literal::Long(5)).value(),
                          .upper_bound = EncodeLiteral(Type::Date(), Literal::Long(9)).value()},
                         {.lower_bound = "aa", .upper_bound = "az"}};
  EXPECT_FALSE(MayMatchManifest(Bound(at(Kind::kGreaterOrEqual, "1970-01-11T00:00:00")), schema,
                                spec, manifest));
  EXPECT_TRUE(MayMatchManifest(Bound(at(Kind::kGreaterOrEqual, "1970-01-10T00:00:00")), schema,
                               spec, manifest));
}

TEST(ExpressionTest, ResidualsDropWhatThePartitionDecides) {
  const PartitionSpec spec{.fields = {{.source_id = 2, .field_id = 1000, .name = "name"}}};
  const Expression filter =
      Bound(Expression::And(Expression::Equal("name", Literal::String("a")),
                            Expression::Compare(Kind::kLess, "id", Literal::Long(5))));
  const Expression residual = ResidualOf(filter, TestSchema(), spec, {Literal::String("a")});
  EXPECT_EQ(residual.kind, Kind::kLess);
  EXPECT_EQ(ResidualOf(filter, TestSchema(), spec, {Literal::String("b")}).kind, Kind::kFalse);
  EXPECT_EQ(ResidualOf(filter, TestSchema(), spec, {Literal::Null()}).kind, Kind::kFalse);
}

// Pruning never loses a row: random values, predicates and transforms against plain evaluation.
TEST(ExpressionTest, NoRowIsLost) {
  std::mt19937_64 random(20260131);  // NOLINT(cert-msc51-cpp): a fixed seed repeats.
  const std::vector<Kind> kinds{Kind::kEqual,       Kind::kNotEqual, Kind::kLess,
                                Kind::kLessOrEqual, Kind::kGreater,  Kind::kGreaterOrEqual};
  const std::vector<Transform> transforms{Transform::Identity(), Transform::Bucket(3),
                                          Transform::Truncate(10), Transform::Void()};
  const auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  for (int round = 0; round < 20'000; ++round) {
    const int64_t value = draw(-25, 25);
    const Expression e = Bound(Expression::Compare(kinds[static_cast<size_t>(draw(0, 5))], "id",
                                                   Literal::Long(draw(-25, 25))));
    if (!Matches(e, Literal::Long(value))) {
      continue;
    }
    const DataFile file = FileWith(1, Type::Long(), Literal::Long(value - draw(0, 3)),
                                   Literal::Long(value + draw(0, 3)), draw(0, 1));
    ASSERT_TRUE(MayMatchFile(e, TestSchema(), file)) << FormatExpression(e) << " " << value;
    const Transform transform = transforms[static_cast<size_t>(draw(0, 3))];
    const PartitionSpec spec{
        .fields = {{.source_id = 1, .field_id = 1000, .name = "p", .transform = transform}}};
    const Literal partition = ApplyTransform(transform, Type::Long(), Literal::Long(value)).value();
    ASSERT_TRUE(MayMatchPartition(e, TestSchema(), spec, {partition}))
        << FormatExpression(e) << " " << value << " " << FormatTransform(transform);
  }
}

}  // namespace
}  // namespace tarn::iceberg
