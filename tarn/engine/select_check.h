// What people's SQL may do: one SELECT over named tables, or one scalar expression over columns.
//
// The text is parsed by the engine's own parser and judged by its syntax tree, never by looking
// for words. This is the first fence; the engine's sandbox (engine.h) is the second.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/engine/engine.h"

namespace tarn::engine {

/// A table named in FROM, as written: 1 to 3 name parts.
struct TableReference {
  std::vector<std::string> name;
  std::string alias{};     // Empty when none was given.
  std::string at_unit{};   // VERSION or TIMESTAMP of `AT (unit => value)`; empty without.
  std::string at_value{};  // The constant as text.
  friend bool operator==(const TableReference&, const TableReference&) = default;
};

/// A SELECT that passed. `tables` has one entry per reference, in the order RewriteTables takes
/// them; names of common table expressions are no tables.
struct SelectStatement {
  std::string tree_json;  // Syntax tree, for RewriteTables.
  std::vector<TableReference> tables;
  std::vector<std::string> functions;  // Lower-case, sorted, unique.
};

/// Parses and checks one SELECT (also VALUES, set operations, WITH).
///
/// Errors: kInvalidArgument on a syntax error, on several or other statements (also DESCRIBE, SHOW
/// and PIVOT statements) and on parameters; kPermissionDenied on a table function outside the list
/// (unnest, range, generate_series, json_each, json_tree) and on functions that read settings,
/// files, the environment or the statement itself, or that wait. A file read by name comes out as a
/// table of that name.
Result<SelectStatement> CheckSelect(Session& session, std::string_view sql);

/// The statement with `names[i]` (1 to 3 parts) in place of `tables[i]`, as SQL text. A reference
/// without alias keeps its last part as alias, and columns qualified by its whole name are cut to
/// that, so that they still resolve. AT clauses are dropped: the new name stands for that state.
/// Errors: kInvalidArgument when the counts differ.
Result<std::string> RewriteTables(Session& session, const SelectStatement& statement,
                                  const std::vector<std::vector<std::string>>& names);

/// A scalar expression that passed.
struct ScalarExpression {
  std::string sql;  // In brackets; `${name}` replaced. Can stand anywhere an expression can.
  std::vector<std::vector<std::string>> columns;  // Name parts, unique, in order of first use.
  std::vector<std::string> functions;             // Lower-case, sorted, unique.
  bool is_column = false;                         // Nothing but a reference to columns[0].
};

/// Parses and checks one expression over columns; `${name}` is the column "name".
///
/// The caller has to check that every column exists: `current_date` and its like are columns to the
/// parser, and functions only when there is no such column.
/// Errors: kInvalidArgument, naming what was found, on a syntax error, sub-query, aggregate,
/// window, table function, star, parameter or a function that gives another value at each call
/// (now, random, nextval, …); kPermissionDenied as CheckSelect.
Result<ScalarExpression> CheckExpression(Session& session, std::string_view text);

}  // namespace tarn::engine
