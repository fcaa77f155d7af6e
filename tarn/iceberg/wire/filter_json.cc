#include "tarn/iceberg/wire/filter_json.h"

#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tarn::iceberg {

namespace {

constexpr int kLevelsMax = 200;
constexpr size_t kValuesMax = 100'000;

struct Word {
  std::string_view text;
  ExpressionKind kind;
  ExpressionKind negated;
};

constexpr std::array<Word, 14> kWords = {{
    {"is-null", ExpressionKind::kIsNull, ExpressionKind::kNotNull},
    {"not-null", ExpressionKind::kNotNull, ExpressionKind::kIsNull},
    {"is-nan", ExpressionKind::kIsNan, ExpressionKind::kNotNan},
    {"not-nan", ExpressionKind::kNotNan, ExpressionKind::kIsNan},
    {"lt", ExpressionKind::kLess, ExpressionKind::kGreaterOrEqual},
    {"lt-eq", ExpressionKind::kLessOrEqual, ExpressionKind::kGreater},
    {"gt", ExpressionKind::kGreater, ExpressionKind::kLessOrEqual},
    {"gt-eq", ExpressionKind::kGreaterOrEqual, ExpressionKind::kLess},
    {"eq", ExpressionKind::kEqual, ExpressionKind::kNotEqual},
    {"not-eq", ExpressionKind::kNotEqual, ExpressionKind::kEqual},
    {"starts-with", ExpressionKind::kStartsWith, ExpressionKind::kNotStartsWith},
    {"not-starts-with", ExpressionKind::kNotStartsWith, ExpressionKind::kStartsWith},
    {"in", ExpressionKind::kIn, ExpressionKind::kNotIn},
    {"not-in", ExpressionKind::kNotIn, ExpressionKind::kIn},
}};

bool IsUnary(ExpressionKind kind) {
  return kind == ExpressionKind::kIsNull || kind == ExpressionKind::kNotNull ||
         kind == ExpressionKind::kIsNan || kind == ExpressionKind::kNotNan;
}

// Days and microseconds may come as the numbers they are; all else is in its JSON form.
Result<Literal> ValueFromJson(const SchemaField& field, const Json& json) {
  const Json* value = &json;
  if (json.is_object() && json.contains("value")) {
    value = &json["value"];
  }
  if (value->is_null()) {
    return Status::InvalidArgument(
        fmt::format("column {}: null is no value to compare with", field.name));
  }
  const bool counts =
      field.type.id == TypeId::kDate || field.type.id == TypeId::kTime ||
      field.type.id == TypeId::kTimestamp || field.type.id == TypeId::kTimestampTz ||
      field.type.id == TypeId::kTimestampNs || field.type.id == TypeId::kTimestampTzNs;
  if (counts && value->is_number_integer()) {
    return Literal::Long(value->get<int64_t>());
  }
  Result<Literal> literal = field.type.id == TypeId::kDecimal && value->is_number()
                                ? LiteralFromJson(field.type, Json(value->dump()))
                                : LiteralFromJson(field.type, *value);
  return literal.ok() ? std::move(literal)
                      : literal.status().WithContext("filter on column " + field.name);
}

class FilterReader {
 public:
  explicit FilterReader(const FilterSchemas& schemas) : schemas_(schemas) {}

