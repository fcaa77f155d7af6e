#include "tarn/engine/select_check.h"

#include <algorithm>
#include <functional>
#include <set>

#include <nlohmann/json.hpp>

#include "tarn/engine/quoting.h"
#include "tarn/engine/syntax_tree.h"

namespace tarn::engine {
namespace {

constexpr int kDepthMax = 2000;  // Of the tree; the engine's own limit on expressions is 1000.

Status Forbidden(std::string_view function) {
  return Status::PermissionDenied("function " + std::string(function) + " is not allowed");
}

std::vector<std::string> NamesOf(const SyntaxTree& column) {
  std::vector<std::string> names;
  const auto parts = column.find("column_names");
  if (parts != column.end()) {
    for (const SyntaxTree& part : *parts) {
      names.push_back(part.get<std::string>());
    }
  }
  return names;
}

bool IsNode(const SyntaxTree& node, std::string_view type) { return TextOf(node, "type") == type; }

size_t ArgumentCount(const SyntaxTree& function) {
  const auto children = function.find("children");
  return children == function.end() ? 0 : children->size();
}

/// Walks the tree of a SELECT, keeps track of the names of common table expressions, and calls
/// back for tables, functions and columns.
class SelectWalk {
 public:
  std::function<Status(SyntaxTree&)> on_table = [](SyntaxTree&) { return Status::Ok(); };
  std::function<Status(SyntaxTree&)> on_column = [](SyntaxTree&) { return Status::Ok(); };
  std::set<std::string> functions;

  Status Walk(SyntaxTree& node, int depth = 0) {
    if (depth > kDepthMax) {
      return Status::InvalidArgument("the statement is nested too deeply");
    }
    if (node.is_array()) {
      for (SyntaxTree& item : node) {
        TARN_RETURN_IF_ERROR(Walk(item, depth + 1));
      }
      return Status::Ok();
    }
    if (!node.is_object()) {
      return Status::Ok();
    }
    TARN_RETURN_IF_ERROR(Visit(node));
    if (node.contains("cte_map")) {
      return WalkWithTables(node, depth);
    }
    return WalkMembers(node, depth);
  }

 private:
  Status WalkMembers(SyntaxTree& node, int depth) {
    for (auto& [name, member] : node.items()) {
      if (name == "function" && IsNode(node, "TABLE_FUNCTION")) {
        // Its name was judged as a table function; its arguments are expressions.
        if (member.contains("children")) {
          TARN_RETURN_IF_ERROR(Walk(member["children"], depth + 1));
        }
      } else if (name != "cte_map") {
        TARN_RETURN_IF_ERROR(Walk(member, depth + 1));
      }
    }
    return Status::Ok();
  }

  /// A query with WITH: each name is known in those after it, a recursive one also in itself.
  Status WalkWithTables(SyntaxTree& node, int depth) {
    const size_t outer = known_.size();
    SyntaxTree& map = node["cte_map"];
    if (map.contains("map")) {
      for (SyntaxTree& entry : map["map"]) {
        const std::string name = LowerCase(TextOf(entry, "key"));
        const SyntaxTree& query = entry["value"]["query"]["node"];
        const bool recursive = IsNode(query, "RECURSIVE_CTE_NODE");
        if (recursive) {
          known_.push_back(name);
        }
        TARN_RETURN_IF_ERROR(Walk(entry["value"], depth + 1));
        if (!recursive) {
          known_.push_back(name);
        }
      }
    }
    TARN_RETURN_IF_ERROR(WalkMembers(node, depth));
    known_.resize(outer);
    return Status::Ok();
  }

  Status Visit(SyntaxTree& node) {
    const std::string_view type = TextOf(node, "type");
    const std::string_view node_class = TextOf(node, "class");
    if (type == "BASE_TABLE") {
      const bool bare = TextOf(node, "schema_name").empty();
      const std::string name = LowerCase(TextOf(node, "table_name"));
      const bool known = std::find(known_.begin(), known_.end(), name) != known_.end();
      return bare && known ? Status::Ok() : on_table(node);
    }
    if (type == "TABLE_FUNCTION") {
      const std::string name = LowerCase(TextOf(node["function"], "function_name"));
      functions.insert(name);
      return IsAllowedTableFunction(name) ? Status::Ok() : Forbidden(name);
    }
    if (type == "SHOW_REF" || type == "COLUMN_DATA" || type == "BOUND_TABLE_REF" ||
        type == "DELIM_GET") {
      return Status::InvalidArgument("only SELECT statements are allowed, not DESCRIBE or SHOW");
    }
    if (node_class == "PARAMETER") {
      return Status::InvalidArgument("parameters ($1, ?) are not allowed");
    }
    if (node_class == "FUNCTION") {
      const std::string name = LowerCase(TextOf(node, "function_name"));
      functions.insert(name);
      return JudgeFunction(name, ArgumentCount(node)) == FunctionVerdict::kForbidden
                 ? Forbidden(name)
                 : Status::Ok();
    }
    if (node_class == "COLUMN_REF") {
      return on_column(node);
    }
    return Status::Ok();
  }

