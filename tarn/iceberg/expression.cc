#include "tarn/iceberg/expression.h"

#include <algorithm>

#include <fmt/format.h>

namespace tarn::iceberg {
namespace {

Expression Predicate(ExpressionKind kind, std::string column) {
  Expression e;
  e.kind = kind;
  e.column = std::move(column);
  return e;
}

bool IsLogical(ExpressionKind kind) {
  return kind == ExpressionKind::kAnd || kind == ExpressionKind::kOr ||
         kind == ExpressionKind::kNot;
}

ExpressionKind Negate(ExpressionKind kind) {
  switch (kind) {
    case ExpressionKind::kTrue:
      return ExpressionKind::kFalse;
    case ExpressionKind::kFalse:
      return ExpressionKind::kTrue;
    case ExpressionKind::kIsNull:
      return ExpressionKind::kNotNull;
    case ExpressionKind::kNotNull:
      return ExpressionKind::kIsNull;
    case ExpressionKind::kIsNan:
      return ExpressionKind::kNotNan;
    case ExpressionKind::kNotNan:
      return ExpressionKind::kIsNan;
    case ExpressionKind::kEqual:
      return ExpressionKind::kNotEqual;
    case ExpressionKind::kNotEqual:
      return ExpressionKind::kEqual;
    case ExpressionKind::kLess:
      return ExpressionKind::kGreaterOrEqual;
    case ExpressionKind::kLessOrEqual:
      return ExpressionKind::kGreater;
    case ExpressionKind::kGreater:
      return ExpressionKind::kLessOrEqual;
    case ExpressionKind::kGreaterOrEqual:
      return ExpressionKind::kLess;
    case ExpressionKind::kIn:
      return ExpressionKind::kNotIn;
    case ExpressionKind::kNotIn:
      return ExpressionKind::kIn;
    case ExpressionKind::kStartsWith:
      return ExpressionKind::kNotStartsWith;
    case ExpressionKind::kNotStartsWith:
      return ExpressionKind::kStartsWith;
    default:
      return kind;
  }
}

std::string_view KindText(ExpressionKind kind) {
  static constexpr std::string_view kTexts[] = {"true",
                                                "false",
                                                "and",
                                                "or",
                                                "not",
                                                "is null",
                                                "is not null",
                                                "is nan",
                                                "is not nan",
                                                "=",
                                                "!=",
                                                "<",
                                                "<=",
                                                ">",
                                                ">=",
                                                "in",
                                                "not in",
                                                "starts with",
                                                "does not start with"};
  return kTexts[static_cast<size_t>(kind)];
}

Type GuessType(const Literal& literal) {
  switch (literal.value.index()) {
    case 1:
      return Type::Boolean();
    case 2:
      return Type::Long();
    case 3:
      return Type::Double();
    case 4:
      return Type::Decimal(38, 0);
    default:
      return Type::String();
  }
}

bool SamePhysical(const Type& a, const Type& b) {
  const auto integer = [](TypeId id) { return id == TypeId::kInt || id == TypeId::kLong; };
  const auto real = [](TypeId id) { return id == TypeId::kFloat || id == TypeId::kDouble; };
  return a == b || (integer(a.id) && integer(b.id)) || (real(a.id) && real(b.id));
}

Expression Combine(ExpressionKind kind, std::vector<Expression> children) {
  const ExpressionKind absorbing =
      kind == ExpressionKind::kAnd ? ExpressionKind::kFalse : ExpressionKind::kTrue;
  const ExpressionKind neutral =
      kind == ExpressionKind::kAnd ? ExpressionKind::kTrue : ExpressionKind::kFalse;
  Expression out;
  out.kind = kind;
  for (Expression& child : children) {
    if (child.kind == absorbing) {
      return child;
    }
    if (child.kind != neutral) {
      out.children.push_back(std::move(child));
    }
  }
  if (out.children.empty()) {
    out.kind = neutral;
    return out;
  }
  if (out.children.size() == 1) {
    Expression only = std::move(out.children[0]);
    return only;
  }
  return out;
}

Result<Expression> BindPredicate(Expression e, const Schema& schema, CaseRule rule) {
  const SchemaField* field = schema.FindField(e.column, rule);
  if (field == nullptr) {
    return Status::InvalidArgument(fmt::format("filter: there is no column '{}'", e.column));
  }
  if (field->type.is_nested() && e.kind != ExpressionKind::kIsNull &&
      e.kind != ExpressionKind::kNotNull) {
    return Status::InvalidArgument(
        fmt::format("filter: column '{}' is not of a primitive type", e.column));
  }
  e.field_id = field->id;
  for (Literal& value : e.values) {
    if (value.is_null()) {
      return Status::InvalidArgument(fmt::format(
          "filter: column '{}' is compared with null; ask for 'is null' instead", e.column));
    }
    const Type from =
        e.value_type.value_or(IsLiteralOf(field->type, value) ? field->type : GuessType(value));
    if (SamePhysical(from, field->type)) {
      continue;
    }
    Result<Literal> cast = CastLiteral(from, field->type, value);
    if (!cast.ok()) {
      return cast.status().WithContext(fmt::format("filter: column '{}'", e.column));
    }
    value = std::move(cast).value();
  }
  e.value_type.reset();
  if (e.kind == ExpressionKind::kIn && e.values.empty()) {
    return Expression::False();
  }
  if (e.kind == ExpressionKind::kNotIn && e.values.empty()) {
    return Expression::True();
  }
  return e;
}

Result<Expression> BindNode(const Expression& e, const Schema& schema, CaseRule rule, bool negated,
                            int depth) {
  if (depth > 500) {
    return Status::InvalidArgument("filter: nested deeper than 500");
  }
  if (e.kind == ExpressionKind::kNot) {
    return BindNode(e.children.at(0), schema, rule, !negated, depth + 1);
  }
  if (IsLogical(e.kind)) {
    std::vector<Expression> children;
    for (const Expression& child : e.children) {
      TARN_ASSIGN_OR_RETURN(Expression bound, BindNode(child, schema, rule, negated, depth + 1));
      children.push_back(std::move(bound));
    }
    const bool conjunction = (e.kind == ExpressionKind::kAnd) != negated;
    return Combine(conjunction ? ExpressionKind::kAnd : ExpressionKind::kOr, std::move(children));
  }
  Expression leaf = e;
  leaf.kind = negated ? Negate(e.kind) : e.kind;
  if (leaf.kind == ExpressionKind::kTrue || leaf.kind == ExpressionKind::kFalse) {
    return leaf;
  }
  return BindPredicate(std::move(leaf), schema, rule);
}

}  // namespace

Expression Expression::False() {
  Expression e;
  e.kind = ExpressionKind::kFalse;
  return e;
}
Expression Expression::And(Expression a, Expression b) {
  Expression e;
  e.kind = ExpressionKind::kAnd;
  e.children = {std::move(a), std::move(b)};
  return e;
}
Expression Expression::Or(Expression a, Expression b) {
  Expression e;
  e.kind = ExpressionKind::kOr;
  e.children = {std::move(a), std::move(b)};
  return e;
}
Expression Expression::Not(Expression a) {
  Expression e;
  e.kind = ExpressionKind::kNot;
  e.children = {std::move(a)};
  return e;
}
Expression Expression::IsNull(std::string column) {
  return Predicate(ExpressionKind::kIsNull, std::move(column));
}
Expression Expression::NotNull(std::string column) {
  return Predicate(ExpressionKind::kNotNull, std::move(column));
}
Expression Expression::IsNan(std::string column) {
  return Predicate(ExpressionKind::kIsNan, std::move(column));
}
Expression Expression::NotNan(std::string column) {
  return Predicate(ExpressionKind::kNotNan, std::move(column));
}
Expression Expression::Compare(ExpressionKind kind, std::string column, Literal value,
                               std::optional<Type> value_type) {
  Expression e = Predicate(kind, std::move(column));
  e.values = {std::move(value)};
  e.value_type = std::move(value_type);
  return e;
}
Expression Expression::Equal(std::string column, Literal value) {
  return Compare(ExpressionKind::kEqual, std::move(column), std::move(value));
}
Expression Expression::In(std::string column, std::vector<Literal> values) {
  Expression e = Predicate(ExpressionKind::kIn, std::move(column));
  e.values = std::move(values);
  return e;
}

std::string FormatExpression(const Expression& expression) {
  if (expression.kind == ExpressionKind::kTrue || expression.kind == ExpressionKind::kFalse) {
    return std::string(KindText(expression.kind));
  }
  if (expression.kind == ExpressionKind::kNot) {
    return "not " + FormatExpression(expression.children.at(0));
  }
  std::string text = "(";
  if (IsLogical(expression.kind)) {
    for (const Expression& child : expression.children) {
      text += text.size() > 1 ? fmt::format(" {} ", KindText(expression.kind)) : "";
      text += FormatExpression(child);
    }
    return text + ")";
  }
  text = fmt::format("{} {}", expression.column, KindText(expression.kind));
  for (size_t i = 0; i < expression.values.size(); ++i) {
    text += i == 0 ? " " : ", ";
    text += FormatLiteral(expression.value_type.value_or(GuessType(expression.values[i])),
                          expression.values[i]);
  }
  return text;
}

Result<Expression> Bind(const Expression& expression, const Schema& schema, CaseRule rule) {
  return BindNode(expression, schema, rule, false, 0);
}

bool Matches(const Expression& e, const Literal& value) {
  switch (e.kind) {
    case ExpressionKind::kTrue:
      return true;
    case ExpressionKind::kFalse:
      return false;
    case ExpressionKind::kIsNull:
      return value.is_null();
    case ExpressionKind::kNotNull:
      return !value.is_null();
    case ExpressionKind::kIsNan:
      return value.is_nan();
    case ExpressionKind::kNotNan:
      return !value.is_nan();
    default:
      break;
  }
  if (value.is_null()) {
    return false;
  }
  const auto* number = std::get_if<double>(&value.value);
  // Engines take the two zeros for equal, though bounds tell them apart.
  const Literal probe = number != nullptr && *number == 0 ? Literal::Double(0.0) : value;
  const auto compare = [&](const Literal& other) {
    const auto* x = std::get_if<double>(&other.value);
    return CompareLiterals(probe, x != nullptr && *x == 0 ? Literal::Double(0.0) : other);
  };
  const auto contained = [&] {
    return std::any_of(e.values.begin(), e.values.end(),
                       [&](const Literal& other) { return compare(other) == 0; });
  };
  const auto prefixed = [&] {
    const auto* text = std::get_if<std::string>(&value.value);
    return text != nullptr && text->starts_with(e.values[0].AsString());
  };
  switch (e.kind) {
    case ExpressionKind::kEqual:
    case ExpressionKind::kIn:
      return contained();
    case ExpressionKind::kNotEqual:
    case ExpressionKind::kNotIn:
      return !contained();
    case ExpressionKind::kLess:
      return compare(e.values[0]) < 0;
    case ExpressionKind::kLessOrEqual:
      return compare(e.values[0]) <= 0;
    case ExpressionKind::kGreater:
      return compare(e.values[0]) > 0;
    case ExpressionKind::kGreaterOrEqual:
      return compare(e.values[0]) >= 0;
    case ExpressionKind::kStartsWith:
      return prefixed();
    case ExpressionKind::kNotStartsWith:
      return !prefixed();
    default:
      return true;
  }
}

Expression ResidualOf(const Expression& expression, const Schema& schema, const PartitionSpec& spec,
                      const PartitionValues& values) {
  if (IsLogical(expression.kind)) {
    std::vector<Expression> children;
    for (const Expression& child : expression.children) {
      children.push_back(ResidualOf(child, schema, spec, values));
    }
    return Combine(expression.kind, std::move(children));
  }
  for (size_t i = 0; i < spec.fields.size() && i < values.size(); ++i) {
    if (spec.fields[i].source_id == expression.field_id &&
        spec.fields[i].transform.kind == TransformKind::kIdentity &&
        expression.kind != ExpressionKind::kTrue && expression.kind != ExpressionKind::kFalse) {
      return Matches(expression, values[i]) ? Expression::True() : Expression::False();
    }
  }
  return expression;
}

}  // namespace tarn::iceberg