  Result<Expression> Read(const Json& json, bool negated, int level) const {
    if (level > kLevelsMax) {
      return Status::InvalidArgument(fmt::format("the filter has more than {} levels", kLevelsMax));
    }
    if (json.is_boolean()) {
      return json.get<bool>() != negated ? Expression::True() : Expression::False();
    }
    TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "filter"));
    TARN_ASSIGN_OR_RETURN(const std::string type, object.GetString("type"));
    if (type == "true" || type == "false") {
      return (type == "true") != negated ? Expression::True() : Expression::False();
    }
    if (type == "not") {
      TARN_ASSIGN_OR_RETURN(const Json* child, object.Get("child"));
      return Read(*child, !negated, level + 1);
    }
    if (type == "and" || type == "or") {
      TARN_ASSIGN_OR_RETURN(const Json* left, object.Get("left"));
      TARN_ASSIGN_OR_RETURN(const Json* right, object.Get("right"));
      TARN_ASSIGN_OR_RETURN(Expression a, Read(*left, negated, level + 1));
      TARN_ASSIGN_OR_RETURN(Expression b, Read(*right, negated, level + 1));
      return (type == "and") != negated ? Expression::And(std::move(a), std::move(b))
                                        : Expression::Or(std::move(a), std::move(b));
    }
    for (const Word& word : kWords) {
      if (word.text == type) {
        return ReadPredicate(object, word.kind, negated ? word.negated : word.kind);
      }
    }
    return Status::InvalidArgument(fmt::format("filter: unknown type \"{}\"", type));
  }

 private:
  // The name that a term refers to; empty for a transform.
  static Result<std::string> NameOf(const Json& term) {
    if (term.is_string()) {
      return term.get<std::string>();
    }
    TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(term, "filter term"));
    TARN_ASSIGN_OR_RETURN(const std::string type, object.GetString("type"));
    if (type == "transform") {
      return std::string();
    }
    if (type != "reference") {
      return Status::InvalidArgument(fmt::format("filter: unknown type of a term \"{}\"", type));
    }
    return object.GetString("term");
  }

  Result<Expression> ReadPredicate(const JsonObject& object, ExpressionKind kind,
                                   ExpressionKind wanted) const {
    TARN_ASSIGN_OR_RETURN(const Json* term, object.Get("term"));
    TARN_ASSIGN_OR_RETURN(const std::string name, NameOf(*term));
    if (name.empty()) {
      return Expression::True();
    }
    const SchemaField* field = schemas_.named.FindField(name, schemas_.rule);
    if (field == nullptr) {
      return Status::InvalidArgument(fmt::format("filter: there is no column {}", name));
    }
    Expression predicate{.kind = wanted};
    if (!IsUnary(kind)) {
      if (field->type.is_nested()) {
        return Status::InvalidArgument(
            fmt::format("filter: column {} is of type {}, which compares with nothing", name,
                        FormatType(field->type)));
      }
      TARN_ASSIGN_OR_RETURN(predicate.values, ValuesOf(object, kind, *field));
      predicate.value_type = field->type;
    }
    const SchemaField* planned = schemas_.planned.FindField(field->id);
    if (planned == nullptr || planned->type.is_nested() || schemas_.planned.ParentOf(field->id)) {
      return Expression::True();
    }
    predicate.column = planned->name;
    // To some clients nulls are unequal to everything, to SQL they are not: they may match.
    const bool unequal = wanted == ExpressionKind::kNotEqual || wanted == ExpressionKind::kNotIn ||
                         wanted == ExpressionKind::kNotStartsWith;
    return unequal ? Expression::Or(std::move(predicate), Expression::IsNull(planned->name))
                   : predicate;
  }

  static Result<std::vector<Literal>> ValuesOf(const JsonObject& object, ExpressionKind kind,
                                               const SchemaField& field) {
    std::vector<Literal> values;
    if (kind != ExpressionKind::kIn && kind != ExpressionKind::kNotIn) {
      TARN_ASSIGN_OR_RETURN(const Json* value, object.Get("value"));
      TARN_ASSIGN_OR_RETURN(Literal literal, ValueFromJson(field, *value));
      values.push_back(std::move(literal));
      return values;
    }
    TARN_RETURN_IF_ERROR(object.Get("values"));
    TARN_ASSIGN_OR_RETURN(const std::vector<const Json*> given, object.FindArray("values"));
    if (given.empty() || given.size() > kValuesMax) {
      return Status::InvalidArgument(fmt::format("filter on column {}: 1 to {} values, found {}",
                                                 field.name, kValuesMax, given.size()));
    }
    for (const Json* value : given) {
      TARN_ASSIGN_OR_RETURN(Literal literal, ValueFromJson(field, *value));
      values.push_back(std::move(literal));
    }
    return values;
  }

  const FilterSchemas& schemas_;
};

}  // namespace

Result<Expression> FilterFromJson(const Json& json, const FilterSchemas& schemas) {
  return FilterReader(schemas).Read(json, false, 0);
}

}  // namespace tarn::iceberg
