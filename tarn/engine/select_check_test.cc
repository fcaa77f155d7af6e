#include "tarn/engine/select_check.h"

#include <arrow/api.h>
#include <gtest/gtest.h>

#include "tarn/engine/syntax_tree.h"
#include "test/support/matchers.h"

namespace tarn::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Names = std::vector<std::string>;

class SelectCheckTest : public ::testing::Test {
 protected:
  SelectCheckTest() {
    engine_ = std::move(Engine::Open({})).value();
    session_ = std::move(engine_->OpenSession()).value();
  }

  /// Names of the tables of a statement, sorted.
  std::vector<Names> Tables(std::string_view sql) {
    const auto statement = CheckSelect(*session_, sql);
    EXPECT_TRUE(statement.ok()) << statement.status().ToString();
    std::vector<Names> names;
    if (statement.ok()) {
      for (const TableReference& table : statement->tables) {
        names.push_back(table.name);
      }
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Session> session_;
};

TEST_F(SelectCheckTest, EveryTableIsFound) {
  EXPECT_THAT(Tables("SELECT a.x FROM p.f.t AS a, u JOIN (SELECT * FROM \"v w\") w USING (x) "
                     "WHERE EXISTS (SELECT 1 FROM z) AND x IN (SELECT y FROM s.q) ORDER BY "
                     "(SELECT max(i) FROM o)"),
              ElementsAre(Names{"o"}, Names{"p", "f", "t"}, Names{"s", "q"}, Names{"u"},
                          Names{"v w"}, Names{"z"}));
  EXPECT_THAT(Tables("SELECT 1"), IsEmpty());
  EXPECT_THAT(Tables("VALUES (1), ((SELECT 2 FROM t))"), ElementsAre(Names{"t"}));
  EXPECT_THAT(Tables("TABLE t"), ElementsAre(Names{"t"}));
  EXPECT_THAT(Tables("FROM a SELECT * UNION ALL (SELECT * FROM b EXCEPT SELECT * FROM c) LIMIT 3"),
              ElementsAre(Names{"a"}, Names{"b"}, Names{"c"}));
  EXPECT_THAT(Tables("SELECT * FROM t PIVOT (sum(x) FOR y IN (1, 2))"), ElementsAre(Names{"t"}));
  EXPECT_THAT(Tables("SELECT list_transform([1], x -> x + (SELECT 1 FROM deep))"),
              ElementsAre(Names{"deep"}));
  EXPECT_THAT(Tables("SELECT count(*) OVER (PARTITION BY (SELECT 1 FROM w)) FROM t"),
              ElementsAre(Names{"t"}, Names{"w"}));
  EXPECT_THAT(Tables("SELECT * FROM range(3), unnest([(SELECT 1 FROM n)])"),
              ElementsAre(Names{"n"}));
  EXPECT_THAT(Tables("SELECT * FROM \"ri.foundry.main.dataset.1\""),
              ElementsAre(Names{"ri.foundry.main.dataset.1"}));
}

TEST_F(SelectCheckTest, NamesOfWithAreNoTablesWhereTheyAreKnown) {
  EXPECT_THAT(Tables("WITH q AS (SELECT 1) SELECT * FROM Q"), IsEmpty());
  EXPECT_THAT(Tables("WITH q AS (SELECT * FROM q) SELECT * FROM q"), ElementsAre(Names{"q"}));
  EXPECT_THAT(Tables("WITH a AS (SELECT * FROM b), b AS (SELECT * FROM a) SELECT * FROM b"),
              ElementsAre(Names{"b"}));
  EXPECT_THAT(Tables("WITH q AS (SELECT 1) SELECT * FROM s.q"), ElementsAre(Names{"s", "q"}));
  EXPECT_THAT(Tables("SELECT * FROM (WITH q AS (SELECT 1) SELECT * FROM q), q"),
              ElementsAre(Names{"q"}));
  EXPECT_THAT(Tables("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r, t) SELECT "
                     "* FROM r"),
              ElementsAre(Names{"t"}));
}

TEST_F(SelectCheckTest, AtClausesAreReported) {
  ASSERT_OK_AND_ASSIGN(const auto version,
                       CheckSelect(*session_, "SELECT * FROM t AS v AT (VERSION => 42)"));
  ASSERT_EQ(version.tables.size(), 1U);
  EXPECT_EQ(version.tables[0], (TableReference{{"t"}, "v", "VERSION", "42"}));
  ASSERT_OK_AND_ASSIGN(
      const auto time,
      CheckSelect(*session_, "SELECT * FROM t AT (TIMESTAMP => TIMESTAMP '2026-01-31')"));
  EXPECT_EQ(time.tables[0].at_unit, "TIMESTAMP");
  EXPECT_EQ(time.tables[0].at_value, "2026-01-31");
}

TEST_F(SelectCheckTest, AnythingButOneSelectIsRefused) {
  for (const char* sql : {"",
                          "SELECT 1; SELECT 2",
                          "CREATE TABLE t (a INT)",
                          "DROP TABLE t",
                          "INSERT INTO t VALUES (1)",
                          "UPDATE t SET a = 1",
                          "DELETE FROM t",
                          "COPY t TO 'x'",
                          "COPY (SELECT 1) TO 'x'",
                          "ATTACH 'x'",
                          "DETACH x",
                          "USE x",
                          "PRAGMA threads",
                          "SET threads = 1",
                          "RESET threads",
                          "INSTALL x",
                          "LOAD x",
                          "CALL f()",
                          "EXPLAIN SELECT 1",
                          "DESCRIBE SELECT 1",
                          "SHOW TABLES",
                          "SUMMARIZE t",
                          "VACUUM",
                          "CHECKPOINT",
                          "BEGIN",
                          "PREPARE p AS SELECT 1",
                          "EXECUTE p",
                          "EXPORT DATABASE 'x'",
                          "SELECT $1",
                          "SELECT ?",
                          "SELECT 1; DROP TABLE t",
                          "SELECT * FROM (SHOW TABLES)",
                          "SELEC 1",
                          "SELECT FROM",
                          "CREATE TEMP VIEW v AS SELECT 1",
                          "SET VARIABLE x = 1",
                          "MERGE INTO t USING s ON true"}) {
    EXPECT_THAT(CheckSelect(*session_, sql), Fails(ErrorCode::kInvalidArgument)) << sql;
  }
  EXPECT_THAT(CheckSelect(*session_, "SELECT '\xff'"), Fails(ErrorCode::kInvalidArgument));
}

TEST_F(SelectCheckTest, FunctionsThatReachOutAreRefused) {
  for (const char* sql : {"SELECT * FROM read_csv('/etc/passwd')",
                          "SELECT * FROM READ_PARQUET('x')",
                          "SELECT * FROM read_text('x')",
                          "SELECT * FROM glob('*')",
                          "SELECT * FROM duckdb_settings()",
                          "SELECT * FROM duckdb_secrets()",
                          "SELECT * FROM pragma_version()",
                          "SELECT * FROM query('DROP TABLE t')",
                          "SELECT * FROM query_table('t')",
                          "SELECT * FROM parquet_metadata('x')",
                          "SELECT * FROM tarn_arrow_source(1)",
                          "SELECT * FROM json_execute_serialized_sql('x')",
                          "SELECT * FROM sniff_csv('x')",
                          "SELECT * FROM test_all_types()",
                          "SELECT getenv('HOME')",
                          "SELECT current_setting('s3_secret_access_key')",
                          "SELECT getvariable('x')",
                          "SELECT sleep_ms(1000)",
                          "SELECT pg_sleep(1)",
                          "SELECT nextval('s')",
                          "SELECT 1 WHERE (SELECT Current_Query()) = 'x'",
                          "SELECT write_log('x')",
                          "SELECT * FROM range((SELECT count(*) FROM read_csv('x')))",
                          "SELECT * FROM t WHERE x IN (SELECT y FROM read_json('x'))",
                          "WITH q AS (FROM read_csv('x')) SELECT 1",
                          "SELECT list_transform([1], x -> sleep_ms(x))",
                          "SELECT * FROM (VALUES (getenv('A'))) v"}) {
    EXPECT_THAT(CheckSelect(*session_, sql), Fails(ErrorCode::kPermissionDenied)) << sql;
  }
}

TEST_F(SelectCheckTest, FilesByNameAreTablesToBeLookedUp) {
  EXPECT_THAT(Tables("SELECT * FROM '/etc/passwd.csv'"), ElementsAre(Names{"/etc/passwd.csv"}));
}

TEST_F(SelectCheckTest, UsualQueriesPass) {
  ASSERT_OK_AND_ASSIGN(
      const auto statement,
      CheckSelect(*session_,
                  "SELECT date_trunc('day', t) d, count(*), sum(x) FILTER (x > 1), "
                  "now() FROM s.t GROUP BY ALL HAVING count(*) > 1 ORDER BY 1"));
  EXPECT_THAT(statement.functions,
              ::testing::IsSupersetOf({"count_star", "date_trunc", "now", "sum"}));
}

TEST_F(SelectCheckTest, RewrittenStatementsReadTheGivenTables) {
  ASSERT_OK(
      session_->Execute("CREATE TEMP TABLE \"v\"\"1\" (x INT, s STRUCT(y INT)); INSERT INTO "
                        "\"v\"\"1\" VALUES (7, {'y': 8})"));
  const auto value = [&](std::string_view sql) -> std::string {
    const auto statement = CheckSelect(*session_, sql);
    if (!statement.ok()) {
      return statement.status().ToString();
    }
    const auto text =
        RewriteTables(*session_, *statement,
                      std::vector<Names>(statement->tables.size(), Names{"temp", "main", "v\"1"}));
    if (!text.ok()) {
      return text.status().ToString();
    }
    const auto stream = session_->Query(*text);
    if (!stream.ok()) {
      return stream.status().ToString() + " in " + *text;
    }
    return (*(*ReadAll(**stream))->column(0)->GetScalar(0))->ToString();
  };
  EXPECT_EQ(value("SELECT x FROM project.folder.orders"), "7");
  EXPECT_EQ(value("SELECT orders.x FROM project.folder.orders"), "7");
  EXPECT_EQ(value("SELECT project.folder.orders.x FROM project.folder.orders"), "7");
  EXPECT_EQ(value("SELECT folder.orders.s.y FROM folder.orders"), "8");
  EXPECT_EQ(value("SELECT o.x FROM folder.orders AS o"), "7");
  EXPECT_EQ(value("SELECT a.x + b.x FROM t1 a JOIN t2 b USING (x)"), "14");
  EXPECT_EQ(value("SELECT \"ri.x.y\".x FROM \"ri.x.y\""), "7");
  EXPECT_EQ(value("SELECT x FROM t AT (VERSION => 3)"), "7");
  EXPECT_EQ(value("WITH q AS (SELECT x + 1 AS x FROM t) SELECT x FROM q"), "8");
  EXPECT_EQ(value("SELECT (SELECT max(x) FROM t) + x FROM t"), "14");
  EXPECT_EQ(value("SELECT 'a''b' || \"s\".y::VARCHAR FROM t"), "a'b8");
  EXPECT_EQ(value("SELECT list_transform([1, 2], x -> x + 1)[1] FROM t"), "2");
  EXPECT_EQ(value("SELECT CASE WHEN x BETWEEN 1 AND 9 THEN 1.25 ELSE NULL END FROM t"), "1.25");
  ASSERT_OK_AND_ASSIGN(const auto statement, CheckSelect(*session_, "SELECT x FROM t"));
  EXPECT_THAT(RewriteTables(*session_, statement, {}), Fails(ErrorCode::kInvalidArgument));
}

TEST_F(SelectCheckTest, ExpressionsGiveTheirColumns) {
  struct Case {
    const char* text;
    std::vector<Names> columns;
  };
  const std::vector<Case> cases = {
      {"a + b * a", {{"a"}, {"b"}}},
      {"s.\"we ird\".x", {{"s", "we ird", "x"}}},
      {"${price} * 1.1", {{"price"}}},
      {"${we \"ird} || '${not}' -- ${nor}", {{"we \"ird"}}},
      {"'it''s'", {}},
      {"CASE WHEN a THEN b ELSE c END", {{"a"}, {"b"}, {"c"}}},
      {"list_transform(l, x -> x + y)", {{"l"}, {"y"}}},
      {"list_transform(l, (x, i) -> x + i + z)", {{"l"}, {"z"}}},
      {"list_transform(l, lambda x: x + y)", {{"l"}, {"y"}}},
      {"[x + 1 for x in l if x > y]", {{"l"}, {"y"}}},
      {"j -> 'a'", {{"j"}}},
      {"j ->> '$.a'", {{"j"}}},
      {"x IN (1, y) AND z IS NOT NULL", {{"x"}, {"y"}, {"z"}}},
      {"CAST(a AS DECIMAL(10, 2))", {{"a"}}},
      {"a::STRUCT(x INT)", {{"a"}}},
      {"{'k': a, 'l': [b]}", {{"a"}, {"b"}}},
      {"coalesce(\"user\", 'x')", {{"user"}}},
      {"extract(year FROM t AT TIME ZONE 'UTC')", {{"t"}}},
      {"age(a, b)", {{"a"}, {"b"}}},
      {"INTERVAL 3 DAY + a", {{"a"}}},
      {"TRY(a / b)", {{"a"}, {"b"}}},
      {"current_date", {{"current_date"}}},
      {"a /* ; */", {{"a"}}},
  };
  for (const Case& item : cases) {
    const auto expression = CheckExpression(*session_, item.text);
    ASSERT_TRUE(expression.ok()) << item.text << ": " << expression.status().ToString();
    auto found = expression->columns;
    std::sort(found.begin(), found.end());
    auto expected = item.columns;
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(found, expected) << item.text;
  }
  ASSERT_OK_AND_ASSIGN(const auto column, CheckExpression(*session_, " ${a} "));
  EXPECT_TRUE(column.is_column);
  ASSERT_OK_AND_ASSIGN(const auto sum, CheckExpression(*session_, "a + 1"));
  EXPECT_FALSE(sum.is_column);
}

TEST_F(SelectCheckTest, ExpressionsThatAreNotScalarAreRefused) {
  for (const char* text : {"",
                           "-- only",
                           "a, b",
                           "a AS z",
                           "a FROM t",
                           "a; b",
                           "a) FROM t; DROP TABLE t; SELECT (1",
                           "(SELECT 1)",
                           "EXISTS (SELECT 1)",
                           "a IN (SELECT 1)",
                           "a > ALL (SELECT 1)",
                           "count(*)",
                           "sum(a)",
                           "first(a)",
                           "a + max(b)",
                           "list(a)",
                           "string_agg(a, ',')",
                           "row_number() OVER ()",
                           "sum(a) OVER ()",
                           "*",
                           "COLUMNS('a')",
                           "COLUMNS(*)",
                           "t.*",
                           "unnest(l)",
                           "$1",
                           "?",
                           "$name",
                           "now()",
                           "NOW()",
                           "random()",
                           "uuid()",
                           "today()",
                           "get_current_timestamp()",
                           "age(t)",
                           "error('x')",
                           "current_timestamp()",
                           "transaction_timestamp()",
                           "gen_random_uuid()",
                           "DEFAULT",
                           "#1",
                           "grouping(a)",
                           "a ORDER BY b",
                           "a LIMIT 1",
                           "a UNION SELECT b",
                           "${}",
                           "${a",
                           "WITH q AS (SELECT 1) SELECT a",
                           "regexp_split_to_table(a, 'x')",
                           "list_transform(l, x -> (SELECT x))",
                           "list_transform(l, x -> random())",
                           "a WHERE b",
                           "a /*",
                           "'a",
                           "SELECT 1",
                           "json_group_array(a)",
                           "1 GROUP BY ALL",
                           "a TABLESAMPLE 1"}) {
    EXPECT_THAT(CheckExpression(*session_, text), Fails(ErrorCode::kInvalidArgument)) << text;
  }
  for (const char* text : {"getenv('HOME')", "current_setting('threads')", "sleep_ms(1)",
                           "getvariable('x')", "nextval('s')", "read_text('x')"}) {
    EXPECT_THAT(CheckExpression(*session_, text), Fails(ErrorCode::kPermissionDenied)) << text;
  }
}

TEST_F(SelectCheckTest, ListsOfFunctionsCoverTheLibrary) {
  ASSERT_OK_AND_ASSIGN(
      const auto stream,
      session_->Query("SELECT DISTINCT lower(function_name), CASE WHEN function_type = 'aggregate' "
                      "THEN 'aggregate' ELSE 'volatile' END FROM duckdb_functions() WHERE "
                      "function_type = 'aggregate' OR (function_type = 'scalar' AND stability IN "
                      "('VOLATILE', 'CONSISTENT_WITHIN_QUERY'))"));
  ASSERT_OK_AND_ASSIGN(const auto table, ReadAll(*stream));
  ASSERT_GT(table->num_rows(), 80);
  for (int64_t i = 0; i < table->num_rows(); ++i) {
    const std::string name = (*table->column(0)->GetScalar(i))->ToString();
    const std::string kind = (*table->column(1)->GetScalar(i))->ToString();
    const FunctionVerdict verdict = JudgeFunction(name, 0);
    EXPECT_NE(verdict, FunctionVerdict::kAllowed) << name << " is " << kind;
  }
}

}  // namespace
}  // namespace tarn::engine
