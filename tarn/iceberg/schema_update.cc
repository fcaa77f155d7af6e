#include "tarn/iceberg/schema_update.h"

#include <algorithm>

#include <fmt/format.h>

namespace tarn::iceberg {
namespace {

// Fields of the struct that holds `id`, and where in it.
struct Place {
  std::vector<SchemaField>* siblings = nullptr;
  size_t index = 0;
  const SchemaField* parent = nullptr;

  [[nodiscard]] SchemaField& field() const { return (*siblings)[index]; }
};

bool FindPlace(std::vector<SchemaField>& fields, int32_t id, const SchemaField* parent,
               Place& place) {
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].id == id) {
      place = {&fields, i, parent};
      return true;
    }
    if (FindPlace(fields[i].type.fields, id, &fields[i], place)) {
      return true;
    }
  }
  return false;
}

Result<Place> Locate(Schema& schema, std::string_view name, CaseRule rule) {
  const SchemaField* field = std::as_const(schema).FindField(name, rule);
  Place place;
  if (field == nullptr || !FindPlace(schema.fields, field->id, nullptr, place)) {
    return Status::NotFound(fmt::format("there is no column '{}'", name));
  }
  return place;
}

// The struct behind a name: the top, a struct, or the struct inside a list or map.
Result<std::vector<SchemaField>*> LocateStruct(Schema& schema, std::string_view name,
                                               CaseRule rule) {
  if (name.empty()) {
    return &schema.fields;
  }
  TARN_ASSIGN_OR_RETURN(const Place place, Locate(schema, name, rule));
  Type* type = &place.field().type;
  while (type->id == TypeId::kList || type->id == TypeId::kMap) {
    type = &type->fields.back().type;
  }
  if (type->id != TypeId::kStruct) {
    return Status::InvalidArgument(
        fmt::format("column '{}' is of type {}: it cannot have columns", name, FormatType(*type)));
  }
  return &type->fields;
}

bool SameName(const std::string& a, const std::string& b, CaseRule rule) {
  Schema one;
  one.fields.push_back({.id = 1, .name = a});
  return a == b || one.FindField(b, rule) != nullptr;
}

Status CheckNameIsFree(const std::vector<SchemaField>& siblings, const std::string& name,
                       CaseRule rule, int32_t except_id) {
  if (name.empty()) {
    return Status::InvalidArgument("the name of a column cannot be empty");
  }
  for (const SchemaField& sibling : siblings) {
    if (sibling.id != except_id && SameName(sibling.name, name, rule)) {
      return Status::AlreadyExists(fmt::format("column '{}' exists already", sibling.name));
    }
  }
  return Status::Ok();
}

Result<size_t> IndexFor(const std::vector<SchemaField>& siblings, const ColumnPosition& position) {
  switch (position.kind) {
    case ColumnPosition::Kind::kFirst:
      return size_t{0};
    case ColumnPosition::Kind::kLast:
      return siblings.size();
    case ColumnPosition::Kind::kAfter:
      break;
  }
  for (size_t i = 0; i < siblings.size(); ++i) {
    if (siblings[i].name == position.after) {
      return i + 1;
    }
  }
  return Status::NotFound(fmt::format("there is no column '{}' to go after", position.after));
}

}  // namespace

SchemaUpdate::SchemaUpdate(Schema base, int32_t last_column_id, int32_t format_version,
                           CaseRule rule)
    : schema_(std::move(base)),
      last_column_id_(std::max(last_column_id, schema_.HighestFieldId())),
      format_version_(format_version),
      rule_(rule) {}

Status SchemaUpdate::AddColumn(const ColumnAddition& column) {
  TARN_ASSIGN_OR_RETURN(std::vector<SchemaField> * siblings,
                        LocateStruct(schema_, column.parent, rule_));
  TARN_RETURN_IF_ERROR(CheckNameIsFree(*siblings, column.name, rule_, -1));
  TARN_ASSIGN_OR_RETURN(const size_t index, IndexFor(*siblings, column.position));
  if (MinFormatVersion(column.type) > format_version_) {
    return Status::InvalidArgument(fmt::format("column '{}': type {} needs format version {}",
                                               column.name, FormatType(column.type),
                                               MinFormatVersion(column.type)));
  }
  Schema single;
  single.fields.push_back(
      {.id = 0, .name = column.name, .required = false, .type = column.type, .doc = column.doc});
  single = AssignFreshIds(single, last_column_id_);
  siblings->insert(siblings->begin() + static_cast<std::ptrdiff_t>(index),
                   std::move(single.fields[0]));
  return Status::Ok();
}

