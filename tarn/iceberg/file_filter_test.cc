#include "tarn/iceberg/file_filter.h"

#include <random>

#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

using Kind = ExpressionKind;

Schema TestSchema() {
  Schema schema;
  schema.fields = {{.id = 1, .name = "n", .type = Type::Int()},
                   {.id = 2, .name = "id", .type = Type::Long()},
                   {.id = 3, .name = "name", .type = Type::String()},
                   {.id = 4, .name = "day", .type = Type::Date()},
                   {.id = 5, .name = "bytes", .type = Type::Binary()}};
  return schema;
}

bool IsTrue(Kind kind, int order_of_value_and_bound_max, int order_of_value_and_bound_min) {
  // `…_max`: of the value and the upper bound; `…_min`: of the value and the lower bound.
  switch (kind) {
    case Kind::kEqual:
      return order_of_value_and_bound_min >= 0 && order_of_value_and_bound_max <= 0;
    case Kind::kLess:
      return order_of_value_and_bound_min > 0;
    case Kind::kLessOrEqual:
      return order_of_value_and_bound_min >= 0;
    case Kind::kGreater:
      return order_of_value_and_bound_max < 0;
    default:
      return order_of_value_and_bound_max <= 0;
  }
}

Literal LiteralOf(const Type& type, int64_t number) {
  return type.id == TypeId::kString || type.id == TypeId::kBinary
             ? Literal::String(std::string(1, static_cast<char>(number + 128)) + "x")
             : Literal::Long(number);
}

// Every comparison with bounds, by columns of every form, says what the numbers say.
TEST(FileFilterTest, BoundsDecideExactly) {
  std::mt19937_64 random(3);
  const Schema schema = TestSchema();
  const auto draw = [&] { return static_cast<int64_t>(random() % 9) - 4; };
  for (int round = 0; round < 20'000; ++round) {
    const SchemaField& field = schema.fields[random() % schema.fields.size()];
    const int64_t lower = draw();
    const int64_t upper = std::max(lower, draw());
    DataFile file;
    file.record_count = 10;
    file.value_counts = {{field.id, 10}};
    file.null_value_counts = {{field.id, static_cast<int64_t>(random() % 2)}};
    // A column that was int once has bounds of 4 bytes.
    const Type stored =
        field.type.id == TypeId::kLong && random() % 2 == 0 ? Type::Int() : field.type;
    const bool has_lower = random() % 8 != 0;
    const bool has_upper = random() % 8 != 0;
    if (has_lower) {
      file.lower_bounds.Set(field.id, EncodeLiteral(stored, LiteralOf(stored, lower)).value());
    }
    if (has_upper) {
      file.upper_bounds.Set(field.id, EncodeLiteral(stored, LiteralOf(stored, upper)).value());
    }
    const std::vector<Kind> kinds = {Kind::kEqual, Kind::kLess, Kind::kLessOrEqual, Kind::kGreater,
                                     Kind::kGreaterOrEqual};
    const Kind kind = kinds[random() % kinds.size()];
    const auto expected = [&](int64_t value) {
      const int64_t far = 1000;
      const int64_t above = value - (has_lower ? lower : -far);
      const int64_t below = value - (has_upper ? upper : far);
      return IsTrue(kind, below < 0 ? -1 : (below > 0 ? 1 : 0),
                    above < 0 ? -1 : (above > 0 ? 1 : 0));
    };
    const int64_t value = draw();
    const int64_t other = draw();
    const bool list = kind == Kind::kEqual && random() % 2 == 0;
    const Expression filter =
        list ? Expression::In(field.name,
                              {LiteralOf(field.type, value), LiteralOf(field.type, other)})
             : Expression::Compare(kind, field.name, LiteralOf(field.type, value), field.type);
    ASSERT_OK_AND_ASSIGN(const Expression bound, Bind(filter, schema));
    const FileFilter prepared(bound, schema);
    ASSERT_EQ(prepared.MayMatchFile(file), expected(value) || (list && expected(other)))
        << FormatExpression(bound) << " in [" << (has_lower ? lower : -1000) << ", "
        << (has_upper ? upper : 1000) << "]";
    ASSERT_EQ(prepared.MayMatchFile(file), MayMatchFile(bound, schema, file));
  }
}

TEST(FileFilterTest, AndOrAndUnknownColumnsCombine) {
  const Schema schema = TestSchema();
  DataFile file;
  file.record_count = 1;
  file.lower_bounds = {{2, EncodeLiteral(Type::Long(), Literal::Long(5)).value()}};
  const auto less = [](int64_t value) {
    return Expression::Compare(Kind::kLess, "id", Literal::Long(value));
  };
  const auto may = [&](const Expression& filter) {
    const Expression bound = Bind(filter, schema).value();
    return FileFilter(bound, schema).MayMatchFile(file);
  };
  EXPECT_TRUE(may(Expression::True()));
  EXPECT_FALSE(may(Expression::False()));
  EXPECT_FALSE(may(Expression::And(less(9), less(5))));
  EXPECT_TRUE(may(Expression::Or(less(9), less(5))));
  EXPECT_FALSE(may(Expression::Or(less(4), less(5))));
  EXPECT_TRUE(may(Expression::And(less(9), Expression::IsNull("name"))));
  // Bounds of a length that fits no number say nothing.
  file.lower_bounds = {{2, "abc"}};
  EXPECT_TRUE(may(less(1)));
  file.record_count = 0;
  EXPECT_FALSE(may(Expression::True()));
}

TEST(FileFilterTest, PartitionsDecideByTheirOwnSpec) {
  const Schema schema = TestSchema();
  const Expression bound =
      Bind(Expression::And(Expression::Equal("name", Literal::String("a")),
                           Expression::Compare(Kind::kGreater, "id", Literal::Long(10))),
           schema)
          .value();
  const FileFilter filter(bound, schema);
  const PartitionSpec by_name{.fields = {{.source_id = 3, .field_id = 1000, .name = "name"}}};
  const PartitionSpec by_id{.fields = {{.source_id = 2, .field_id = 1000, .name = "id"},
                                       {.source_id = 99, .field_id = 1001, .name = "gone"}}};
  EXPECT_TRUE(filter.MayMatchPartition(by_name, {Literal::String("a")}));
  EXPECT_FALSE(filter.MayMatchPartition(by_name, {Literal::String("b")}));
  EXPECT_FALSE(filter.MayMatchPartition(by_name, {Literal::Null()}));
  EXPECT_TRUE(filter.MayMatchPartition(by_name, {}));
  EXPECT_TRUE(filter.MayMatchPartition(by_id, {Literal::Long(11), Literal::Null()}));
  EXPECT_FALSE(filter.MayMatchPartition(by_id, {Literal::Long(10), Literal::Null()}));
  EXPECT_TRUE(filter.MayMatchPartition({}, {}));
}

}  // namespace
}  // namespace tarn::iceberg
