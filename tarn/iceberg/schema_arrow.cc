#include "tarn/iceberg/schema_arrow.h"

#include <charconv>

#include <arrow/api.h>
#include <arrow/extension_type.h>
#include <arrow/util/key_value_metadata.h>
#include <fmt/format.h>

#include "tarn/base/arrow_status.h"

namespace tarn::iceberg {
namespace {

std::optional<int32_t> FieldIdOf(const arrow::Field& field) {
  if (field.metadata() == nullptr) {
    return std::nullopt;
  }
  const auto text = field.metadata()->Get(kArrowFieldIdKey);
  int32_t id = 0;
  if (!text.ok()) {
    return std::nullopt;
  }
  const char* end = text->data() + text->size();
  const auto [at, error] = std::from_chars(text->data(), end, id);
  if (error != std::errc() || at != end || id < 0) {
    return std::nullopt;
  }
  return id;
}

bool AllHaveIds(const arrow::FieldVector& fields) {
  for (const auto& field : fields) {
    if (!FieldIdOf(*field)) {
      return false;
    }
    const auto kind = field->type()->id();
    const bool nested = kind == arrow::Type::STRUCT || kind == arrow::Type::LIST ||
                        kind == arrow::Type::LARGE_LIST || kind == arrow::Type::FIXED_SIZE_LIST;
    if (nested && !AllHaveIds(field->type()->fields())) {
      return false;
    }
    if (kind == arrow::Type::MAP) {
      const auto& map = static_cast<const arrow::MapType&>(*field->type());
      if (!AllHaveIds({map.key_field(), map.item_field()})) {
        return false;
      }
    }
  }
  return true;
}

Result<SchemaField> FromField(const arrow::Field& field) {
  SchemaField out;
  out.id = FieldIdOf(field).value_or(0);
  out.name = field.name();
  out.required = !field.nullable();
  Result<Type> type = FromArrowType(*field.type());
  if (!type.ok()) {
    return type.status().WithContext(fmt::format("column '{}'", field.name()));
  }
  out.type = std::move(type).value();
  return out;
}

Result<Type> FromNested(const arrow::DataType& type) {
  if (type.id() == arrow::Type::STRUCT) {
    std::vector<SchemaField> fields;
    for (const auto& child : type.fields()) {
      TARN_ASSIGN_OR_RETURN(SchemaField field, FromField(*child));
      fields.push_back(std::move(field));
    }
    return Type::Struct(std::move(fields));
  }
  if (type.id() == arrow::Type::MAP) {
    const auto& map = static_cast<const arrow::MapType&>(type);
    TARN_ASSIGN_OR_RETURN(SchemaField key, FromField(*map.key_field()));
    TARN_ASSIGN_OR_RETURN(SchemaField value, FromField(*map.item_field()));
    return Type::Map(key.id, std::move(key.type), value.id, std::move(value.type), value.required);
  }
  TARN_ASSIGN_OR_RETURN(SchemaField element, FromField(*type.field(0)));
  return Type::List(element.id, std::move(element.type), element.required);
}

Type FromTimestamp(const arrow::TimestampType& type) {
  const bool zoned = !type.timezone().empty();
  Type out = zoned ? Type::TimestampTz() : Type::Timestamp();
  if (type.unit() == arrow::TimeUnit::NANO) {
    out.id = zoned ? TypeId::kTimestampTzNs : TypeId::kTimestampNs;
  }
  return out;
}

}  // namespace

Result<Type> FromArrowType(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::BOOL:
      return Type::Boolean();
    case arrow::Type::INT8:
    case arrow::Type::INT16:
    case arrow::Type::UINT8:
    case arrow::Type::UINT16:
    case arrow::Type::INT32:
      return Type::Int();
    case arrow::Type::UINT32:
    case arrow::Type::INT64:
      return Type::Long();
    case arrow::Type::UINT64:
      return Type::Decimal(20, 0);
    case arrow::Type::HALF_FLOAT:
    case arrow::Type::FLOAT:
      return Type::Float();
    case arrow::Type::DOUBLE:
      return Type::Double();
    case arrow::Type::DECIMAL32:
    case arrow::Type::DECIMAL64:
    case arrow::Type::DECIMAL128: {
      const auto& decimal = static_cast<const arrow::DecimalType&>(type);
      if (decimal.scale() < 0 || decimal.scale() > decimal.precision()) {
        break;
      }
      return Type::Decimal(decimal.precision(), decimal.scale());
    }
    case arrow::Type::DATE32:
    case arrow::Type::DATE64:
      return Type::Date();
    case arrow::Type::TIME32:
    case arrow::Type::TIME64:
      return Type::Time();
    case arrow::Type::TIMESTAMP:
      return FromTimestamp(static_cast<const arrow::TimestampType&>(type));
    case arrow::Type::STRING:
    case arrow::Type::LARGE_STRING:
    case arrow::Type::STRING_VIEW:
      return Type::String();
    case arrow::Type::BINARY:
    case arrow::Type::LARGE_BINARY:
    case arrow::Type::BINARY_VIEW:
      return Type::Binary();
    case arrow::Type::FIXED_SIZE_BINARY:
      return Type::Fixed(static_cast<const arrow::FixedSizeBinaryType&>(type).byte_width());
    case arrow::Type::DICTIONARY:
      return FromArrowType(*static_cast<const arrow::DictionaryType&>(type).value_type());
    case arrow::Type::EXTENSION: {
      const auto& extension = static_cast<const arrow::ExtensionType&>(type);
      if (extension.extension_name() == "arrow.uuid") {
        return Type::Uuid();
      }
      return FromArrowType(*extension.storage_type());
    }
    case arrow::Type::STRUCT:
    case arrow::Type::MAP:
    case arrow::Type::LIST:
    case arrow::Type::LARGE_LIST:
    case arrow::Type::FIXED_SIZE_LIST:
      return FromNested(type);
    default:
      break;
  }
  return Status::InvalidArgument(
      fmt::format("Arrow type {} has no counterpart in the table format", type.ToString()));
}

