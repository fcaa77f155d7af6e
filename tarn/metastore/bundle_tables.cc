#include "tarn/metastore/bundle_tables.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "tarn/base/sql_name.h"
#include "tarn/metastore/postgres_database.h"

namespace tarn::metastore {

namespace {

Result<std::vector<std::string>> ReadTexts(SqlTransaction& sql, const std::string& query,
                                           const SqlArguments& arguments) {
  std::vector<std::string> texts;
  TARN_RETURN_IF_ERROR(sql.Query(query, arguments, [&](const SqlRow& row) {
    texts.emplace_back(row.Text(0));
    return Result<RowAction>(RowAction::kContinue);
  }));
  return texts;
}

std::string SelectWith(const std::string& table, const std::vector<std::string>& columns,
                       std::string_view kind) {
  std::string selected;
  for (const std::string& column : columns) {
    selected += selected.empty() ? "" : ", ";
    selected += fmt::format(fmt::runtime(kind), QuoteSqlName(column)) + ", " + QuoteSqlName(column);
  }
  return fmt::format("SELECT {} FROM {}", selected, QuoteSqlName(table));
}

std::string InsertInto(const std::string& table, const std::vector<std::string>& columns) {
  std::string names;
  std::string places;
  for (size_t i = 0; i < columns.size(); ++i) {
    names += (i == 0 ? "" : ", ") + QuoteSqlName(columns[i]);
    places += fmt::format("{}?{}", i == 0 ? "" : ", ", i + 1);
  }
  return fmt::format("INSERT INTO {} ({}) VALUES ({})", QuoteSqlName(table), names, places);
}

class SqliteTables final : public BundleTables {
 public:
  Result<std::vector<std::string>> ReadTables(SqlTransaction& sql) const override {
    return ReadTexts(sql,
                     "SELECT name FROM sqlite_master WHERE type = 'table' AND (name NOT LIKE "
                     "'sqlite!_%' ESCAPE '!' OR name = ?1) AND name <> 'tarn_migrations' ORDER BY "
                     "name",
                     {std::string(kSequences)});
  }
  Result<std::vector<std::string>> ReadColumns(SqlTransaction& sql,
                                               const std::string& table) const override {
    return ReadTexts(sql, "SELECT name FROM pragma_table_info(?1) ORDER BY cid", {table});
  }
  [[nodiscard]] std::string SelectText(const std::string& table,
                                       const std::vector<std::string>& columns) const override {
    return SelectWith(table, columns, "typeof({})");
  }
  [[nodiscard]] std::string InsertText(const std::string& table,
                                       const std::vector<std::string>& columns) const override {
    return InsertInto(table, columns);
  }
  // A file of its own, which nobody has opened yet, may go through states that no other sees.
  Status MakeAndFill(Database& database, const std::vector<Migration>& steps,
                     const SqlFunction& rows) const override {
    TARN_RETURN_IF_ERROR(database.Migrate(steps));
    return database.Write(rows);
  }
  Status BeginRows(SqlTransaction& sql) const override {
    return StatusOf(sql.Execute("PRAGMA defer_foreign_keys=ON", {}));
  }
  Status Clear(SqlTransaction& sql, const std::string& table) const override {
    return StatusOf(sql.Execute("DELETE FROM " + QuoteSqlName(table), {}));
  }
  Status EndRows(SqlTransaction& /*sql*/) const override { return {}; }
};

// Of a column that gives out numbers, its sequence by the name of table ?1 and column ?2.
constexpr const char* kSequenceOf = "CAST(pg_get_serial_sequence(quote_ident(?1), ?2) AS regclass)";

class PostgresTables final : public BundleTables {
 public:
  Result<std::vector<std::string>> ReadTables(SqlTransaction& sql) const override {
    TARN_ASSIGN_OR_RETURN(
        std::vector<std::string> tables,
        ReadTexts(sql,
                  "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND "
                  "tablename NOT IN ('tarn_migrations', 'tarn_writers')",
                  {}));
    if (!tables.empty()) {
      tables.emplace_back(kSequences);
    }
    std::sort(tables.begin(), tables.end());
    return tables;
  }
  Result<std::vector<std::string>> ReadColumns(SqlTransaction& sql,
                                               const std::string& table) const override {
    if (table == kSequences) {
      return std::vector<std::string>{"name", "seq"};
    }
    return ReadTexts(sql,
                     "SELECT column_name FROM information_schema.columns WHERE table_schema = "
                     "current_schema() AND table_name = ?1 ORDER BY ordinal_position",
                     {table});
  }
  [[nodiscard]] std::string SelectText(const std::string& table,
                                       const std::vector<std::string>& columns) const override {
    if (table == kSequences) {
      return "SELECT 'text', t.name, 'integer', t.seq FROM (SELECT table_name AS name, "
             "pg_sequence_last_value(CAST(pg_get_serial_sequence(quote_ident(table_name), "
             "column_name) AS regclass)) AS seq FROM information_schema.columns WHERE table_schema "
             "= current_schema() AND is_identity = 'YES') AS t WHERE t.seq IS NOT NULL ORDER BY "
             "t.name";
    }
    return SelectWith(table, columns,
                      "CASE WHEN {0} IS NULL THEN 'null' ELSE CASE CAST(pg_typeof({0}) AS TEXT) "
                      "WHEN 'bigint' THEN 'integer' WHEN 'double precision' THEN 'real' WHEN "
                      "'bytea' THEN 'blob' ELSE 'text' END END");
  }
  [[nodiscard]] std::string InsertText(const std::string& table,
                                       const std::vector<std::string>& columns) const override {
    if (table != kSequences) {
      return InsertInto(table, columns);
    }
    const bool by_name = columns.front() == "name";
    return fmt::format(
        "SELECT setval(CAST(pg_get_serial_sequence(quote_ident(?{0}), 'id') AS regclass), "
        "GREATEST(?{1}, 1), ?{1} > 0)",
        by_name ? 1 : 2, by_name ? 2 : 1);
  }
  // A server that finds tables without a user would take them for a new metastore.
  Status MakeAndFill(Database& database, const std::vector<Migration>& steps,
                     const SqlFunction& rows) const override {
    return dynamic_cast<PostgresDatabase&>(database).MigrateAndFill(steps, rows);
  }
  Status BeginRows(SqlTransaction& sql) const override {
    return StatusOf(sql.Execute("SET CONSTRAINTS ALL DEFERRED", {}));
  }
  Status Clear(SqlTransaction& sql, const std::string& table) const override {
    return table == kSequences ? Status::Ok()
                               : StatusOf(sql.Execute("DELETE FROM " + QuoteSqlName(table), {}));
  }
  // Only some tables of SQLite keep their newest number.
  Status EndRows(SqlTransaction& sql) const override {
    std::vector<std::pair<std::string, std::string>> columns;
    TARN_RETURN_IF_ERROR(
        sql.Query("SELECT table_name, column_name FROM information_schema.columns WHERE "
                  "table_schema = current_schema() AND is_identity = 'YES'",
                  {}, [&](const SqlRow& row) {
                    columns.emplace_back(row.Text(0), row.Text(1));
                    return Result<RowAction>(RowAction::kContinue);
                  }));
    for (const auto& [table, column] : columns) {
      TARN_RETURN_IF_ERROR(sql.Execute(
          fmt::format("SELECT setval({0}, m) FROM (SELECT max({1}) AS m FROM {2}) AS x WHERE m > "
                      "COALESCE(pg_sequence_last_value({0}), 0)",
                      kSequenceOf, QuoteSqlName(column), QuoteSqlName(table)),
          {table, column}));
    }
    return {};
  }
};

}  // namespace

const BundleTables& BundleTables::Of(const Database& database) {
  static const SqliteTables sqlite;
  static const PostgresTables postgres;
  const bool is_postgres = dynamic_cast<const PostgresDatabase*>(&database) != nullptr;
  return is_postgres ? static_cast<const BundleTables&>(postgres) : sqlite;
}

}  // namespace tarn::metastore
