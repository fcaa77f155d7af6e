#include "tarn/format/field_type.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <arrow/api.h>
#include <arrow/extension/uuid.h>
#include <nlohmann/json.hpp>

#include "tarn/base/check.h"

namespace tarn::format {

namespace {

struct NamedKind {
  std::string_view name;
  FieldKind kind;
};
constexpr std::array<NamedKind, 15> kKindNames = {{{"BOOLEAN", FieldKind::kBoolean},
                                                   {"BYTE", FieldKind::kByte},
                                                   {"SHORT", FieldKind::kShort},
                                                   {"INTEGER", FieldKind::kInteger},
                                                   {"LONG", FieldKind::kLong},
                                                   {"FLOAT", FieldKind::kFloat},
                                                   {"DOUBLE", FieldKind::kDouble},
                                                   {"DECIMAL", FieldKind::kDecimal},
                                                   {"STRING", FieldKind::kString},
                                                   {"MAP", FieldKind::kMap},
                                                   {"ARRAY", FieldKind::kArray},
                                                   {"STRUCT", FieldKind::kStruct},
                                                   {"BINARY", FieldKind::kBinary},
                                                   {"DATE", FieldKind::kDate},
                                                   {"TIMESTAMP", FieldKind::kTimestamp}}};

constexpr std::array<std::string_view, 5> kDetailNames = {"", "untyped", "wall_clock", "time",
                                                          "uuid"};

int IntegerRank(FieldKind kind) {
  switch (kind) {
    case FieldKind::kByte:
      return 1;
    case FieldKind::kShort:
      return 2;
    case FieldKind::kInteger:
      return 3;
    case FieldKind::kLong:
      return 4;
    default:
      return 0;
  }
}

bool IsReal(FieldKind kind) { return kind == FieldKind::kFloat || kind == FieldKind::kDouble; }

FieldType Decimal(int precision, int scale) {
  return {.kind = FieldKind::kDecimal, .precision = precision, .scale = scale};
}

// Digits an integer kind needs.
int IntegerDigits(FieldKind kind) {
  static constexpr std::array<int, 5> kDigits = {0, 3, 5, 10, 19};
  return kDigits[static_cast<size_t>(IntegerRank(kind))];
}

FieldType WidenDecimal(const FieldType& a, const FieldType& b) {
  const auto integer_digits = [](const FieldType& type) {
    return type.kind == FieldKind::kDecimal ? type.precision - type.scale
                                            : IntegerDigits(type.kind);
  };
  const int scale = std::max(a.scale, b.scale);
  const int precision = std::max(integer_digits(a), integer_digits(b)) + scale;
  return precision <= 38 ? Decimal(precision, scale) : FieldType{};
}

bool EqualFolded(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    const auto fold = [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; };
    return fold(x) == fold(y);
  });
}

nlohmann::json ToJson(const std::vector<Field>& fields) {
  auto array = nlohmann::json::array();
  for (const Field& field : fields) {
    nlohmann::json object = {{"name", field.name},
                             {"type", FieldKindName(field.type.kind)},
                             {"nullable", field.nullable}};
    if (field.type.detail != FieldDetail::kNone) {
      object["detail"] = kDetailNames[static_cast<size_t>(field.type.detail)];
    }
    if (field.type.kind == FieldKind::kDecimal) {
      object["precision"] = field.type.precision;
      object["scale"] = field.type.scale;
    }
    if (!field.type.children.empty()) {
      object["children"] = ToJson(field.type.children);
    }
    array.push_back(std::move(object));
  }
  return array;
}