Status SchemaUpdate::RenameColumn(std::string_view name, std::string_view new_name) {
  TARN_ASSIGN_OR_RETURN(const Place place, Locate(schema_, name, rule_));
  if (place.parent != nullptr && place.parent->type.id != TypeId::kStruct) {
    return Status::InvalidArgument(
        fmt::format("'{}' is the element of a list or map and has no name to change", name));
  }
  TARN_RETURN_IF_ERROR(
      CheckNameIsFree(*place.siblings, std::string(new_name), rule_, place.field().id));
  place.field().name = std::string(new_name);
  return Status::Ok();
}

Status SchemaUpdate::WidenColumn(std::string_view name, const Type& type) {
  TARN_ASSIGN_OR_RETURN(const Place place, Locate(schema_, name, rule_));
  if (!IsPromotionAllowed(place.field().type, type, format_version_)) {
    return Status::InvalidArgument(fmt::format("column '{}' cannot change from {} to {}", name,
                                               FormatType(place.field().type), FormatType(type)));
  }
  place.field().type = type;
  return Status::Ok();
}

Status SchemaUpdate::DropColumn(std::string_view name) {
  TARN_ASSIGN_OR_RETURN(const Place place, Locate(schema_, name, rule_));
  if (place.parent != nullptr && place.parent->type.id != TypeId::kStruct) {
    return Status::InvalidArgument(
        fmt::format("'{}' is the element of a list or map: drop the column instead", name));
  }
  Schema dropped;
  dropped.fields.push_back(place.field());
  for (const int32_t id : schema_.identifier_field_ids) {
    if (dropped.FindField(id) != nullptr) {
      return Status::InvalidArgument(
          fmt::format("column '{}' is an identifier field and cannot be dropped", name));
    }
  }
  if (place.siblings->size() == 1) {
    return Status::InvalidArgument(
        fmt::format("column '{}' is the last one and cannot be dropped", name));
  }
  place.siblings->erase(place.siblings->begin() + static_cast<std::ptrdiff_t>(place.index));
  return Status::Ok();
}

Status SchemaUpdate::MakeOptional(std::string_view name) {
  TARN_ASSIGN_OR_RETURN(const Place place, Locate(schema_, name, rule_));
  const auto& ids = schema_.identifier_field_ids;
  if (std::find(ids.begin(), ids.end(), place.field().id) != ids.end()) {
    return Status::InvalidArgument(
        fmt::format("column '{}' is an identifier field and must be required", name));
  }
  if (place.parent != nullptr && place.parent->type.id == TypeId::kMap && place.index == 0) {
    return Status::InvalidArgument(fmt::format("'{}': the key of a map must be required", name));
  }
  place.field().required = false;
  return Status::Ok();
}

Status SchemaUpdate::SetDoc(std::string_view name, std::string_view doc) {
  TARN_ASSIGN_OR_RETURN(const Place place, Locate(schema_, name, rule_));
  place.field().doc = std::string(doc);
  return Status::Ok();
}

Status SchemaUpdate::MoveColumn(std::string_view name, const ColumnPosition& position) {
  TARN_ASSIGN_OR_RETURN(const Place place, Locate(schema_, name, rule_));
  if (place.parent != nullptr && place.parent->type.id != TypeId::kStruct) {
    return Status::InvalidArgument(fmt::format("'{}' is the element of a list or map", name));
  }
  if (position.kind == ColumnPosition::Kind::kAfter && position.after == place.field().name) {
    return Status::InvalidArgument(fmt::format("column '{}' cannot go after itself", name));
  }
  std::vector<SchemaField> rest = *place.siblings;
  SchemaField field = place.field();
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(place.index));
  TARN_ASSIGN_OR_RETURN(const size_t index, IndexFor(rest, position));
  rest.insert(rest.begin() + static_cast<std::ptrdiff_t>(index), std::move(field));
  *place.siblings = std::move(rest);
  return Status::Ok();
}

Status SchemaUpdate::SetIdentifierFields(const std::vector<std::string>& names) {
  Schema next = schema_;
  next.identifier_field_ids.clear();
  for (const std::string& name : names) {
    const SchemaField* field = std::as_const(schema_).FindField(name, rule_);
    if (field == nullptr) {
      return Status::NotFound(fmt::format("there is no column '{}'", name));
    }
    next.identifier_field_ids.push_back(field->id);
  }
  TARN_RETURN_IF_ERROR(ValidateSchema(next, format_version_));
  schema_ = std::move(next);
  return Status::Ok();
}

}  // namespace tarn::iceberg
