#include "tarn/iceberg/codec/name_mapping.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tarn::iceberg {
namespace {

Result<NameMapping> FromJson(const Json& json) {
  if (!json.is_array()) {
    return Status::InvalidArgument("name mapping: it must be an array of fields");
  }
  NameMapping mapping;
  std::set<std::string> seen;
  for (const Json& element : json) {
    TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(element, "name mapping"));
    MappedField field;
    TARN_ASSIGN_OR_RETURN(field.field_id, object.FindInt("field-id"));
    TARN_ASSIGN_OR_RETURN(field.names, object.FindStrings("names"));
    for (const std::string& name : field.names) {
      if (!seen.insert(name).second) {
        return Status::InvalidArgument(
            fmt::format("name mapping: two fields are called '{}'", name));
      }
    }
    if (const Json* fields = object.Find("fields")) {
      TARN_ASSIGN_OR_RETURN(field.fields, FromJson(*fields));
    }
    mapping.push_back(std::move(field));
  }
  return mapping;
}

}  // namespace

Result<NameMapping> ParseNameMapping(std::string_view json) {
  TARN_ASSIGN_OR_RETURN(const Json parsed, ParseJson(json, "name mapping"));
  return FromJson(parsed);
}

Result<std::optional<NameMapping>> NameMappingOf(const TableMetadata& metadata) {
  const auto found = metadata.properties.find(std::string(kNameMappingProperty));
  if (found == metadata.properties.end()) {
    return std::optional<NameMapping>();
  }
  Result<NameMapping> mapping = ParseNameMapping(found->second);
  if (!mapping.ok()) {
    return mapping.status().WithContext(fmt::format("property {}", kNameMappingProperty));
  }
  return std::optional<NameMapping>(std::move(mapping).value());
}

const MappedField* FindMapped(const NameMapping& mapping, std::string_view name) {
  for (const MappedField& field : mapping) {
    if (std::find(field.names.begin(), field.names.end(), name) != field.names.end()) {
      return &field;
    }
  }
  return nullptr;
}

}  // namespace tarn::iceberg
