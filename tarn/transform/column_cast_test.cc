#include "tarn/transform/column_cast.h"

#include <arrow/api.h>
#include <gtest/gtest.h>

#include "tarn/engine/engine.h"
#include "tarn/engine/quoting.h"
#include "tarn/engine/sql_type.h"
#include "test/support/matchers.h"

namespace tarn::transform {
namespace {

class ColumnCastTest : public ::testing::Test {
 protected:
  ColumnCastTest() {
    engine_ = std::move(engine::Engine::Open({})).value();
    session_ = std::move(engine_->OpenSession()).value();
  }

  /// The value as text, or "fails".
  std::string Cast(const std::string& value, const std::shared_ptr<arrow::DataType>& to) {
    const auto described = session_->Describe("SELECT " + value + " AS r");
    EXPECT_TRUE(described.ok()) << described.status().ToString();
    const auto plan = PlanCast("r", "d", *(*described)->field(0)->type(), *to);
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    const std::string fails = plan->fails.empty() ? "false" : plan->fails;
    const auto stream = session_->Query("SELECT CASE WHEN " + fails +
                                        " THEN 'fails' ELSE coalesce(d::VARCHAR, 'NULL') END FROM "
                                        "(SELECT *, " +
                                        plan->cast + " AS d FROM (SELECT " + value + " AS r))");
    if (!stream.ok()) {
      return stream.status().ToString();
    }
    const auto table = engine::ReadAll(**stream);
    return table.ok() ? (*(*table)->column(0)->GetScalar(0))->ToString()
                      : table.status().ToString();
  }

  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<engine::Session> session_;
};

TEST_F(ColumnCastTest, WhatFitsIsCast) {
  EXPECT_EQ(Cast("'42'", arrow::int32()), "42");
  EXPECT_EQ(Cast("'42.0'", arrow::int64()), "42");
  EXPECT_EQ(Cast("3.0::DOUBLE", arrow::int32()), "3");
  EXPECT_EQ(Cast("'1.25'", arrow::decimal128(10, 2)), "1.25");
  EXPECT_EQ(Cast("'1.250'", arrow::decimal128(10, 2)), "1.25");
  EXPECT_EQ(Cast("19.99::DOUBLE", arrow::decimal128(10, 2)), "19.99");
  EXPECT_EQ(Cast("round(0.1::DOUBLE + 0.2::DOUBLE, 2)", arrow::decimal128(10, 2)), "0.30");
  EXPECT_EQ(Cast("9007199254740992::BIGINT", arrow::float64()), "9007199254740992.0");
  EXPECT_EQ(Cast("12.34::DECIMAL(10,2)", arrow::float64()), "12.34");
  EXPECT_EQ(Cast("'2026-01-31T10:00:00.123456000'", arrow::timestamp(arrow::TimeUnit::MICRO)),
            "2026-01-31 10:00:00.123456");
  EXPECT_EQ(Cast("'2026-01-31 10:00:00.5'::TIMESTAMP_NS", arrow::timestamp(arrow::TimeUnit::MICRO)),
            "2026-01-31 10:00:00.5");
  EXPECT_EQ(Cast("1.50::DECIMAL(5,2)", arrow::decimal128(10, 1)), "1.5");
  EXPECT_EQ(Cast("7::TINYINT", arrow::int64()), "7");
  EXPECT_EQ(Cast("'true'", arrow::boolean()), "true");
  EXPECT_EQ(Cast("'2026-01-31T10:00:00Z'", arrow::timestamp(arrow::TimeUnit::MICRO, "UTC")),
            "2026-01-31 10:00:00+00");
  EXPECT_EQ(Cast("'2026-01-31'", arrow::date32()), "2026-01-31");
  EXPECT_EQ(Cast("12::INT", arrow::utf8()), "12");
  EXPECT_EQ(Cast("'ä'", arrow::binary()), "\\xC3\\xA4");
  EXPECT_EQ(Cast("encode('ä')", arrow::utf8()), "ä");
  EXPECT_EQ(Cast("['1', NULL]", arrow::list(arrow::field("element", arrow::int32()))), "[1, NULL]");
  EXPECT_EQ(Cast("[{'a': 1}, NULL]", arrow::utf8()), "[{\"a\":1},null]");
  EXPECT_EQ(Cast("'inf'", arrow::float64()), "inf");
  EXPECT_EQ(Cast("NULL", arrow::utf8()), "NULL");
  EXPECT_EQ(Cast("NULL::VARCHAR", arrow::int32()), "NULL");
  EXPECT_EQ(Cast("18446744073709551615::UBIGINT", arrow::decimal128(20, 0)),
            "18446744073709551615");
  EXPECT_EQ(Cast("99999999999999999999999999999999999999::HUGEINT", arrow::decimal128(38, 0)),
            "99999999999999999999999999999999999999");
}

TEST_F(ColumnCastTest, WhatDoesNotFitFails) {
  EXPECT_EQ(Cast("'abc'", arrow::int32()), "fails");
  EXPECT_EQ(Cast("0.1::DOUBLE + 0.2::DOUBLE", arrow::decimal128(10, 2)), "fails");
  EXPECT_EQ(Cast("9007199254740993::BIGINT", arrow::float64()), "fails");
  EXPECT_EQ(Cast("9223372036854775807::BIGINT", arrow::float64()), "fails");
  EXPECT_EQ(Cast("16777217::INT", arrow::float32()), "fails");
  EXPECT_EQ(Cast("1234567890123456.78::DECIMAL(18,2)", arrow::float64()), "fails");
  EXPECT_EQ(Cast("'2026-01-31T10:00:00.1234567'", arrow::timestamp(arrow::TimeUnit::MICRO)),
            "fails");
  EXPECT_EQ(Cast("'2026-01-31 10:00:00.123456789'::TIMESTAMP_NS",
                 arrow::timestamp(arrow::TimeUnit::MICRO)),
            "fails");
  EXPECT_EQ(Cast("'1.5'", arrow::int32()), "fails");
  EXPECT_EQ(Cast("1.5::DOUBLE", arrow::int32()), "fails");
  EXPECT_EQ(Cast("1.5::DECIMAL(5,2)", arrow::int32()), "fails");
  EXPECT_EQ(Cast("'1.239'", arrow::decimal128(10, 2)), "fails");
  EXPECT_EQ(Cast("1.239::DECIMAL(10,3)", arrow::decimal128(10, 2)), "fails");
  EXPECT_EQ(Cast("'123456'", arrow::decimal128(5, 2)), "fails");
  EXPECT_EQ(Cast("3000000000::BIGINT", arrow::int32()), "fails");
  EXPECT_EQ(Cast("'1e400'", arrow::float64()), "fails");
  EXPECT_EQ(Cast("1e300::DOUBLE", arrow::float32()), "fails");
  EXPECT_EQ(Cast("'0000-00-00'", arrow::date32()), "fails");
  EXPECT_EQ(Cast("'2023-02-31'", arrow::date32()), "fails");
  EXPECT_EQ(Cast("'yes please'", arrow::boolean()), "fails");
  EXPECT_EQ(Cast("'\\xFF'::BLOB", arrow::utf8()), "fails");
  EXPECT_EQ(Cast("['1', 'x']", arrow::list(arrow::field("element", arrow::int32()))), "fails");
  EXPECT_EQ(Cast("{'a': 'x'}", arrow::struct_({arrow::field("a", arrow::int32())})), "fails");
}

}  // namespace
}  // namespace tarn::transform
