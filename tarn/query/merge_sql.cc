#include "tarn/query/merge_sql.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tarn/engine/quoting.h"
#include "tarn/lakehouse/scan/sql_type.h"

namespace tarn::query {

namespace {

using iceberg::SchemaField;
using Action = MergeClause::Action;
using Rows = MergeClause::Rows;

// Tells rows of the source from those that a join makes up.
constexpr std::string_view kSourceMark = "tarn_source";
constexpr std::string_view kClause = "tarn_clause";

class MergeSelect {
 public:
  MergeSelect(const MergeStatement& statement, const MergeTarget& target)
      : statement_(statement), target_(target) {}

  Result<std::string> Build() {
    std::vector<std::string> columns = {target_.alias + "._file", target_.alias + "._pos",
                                        ClauseSql()};
    TARN_ASSIGN_OR_RETURN(const std::vector<std::vector<std::string>> values, ValuesOfClauses());
    for (size_t column = 0; column < target_.columns.size(); ++column) {
      TARN_ASSIGN_OR_RETURN(const std::string type,
                            lakehouse::SqlTypeOf(target_.columns[column].type));
      columns.push_back(fmt::format("{} AS c{}", ByClause(values, column, type), column));
    }
    if (target_.with_lineage) {
      columns.push_back(RowIdSql() + " AS tarn_row_id");
      columns.emplace_back("CAST(NULL AS BIGINT) AS tarn_sequence");
    }
    return fmt::format(
        "SELECT * FROM (SELECT {} FROM {} {} (SELECT *, true AS {} FROM {}) AS {} ON ({}\n)) AS "
        "tarn_merged WHERE {} > 0",
        fmt::join(columns, ", "), target_.rows, JoinSql(), kSourceMark, statement_.source,
        statement_.source_alias, statement_.condition, kClause);
  }

 private:
  [[nodiscard]] bool Has(Rows rows) const {
    return std::any_of(statement_.clauses.begin(), statement_.clauses.end(),
                       [rows](const MergeClause& clause) { return clause.rows == rows; });
  }

  [[nodiscard]] std::string_view JoinSql() const {
    if (Has(Rows::kNotMatched)) {
      return Has(Rows::kNotMatchedBySource) ? "FULL JOIN" : "RIGHT JOIN";
    }
    return Has(Rows::kNotMatchedBySource) ? "LEFT JOIN" : "INNER JOIN";
  }

  // The first clause that a row fits.
  [[nodiscard]] std::string ClauseSql() const {
    const std::string in_target = target_.alias + "._file";
    const std::string in_source = fmt::format("{}.{}", statement_.source_alias, kSourceMark);
    std::string sql = "CASE";
    for (size_t i = 0; i < statement_.clauses.size(); ++i) {
      const MergeClause& clause = statement_.clauses[i];
      std::string rows;
      switch (clause.rows) {
        case Rows::kMatched:
          rows = fmt::format("{} IS NOT NULL AND {} IS NOT NULL", in_target, in_source);
          break;
        case Rows::kNotMatched:
          rows = in_target + " IS NULL";
          break;
        case Rows::kNotMatchedBySource:
          rows = in_source + " IS NULL";
          break;
      }
      sql += fmt::format(" WHEN {} AND ({}\n) THEN {}", rows, clause.condition,
                         clause.action == Action::kNothing ? 0 : i + 1);
    }
    return fmt::format("{} ELSE 0 END AS {}", sql, kClause);
  }

  // For each clause an expression for each column; none for clauses that write no row.
  [[nodiscard]] Result<std::vector<std::vector<std::string>>> ValuesOfClauses() const {
    std::vector<std::vector<std::string>> all;
    for (const MergeClause& clause : statement_.clauses) {
      std::vector<std::string> values;
      if (clause.by_name) {
        for (const SchemaField& column : target_.columns) {
          values.push_back(
              fmt::format("{}.{}", statement_.source_alias, engine::QuoteName(column.name)));
        }
      } else if (clause.action == Action::kUpdate) {
        TARN_ASSIGN_OR_RETURN(values, UpdatedValues(clause));
      } else if (clause.action == Action::kInsert) {
        TARN_ASSIGN_OR_RETURN(values, InsertedValues(clause));
      }
      all.push_back(std::move(values));
    }
    return all;
  }

