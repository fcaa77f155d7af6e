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
  std::string alias;  // Empty when none was given.
  friend bool operator==(const TableReference&, const TableReference&) = default;
};

/// A SELECT that passed. `tables` lists each reference in the order of RewriteTables, names of
/// common table expressions excluded.
struct SelectStatement {
  std::string tree_json;  // Syntax tree, for RewriteTables.
  std::vector<TableReference> tables;
  std::vector<std::string> functions;  // Lower-case, sorted, unique.
};

/// Parses and checks one SELECT (also VALUES, set operations, WITH).
///
/// Errors: kInvalidArgument on a syntax error, on several or other statements; kPermissionDenied
/// on a file read by name or function, on a table function outside the list (unnest, range,
/// generate_series) and on functions that read settings, files or the environment.
Result<SelectStatement> CheckSelect(Session& session, std::string_view sql);

/// The statement with `names[i]` in place of `tables[i]`, as SQL text. A reference without alias
/// keeps its last part as alias, so that qualified columns still resolve.
/// Errors: kInvalidArgument when the counts differ.
Result<std::string> RewriteTables(Session& session, const SelectStatement& statement,
                                  const std::vector<std::vector<std::string>>& names);

/// A scalar expression that passed.
struct ScalarExpression {
  std::string sql;  // As the parser understood it, normalised.
  std::vector<std::vector<std::string>> columns;  // Name parts, in order of first use.
  std::vector<std::string> functions;             // Lower-case, sorted, unique.
};

/// Parses and checks one expression over columns; `${name}` is the column "name".
///
/// Errors: kInvalidArgument, naming what was found, on a syntax error, sub-query, aggregate, window,
/// table function, star, parameter or a function that gives another value at each call (now,
/// random, nextval, …); kPermissionDenied as CheckSelect.
Result<ScalarExpression> CheckExpression(Session& session, std::string_view text);

}  // namespace tarn::engine
