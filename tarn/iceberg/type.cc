#include "tarn/iceberg/type.h"

#include <array>
#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tarn::iceberg {
namespace {

struct NamedType {
  std::string_view name;
  TypeId id;
};
constexpr std::array<NamedType, 17> kNamedTypes{{
    {"boolean", TypeId::kBoolean},
    {"int", TypeId::kInt},
    {"long", TypeId::kLong},
    {"float", TypeId::kFloat},
    {"double", TypeId::kDouble},
    {"date", TypeId::kDate},
    {"time", TypeId::kTime},
    {"timestamp", TypeId::kTimestamp},
    {"timestamptz", TypeId::kTimestampTz},
    {"timestamp_ns", TypeId::kTimestampNs},
    {"timestamptz_ns", TypeId::kTimestampTzNs},
    {"string", TypeId::kString},
    {"uuid", TypeId::kUuid},
    {"binary", TypeId::kBinary},
    {"unknown", TypeId::kUnknown},
    {"variant", TypeId::kVariant},
    {"fixed", TypeId::kFixed},
}};

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') {
    text.remove_prefix(1);
  }
  while (!text.empty() && text.back() == ' ') {
    text.remove_suffix(1);
  }
  return text;
}

std::optional<int32_t> ParseInt(std::string_view text) {
  text = Trim(text);
  int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

Type Simple(TypeId id) {
  Type type;
  type.id = id;
  return type;
}

Status BadType(std::string_view text) {
  return Status::InvalidArgument(fmt::format("'{}' is not a type", text));
}

Result<Type> ParseDecimal(std::string_view text, std::string_view inner) {
  const size_t comma = inner.find(',');
  if (comma == std::string_view::npos) {
    return BadType(text);
  }
  const auto precision = ParseInt(inner.substr(0, comma));
  const auto scale = ParseInt(inner.substr(comma + 1));
  if (!precision || !scale) {
    return BadType(text);
  }
  if (*precision < 1 || *precision > 38 || *scale < 0 || *scale > *precision) {
    return Status::InvalidArgument(
        fmt::format("'{}': the precision must be 1 to 38, the scale 0 to the precision", text));
  }
  return Type::Decimal(*precision, *scale);
}

}  // namespace

Type Type::Boolean() { return Simple(TypeId::kBoolean); }
Type Type::Int() { return Simple(TypeId::kInt); }
Type Type::Long() { return Simple(TypeId::kLong); }
Type Type::Float() { return Simple(TypeId::kFloat); }
Type Type::Double() { return Simple(TypeId::kDouble); }
Type Type::Date() { return Simple(TypeId::kDate); }
Type Type::Time() { return Simple(TypeId::kTime); }
Type Type::Timestamp() { return Simple(TypeId::kTimestamp); }
Type Type::TimestampTz() { return Simple(TypeId::kTimestampTz); }
Type Type::String() { return Simple(TypeId::kString); }
Type Type::Uuid() { return Simple(TypeId::kUuid); }
Type Type::Binary() { return Simple(TypeId::kBinary); }

Type Type::Decimal(int32_t precision, int32_t scale) {
  Type type = Simple(TypeId::kDecimal);
  type.precision = precision;
  type.scale = scale;
  return type;
}

Type Type::Fixed(int32_t length) {
  Type type = Simple(TypeId::kFixed);
  type.length = length;
  return type;
}

Type Type::Struct(std::vector<SchemaField> fields) {
  Type type = Simple(TypeId::kStruct);
  type.fields = std::move(fields);
  return type;
}

Type Type::List(int32_t element_id, Type element, bool element_required) {
  Type type = Simple(TypeId::kList);
  type.fields.push_back({.id = element_id,
                         .name = "element",
                         .required = element_required,
                         .type = std::move(element)});
  return type;
}

Type Type::Map(int32_t key_id, Type key, int32_t value_id, Type value, bool value_required) {
  Type type = Simple(TypeId::kMap);
  type.fields.push_back({.id = key_id, .name = "key", .required = true, .type = std::move(key)});
  type.fields.push_back(
      {.id = value_id, .name = "value", .required = value_required, .type = std::move(value)});
  return type;
}

