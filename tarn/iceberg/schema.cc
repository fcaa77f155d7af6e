#include "tarn/iceberg/schema.h"

#include <functional>
#include <set>
#include <unordered_set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tarn::iceberg {
namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') {
      c = static_cast<char>(c - 'A' + 'a');
    }
  }
  return lower;
}

bool NamesEqual(std::string_view a, std::string_view b, CaseRule rule) {
  return a == b || (rule == CaseRule::kInsensitive && Lower(a) == Lower(b));
}

const SchemaField* FindById(const std::vector<SchemaField>& fields, int32_t id) {
  for (const SchemaField& field : fields) {
    if (field.id == id) {
      return &field;
    }
    if (const SchemaField* inner = FindById(field.type.fields, id)) {
      return inner;
    }
  }
  return nullptr;
}

// Names may contain dots, so every field whose name is a prefix is tried.
const SchemaField* FindByName(const std::vector<SchemaField>& fields, std::string_view name,
                              CaseRule rule) {
  for (const SchemaField& field : fields) {
    if (NamesEqual(field.name, name, rule)) {
      return &field;
    }
  }
  for (const SchemaField& field : fields) {
    const size_t size = field.name.size();
    if (name.size() > size && name[size] == '.' &&
        NamesEqual(field.name, name.substr(0, size), rule)) {
      if (const SchemaField* inner = FindByName(field.type.fields, name.substr(size + 1), rule)) {
        return inner;
      }
    }
  }
  return nullptr;
}

bool FindPath(const std::vector<SchemaField>& fields, int32_t id,
              std::vector<const SchemaField*>& path) {
  for (const SchemaField& field : fields) {
    path.push_back(&field);
    if (field.id == id || FindPath(field.type.fields, id, path)) {
      return true;
    }
    path.pop_back();
  }
  return false;
}

void Collect(const std::vector<SchemaField>& fields, std::vector<const SchemaField*>& out) {
  for (const SchemaField& field : fields) {
    out.push_back(&field);
    Collect(field.type.fields, out);
  }
}

void AssignIds(std::vector<SchemaField>& fields, int32_t& last) {
  for (SchemaField& field : fields) {
    field.id = ++last;
  }
  for (SchemaField& field : fields) {
    AssignIds(field.type.fields, last);
  }
}

Status ValidateFields(const std::vector<SchemaField>& fields, const std::string& prefix,
                      int32_t format_version, std::unordered_set<int32_t>& ids) {
  std::set<std::string> names;
  for (const SchemaField& field : fields) {
    const std::string path = prefix.empty() ? field.name : prefix + "." + field.name;
    if (field.name.empty()) {
      return Status::InvalidArgument(fmt::format("column {}: the name is empty", field.id));
    }
    if (!names.insert(field.name).second) {
      return Status::InvalidArgument(fmt::format("column '{}' is there twice", path));
    }
    if (field.id < 0 || field.id >= kReservedIdsStart) {
      return Status::InvalidArgument(fmt::format("column '{}': field id {} is not in 0..{}", path,
                                                 field.id, kReservedIdsStart - 1));
    }
    if (!ids.insert(field.id).second) {
      return Status::InvalidArgument(
          fmt::format("column '{}': field id {} is used twice", path, field.id));
    }
    if (!field.type.is_nested() && MinFormatVersion(field.type) > format_version) {
      return Status::InvalidArgument(
          fmt::format("Invalid schema: column '{}': type {} is not supported until v{}, found v{}",
                      path, FormatType(field.type), MinFormatVersion(field.type), format_version));
    }
    if (field.initial_default && format_version < 3) {
      return Status::InvalidArgument(fmt::format(
          "Invalid schema: column '{}': non-null default values are not supported until v3", path));
    }
    TARN_RETURN_IF_ERROR(ValidateFields(field.type.fields, path, format_version, ids));
  }
  return Status::Ok();
}

}  // namespace

const SchemaField* Schema::FindField(int32_t id) const { return FindById(fields, id); }

const SchemaField* Schema::FindField(std::string_view name, CaseRule rule) const {
  if (rule == CaseRule::kInsensitive) {
    if (const SchemaField* exact = FindByName(fields, name, CaseRule::kSensitive)) {
      return exact;
    }
  }
  return FindByName(fields, name, rule);
}

std::optional<std::string> Schema::NameOf(int32_t id) const {
  std::vector<const SchemaField*> path;
  if (!FindPath(fields, id, path)) {
    return std::nullopt;
  }
  std::string name;
  for (const SchemaField* field : path) {
    name += (name.empty() ? "" : ".") + field->name;
  }
  return name;
}