  std::vector<std::string> known_;  // Names of common table expressions in scope.
};

TableReference ReferenceOf(const SyntaxTree& node) {
  TableReference reference;
  for (const char* part : {"catalog_name", "schema_name", "table_name"}) {
    if (!TextOf(node, part).empty()) {
      reference.name.emplace_back(TextOf(node, part));
    }
  }
  reference.alias = TextOf(node, "alias");
  const auto at = node.find("at_clause");
  if (at != node.end() && at->is_object()) {
    reference.at_unit = TextOf(*at, "unit");
    const SyntaxTree& value = (*at)["expr"];
    const SyntaxTree* constant = &value;
    if (constant->contains("child")) {
      constant = &(*constant)["child"];  // TIMESTAMP '…' is a cast of a text.
    }
    if (constant->contains("value") && (*constant)["value"].contains("value")) {
      const SyntaxTree& literal = (*constant)["value"]["value"];
      reference.at_value = literal.is_string() ? literal.get<std::string>() : literal.dump();
    }
  }
  return reference;
}

bool SameName(std::string_view a, std::string_view b) { return LowerCase(a) == LowerCase(b); }

/// Cuts "project.folder.table.column" to "table.column" where that table has no alias.
void CutQualifier(const std::vector<TableReference>& tables, SyntaxTree& column) {
  std::vector<std::string> names = NamesOf(column);
  for (const TableReference& table : tables) {
    const size_t size = table.name.size();
    if (!table.alias.empty() || size < 2 || names.size() <= size ||
        !std::equal(table.name.begin(), table.name.end(), names.begin(), SameName)) {
      continue;
    }
    names.erase(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(size) - 1);
    column["column_names"] = names;
    return;
  }
}

/// Walks an expression: refuses what is not scalar, collects columns and functions.
class ExpressionWalk {
 public:
  std::vector<std::vector<std::string>> columns;
  std::set<std::string> functions;

  Status Walk(const SyntaxTree& node, int depth = 0) {
    if (depth > kDepthMax) {
      return Status::InvalidArgument("the expression is nested too deeply");
    }
    if (node.is_array()) {
      for (const SyntaxTree& item : node) {
        TARN_RETURN_IF_ERROR(Walk(item, depth + 1));
      }
      return Status::Ok();
    }
    if (!node.is_object()) {
      return Status::Ok();
    }
    const std::string_view node_class = TextOf(node, "class");
    TARN_RETURN_IF_ERROR(Refuse(node, node_class));
    if (node_class == "COLUMN_REF") {
      AddColumn(NamesOf(node));
      return Status::Ok();
    }
    if (node_class == "FUNCTION") {
      return WalkFunction(node, depth);
    }
    return WalkMembers(node, depth);
  }

 private:
  Status WalkMembers(const SyntaxTree& node, int depth) {
    for (const auto& [name, member] : node.items()) {
      if (name != "cast_type" && name != "value") {
        TARN_RETURN_IF_ERROR(Walk(member, depth + 1));
      }
    }
    return Status::Ok();
  }

  Status Refuse(const SyntaxTree& node, std::string_view node_class) const {
    const auto refuse = [](std::string_view what) {
      return Status::InvalidArgument("expressions cannot have " + std::string(what));
    };
    if (node_class == "SUBQUERY") {
      return refuse("sub-queries");
    }
    if (node_class == "WINDOW") {
      return refuse("window functions, found " + std::string(TextOf(node, "function_name")));
    }
    if (node_class == "STAR") {
      return refuse("*, COLUMNS or other lists of columns");
    }
    if (node_class == "PARAMETER") {
      return refuse("parameters ($1, ?)");
    }
    if (node_class == "DEFAULT" || node_class == "POSITIONAL_REFERENCE") {
      return refuse("DEFAULT or #1");
    }
    if (IsNode(node, "GROUPING_FUNCTION")) {
      return refuse("aggregates, found grouping");
    }
    return Status::Ok();
  }

