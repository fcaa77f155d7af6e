#include "tarn/lakehouse/scan/sql_type.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "tarn/engine/quoting.h"
#include "tarn/iceberg/json.h"

namespace tarn::lakehouse {

namespace {

using iceberg::SchemaField;
using iceberg::Type;
using iceberg::TypeId;

Result<std::string> NestedSqlType(const Type& type) {
  std::vector<std::string> inner;
  for (const SchemaField& field : type.fields) {
    TARN_ASSIGN_OR_RETURN(std::string text, SqlTypeOf(field.type));
    inner.push_back(type.id == TypeId::kStruct
                        ? fmt::format("{} {}", engine::QuoteName(field.name), text)
                        : std::move(text));
  }
  const std::string list = fmt::format("{}", fmt::join(inner, ", "));
  switch (type.id) {
    case TypeId::kStruct:
      return fmt::format("STRUCT({})", list);
    case TypeId::kMap:
      return fmt::format("MAP({})", list);
    default:
      return list + "[]";
  }
}

// Bytes as the engine reads them from text.
std::string EscapedBytes(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    text += fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
  }
  return text;
}

}  // namespace

Result<std::string> SqlTypeOf(const Type& type) {
  switch (type.id) {
    case TypeId::kBoolean:
      return "BOOLEAN";
    case TypeId::kInt:
    case TypeId::kUnknown:
      return "INTEGER";
    case TypeId::kLong:
      return "BIGINT";
    case TypeId::kFloat:
      return "FLOAT";
    case TypeId::kDouble:
      return "DOUBLE";
    case TypeId::kDecimal:
      return fmt::format("DECIMAL({},{})", type.precision, type.scale);
    case TypeId::kDate:
      return "DATE";
    case TypeId::kTime:
      return "TIME";
    case TypeId::kTimestamp:
      return "TIMESTAMP";
    case TypeId::kTimestampTz:
    case TypeId::kTimestampTzNs:
      return "TIMESTAMP WITH TIME ZONE";
    case TypeId::kTimestampNs:
      return "TIMESTAMP_NS";
    case TypeId::kString:
      return "VARCHAR";
    case TypeId::kUuid:
      return "UUID";
    case TypeId::kFixed:
    case TypeId::kBinary:
      return "BLOB";
    case TypeId::kStruct:
    case TypeId::kList:
    case TypeId::kMap:
      return NestedSqlType(type);
    default:
      return Status::Unimplemented(
          fmt::format("type {} cannot be read by SQL", iceberg::FormatType(type)));
  }
}

Result<std::optional<std::string>> SqlTextOf(const Type& type, const iceberg::Literal& value) {
  if (value.is_null()) {
    return std::optional<std::string>();
  }
  if (type.id == TypeId::kFixed || type.id == TypeId::kBinary) {
    return std::optional<std::string>(EscapedBytes(value.AsString()));
  }
  TARN_ASSIGN_OR_RETURN(const iceberg::Json json, iceberg::LiteralToJson(type, value));
  return std::optional<std::string>(json.is_string() ? json.get<std::string>() : json.dump());
}

Result<std::optional<std::string>> DefaultTextOf(const SchemaField& field) {
  if (!field.initial_default) {
    return std::optional<std::string>();
  }
  const std::string what = "default of column " + field.name;
  TARN_ASSIGN_OR_RETURN(const iceberg::Json json, iceberg::ParseJson(*field.initial_default, what));
  if (json.is_null()) {
    return std::optional<std::string>();
  }
  if (field.type.is_nested()) {
    return Status::Unimplemented(fmt::format("{}: values of type {} as defaults cannot be read",
                                             what, iceberg::FormatType(field.type)));
  }
  const Result<iceberg::Literal> value = iceberg::LiteralFromJson(field.type, json);
  if (!value.ok()) {
    return value.status().WithContext(what);
  }
  return SqlTextOf(field.type, *value);
}

}  // namespace tarn::lakehouse