bool operator==(const Type& a, const Type& b) {
  return a.id == b.id && a.precision == b.precision && a.scale == b.scale && a.length == b.length &&
         a.text == b.text && a.fields == b.fields;
}

std::string FormatType(const Type& type) {
  switch (type.id) {
    case TypeId::kDecimal:
      return fmt::format("decimal({}, {})", type.precision, type.scale);
    case TypeId::kFixed:
      return fmt::format("fixed[{}]", type.length);
    case TypeId::kGeometry:
    case TypeId::kGeography:
      return type.text;
    case TypeId::kStruct: {
      std::string text = "struct<";
      for (const SchemaField& field : type.fields) {
        text += fmt::format("{}{}: {}: {} {}", text.back() == '<' ? "" : ", ", field.id, field.name,
                            field.required ? "required" : "optional", FormatType(field.type));
      }
      return text + ">";
    }
    case TypeId::kList:
      return fmt::format("list<{}>", FormatType(type.fields[0].type));
    case TypeId::kMap:
      return fmt::format("map<{}, {}>", FormatType(type.fields[0].type),
                         FormatType(type.fields[1].type));
    default:
      break;
  }
  for (const NamedType& named : kNamedTypes) {
    if (named.id == type.id) {
      return std::string(named.name);
    }
  }
  return "unknown";
}

Result<Type> ParsePrimitiveType(std::string_view text) {
  for (const NamedType& named : kNamedTypes) {
    if (named.name == text && named.id != TypeId::kFixed) {
      return Simple(named.id);
    }
  }
  for (const auto& [prefix, id] :
       {std::pair{"geometry", TypeId::kGeometry}, std::pair{"geography", TypeId::kGeography}}) {
    if (text.starts_with(prefix)) {
      Type type = Simple(id);
      type.text = std::string(text);
      return type;
    }
  }
  if (text.starts_with("decimal(") && text.ends_with(")")) {
    return ParseDecimal(text, text.substr(8, text.size() - 9));
  }
  if (text.starts_with("fixed[") && text.ends_with("]")) {
    const auto length = ParseInt(text.substr(6, text.size() - 7));
    if (!length || *length < 1) {
      return BadType(text);
    }
    return Type::Fixed(*length);
  }
  return BadType(text);
}

int32_t MinFormatVersion(const Type& type) {
  int32_t version = 1;
  switch (type.id) {
    case TypeId::kTimestampNs:
    case TypeId::kTimestampTzNs:
    case TypeId::kUnknown:
    case TypeId::kVariant:
    case TypeId::kGeometry:
    case TypeId::kGeography:
      version = 3;
      break;
    default:
      break;
  }
  for (const SchemaField& field : type.fields) {
    version = std::max(version, MinFormatVersion(field.type));
  }
  return version;
}

bool IsPromotionAllowed(const Type& from, const Type& to, int32_t format_version) {
  if (from == to) {
    return true;
  }
  switch (from.id) {
    case TypeId::kInt:
      return to.id == TypeId::kLong;
    case TypeId::kFloat:
      return to.id == TypeId::kDouble;
    case TypeId::kDecimal:
      return to.id == TypeId::kDecimal && to.scale == from.scale && to.precision >= from.precision;
    case TypeId::kDate:
      return format_version >= 3 && (to.id == TypeId::kTimestamp || to.id == TypeId::kTimestampNs);
    case TypeId::kUnknown:
      return format_version >= 3;
    default:
      return false;
  }
}

int32_t DecimalSizeBytes(int32_t precision) {
  static constexpr std::array<int32_t, 38> kSizes{
      1, 1, 2,  2,  3,  3,  4,  4,  4,  5,  5,  6,  6,  6,  7,  7,  8,  8,  9,
      9, 9, 10, 10, 11, 11, 11, 12, 12, 13, 13, 13, 14, 14, 15, 15, 16, 16, 16};
  return precision >= 1 && precision <= 38 ? kSizes[static_cast<size_t>(precision - 1)] : 16;
}