  Status WalkFunction(const SyntaxTree& node, int depth) {
    const std::string name = LowerCase(TextOf(node, "function_name"));
    functions.insert(name);
    switch (JudgeFunction(name, ArgumentCount(node))) {
      case FunctionVerdict::kForbidden:
        return Forbidden(name);
      case FunctionVerdict::kVolatile:
        return Status::InvalidArgument(
            "expressions cannot have functions whose value changes "
            "from call to call, found " +
            name);
      case FunctionVerdict::kAggregate:
        return Status::InvalidArgument("expressions cannot have aggregates, found " + name);
      case FunctionVerdict::kTable:
        return Status::InvalidArgument("expressions cannot have functions that give rows, found " +
                                       name);
      case FunctionVerdict::kAllowed:
        break;
    }
    if (!TakesLambda(name)) {
      return WalkMembers(node, depth);
    }
    const auto children = node.find("children");
    if (children == node.end()) {
      return Status::Ok();
    }
    for (const SyntaxTree& child : *children) {
      TARN_RETURN_IF_ERROR(TextOf(child, "class") == "LAMBDA" ? WalkLambda(child, depth + 1)
                                                              : Walk(child, depth + 1));
    }
    return Status::Ok();
  }

  /// `x -> …` or `(x, i) -> …`: the names before the arrow are no columns in what follows.
  Status WalkLambda(const SyntaxTree& node, int depth) {
    const size_t outer = bound_.size();
    const SyntaxTree& left = node["lhs"];
    if (TextOf(left, "class") == "COLUMN_REF") {
      bound_.push_back(LowerCase(NamesOf(left).front()));
    } else if (left.contains("children")) {
      for (const SyntaxTree& child : left["children"]) {
        const std::vector<std::string> names = NamesOf(child);
        if (!names.empty()) {
          bound_.push_back(LowerCase(names.front()));
        }
      }
    }
    TARN_RETURN_IF_ERROR(Walk(node["expr"], depth + 1));
    bound_.resize(outer);
    return Status::Ok();
  }

  void AddColumn(std::vector<std::string> names) {
    if (names.empty() ||
        std::find(bound_.begin(), bound_.end(), LowerCase(names.front())) != bound_.end() ||
        std::find(columns.begin(), columns.end(), names) != columns.end()) {
      return;
    }
    columns.push_back(std::move(names));
  }

  std::vector<std::string> bound_;  // Lambda parameters in scope.
};

/// Where a quoted part or comment that begins at `at` ends; `at` when none begins there.
size_t SkipQuoted(std::string_view text, size_t at) {
  const auto after = [&](size_t end, size_t size) {
    return end == std::string_view::npos ? text.size() : end + size;
  };
  if (text[at] == '\'' || text[at] == '"') {
    return after(text.find(text[at], at + 1), 1);
  }
  if (text.substr(at, 2) == "--") {
    return after(text.find('\n', at), 1);
  }
  if (text.substr(at, 2) == "/*") {
    return after(text.find("*/", at + 2), 2);
  }
  return at;
}

/// `${name}` outside of quotes and comments becomes "name".
Result<std::string> ReplaceColumnMarks(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = SkipQuoted(text, at);
    if (end > at) {
      out += text.substr(at, end - at);
      at = end;
    } else if (text.substr(at, 2) == "${") {
      const size_t close = text.find('}', at);
      if (close == std::string_view::npos || close == at + 2) {
        return Status::InvalidArgument("${ without a column name and }");
      }
      out += '"';
      for (const char c : text.substr(at + 2, close - at - 2)) {
        out += c;
        out += c == '"' ? "\"" : "";
      }
      out += '"';
      at = close + 1;
    } else {
      out += text[at++];
    }
  }
  return out;
}

/// The expression in `SELECT <text>`, when that is all there is.
Result<SyntaxTree> SingleExpression(const SyntaxTree& tree) {
  const auto not_one = [] {
    return Status::InvalidArgument("expected one expression without alias or further clauses");
  };
  if (tree["statements"].size() != 1) {
    return not_one();
  }
  const SyntaxTree& node = tree["statements"][0]["node"];
  if (!IsNode(node, "SELECT_NODE") || node["select_list"].size() != 1 ||
      !IsNode(node["from_table"], "EMPTY")) {
    return not_one();
  }
  for (const char* clause : {"where_clause", "having", "qualify", "sample"}) {
    if (node.contains(clause) && !node[clause].is_null()) {
      return not_one();
    }
  }
  for (const char* clause : {"modifiers", "group_expressions", "group_sets"}) {
    if (node.contains(clause) && !node[clause].empty()) {
      return not_one();
    }
  }
  if (node.contains("cte_map") && node["cte_map"].contains("map") &&
      !node["cte_map"]["map"].empty()) {
    return not_one();
  }
  SyntaxTree expression = node["select_list"][0];
  return TextOf(expression, "alias").empty() ? Result<SyntaxTree>(std::move(expression))
                                             : Result<SyntaxTree>(not_one());
}

}  // namespace

