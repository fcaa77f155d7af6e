#include "tarn/transform/table_type.h"

#include <arrow/api.h>
#include <arrow/extension/uuid.h>

namespace tarn::transform {
namespace {

Result<arrow::FieldVector> TableFields(const arrow::FieldVector& fields) {
  arrow::FieldVector out;
  for (const auto& field : fields) {
    TARN_ASSIGN_OR_RETURN(auto type, TableType(*field->type()));
    out.push_back(arrow::field(field->name(), std::move(type)));
  }
  return out;
}

}  // namespace

Result<std::shared_ptr<arrow::DataType>> TableType(const arrow::DataType& type) {
  using Type = std::shared_ptr<arrow::DataType>;
  switch (type.id()) {
    case arrow::Type::INT8:
    case arrow::Type::INT16:
    case arrow::Type::UINT8:
    case arrow::Type::UINT16:
      return arrow::int32();
    case arrow::Type::UINT32:
      return arrow::int64();
    case arrow::Type::UINT64:
      return arrow::decimal128(20, 0);
    case arrow::Type::BOOL:
    case arrow::Type::INT32:
    case arrow::Type::INT64:
    case arrow::Type::FLOAT:
    case arrow::Type::DOUBLE:
    case arrow::Type::DECIMAL128:
    case arrow::Type::DATE32:
      return Type(type.GetSharedPtr());
    case arrow::Type::NA:
    case arrow::Type::STRING:
    case arrow::Type::LARGE_STRING:
      return arrow::utf8();
    case arrow::Type::BINARY:
    case arrow::Type::LARGE_BINARY:
    case arrow::Type::FIXED_SIZE_BINARY:
      return arrow::binary();
    case arrow::Type::TIME32:
    case arrow::Type::TIME64:
      return arrow::time64(arrow::TimeUnit::MICRO);
    case arrow::Type::TIMESTAMP:
      return arrow::timestamp(
          arrow::TimeUnit::MICRO,
          static_cast<const arrow::TimestampType&>(type).timezone().empty() ? "" : "UTC");
    case arrow::Type::LIST:
    case arrow::Type::LARGE_LIST:
    case arrow::Type::FIXED_SIZE_LIST: {
      TARN_ASSIGN_OR_RETURN(auto element,
                            TableType(*static_cast<const arrow::BaseListType&>(type).value_type()));
      return arrow::list(arrow::field("element", std::move(element)));
    }
    case arrow::Type::STRUCT: {
      TARN_ASSIGN_OR_RETURN(const auto fields, TableFields(type.fields()));
      return arrow::struct_(fields);
    }
    case arrow::Type::MAP: {
      const auto& map = static_cast<const arrow::MapType&>(type);
      TARN_ASSIGN_OR_RETURN(auto key, TableType(*map.key_type()));
      TARN_ASSIGN_OR_RETURN(auto value, TableType(*map.item_type()));
      return arrow::map(std::move(key), arrow::field("value", std::move(value)));
    }
    case arrow::Type::EXTENSION:
      if (static_cast<const arrow::ExtensionType&>(type).extension_name() == "arrow.uuid") {
        return arrow::extension::uuid();
      }
      break;
    default:
      break;
  }
  return Status::InvalidArgument("type " + type.ToString() + " has no counterpart in a table");
}

}  // namespace tarn::transform
