#include "tarn/engine/sql_type.h"

#include <arrow/api.h>

#include "tarn/engine/quoting.h"

namespace tarn::engine {
namespace {

std::string TimestampType(const arrow::TimestampType& type) {
  if (!type.timezone().empty()) {
    return "TIMESTAMP WITH TIME ZONE";
  }
  switch (type.unit()) {
    case arrow::TimeUnit::SECOND:
      return "TIMESTAMP_S";
    case arrow::TimeUnit::MILLI:
      return "TIMESTAMP_MS";
    case arrow::TimeUnit::NANO:
      return "TIMESTAMP_NS";
    default:
      return "TIMESTAMP";
  }
}

Result<std::string> NestedType(const arrow::DataType& type) {
  if (type.id() == arrow::Type::STRUCT) {
    std::string members;
    for (const auto& field : type.fields()) {
      TARN_ASSIGN_OR_RETURN(const std::string member, SqlTypeOf(*field->type()));
      members += (members.empty() ? "" : ", ") + QuoteName(field->name()) + " " + member;
    }
    return "STRUCT(" + members + ")";
  }
  if (type.id() == arrow::Type::MAP) {
    const auto& map = static_cast<const arrow::MapType&>(type);
    TARN_ASSIGN_OR_RETURN(const std::string key, SqlTypeOf(*map.key_type()));
    TARN_ASSIGN_OR_RETURN(const std::string value, SqlTypeOf(*map.item_type()));
    return "MAP(" + key + ", " + value + ")";
  }
  TARN_ASSIGN_OR_RETURN(const std::string element,
                        SqlTypeOf(*static_cast<const arrow::BaseListType&>(type).value_type()));
  if (type.id() == arrow::Type::FIXED_SIZE_LIST) {
    const auto& list = static_cast<const arrow::FixedSizeListType&>(type);
    return element + "[" + std::to_string(list.list_size()) + "]";
  }
  return element + "[]";
}

}  // namespace

Result<std::string> SqlTypeOf(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::BOOL:
      return "BOOLEAN";
    case arrow::Type::INT8:
      return "TINYINT";
    case arrow::Type::INT16:
      return "SMALLINT";
    case arrow::Type::INT32:
      return "INTEGER";
    case arrow::Type::INT64:
      return "BIGINT";
    case arrow::Type::UINT8:
      return "UTINYINT";
    case arrow::Type::UINT16:
      return "USMALLINT";
    case arrow::Type::UINT32:
      return "UINTEGER";
    case arrow::Type::UINT64:
      return "UBIGINT";
    case arrow::Type::FLOAT:
      return "FLOAT";
    case arrow::Type::DOUBLE:
      return "DOUBLE";
    case arrow::Type::DECIMAL128: {
      const auto& decimal = static_cast<const arrow::Decimal128Type&>(type);
      return "DECIMAL(" + std::to_string(decimal.precision()) + "," +
             std::to_string(decimal.scale()) + ")";
    }
    case arrow::Type::STRING:
    case arrow::Type::LARGE_STRING:
      return "VARCHAR";
    case arrow::Type::BINARY:
    case arrow::Type::LARGE_BINARY:
    case arrow::Type::FIXED_SIZE_BINARY:
      return "BLOB";
    case arrow::Type::DATE32:
      return "DATE";
    case arrow::Type::TIME32:
    case arrow::Type::TIME64:
      return "TIME";
    case arrow::Type::TIMESTAMP:
      return TimestampType(static_cast<const arrow::TimestampType&>(type));
    case arrow::Type::LIST:
    case arrow::Type::LARGE_LIST:
    case arrow::Type::FIXED_SIZE_LIST:
    case arrow::Type::STRUCT:
    case arrow::Type::MAP:
      return NestedType(type);
    case arrow::Type::EXTENSION:
      if (static_cast<const arrow::ExtensionType&>(type).extension_name() == "arrow.uuid") {
        return "UUID";
      }
      break;
    default:
      break;
  }
  return Status::InvalidArgument("type " + type.ToString() + " has no counterpart in SQL");
}

}  // namespace tarn::engine
