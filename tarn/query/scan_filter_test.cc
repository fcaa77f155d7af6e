#include "tarn/query/scan_filter.h"

#include "test/support/matchers.h"

namespace tarn::query {

namespace {

using iceberg::Expression;

class ScanFilterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(engine_, engine::Engine::Open({}));
    ASSERT_OK_AND_ASSIGN(session_, engine_->OpenSession());
    const std::vector<std::pair<const char*, iceberg::Type>> columns = {
        {"id", iceberg::Type::Long()},        {"n", iceberg::Type::Int()},
        {"name", iceberg::Type::String()},    {"day", iceberg::Type::Date()},
        {"made", iceberg::Type::Timestamp()}, {"x", iceberg::Type::Double()}};
    for (const auto& [name, type] : columns) {
      iceberg::SchemaField field;
      field.id = static_cast<int32_t>(schema_.fields.size()) + 1;
      field.name = name;
      field.type = type;
      schema_.fields.push_back(std::move(field));
    }
  }

  std::string Filter(const std::string& sql) {
    const Result<engine::SelectStatement> checked = engine::CheckSelect(*session_, sql);
    EXPECT_OK(checked) << sql;
    const Expression filter = FilterOf(FindConditions(*checked), schema_);
    EXPECT_OK(iceberg::Bind(filter, schema_)) << sql;
    return iceberg::FormatExpression(filter);
  }
  std::string Where(const std::string& condition) {
    return Filter("SELECT * FROM shop.orders AS o WHERE " + condition);
  }

  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<engine::Session> session_;
  iceberg::Schema schema_;
};

TEST_F(ScanFilterTest, ComparisonsWithConstantsArePushed) {
  const auto id = [](iceberg::ExpressionKind kind, int64_t value) {
    return iceberg::FormatExpression(
        Expression::Compare(kind, "id", iceberg::Literal::Long(value), iceberg::Type::Long()));
  };
  using Kind = iceberg::ExpressionKind;
  EXPECT_EQ(Where("id = 5"), id(Kind::kEqual, 5));
  EXPECT_EQ(Where("O.ID > -5"), id(Kind::kGreater, -5));
  EXPECT_EQ(Where("5 <= id"), id(Kind::kGreaterOrEqual, 5));
  EXPECT_EQ(Where("id < 5 OR id > 7"), "true");
  EXPECT_EQ(Where("(id = 5 OR n = 1) AND id < 9"), id(Kind::kLess, 9));
  EXPECT_EQ(Where("name = 'a' AND id = 5").find("name") != std::string::npos, true);
  EXPECT_NE(Where("id BETWEEN 1 AND 5"), "true");
  EXPECT_NE(Where("name IN ('a', 'b')"), "true");
  EXPECT_NE(Where("n = 99999999999"), "true");
  EXPECT_NE(Where("day >= DATE '2024-01-02'"), "true");
  EXPECT_NE(Where("day >= '2024-01-02'"), "true");
  EXPECT_NE(Where("made >= '2024-01-02'"), "true");
  EXPECT_NE(Where("made < TIMESTAMP '2024-01-02 03:04:05'"), "true");
}

TEST_F(ScanFilterTest, WhatTheEngineComparesOtherwiseIsNot) {
  for (const char* condition :
       {"id = '5'", "name = 5", "name = DATE '2024-01-01'", "id + 1 = 5", "id = n", "x = 1",
        "id = NULL", "NOT id = 5", "id <> 5", "id = 1.5", "id IN (1, NULL)", "id IN (1, '2')",
        "other = 1", "p.id = 5", "day = 'soon'", "TRY_CAST('2024-01-01' AS DATE) = day",
        "id IS NOT DISTINCT FROM 5", "lower(name) = 'a'"}) {
    const Result<engine::SelectStatement> checked =
        engine::CheckSelect(*session_, std::string("SELECT * FROM t AS o WHERE ") + condition);
    ASSERT_OK(checked);
    EXPECT_EQ(FilterOf(FindConditions(*checked), schema_), Expression::True()) << condition;
  }
}

TEST_F(ScanFilterTest, OnlyTheOneTableOfAStatementIsFiltered) {
  EXPECT_EQ(Filter("SELECT * FROM a, b WHERE id = 5"), "true");
  EXPECT_EQ(Filter("SELECT * FROM a WHERE id = 5 UNION ALL SELECT * FROM a"), "true");
  EXPECT_EQ(Filter("SELECT * FROM a WHERE id IN (SELECT id FROM b) AND id = 5"), "true");
  EXPECT_EQ(Filter("SELECT * FROM a AS t(z, id) WHERE id = 5"), "true");
  EXPECT_EQ(Filter("SELECT * FROM a TABLESAMPLE 10% WHERE id = 5"), "true");
  // Columns of WITH are not those of the table.
  EXPECT_EQ(Filter("WITH c AS (SELECT id + 1 AS id FROM a) SELECT * FROM c WHERE id = 5"), "true");
  EXPECT_EQ(Filter("WITH a AS (SELECT id + 1 AS id FROM a) SELECT * FROM a WHERE id = 5"), "true");
  EXPECT_EQ(Filter("SELECT * FROM (SELECT n AS id FROM a) WHERE id = 5"), "true");
}

}  // namespace

}  // namespace tarn::query