Result<SelectStatement> CheckSelect(Session& session, std::string_view sql) {
  TARN_ASSIGN_OR_RETURN(SyntaxTree tree, ParseSql(session, sql));
  if (tree["statements"].size() != 1) {
    return Status::InvalidArgument("expected one SELECT statement, found " +
                                   std::to_string(tree["statements"].size()));
  }
  SelectStatement statement;
  SelectWalk walk;
  walk.on_table = [&statement](SyntaxTree& node) {
    statement.tables.push_back(ReferenceOf(node));
    return Status::Ok();
  };
  TARN_RETURN_IF_ERROR(walk.Walk(tree["statements"]));
  statement.functions.assign(walk.functions.begin(), walk.functions.end());
  statement.tree_json = tree.dump();
  return statement;
}

Result<std::string> RewriteTables(Session& session, const SelectStatement& statement,
                                  const std::vector<std::vector<std::string>>& names) {
  if (names.size() != statement.tables.size()) {
    return Status::InvalidArgument("the statement names " +
                                   std::to_string(statement.tables.size()) + " tables, " +
                                   std::to_string(names.size()) + " were given");
  }
  SyntaxTree tree = SyntaxTree::parse(statement.tree_json, nullptr, false);
  if (tree.is_discarded()) {
    return Status::InvalidArgument("the statement has no syntax tree");
  }
  size_t next = 0;
  SelectWalk walk;
  walk.on_table = [&](SyntaxTree& node) {
    const std::vector<std::string>& name = names[next];
    if (name.empty() || name.size() > 3) {
      return Status::InvalidArgument("a table name needs 1 to 3 parts");
    }
    const TableReference& reference = statement.tables[next++];
    node["alias"] = reference.alias.empty() ? reference.name.back() : reference.alias;
    node["catalog_name"] = name.size() == 3 ? name[0] : "";
    node["schema_name"] = name.size() >= 2 ? name[name.size() - 2] : "";
    node["table_name"] = name.back();
    node["at_clause"] = nullptr;
    return Status::Ok();
  };
  walk.on_column = [&](SyntaxTree& node) {
    CutQualifier(statement.tables, node);
    return Status::Ok();
  };
  TARN_RETURN_IF_ERROR(walk.Walk(tree["statements"]));
  return PrintSql(session, tree);
}

Result<ScalarExpression> CheckExpression(Session& session, std::string_view text) {
  TARN_ASSIGN_OR_RETURN(const std::string replaced, ReplaceColumnMarks(text));
  ScalarExpression out;
  out.sql = "(" + replaced + "\n)";
  // Both ways: without brackets nothing may follow the expression, with them it must still be one.
  TARN_ASSIGN_OR_RETURN(const SyntaxTree bare, ParseSql(session, "SELECT\n" + replaced));
  TARN_ASSIGN_OR_RETURN(const SyntaxTree expression, SingleExpression(bare));
  TARN_ASSIGN_OR_RETURN(const SyntaxTree bracketed, ParseSql(session, "SELECT " + out.sql));
  TARN_RETURN_IF_ERROR(StatusOf(SingleExpression(bracketed)));
  ExpressionWalk walk;
  TARN_RETURN_IF_ERROR(walk.Walk(expression));
  out.columns = std::move(walk.columns);
  out.functions.assign(walk.functions.begin(), walk.functions.end());
  out.is_column = TextOf(expression, "class") == "COLUMN_REF";
  return out;
}

}  // namespace tarn::engine
