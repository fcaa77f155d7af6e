#include "tarn/format/column_set.h"

#include <nlohmann/json.hpp>

#include "tarn/format/column_node.h"

namespace tarn::format {

namespace {

Field FieldOfState(const ColumnState& state) { return FieldOf(*NodeOf(state)); }

ColumnState StateOfField(const Field& field) {
  ColumnState state{.name = field.name, .type = field.type};
  state.type.children.clear();
  // What the values were is unknown, hence the careful assumptions.
  switch (field.type.kind) {
    case FieldKind::kLong:
      state.exact_in_double = false;
      state.integer_digits = 19;
      break;
    case FieldKind::kInteger:
    case FieldKind::kShort:
    case FieldKind::kByte:
      state.integer_digits = 10;
      break;
    case FieldKind::kDecimal:
      state.exact_in_double = false;
      state.integer_digits = field.type.precision - field.type.scale;
      state.fraction_digits = field.type.scale;
      break;
    case FieldKind::kFloat:
    case FieldKind::kDouble:
      state.integer_digits = 39;
      state.fraction_digits = 39;
      break;
    default:
      break;
  }
  for (const Field& child : field.type.children) {
    state.children.push_back(StateOfField(child));
  }
  return state;
}

nlohmann::json ToJson(const std::vector<ColumnState>& states) {
  auto array = nlohmann::json::array();
  for (const ColumnState& state : states) {
    nlohmann::json object = {
        {"field", nlohmann::json::parse(EncodeFields({FieldOfState(state)}))[0]}};
    if (state.type.kind == FieldKind::kStruct && state.children.empty()) {
      object["field"]["type"] = "STRUCT";
      object["field"].erase("detail");
    }
    object["field"].erase("children");
    if (state.declared) {
      object["declared"] = true;
    }
    if (!state.exact_in_double) {
      object["exact_in_double"] = false;
    }
    if (state.integer_digits != 0) {
      object["integer_digits"] = state.integer_digits;
    }
    if (state.fraction_digits != 0) {
      object["fraction_digits"] = state.fraction_digits;
    }
    if (!state.children.empty()) {
      object["children"] = ToJson(state.children);
    }
    array.push_back(std::move(object));
  }
  return array;
}

Status Bad(std::string_view what) {
  return Status::InvalidArgument("column set: " + std::string(what));
}

Result<std::vector<ColumnState>> FromJson(const nlohmann::json& array, int depth) {
  if (!array.is_array() || depth > 600) {
    return Bad("an array is expected");
  }
  std::vector<ColumnState> states;
  for (const auto& object : array) {
    if (!object.is_object() || !object.contains("field") || !object["field"].is_object()) {
      return Bad("each column needs a field");
    }
    ColumnState state;
    if (object.contains("children")) {
      TARN_ASSIGN_OR_RETURN(state.children, FromJson(object["children"], depth + 1));
    }
    auto shape = object["field"];
    const std::string kind = shape.value("type", "");
    const size_t wanted = kind == "ARRAY" ? 1 : kind == "MAP" ? 2 : state.children.size();
    if (wanted != state.children.size()) {
      return Bad("children of an array or map");
    }
    shape["children"] = nlohmann::json::array();
    for (size_t i = 0; i < state.children.size(); ++i) {
      shape["children"].push_back({{"name", "x"}, {"type", "STRING"}});
    }
    TARN_ASSIGN_OR_RETURN(std::vector<Field> fields,
                          DecodeFields(nlohmann::json::array({shape}).dump()));
    state.name = fields[0].name;
    state.type = fields[0].type;
    state.type.children.clear();
    const auto number = [&](const char* key) {
      return object.contains(key) && object[key].is_number_integer() ? object[key].get<int>() : 0;
    };
    state.declared = object.contains("declared") && object["declared"] == true;
    state.exact_in_double =
        !object.contains("exact_in_double") || object["exact_in_double"] != false;
    state.integer_digits = number("integer_digits");
    state.fraction_digits = number("fraction_digits");
    states.push_back(std::move(state));
  }
  return states;
}

}  // namespace

std::vector<Field> FieldsOf(const ColumnSet& set) {
  std::vector<Field> fields;
  fields.reserve(set.columns.size());
  for (const ColumnState& state : set.columns) {
    fields.push_back(FieldOfState(state));
  }
  return fields;
}

ColumnSet ColumnSetOf(const std::vector<Field>& fields) {
  ColumnSet set;
  for (const Field& field : fields) {
    set.columns.push_back(StateOfField(field));
  }
  return set;
}

std::string EncodeColumnSet(const ColumnSet& set) {
  return nlohmann::json{{"version", 1}, {"columns", ToJson(set.columns)}}.dump();
}

Result<ColumnSet> DecodeColumnSet(std::string_view json) {
  const auto parsed = nlohmann::json::parse(json, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("version") || parsed["version"] != 1 ||
      !parsed.contains("columns")) {
    return Bad("not JSON of version 1");
  }
  ColumnSet set;
  TARN_ASSIGN_OR_RETURN(set.columns, FromJson(parsed["columns"], 0));
  return set;
}

}  // namespace tarn::format