  [[nodiscard]] Result<std::vector<std::string>> UpdatedValues(const MergeClause& clause) const {
    std::vector<std::string> values;
    for (const SchemaField& column : target_.columns) {
      values.push_back(fmt::format("{}.{}", target_.alias, engine::QuoteName(column.name)));
    }
    std::vector<bool> set(values.size(), false);
    for (const auto& [name, expression] : clause.assignments) {
      TARN_ASSIGN_OR_RETURN(const size_t index, ColumnIndex(target_.columns, target_.table, name));
      if (set[index]) {
        return Status::InvalidArgument(fmt::format("column {} is set twice", name));
      }
      set[index] = true;
      values[index] = expression;
    }
    return values;
  }

  [[nodiscard]] Result<std::vector<std::string>> InsertedValues(const MergeClause& clause) const {
    if (clause.columns.empty()) {
      if (clause.values.size() != target_.columns.size()) {
        return Status::InvalidArgument(fmt::format("INSERT has {} values, {} takes {}",
                                                   clause.values.size(), target_.table,
                                                   target_.columns.size()));
      }
      return clause.values;
    }
    std::vector<std::string> values(target_.columns.size());
    for (size_t i = 0; i < clause.columns.size(); ++i) {
      const std::string& name = clause.columns[i];
      TARN_ASSIGN_OR_RETURN(const size_t index, ColumnIndex(target_.columns, target_.table, name));
      if (!values[index].empty()) {
        return Status::InvalidArgument(fmt::format("column {} is named twice", name));
      }
      values[index] = clause.values[i];
    }
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i].empty()) {
        TARN_ASSIGN_OR_RETURN(values[i], MissingValueSql(target_.columns[i]));
      }
    }
    return values;
  }

  // The value of a column in the row that each clause writes.
  static std::string ByClause(const std::vector<std::vector<std::string>>& values, size_t column,
                              const std::string& type) {
    std::string sql;
    for (size_t clause = 0; clause < values.size(); ++clause) {
      if (!values[clause].empty()) {
        sql += fmt::format(" WHEN {} THEN CAST(({}\n) AS {})", clause + 1, values[clause][column],
                           type);
      }
    }
    return sql.empty() ? fmt::format("CAST(NULL AS {})", type)
                       : fmt::format("CASE {}{} END", kClause, sql);
  }

  // An updated row keeps its id.
  [[nodiscard]] std::string RowIdSql() const {
    std::string sql;
    for (size_t i = 0; i < statement_.clauses.size(); ++i) {
      if (statement_.clauses[i].action == Action::kUpdate) {
        sql += fmt::format(" WHEN {} THEN {}._row_id", i + 1, target_.alias);
      }
    }
    return sql.empty() ? "CAST(NULL AS BIGINT)" : fmt::format("CASE {}{} END", kClause, sql);
  }

  const MergeStatement& statement_;
  const MergeTarget& target_;
};

}  // namespace

Result<size_t> ColumnIndex(const std::vector<SchemaField>& columns, const std::string& table,
                           const std::string& name) {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (engine::LowerCase(columns[i].name) == engine::LowerCase(name)) {
      return i;
    }
  }
  return Status::InvalidArgument(fmt::format("table {} has no column {}", table, name));
}

Result<std::string> MissingValueSql(const SchemaField& column) {
  if (!column.write_default) {
    return std::string("NULL");
  }
  SchemaField written = column;
  written.initial_default = written.write_default;
  TARN_ASSIGN_OR_RETURN(const std::optional<std::string> text, lakehouse::DefaultTextOf(written));
  return text ? engine::QuoteText(*text) : "NULL";
}

Result<std::string> MergeSql(const MergeStatement& statement, const MergeTarget& target) {
  return MergeSelect(statement, target).Build();
}

}  // namespace tarn::query