Result<Schema> FromArrowSchema(const arrow::Schema& schema) {
  Schema out;
  for (const auto& field : schema.fields()) {
    TARN_ASSIGN_OR_RETURN(SchemaField converted, FromField(*field));
    out.fields.push_back(std::move(converted));
  }
  if (!AllHaveIds(schema.fields())) {
    int32_t last = 0;
    out = AssignFreshIds(out, last);
  }
  return out;
}

Result<std::shared_ptr<arrow::DataType>> ToArrowType(const Type& type) {
  switch (type.id) {
    case TypeId::kBoolean:
      return arrow::boolean();
    case TypeId::kInt:
      return arrow::int32();
    case TypeId::kLong:
      return arrow::int64();
    case TypeId::kFloat:
      return arrow::float32();
    case TypeId::kDouble:
      return arrow::float64();
    case TypeId::kDecimal:
      return arrow::decimal128(type.precision, type.scale);
    case TypeId::kDate:
      return arrow::date32();
    case TypeId::kTime:
      return arrow::time64(arrow::TimeUnit::MICRO);
    case TypeId::kTimestamp:
      return arrow::timestamp(arrow::TimeUnit::MICRO);
    case TypeId::kTimestampTz:
      return arrow::timestamp(arrow::TimeUnit::MICRO, "UTC");
    case TypeId::kTimestampNs:
      return arrow::timestamp(arrow::TimeUnit::NANO);
    case TypeId::kTimestampTzNs:
      return arrow::timestamp(arrow::TimeUnit::NANO, "UTC");
    case TypeId::kString:
      return arrow::utf8();
    case TypeId::kUuid:
      return arrow::fixed_size_binary(16);
    case TypeId::kFixed:
      return arrow::fixed_size_binary(type.length);
    case TypeId::kBinary:
      return arrow::binary();
    case TypeId::kUnknown:
      return arrow::null();
    case TypeId::kStruct: {
      arrow::FieldVector fields;
      for (const SchemaField& field : type.fields) {
        TARN_ASSIGN_OR_RETURN(auto converted, ToArrowField(field));
        fields.push_back(std::move(converted));
      }
      return arrow::struct_(fields);
    }
    case TypeId::kList: {
      TARN_ASSIGN_OR_RETURN(auto element, ToArrowField(type.fields[0]));
      return arrow::list(std::move(element));
    }
    case TypeId::kMap: {
      TARN_ASSIGN_OR_RETURN(auto key, ToArrowField(type.fields[0]));
      TARN_ASSIGN_OR_RETURN(auto value, ToArrowField(type.fields[1]));
      return std::make_shared<arrow::MapType>(std::move(key), std::move(value));
    }
    case TypeId::kVariant:
    case TypeId::kGeometry:
    case TypeId::kGeography:
      break;
  }
  return Status(ErrorCode::kUnimplemented,
                fmt::format("type {} cannot be read or written here", FormatType(type)));
}

Result<std::shared_ptr<arrow::Field>> ToArrowField(const SchemaField& field) {
  Result<std::shared_ptr<arrow::DataType>> type = ToArrowType(field.type);
  if (!type.ok()) {
    return type.status().WithContext(fmt::format("column '{}'", field.name));
  }
  return arrow::field(field.name, std::move(type).value(), !field.required,
                      arrow::key_value_metadata({kArrowFieldIdKey}, {std::to_string(field.id)}));
}

Result<std::shared_ptr<arrow::Schema>> ToArrowSchema(const Schema& schema) {
  arrow::FieldVector fields;
  for (const SchemaField& field : schema.fields) {
    TARN_ASSIGN_OR_RETURN(auto converted, ToArrowField(field));
    fields.push_back(std::move(converted));
  }
  return arrow::schema(fields);
}

}  // namespace tarn::iceberg
