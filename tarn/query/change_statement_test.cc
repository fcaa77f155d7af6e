#include "tarn/query/change_statement.h"

#include "test/support/matchers.h"

namespace tarn::query {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

template <typename Statement>
Statement Parse(std::string_view sql) {
  Result<ChangeStatement> parsed = ParseChange(sql);
  EXPECT_OK(parsed) << sql;
  return parsed.ok() ? std::get<Statement>(*parsed) : Statement{};
}

TEST(ChangeStatementTest, ADeleteHasATableAndACondition) {
  const auto all = Parse<DeleteStatement>("delete from shop.orders;");
  EXPECT_THAT(all.table, ElementsAre("shop", "orders"));
  EXPECT_EQ(all.condition, "true");
  const auto some = Parse<DeleteStatement>(
      "DELETE FROM \"a\"\"b\".\"c d\" AS o -- why\n WHERE o.id IN (SELECT id FROM x WHERE y) ; ");
  EXPECT_THAT(some.table, ElementsAre("a\"b", "c d"));
  EXPECT_EQ(some.alias, "o");
  EXPECT_EQ(some.condition, "o.id IN (SELECT id FROM x WHERE y)");
  EXPECT_EQ(Parse<DeleteStatement>("DELETE FROM t o WHERE s = 'it''s; x'").condition,
            "s = 'it''s; x'");
}

TEST(ChangeStatementTest, AnUpdateHasAssignments) {
  const auto update = Parse<UpdateStatement>(
      "UPDATE t /* all */ SET \"A\" = f(1, 2), b = CASE WHEN x THEN 'WHERE' END, "
      "d = x IS NOT DISTINCT FROM y WHERE c = 1");
  EXPECT_THAT(update.table, ElementsAre("t"));
  EXPECT_THAT(update.alias, IsEmpty());
  EXPECT_THAT(update.assignments,
              ElementsAre(Pair("A", "f(1, 2)"), Pair("b", "CASE WHEN x THEN 'WHERE' END"),
                          Pair("d", "x IS NOT DISTINCT FROM y")));
  EXPECT_EQ(update.condition, "c = 1");
  EXPECT_EQ(Parse<UpdateStatement>("update t as u set a = u.a + 1").condition, "true");
}

TEST(ChangeStatementTest, AnInsertHasASelect) {
  const auto values = Parse<InsertStatement>("INSERT INTO t (a, \"b c\") VALUES (1, 2), (3, 4)");
  EXPECT_THAT(values.columns, ElementsAre("a", "b c"));
  EXPECT_EQ(values.select, "VALUES (1, 2), (3, 4)");
  const auto select =
      Parse<InsertStatement>("insert into s.t SELECT * FROM a JOIN b ON a.x = b.x ORDER BY 1");
  EXPECT_THAT(select.columns, IsEmpty());
  EXPECT_EQ(select.select, "SELECT * FROM a JOIN b ON a.x = b.x ORDER BY 1");
  EXPECT_EQ(Parse<InsertStatement>("INSERT INTO t (SELECT 1)").select, "(SELECT 1)");
}

TEST(ChangeStatementTest, AMergeHasASourceAndClauses) {
  const auto merge = Parse<MergeStatement>(
      "MERGE INTO shop.orders AS o USING (SELECT 1 AS id, 'ON' AS x) n ON o.id = n.id AND CASE "
      "WHEN "
      "true THEN true END WHEN MATCHED AND CASE WHEN n.x THEN 1 ELSE 2 END = 1 THEN DELETE "
      "when matched then update set o.a = f(1, 2), \"b\" = CASE WHEN x THEN 'WHEN' END "
      "WHEN NOT MATCHED THEN INSERT (id, \"A\") VALUES (n.id, g((1), ',')) "
      "WHEN NOT MATCHED BY TARGET THEN DO NOTHING "
      "WHEN NOT MATCHED BY SOURCE AND o.id > 3 THEN UPDATE SET a = 0;");
  EXPECT_THAT(merge.table, ElementsAre("shop", "orders"));
  EXPECT_EQ(merge.alias, "o");
  EXPECT_EQ(merge.source, "(SELECT 1 AS id, 'ON' AS x)");
  EXPECT_EQ(merge.source_alias, "n");
  EXPECT_EQ(merge.condition, "o.id = n.id AND CASE WHEN true THEN true END");
  ASSERT_EQ(merge.clauses.size(), 5U);
  using Action = MergeClause::Action;
  using Rows = MergeClause::Rows;
  EXPECT_EQ(merge.clauses[0].action, Action::kDelete);
  EXPECT_EQ(merge.clauses[0].condition, "CASE WHEN n.x THEN 1 ELSE 2 END = 1");
  EXPECT_EQ(merge.clauses[1].action, Action::kUpdate);
  EXPECT_THAT(merge.clauses[1].assignments,
              ElementsAre(Pair("a", "f(1, 2)"), Pair("b", "CASE WHEN x THEN 'WHEN' END")));
  EXPECT_EQ(merge.clauses[2].rows, Rows::kNotMatched);
  EXPECT_THAT(merge.clauses[2].columns, ElementsAre("id", "A"));
  EXPECT_THAT(merge.clauses[2].values, ElementsAre("n.id", "g((1), ',')"));
  EXPECT_EQ(merge.clauses[3].action, Action::kNothing);
  EXPECT_EQ(merge.clauses[4].rows, Rows::kNotMatchedBySource);
  EXPECT_EQ(merge.clauses[4].condition, "o.id > 3");
}

TEST(ChangeStatementTest, AMergeMayTakeAllColumns) {
  const auto merge = Parse<MergeStatement>(
      "MERGE INTO t USING shop.\"new rows\" AT (VERSION => 3) ON t.id = \"new rows\".id "
      "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *");
  EXPECT_EQ(merge.source, "shop.\"new rows\" AT (VERSION => 3)");
  EXPECT_EQ(merge.source_alias, "\"new rows\"");
  EXPECT_TRUE(merge.clauses[0].by_name);
  EXPECT_TRUE(merge.clauses[1].by_name);
  EXPECT_EQ(
      Parse<MergeStatement>("MERGE INTO t USING s AS x AT (VERSION => 3) ON true WHEN MATCHED "
                            "THEN DELETE")
          .source,
      "s AT (VERSION => 3)");
  const auto named = Parse<MergeStatement>(
      "MERGE INTO t USING (VALUES (1, 2)) AS s(id, x) ON t.id = s.id WHEN NOT MATCHED THEN INSERT "
      "VALUES (s.id, s.x)");
  EXPECT_EQ(named.source, "(VALUES (1, 2)) AS tarn_rows(id, x)");
  EXPECT_EQ(named.source_alias, "s");
  EXPECT_THAT(named.clauses[0].values, ElementsAre("s.id", "s.x"));
}

TEST(ChangeStatementTest, ATableIsMadeFromASelect) {
  const auto create = Parse<CreateTableStatement>(
      "CREATE TABLE IF NOT EXISTS shop.\"big orders\" PARTITIONED BY (region, days(at), bucket(16, "
      "id)) TBLPROPERTIES ('format-version' = '3', 'it''s' = 'x') AS SELECT * FROM orders");
  EXPECT_THAT(create.table, ElementsAre("shop", "big orders"));
  EXPECT_TRUE(create.if_not_exists);
  ASSERT_EQ(create.partitioning.size(), 3U);
  EXPECT_EQ(create.partitioning[0].transform, "identity");
  EXPECT_EQ(create.partitioning[1].transform, "day");
  EXPECT_EQ(create.partitioning[1].column, "at");
  EXPECT_EQ(create.partitioning[2].transform, "bucket[16]");
  EXPECT_EQ(create.partitioning[2].column, "id");
  EXPECT_THAT(create.properties, ElementsAre(Pair("format-version", "3"), Pair("it's", "x")));
  EXPECT_EQ(create.select, "SELECT * FROM orders");
  EXPECT_EQ(Parse<CreateTableStatement>("create table a.b as (values (1))").select, "(values (1))");
}

TEST(ChangeStatementTest, WhatIsNotKnownIsRefused) {
  for (const char* sql :
       {"",
        "DELETE",
        "DELETE t",
        "DELETE FROM",
        "DELETE FROM t WHERE",
        "DELETE FROM t x y",
        "DELETE FROM t USING u WHERE a",
        "DELETE FROM t; DELETE FROM u",
        "UPDATE t SET",
        "UPDATE t SET a",
        "UPDATE t SET a.b = 1",
        "UPDATE t SET a = 1 FROM u",
        "UPDATE t SET a = 1 RETURNING a",
        "INSERT t VALUES (1)",
        "INSERT INTO t",
        "INSERT INTO t (a VALUES (1)",
        "INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING",
        "INSERT INTO t VALUES (1) RETURNING a",
        "DELETE FROM t WHERE a = 'x",
        "DROP t",
        "DROP TABLE",
        "DROP TABLE t u",
        "DROP TABLE IF NOT EXISTS t",
        "DROP VIEW v PURGE",
        "DROP SCHEMA s CASCADE",
        "DROP SCHEMA s PURGE",
        "CREATE SCHEMA",
        "CREATE SCHEMA IF EXISTS s",
        "CREATE SCHEMA s LOCATION 'x'",
        "MERGE t USING s ON a WHEN MATCHED THEN DELETE",
        "MERGE INTO t USING (SELECT 1) ON a WHEN MATCHED THEN DELETE",
        "MERGE INTO t USING s WHEN MATCHED THEN DELETE",
        "MERGE INTO t USING s ON WHEN MATCHED THEN DELETE",
        "MERGE INTO t USING s ON true",
        "MERGE INTO t USING s ON true WHEN MATCHED THEN INSERT *",
        "MERGE INTO t USING s ON true WHEN NOT MATCHED THEN DELETE",
        "MERGE INTO t USING s ON true WHEN NOT MATCHED BY THEN INSERT *",
        "MERGE INTO t USING s ON true WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *",
        "MERGE INTO t USING s ON true WHEN MATCHED THEN UPDATE SET s.a = 1",
        "MERGE INTO t USING s ON true WHEN MATCHED AND THEN DELETE",
        "MERGE INTO t USING s ON true WHEN NOT MATCHED THEN INSERT VALUES ()",
        "MERGE INTO t USING s ON true WHEN NOT MATCHED THEN INSERT (a) VALUES (1, 2)",
        "MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE RETURNING a",
        "CREATE VIEW v AS SELECT 1",
        "CREATE OR REPLACE TABLE t",
        "CREATE OR TABLE t AS SELECT 1",
        "CREATE OR REPLACE VIEW v AS SELECT 1",
        "CREATE OR REPLACE SCHEMA s",
        "CREATE OR REPLACE TABLE IF NOT EXISTS t AS SELECT 1",
        "CREATE TABLE t",
        "CREATE TABLE t AS",
        "CREATE TABLE t (a INT) AS SELECT 1",
        "CREATE TABLE t PARTITIONED BY () AS SELECT 1",
        "CREATE TABLE t PARTITIONED BY (bucket(16 id)) AS SELECT 1",
        "CREATE TABLE t TBLPROPERTIES (a = 'b') AS SELECT 1",
        "CREATE TABLE IF EXISTS t AS SELECT 1",
        "DELETE FROM t WHERE a = $$x$$",
        "DELETE FROM t /* x"}) {
    EXPECT_THAT(ParseChange(sql), Fails(ErrorCode::kInvalidArgument)) << sql;
  }
}

TEST(ChangeStatementTest, SchemasAreMadeAndThingsDropped) {
  const auto schema = Parse<CreateSchemaStatement>("create schema if not exists a.\"b c\";");
  EXPECT_EQ(schema.name, (std::vector<std::string>{"a", "b c"}));
  EXPECT_TRUE(schema.if_not_exists);
  EXPECT_FALSE(Parse<CreateSchemaStatement>("CREATE SCHEMA a").if_not_exists);
  const auto table = Parse<DropStatement>("DROP TABLE IF EXISTS a.b PURGE");
  EXPECT_EQ(table.kind, DropStatement::Kind::kTable);
  EXPECT_EQ(table.name, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(table.if_exists && table.purge);
  EXPECT_EQ(Parse<DropStatement>("drop view v").kind, DropStatement::Kind::kView);
  const auto dropped = Parse<DropStatement>("DROP SCHEMA s");
  EXPECT_EQ(dropped.kind, DropStatement::Kind::kSchema);
  EXPECT_FALSE(dropped.if_exists || dropped.purge);
}

TEST(ChangeStatementTest, TheFirstWordTells) {
  EXPECT_TRUE(IsChange(" -- x\n(delete)") == false);
  EXPECT_TRUE(IsChange("/* a */ Update t"));
  EXPECT_TRUE(IsChange("INSERT"));
  EXPECT_TRUE(IsChange("merge into"));
  EXPECT_TRUE(IsChange("Create table"));
  EXPECT_TRUE(IsChange("drop"));
  EXPECT_FALSE(IsChange("SELECT 1"));
  EXPECT_FALSE(IsChange("\"delete\""));
  EXPECT_FALSE(IsChange(""));
}

}  // namespace

}  // namespace tarn::query
