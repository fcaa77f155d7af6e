#include "tarn/query/scan_filter.h"

#include <optional>

#include <nlohmann/json.hpp>

#include "tarn/engine/quoting.h"

namespace tarn::query {

namespace {

using iceberg::Expression;
using iceberg::ExpressionKind;
using iceberg::Literal;
using iceberg::SchemaField;
using iceberg::Type;
using iceberg::TypeId;
using nlohmann::json;

std::string TextOf(const json& node, const char* member) {
  if (!node.is_object()) {
    return {};
  }
  const auto found = node.find(member);
  return found != node.end() && found->is_string() ? found->get<std::string>() : std::string();
}

const json& MemberOf(const json& node, const char* member) {
  static const json kNone;
  const auto found = node.is_object() ? node.find(member) : node.end();
  return found != node.end() ? *found : kNone;
}

// Tables named anywhere below: those of the catalog and those of WITH.
size_t CountTables(const json& node) {
  size_t count = TextOf(node, "type") == "BASE_TABLE" ? 1 : 0;
  for (const json& child : node) {
    count += child.is_structured() ? CountTables(child) : 0;
  }
  return count;
}

// The SELECT whose FROM is a base table, anywhere below.
const json* FindSelect(const json& node) {
  if (TextOf(MemberOf(node, "from_table"), "type") == "BASE_TABLE") {
    return &node;
  }
  for (const json& child : node) {
    if (const json* found = child.is_structured() ? FindSelect(child) : nullptr) {
      return found;
    }
  }
  return nullptr;
}

std::optional<ExpressionKind> KindOf(const std::string& type, bool flipped) {
  if (type == "COMPARE_EQUAL") {
    return ExpressionKind::kEqual;
  }
  if (type == "COMPARE_LESSTHAN") {
    return flipped ? ExpressionKind::kGreater : ExpressionKind::kLess;
  }
  if (type == "COMPARE_LESSTHANOREQUALTO") {
    return flipped ? ExpressionKind::kGreaterOrEqual : ExpressionKind::kLessOrEqual;
  }
  if (type == "COMPARE_GREATERTHAN") {
    return flipped ? ExpressionKind::kLess : ExpressionKind::kGreater;
  }
  if (type == "COMPARE_GREATERTHANOREQUALTO") {
    return flipped ? ExpressionKind::kLessOrEqual : ExpressionKind::kGreaterOrEqual;
  }
  return std::nullopt;
}

struct Constant {
  Literal value;
  bool is_text = false;
  bool is_date = false;
};

std::optional<Constant> ConstantOf(const json& node) {
  if (TextOf(node, "class") == "CAST" && !MemberOf(node, "try_cast").is_null()) {
    const std::string type = TextOf(MemberOf(node, "cast_type"), "id");
    std::optional<Constant> inner = ConstantOf(MemberOf(node, "child"));
    if (!inner || !inner->is_text || inner->is_date || MemberOf(node, "try_cast") != false ||
        (type != "DATE" && type != "TIMESTAMP")) {
      return std::nullopt;
    }
    inner->is_date = true;
    return inner;
  }
  const json& value = MemberOf(node, "value");
  if (TextOf(node, "class") != "CONSTANT" || MemberOf(value, "is_null") != false) {
    return std::nullopt;
  }
  const std::string type = TextOf(MemberOf(value, "type"), "id");
  const json& plain = MemberOf(value, "value");
  if (type == "VARCHAR" && plain.is_string()) {
    return Constant{.value = Literal::String(plain.get<std::string>()), .is_text = true};
  }
  const bool whole =
      type == "TINYINT" || type == "SMALLINT" || type == "INTEGER" || type == "BIGINT";
  if (whole && plain.is_number_integer() && !plain.is_number_unsigned()) {
    return Constant{.value = Literal::Long(plain.get<int64_t>())};
  }
  if (whole && plain.is_number_unsigned() && plain.get<uint64_t>() <= INT64_MAX) {
    return Constant{.value = Literal::Long(static_cast<int64_t>(plain.get<uint64_t>()))};
  }
  return std::nullopt;
}

class Finder {
 public:
  explicit Finder(const json& select) {
    const json& table = MemberOf(select, "from_table");
    alias_ = TextOf(table, "alias");
    if (alias_.empty()) {
      alias_ = TextOf(table, "table_name");
    }
    const json& renamed = MemberOf(table, "column_name_alias");
    const bool plain = MemberOf(table, "sample").is_null() &&
                       MemberOf(select, "sample").is_null() &&
                       (renamed.is_null() || renamed.empty());
    if (plain) {
      Add(MemberOf(select, "where_clause"));
    }
  }

  std::vector<ScanCondition> Take() { return std::move(conditions_); }

 private:
  void Add(const json& node) {
    const std::string kind = TextOf(node, "class");
    if (kind == "CONJUNCTION" && TextOf(node, "type") == "CONJUNCTION_AND") {
      for (const json& child : MemberOf(node, "children")) {
        Add(child);
      }
    } else if (kind == "COMPARISON") {
      AddComparison(node);
    } else if (kind == "BETWEEN") {
      AddOne(ExpressionKind::kGreaterOrEqual, MemberOf(node, "input"), MemberOf(node, "lower"));
      AddOne(ExpressionKind::kLessOrEqual, MemberOf(node, "input"), MemberOf(node, "upper"));
    } else if (TextOf(node, "type") == "COMPARE_IN") {
      AddIn(MemberOf(node, "children"));
    }
  }