Result<std::vector<Field>> FromJson(const nlohmann::json& array, int depth) {
  const auto bad = [](std::string_view what) {
    return Status::InvalidArgument("fields of a schema: " + std::string(what));
  };
  if (!array.is_array() || depth > 600) {
    return bad("an array is expected");
  }
  std::vector<Field> fields;
  for (const auto& object : array) {
    if (!object.is_object() || !object.contains("name") || !object["name"].is_string() ||
        !object.contains("type") || !object["type"].is_string()) {
      return bad("each needs a name and a type");
    }
    Field field{.name = object["name"].get<std::string>()};
    TARN_ASSIGN_OR_RETURN(field.type.kind, ParseFieldKind(object["type"].get<std::string>()));
    const auto number = [&](const char* key) {
      return object.contains(key) && object[key].is_number_integer() ? object[key].get<int>() : 0;
    };
    field.nullable = !object.contains("nullable") || object["nullable"] != false;
    field.type.precision = number("precision");
    field.type.scale = number("scale");
    if (object.contains("detail")) {
      const auto found = std::find(kDetailNames.begin(), kDetailNames.end(),
                                   object["detail"].dump().substr(
                                       1, std::max<size_t>(object["detail"].dump().size(), 2) - 2));
      if (found == kDetailNames.end()) {
        return bad("unknown detail of " + field.name);
      }
      field.type.detail = static_cast<FieldDetail>(found - kDetailNames.begin());
    }
    if (field.type.kind == FieldKind::kDecimal &&
        (field.type.precision < 1 || field.type.precision > 38 || field.type.scale < 0 ||
         field.type.scale > field.type.precision)) {
      return bad("precision or scale of " + field.name);
    }
    if (object.contains("children")) {
      TARN_ASSIGN_OR_RETURN(field.type.children, FromJson(object["children"], depth + 1));
    }
    const size_t children = field.type.children.size();
    if ((field.type.kind == FieldKind::kArray && children != 1) ||
        (field.type.kind == FieldKind::kMap && children != 2)) {
      return bad("children of " + field.name);
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

}  // namespace

std::string_view FieldKindName(FieldKind kind) {
  for (const NamedKind& named : kKindNames) {
    if (named.kind == kind) {
      return named.name;
    }
  }
  return "STRING";
}

Result<FieldKind> ParseFieldKind(std::string_view name) {
  for (const NamedKind& named : kKindNames) {
    if (named.name == name) {
      return named.kind;
    }
  }
  return Status::InvalidArgument("unknown field type " + std::string(name));
}

std::shared_ptr<arrow::DataType> ToArrowType(const FieldType& type) {
  switch (type.kind) {
    case FieldKind::kBoolean:
      return arrow::boolean();
    case FieldKind::kByte:
      return arrow::int8();
    case FieldKind::kShort:
      return arrow::int16();
    case FieldKind::kInteger:
      return arrow::int32();
    case FieldKind::kLong:
      return type.detail == FieldDetail::kTime ? arrow::time64(arrow::TimeUnit::MICRO)
                                               : arrow::int64();
    case FieldKind::kFloat:
      return arrow::float32();
    case FieldKind::kDouble:
      return arrow::float64();
    case FieldKind::kDecimal:
      return arrow::decimal128(type.precision, type.scale);
    case FieldKind::kString:
      return type.detail == FieldDetail::kUuid ? arrow::extension::uuid() : arrow::utf8();
    case FieldKind::kBinary:
      return arrow::binary();
    case FieldKind::kDate:
      return arrow::date32();
    case FieldKind::kTimestamp:
      return type.detail == FieldDetail::kWallClock
                 ? arrow::timestamp(arrow::TimeUnit::MICRO)
                 : arrow::timestamp(arrow::TimeUnit::MICRO, "UTC");
    case FieldKind::kStruct: {
      arrow::FieldVector members;
      for (const Field& child : type.children) {
        members.push_back(ToArrowField(child));
      }
      return arrow::struct_(std::move(members));
    }
    case FieldKind::kArray:
      TARN_CHECK(type.children.size() == 1);
      return arrow::list(ToArrowField(type.children[0])->WithName("element"));
    case FieldKind::kMap:
      TARN_CHECK(type.children.size() == 2);
      return arrow::map(ToArrowType(type.children[0].type),
                        ToArrowField(type.children[1])->WithName("value"));
  }
  return arrow::utf8();
}

std::shared_ptr<arrow::Field> ToArrowField(const Field& field) {
  auto made = arrow::field(field.name, ToArrowType(field.type), true);
  if (field.type.detail == FieldDetail::kUntyped) {
    made = made->WithMetadata(arrow::key_value_metadata({"tarn.untyped"}, {"true"}));
  }
  return made;
}

std::shared_ptr<arrow::Schema> ToArrowSchema(const std::vector<Field>& fields) {
  arrow::FieldVector columns;
  columns.reserve(fields.size());
  for (const Field& field : fields) {
    columns.push_back(ToArrowField(field));
  }
  return arrow::schema(std::move(columns));
}

namespace {

Result<Field> FromArrowField(const arrow::Field& field) {
  Field result{.name = field.name(), .nullable = field.nullable()};
  TARN_ASSIGN_OR_RETURN(result.type, FromArrowType(*field.type()));
  if (field.metadata() != nullptr && field.metadata()->Contains("tarn.untyped")) {
    result.type.detail = FieldDetail::kUntyped;
  }
  return result;
}

Result<FieldType> FromNestedType(const arrow::DataType& type) {
  FieldType result;
  switch (type.id()) {
    case arrow::Type::STRUCT:
      result.kind = FieldKind::kStruct;
      break;
    case arrow::Type::MAP:
      result.kind = FieldKind::kMap;
      for (const auto& child : type.field(0)->type()->fields()) {
        TARN_ASSIGN_OR_RETURN(Field field, FromArrowField(*child));
        field.name = result.children.empty() ? "key" : "value";
        result.children.push_back(std::move(field));
      }
      return result;
    case arrow::Type::LIST:
    case arrow::Type::LARGE_LIST:
    case arrow::Type::FIXED_SIZE_LIST:
    case arrow::Type::LIST_VIEW:
    case arrow::Type::LARGE_LIST_VIEW:
      result.kind = FieldKind::kArray;
      break;
    default:
      return Status::Unimplemented("Arrow type " + type.ToString() + " has no dataset type");
  }
  for (const auto& child : type.fields()) {
    TARN_ASSIGN_OR_RETURN(Field field, FromArrowField(*child));
    if (result.kind == FieldKind::kArray) {
      field.name = "element";
    }
    result.children.push_back(std::move(field));
  }
  return result;
}

FieldType Plain(FieldKind kind, FieldDetail detail = FieldDetail::kNone) {
  return {.kind = kind, .detail = detail};
}

Result<FieldType> FromDecimalType(const arrow::DataType& type) {
  const auto& decimal = static_cast<const arrow::DecimalType&>(type);
  if (decimal.precision() > 38 || decimal.scale() < 0) {
    return Status::Unimplemented("decimals beyond 38 digits: " + type.ToString());
  }
  return Decimal(decimal.precision(), decimal.scale());
}

}  // namespace

Result<FieldType> FromArrowType(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::NA:
      return Plain(FieldKind::kString, FieldDetail::kUntyped);
    case arrow::Type::BOOL:
      return Plain(FieldKind::kBoolean);
    case arrow::Type::INT8:
      return Plain(FieldKind::kByte);
    case arrow::Type::UINT8:
    case arrow::Type::INT16:
      return Plain(FieldKind::kShort);
    case arrow::Type::UINT16:
    case arrow::Type::INT32:
      return Plain(FieldKind::kInteger);
    case arrow::Type::UINT32:
    case arrow::Type::INT64:
    case arrow::Type::DURATION:
      return Plain(FieldKind::kLong);
    case arrow::Type::UINT64:
      return Decimal(20, 0);
    case arrow::Type::HALF_FLOAT:
    case arrow::Type::FLOAT:
      return Plain(FieldKind::kFloat);
    case arrow::Type::DOUBLE:
      return Plain(FieldKind::kDouble);
    case arrow::Type::DECIMAL32:
    case arrow::Type::DECIMAL64:
    case arrow::Type::DECIMAL128:
    case arrow::Type::DECIMAL256:
      return FromDecimalType(type);
    case arrow::Type::STRING:
    case arrow::Type::LARGE_STRING:
    case arrow::Type::STRING_VIEW:
      return Plain(FieldKind::kString);
    case arrow::Type::BINARY:
    case arrow::Type::LARGE_BINARY:
    case arrow::Type::BINARY_VIEW:
    case arrow::Type::FIXED_SIZE_BINARY:
      return Plain(FieldKind::kBinary);
    case arrow::Type::DATE32:
    case arrow::Type::DATE64:
      return Plain(FieldKind::kDate);
    case arrow::Type::TIME32:
    case arrow::Type::TIME64:
      return Plain(FieldKind::kLong, FieldDetail::kTime);
    case arrow::Type::TIMESTAMP:
      return Plain(FieldKind::kTimestamp,
                   static_cast<const arrow::TimestampType&>(type).timezone().empty()
                       ? FieldDetail::kWallClock
                       : FieldDetail::kNone);
    case arrow::Type::DICTIONARY:
      return FromArrowType(*static_cast<const arrow::DictionaryType&>(type).value_type());
    case arrow::Type::EXTENSION: {
      const auto& extension = static_cast<const arrow::ExtensionType&>(type);
      return extension.extension_name() == "arrow.uuid"
                 ? Plain(FieldKind::kString, FieldDetail::kUuid)
                 : FromArrowType(*extension.storage_type());
    }
    default:
      return FromNestedType(type);
  }
}

Result<std::vector<Field>> FromArrowSchema(const arrow::Schema& schema) {
  std::vector<Field> fields;
  for (const auto& column : schema.fields()) {
    TARN_ASSIGN_OR_RETURN(Field field, FromArrowField(*column));
    fields.push_back(std::move(field));
  }
  return fields;
}

std::string EncodeFields(const std::vector<Field>& fields) { return ToJson(fields).dump(); }

Result<std::vector<Field>> DecodeFields(std::string_view json) {
  const auto parsed = nlohmann::json::parse(json, nullptr, false);
  if (parsed.is_discarded()) {
    return Status::InvalidArgument("fields of a schema: not JSON");
  }
  return FromJson(parsed, 0);
}

FieldType WidenType(const FieldType& a, const FieldType& b) {
  if (a == b || b.detail == FieldDetail::kUntyped) {
    return a;
  }
  if (a.detail == FieldDetail::kUntyped) {
    return b;
  }
  const bool plain = a.detail == FieldDetail::kNone && b.detail == FieldDetail::kNone;
  const int rank_a = plain ? IntegerRank(a.kind) : 0;
  const int rank_b = plain ? IntegerRank(b.kind) : 0;
  if (rank_a > 0 && rank_b > 0) {
    return rank_a > rank_b ? a : b;
  }
  if ((rank_a > 0 || IsReal(a.kind)) && (rank_b > 0 || IsReal(b.kind))) {
    return Plain(FieldKind::kDouble);
  }
  if ((rank_a > 0 || a.kind == FieldKind::kDecimal) &&
      (rank_b > 0 || b.kind == FieldKind::kDecimal)) {
    return WidenDecimal(a, b);
  }
  if (a.kind != b.kind || a.detail != b.detail) {
    return {};
  }
  FieldType result = a;
  if (a.kind == FieldKind::kArray || a.kind == FieldKind::kMap) {
    for (size_t i = 0; i < a.children.size(); ++i) {
      result.children[i].type = WidenType(a.children[i].type, b.children[i].type);
    }
  } else if (a.kind == FieldKind::kStruct) {
    for (const Field& member : b.children) {
      const auto same =
          std::find_if(result.children.begin(), result.children.end(),
                       [&](const Field& field) { return EqualFolded(field.name, member.name); });
      if (same == result.children.end()) {
        result.children.push_back(member);
      } else {
        same->type = WidenType(same->type, member.type);
      }
    }
  }
  return result;
}

}  // namespace tarn::format