std::optional<int32_t> Schema::ParentOf(int32_t id) const {
  std::vector<const SchemaField*> path;
  if (!FindPath(fields, id, path) || path.size() < 2) {
    return std::nullopt;
  }
  return path[path.size() - 2]->id;
}

int32_t Schema::HighestFieldId() const {
  int32_t highest = 0;
  for (const SchemaField* field : AllFields(*this)) {
    highest = std::max(highest, field->id);
  }
  return highest;
}

bool Schema::HasSameColumns(const Schema& other) const {
  return fields == other.fields &&
         std::set<int32_t>(identifier_field_ids.begin(), identifier_field_ids.end()) ==
             std::set<int32_t>(other.identifier_field_ids.begin(),
                               other.identifier_field_ids.end());
}

std::vector<const SchemaField*> AllFields(const Schema& schema) {
  std::vector<const SchemaField*> all;
  Collect(schema.fields, all);
  return all;
}

Status ValidateSchema(const Schema& schema, int32_t format_version) {
  std::unordered_set<int32_t> ids;
  TARN_RETURN_IF_ERROR(ValidateFields(schema.fields, "", format_version, ids));
  for (const int32_t id : schema.identifier_field_ids) {
    std::vector<const SchemaField*> path;
    if (!FindPath(schema.fields, id, path)) {
      return Status::InvalidArgument(fmt::format("identifier field {} is not in the schema", id));
    }
    const SchemaField& field = *path.back();
    const auto fail = [&](std::string_view why) {
      return Status::InvalidArgument(
          fmt::format("column '{}' cannot be an identifier field: {}", field.name, why));
    };
    if (field.type.is_nested()) {
      return fail("it is not of a primitive type");
    }
    if (field.type.id == TypeId::kFloat || field.type.id == TypeId::kDouble) {
      return fail("it is a floating-point number");
    }
    if (!field.required) {
      return fail("it is not required");
    }
    for (size_t i = 0; i + 1 < path.size(); ++i) {
      if (path[i]->type.id != TypeId::kStruct || !path[i]->required) {
        return fail("it is inside a list, a map or an optional struct");
      }
    }
  }
  return Status::Ok();
}

Schema AssignFreshIds(const Schema& schema, int32_t& last_column_id) {
  Schema fresh = schema;
  AssignIds(fresh.fields, last_column_id);
  fresh.identifier_field_ids.clear();
  for (const int32_t id : schema.identifier_field_ids) {
    const std::optional<std::string> name = schema.NameOf(id);
    const SchemaField* field = name ? fresh.FindField(*name) : nullptr;
    // An unknown id is kept as one that validation refuses.
    fresh.identifier_field_ids.push_back(field != nullptr ? field->id : -1);
  }
  return fresh;
}

Json SchemaToJson(const Schema& schema) {
  Json json = {{"type", "struct"}, {"schema-id", schema.schema_id}};
  if (!schema.identifier_field_ids.empty()) {
    json["identifier-field-ids"] = schema.identifier_field_ids;
  }
  Json fields = Json::array();
  for (const SchemaField& field : schema.fields) {
    fields.push_back(SchemaFieldToJson(field));
  }
  json["fields"] = std::move(fields);
  return json;
}

Result<Schema> SchemaFromJson(const Json& json) {
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "schema"));
  Schema schema;
  TARN_ASSIGN_OR_RETURN(const std::optional<int32_t> id, object.FindInt("schema-id"));
  schema.schema_id = id.value_or(0);
  TARN_RETURN_IF_ERROR(object.Get("fields"));
  TARN_ASSIGN_OR_RETURN(const auto fields, object.FindArray("fields"));
  for (const Json* element : fields) {
    TARN_ASSIGN_OR_RETURN(SchemaField field, SchemaFieldFromJson(*element));
    schema.fields.push_back(std::move(field));
  }
  TARN_ASSIGN_OR_RETURN(schema.identifier_field_ids, object.FindInts("identifier-field-ids"));
  return schema;
}

std::string FormatSchema(const Schema& schema) { return DumpJson(SchemaToJson(schema)); }

Result<Schema> ParseSchema(std::string_view text) {
  TARN_ASSIGN_OR_RETURN(const Json json, ParseJson(text, "schema"));
  return SchemaFromJson(json);
}

}  // namespace tarn::iceberg
