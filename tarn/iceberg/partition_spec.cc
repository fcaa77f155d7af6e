#include "tarn/iceberg/partition_spec.h"

#include <set>

#include <arrow/api.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tarn::iceberg {
namespace {

// application/x-www-form-urlencoded, as partition paths are written everywhere.
std::string FormEncode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '-' || c == '*' || c == '_';
    if (plain) {
      out.push_back(c);
    } else if (c == ' ') {
      out.push_back('+');
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace

bool PartitionSpec::is_unpartitioned() const {
  return std::all_of(fields.begin(), fields.end(), [](const PartitionField& field) {
    return field.transform.kind == TransformKind::kVoid;
  });
}

bool PartitionSpec::IsCompatibleWith(const PartitionSpec& other) const {
  return std::equal(fields.begin(), fields.end(), other.fields.begin(), other.fields.end(),
                    [](const PartitionField& a, const PartitionField& b) {
                      return a.source_id == b.source_id && a.transform == b.transform &&
                             a.name == b.name;
                    });
}

Status ValidatePartitionSpec(const PartitionSpec& spec, const Schema& schema) {
  std::set<std::string> names;
  std::set<std::pair<int32_t, std::string>> uses;
  for (const PartitionField& field : spec.fields) {
    const auto fail = [&](const std::string& why) {
      return Status::InvalidArgument(fmt::format("partition field '{}': {}", field.name, why));
    };
    if (field.name.empty()) {
      return fail("the name is empty");
    }
    if (!names.insert(field.name).second) {
      return fail("the name is there twice");
    }
    const SchemaField* source = schema.FindField(field.source_id);
    if (field.transform.kind == TransformKind::kVoid) {
      continue;
    }
    if (source == nullptr) {
      return fail(
          fmt::format("Cannot find source column for partition field: {}", field.source_id));
    }
    if (field.transform.kind == TransformKind::kUnknown) {
      return fail(fmt::format("transform '{}' is not known", field.transform.text));
    }
    const Result<Type> type = TransformResultType(field.transform, source->type);
    if (!type.ok()) {
      return fail(type.status().message());
    }
    if (!uses.emplace(field.source_id, FormatTransform(field.transform)).second) {
      return fail("the same transform of the same column is there twice");
    }
    const SchemaField* same_name = nullptr;
    for (const SchemaField& column : schema.fields) {
      same_name = column.name == field.name ? &column : same_name;
    }
    if (same_name != nullptr &&
        (field.transform.kind != TransformKind::kIdentity || same_name->id != field.source_id)) {
      return fail("the name is that of a column");
    }
    for (std::optional<int32_t> parent = schema.ParentOf(field.source_id); parent;
         parent = schema.ParentOf(*parent)) {
      if (schema.FindField(*parent)->type.id != TypeId::kStruct) {
        return fail("the source is inside a list or map");
      }
    }
  }
  return Status::Ok();
}

std::vector<Type> PartitionTypes(const PartitionSpec& spec, const Schema& schema) {
  std::vector<Type> types;
  for (const PartitionField& field : spec.fields) {
    const SchemaField* source = schema.FindField(field.source_id);
    const Result<Type> type = source != nullptr ? TransformResultType(field.transform, source->type)
                                                : Result<Type>(Type{});
    types.push_back(type.ok() ? *type : Type{});
  }
  return types;
}

Result<std::string> FormatPartitionPath(const PartitionSpec& spec, const Schema& schema,
                                        const PartitionValues& values) {
  if (values.size() != spec.fields.size()) {
    return Status::InvalidArgument(fmt::format("{} partition values for a spec of {} fields",
                                               values.size(), spec.fields.size()));
  }
  std::string path;
  for (size_t i = 0; i < values.size(); ++i) {
    const PartitionField& field = spec.fields[i];
    const SchemaField* source = schema.FindField(field.source_id);
    const std::string value =
        FormatPartitionValue(field.transform, source != nullptr ? source->type : Type{}, values[i]);
    path +=
        fmt::format("{}{}={}", path.empty() ? "" : "/", FormEncode(field.name), FormEncode(value));
  }
  return path;
}

Result<PartitionValues> PartitionValuesAt(const PartitionSpec& spec, const Schema& schema,
                                          const arrow::RecordBatch& batch, int64_t row) {
  PartitionValues values;
  for (const PartitionField& field : spec.fields) {
    const SchemaField* source = schema.FindField(field.source_id);
    if (source == nullptr || field.transform.kind == TransformKind::kVoid) {
      values.push_back(Literal::Null());
      continue;
    }
    const std::shared_ptr<arrow::Array> column = batch.GetColumnByName(source->name);
    if (column == nullptr) {
      return Status::InvalidArgument(fmt::format(
          "partition field '{}': the batch has no column '{}'", field.name, source->name));
    }
    TARN_ASSIGN_OR_RETURN(const Literal value, LiteralAt(source->type, *column, row));
    TARN_ASSIGN_OR_RETURN(Literal transformed,
                          ApplyTransform(field.transform, source->type, value));
    values.push_back(std::move(transformed));
  }
  return values;
}

std::string DefaultPartitionFieldName(const std::string& column, const Transform& transform) {
  switch (transform.kind) {
    case TransformKind::kBucket:
      return column + "_bucket";
    case TransformKind::kTruncate:
      return column + "_trunc";
    case TransformKind::kYear:
      return column + "_year";
    case TransformKind::kMonth:
      return column + "_month";
    case TransformKind::kDay:
      return column + "_day";
    case TransformKind::kHour:
      return column + "_hour";
    case TransformKind::kVoid:
      return column + "_null";
    default:
      return column;
  }
}

Json PartitionFieldsToJson(const PartitionSpec& spec) {
  Json fields = Json::array();
  for (const PartitionField& field : spec.fields) {
    fields.push_back({{"name", field.name},
                      {"transform", FormatTransform(field.transform)},
                      {"source-id", field.source_id},
                      {"field-id", field.field_id}});
  }
  return fields;
}

Json PartitionSpecToJson(const PartitionSpec& spec) {
  return {{"spec-id", spec.spec_id}, {"fields", PartitionFieldsToJson(spec)}};
}

Result<std::vector<PartitionField>> PartitionFieldsFromJson(const Json& json,
                                                            int32_t last_field_id) {
  if (!json.is_array()) {
    return Status::InvalidArgument("partition spec: the fields must be an array");
  }
  std::vector<PartitionField> fields;
  for (const Json& element : json) {
    TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(element, "partition field"));
    PartitionField field;
    TARN_ASSIGN_OR_RETURN(field.name, object.GetString("name"));
    TARN_ASSIGN_OR_RETURN(const std::string transform, object.GetString("transform"));
    TARN_ASSIGN_OR_RETURN(field.transform, ParseTransform(transform));
    TARN_ASSIGN_OR_RETURN(const std::vector<int32_t> sources, object.FindInts("source-ids"));
    if (!sources.empty()) {
      // A transform of several columns: kept apart from those known here.
      field.source_id = sources[0];
      if (sources.size() > 1) {
        field.transform = {TransformKind::kUnknown, 0, transform};
      }
    } else {
      TARN_ASSIGN_OR_RETURN(field.source_id, object.GetInt("source-id"));
    }
    TARN_ASSIGN_OR_RETURN(const std::optional<int32_t> field_id, object.FindInt("field-id"));
    field.field_id = field_id.value_or(last_field_id < 0 ? 0 : last_field_id + 1);
    last_field_id = last_field_id < 0 ? last_field_id : std::max(last_field_id, field.field_id);
    fields.push_back(std::move(field));
  }
  return fields;
}

Result<PartitionSpec> PartitionSpecFromJson(const Json& json) {
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "partition spec"));
  PartitionSpec spec;
  TARN_ASSIGN_OR_RETURN(const std::optional<int32_t> id, object.FindInt("spec-id"));
  spec.spec_id = id.value_or(0);
  TARN_ASSIGN_OR_RETURN(const Json* fields, object.Get("fields"));
  // Fields without ids stay 0: who adds the spec to a table numbers them.
  TARN_ASSIGN_OR_RETURN(spec.fields, PartitionFieldsFromJson(*fields, -1));
  return spec;
}

}  // namespace tarn::iceberg