Json TypeToJson(const Type& type) {
  switch (type.id) {
    case TypeId::kStruct: {
      Json fields = Json::array();
      for (const SchemaField& field : type.fields) {
        fields.push_back(SchemaFieldToJson(field));
      }
      return {{"type", "struct"}, {"fields", std::move(fields)}};
    }
    case TypeId::kList: {
      const SchemaField& element = type.fields[0];
      return {{"type", "list"},
              {"element-id", element.id},
              {"element", TypeToJson(element.type)},
              {"element-required", element.required}};
    }
    case TypeId::kMap: {
      const SchemaField& key = type.fields[0];
      const SchemaField& value = type.fields[1];
      return {{"type", "map"},
              {"key-id", key.id},
              {"key", TypeToJson(key.type)},
              {"value-id", value.id},
              {"value", TypeToJson(value.type)},
              {"value-required", value.required}};
    }
    default:
      return FormatType(type);
  }
}

Result<Type> TypeFromJson(const Json& json) {
  if (json.is_string()) {
    return ParsePrimitiveType(json.get_ref<const std::string&>());
  }
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "type"));
  TARN_ASSIGN_OR_RETURN(const std::string kind, object.GetString("type"));
  if (kind == "struct") {
    TARN_RETURN_IF_ERROR(object.Get("fields"));
    TARN_ASSIGN_OR_RETURN(const auto elements, object.FindArray("fields"));
    std::vector<SchemaField> fields;
    for (const Json* element : elements) {
      TARN_ASSIGN_OR_RETURN(SchemaField field, SchemaFieldFromJson(*element));
      fields.push_back(std::move(field));
    }
    return Type::Struct(std::move(fields));
  }
  if (kind == "list") {
    TARN_ASSIGN_OR_RETURN(const int32_t id, object.GetInt("element-id"));
    TARN_ASSIGN_OR_RETURN(const Json* element_json, object.Get("element"));
    TARN_ASSIGN_OR_RETURN(Type element, TypeFromJson(*element_json));
    TARN_ASSIGN_OR_RETURN(const bool required, object.GetBool("element-required"));
    return Type::List(id, std::move(element), required);
  }
  if (kind == "map") {
    TARN_ASSIGN_OR_RETURN(const int32_t key_id, object.GetInt("key-id"));
    TARN_ASSIGN_OR_RETURN(const Json* key_json, object.Get("key"));
    TARN_ASSIGN_OR_RETURN(Type key, TypeFromJson(*key_json));
    TARN_ASSIGN_OR_RETURN(const int32_t value_id, object.GetInt("value-id"));
    TARN_ASSIGN_OR_RETURN(const Json* value_json, object.Get("value"));
    TARN_ASSIGN_OR_RETURN(Type value, TypeFromJson(*value_json));
    TARN_ASSIGN_OR_RETURN(const bool required, object.GetBool("value-required"));
    return Type::Map(key_id, std::move(key), value_id, std::move(value), required);
  }
  return BadType(kind);
}

Json SchemaFieldToJson(const SchemaField& field) {
  Json json = {{"id", field.id},
               {"name", field.name},
               {"required", field.required},
               {"type", TypeToJson(field.type)}};
  if (!field.doc.empty()) {
    json["doc"] = field.doc;
  }
  if (field.initial_default) {
    json["initial-default"] = Json::parse(*field.initial_default, nullptr, false);
  }
  if (field.write_default) {
    json["write-default"] = Json::parse(*field.write_default, nullptr, false);
  }
  return json;
}

Result<SchemaField> SchemaFieldFromJson(const Json& json) {
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "schema field"));
  SchemaField field;
  TARN_ASSIGN_OR_RETURN(field.id, object.GetInt("id"));
  TARN_ASSIGN_OR_RETURN(field.name, object.GetString("name"));
  TARN_ASSIGN_OR_RETURN(field.required, object.GetBool("required"));
  TARN_ASSIGN_OR_RETURN(const Json* type, object.Get("type"));
  Result<Type> parsed = TypeFromJson(*type);
  if (!parsed.ok()) {
    return parsed.status().WithContext(fmt::format("column '{}'", field.name));
  }
  field.type = std::move(parsed).value();
  TARN_ASSIGN_OR_RETURN(const std::optional<std::string> doc, object.FindString("doc"));
  field.doc = doc.value_or("");
  if (const Json* value = object.Find("initial-default")) {
    field.initial_default = DumpJson(*value);
  }
  if (const Json* value = object.Find("write-default")) {
    field.write_default = DumpJson(*value);
  }
  return field;
}

}  // namespace tarn::iceberg
