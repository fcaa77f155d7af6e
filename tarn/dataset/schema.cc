#include "tarn/dataset/schema.h"

#include <array>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "tarn/base/json_text.h"

namespace tarn::dataset {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kDepthMax = 64;
constexpr int kPrecisionMax = 38;

constexpr std::array<std::string_view, 15> kTypeNames = {
    "BOOLEAN", "BYTE", "SHORT", "INTEGER", "LONG",   "FLOAT", "DOUBLE",   "DECIMAL",
    "STRING",  "MAP",  "ARRAY", "STRUCT",  "BINARY", "DATE",  "TIMESTAMP"};

Status Invalid(std::string_view kind, const std::string& message) {
  return Status::InvalidArgument("schema is not valid: " + message)
      .WithReason("InvalidSchema", JsonObject({{"errorType", kind}, {"message", message}}));
}

// The member, or null where it is absent or JSON null.
const Json* Member(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

Result<std::string> Text(const Json& value, const std::string& where, const char* name) {
  if (!value.is_string()) {
    return Invalid("WRONG_TYPE", where + ": " + name + " must be a string");
  }
  return value.get<std::string>();
}

Result<FieldType> TypeOf(const Json& object, const std::string& where) {
  const Json* const type = Member(object, "type");
  if (type == nullptr) {
    return Invalid("MISSING_TYPE", where + " has no type");
  }
  TARN_ASSIGN_OR_RETURN(const std::string name, Text(*type, where, "type"));
  for (size_t i = 0; i < kTypeNames.size(); ++i) {
    if (kTypeNames[i] == name) {
      return static_cast<FieldType>(i);
    }
  }
  return Invalid("UNKNOWN_TYPE", where + " has the unknown type " + JsonString(name));
}

Result<int> Number(const Json& object, const std::string& where, const char* name, int low,
                   int high) {
  const Json* const value = Member(object, name);
  if (value == nullptr || !value->is_number_integer() || *value < low || *value > high) {
    return Invalid("INVALID_DECIMAL", where + ": DECIMAL needs " + name + " from " +
                                          std::to_string(low) + " to " + std::to_string(high));
  }
  return value->get<int>();
}

Result<Field> ReadField(const Json& object, const std::string& where, int depth);

Result<Field> ReadSubtype(const Json& object, const std::string& where, const char* name,
                          int depth) {
  const Json* const child = Member(object, name);
  if (child == nullptr) {
    return Invalid("MISSING_SUBTYPE", where + " needs " + name);
  }
  return ReadField(*child, where + "." + name, depth + 1);
}

// The fields of a list, names unique among them. Top-level columns and struct members need names.
Result<std::vector<Field>> ReadFields(const Json& list, const std::string& where, int depth) {
  std::vector<Field> fields;
  std::set<std::string> names;
  for (const Json& item : list) {
    const std::string place = where + "[" + std::to_string(fields.size()) + "]";
    TARN_ASSIGN_OR_RETURN(Field field, ReadField(item, place, depth));
    if (field.name.empty()) {
      return Invalid("MISSING_NAME", place + " has no name");
    }
    if (!names.insert(field.name).second) {
      return Invalid("DUPLICATE_NAME", where + " has two fields " + JsonString(field.name));
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

Status ReadChildren(const Json& object, const std::string& where, int depth, Field& field) {
  switch (field.type) {
    case FieldType::kDecimal: {
      TARN_ASSIGN_OR_RETURN(field.precision, Number(object, where, "precision", 1, kPrecisionMax));
      TARN_ASSIGN_OR_RETURN(field.scale, Number(object, where, "scale", 0, field.precision));
      return Status::Ok();
    }
    case FieldType::kArray: {
      TARN_ASSIGN_OR_RETURN(Field element, ReadSubtype(object, where, "arraySubtype", depth));
      field.children.push_back(std::move(element));
      return Status::Ok();
    }
    case FieldType::kMap: {
      TARN_ASSIGN_OR_RETURN(Field key, ReadSubtype(object, where, "mapKeyType", depth));
      TARN_ASSIGN_OR_RETURN(Field value, ReadSubtype(object, where, "mapValueType", depth));
      field.children.push_back(std::move(key));
      field.children.push_back(std::move(value));
      return Status::Ok();
    }
    case FieldType::kStruct: {
      const Json* const members = Member(object, "subSchemas");
      if (members == nullptr || !members->is_array() || members->empty()) {
        return Invalid("MISSING_SUBTYPE", where + " needs subSchemas");
      }
      TARN_ASSIGN_OR_RETURN(field.children, ReadFields(*members, where + ".subSchemas", depth + 1));
      return Status::Ok();
    }
    default:
      return Status::Ok();
  }
}

Result<Field> ReadField(const Json& object, const std::string& where, int depth) {
  if (depth > kDepthMax) {
    return Invalid("TOO_DEEP", where + " is nested deeper than " + std::to_string(kDepthMax));
  }
  if (!object.is_object()) {
    return Invalid("WRONG_TYPE", where + " must be an object");
  }
  Field field;
  TARN_ASSIGN_OR_RETURN(field.type, TypeOf(object, where));
  if (const Json* const name = Member(object, "name")) {
    TARN_ASSIGN_OR_RETURN(field.name, Text(*name, where, "name"));
  }
  if (const Json* const nullable = Member(object, "nullable")) {
    if (!nullable->is_boolean()) {
      return Invalid("WRONG_TYPE", where + ": nullable must be true or false");
    }
    field.nullable = nullable->get<bool>();
  }
  if (const Json* const type_class = Member(object, "userDefinedTypeClass")) {
    TARN_ASSIGN_OR_RETURN(field.user_defined_type_class,
                          Text(*type_class, where, "userDefinedTypeClass"));
  }
  if (const Json* const metadata = Member(object, "customMetadata")) {
    if (!metadata->is_object()) {
      return Invalid("WRONG_TYPE", where + ": customMetadata must be an object");
    }
    field.custom_metadata_json = metadata->dump();
  }
  TARN_RETURN_IF_ERROR(ReadChildren(object, where, depth, field));
  return field;
}

}  // namespace

std::string_view FieldTypeName(FieldType type) { return kTypeNames.at(static_cast<size_t>(type)); }

Result<DatasetSchema> ParseDatasetSchema(std::string_view json) {
  const Json root = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) {
    return Invalid("NOT_JSON", "it is not well-formed JSON");
  }
  if (!root.is_object()) {
    return Invalid("WRONG_TYPE", "it must be an object");
  }
  const Json* const list = Member(root, "fieldSchemaList");
  if (list == nullptr || !list->is_array()) {
    return Invalid("MISSING_FIELDS", "it needs the list fieldSchemaList");
  }
  DatasetSchema schema;
  TARN_ASSIGN_OR_RETURN(schema.fields, ReadFields(*list, "fieldSchemaList", 1));
  if (const Json* const reader = Member(root, "dataFrameReaderClass")) {
    TARN_ASSIGN_OR_RETURN(schema.reader_class, Text(*reader, "schema", "dataFrameReaderClass"));
  }
  if (const Json* const metadata = Member(root, "customMetadata")) {
    if (!metadata->is_object()) {
      return Invalid("WRONG_TYPE", "customMetadata must be an object");
    }
    schema.custom_metadata_json = metadata->dump();
  }
  schema.json = root.dump();
  return schema;
}

}  // namespace tarn::dataset