  void AddComparison(const json& node) {
    const json& left = MemberOf(node, "left");
    const json& right = MemberOf(node, "right");
    const bool flipped = !ColumnOf(left).has_value();
    if (const auto kind = KindOf(TextOf(node, "type"), flipped)) {
      AddOne(*kind, flipped ? right : left, flipped ? left : right);
    }
  }

  void AddOne(ExpressionKind kind, const json& column_node, const json& constant_node) {
    const std::optional<std::string> column = ColumnOf(column_node);
    const std::optional<Constant> constant = ConstantOf(constant_node);
    if (column && constant) {
      conditions_.push_back({.column = *column,
                             .kind = kind,
                             .values = {constant->value},
                             .is_text = constant->is_text,
                             .is_date = constant->is_date});
    }
  }

  void AddIn(const json& children) {
    if (!children.is_array() || children.size() < 2) {
      return;
    }
    const std::optional<std::string> column = ColumnOf(children[0]);
    if (!column) {
      return;
    }
    ScanCondition condition{.column = *column, .kind = ExpressionKind::kIn};
    for (size_t i = 1; i < children.size(); ++i) {
      const std::optional<Constant> constant = ConstantOf(children[i]);
      if (!constant || (i > 1 && (constant->is_text != condition.is_text ||
                                  constant->is_date != condition.is_date))) {
        return;
      }
      condition.is_text = constant->is_text;
      condition.is_date = constant->is_date;
      condition.values.push_back(constant->value);
    }
    conditions_.push_back(std::move(condition));
  }

  // A column of the table, "a" or "t.a".
  [[nodiscard]] std::optional<std::string> ColumnOf(const json& node) const {
    const json& names = MemberOf(node, "column_names");
    if (TextOf(node, "class") != "COLUMN_REF" || !names.is_array() || names.empty() ||
        names.size() > 2 || !names.back().is_string()) {
      return std::nullopt;
    }
    if (names.size() == 2 &&
        (!names[0].is_string() ||
         engine::LowerCase(names[0].get<std::string>()) != engine::LowerCase(alias_))) {
      return std::nullopt;
    }
    return names.back().get<std::string>();
  }

  std::string alias_;
  std::vector<ScanCondition> conditions_;
};

// A constant as the column holds it; nothing where the engine would convert the column instead.
std::optional<Literal> ValueFor(const Type& type, const ScanCondition& condition,
                                const Literal& value) {
  switch (type.id) {
    case TypeId::kInt:
    case TypeId::kLong:
      return condition.is_text ? std::nullopt : std::optional<Literal>(value);
    case TypeId::kString:
      return condition.is_text && !condition.is_date ? std::optional<Literal>(value) : std::nullopt;
    case TypeId::kDate:
    case TypeId::kTimestamp: {
      constexpr size_t kDateLength = 10;
      if (!condition.is_text) {
        return std::nullopt;
      }
      std::string text = value.AsString();
      if (type.id == TypeId::kTimestamp && text.size() == kDateLength) {
        text += "T00:00:00";
      }
      const Result<Literal> cast =
          iceberg::CastLiteral(Type::String(), type, Literal::String(std::move(text)));
      return cast.ok() ? std::optional<Literal>(*cast) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

const SchemaField* FindTopLevel(const iceberg::Schema& schema, const std::string& name) {
  for (const SchemaField& field : schema.fields) {
    if (engine::LowerCase(field.name) == engine::LowerCase(name)) {
      return &field;
    }
  }
  return nullptr;
}

}  // namespace

std::vector<ScanCondition> FindConditions(const engine::SelectStatement& statement) {
  if (statement.tables.size() != 1) {
    return {};
  }
  const json tree = json::parse(statement.tree_json, nullptr, false);
  // A name of WITH looks like a table: its columns are not those of the table behind it.
  if (!tree.is_structured() || CountTables(tree) != 1) {
    return {};
  }
  const json* select = FindSelect(tree);
  return select == nullptr ? std::vector<ScanCondition>() : Finder(*select).Take();
}

Expression FilterOf(const std::vector<ScanCondition>& conditions, const iceberg::Schema& schema) {
  Expression filter = Expression::True();
  for (const ScanCondition& condition : conditions) {
    const SchemaField* field = FindTopLevel(schema, condition.column);
    if (field == nullptr) {
      continue;
    }
    std::vector<Literal> values;
    for (const Literal& value : condition.values) {
      const std::optional<Literal> converted = ValueFor(field->type, condition, value);
      if (!converted) {
        break;
      }
      values.push_back(*converted);
    }
    if (values.size() != condition.values.size()) {
      continue;
    }
    // An int column meets constants of any size: the binder decides those out of its range.
    const bool whole = field->type.id == TypeId::kInt || field->type.id == TypeId::kLong;
    Expression one{.kind = condition.kind, .column = field->name, .values = std::move(values)};
    if (whole) {
      one.value_type = Type::Long();
    }
    filter = filter.kind == ExpressionKind::kTrue
                 ? std::move(one)
                 : Expression::And(std::move(filter), std::move(one));
  }
  return filter;
}

}  // namespace tarn::query
