// Transforms over Arrow columns (transform.h).
#include <arrow/api.h>
#include <arrow/extension_type.h>
#include <arrow/util/decimal.h>
#include <arrow/util/float16.h>
#include <fmt/format.h>

#include "tarn/base/arrow_status.h"
#include "tarn/iceberg/codec/calendar.h"
#include "tarn/iceberg/schema_arrow.h"
#include "tarn/iceberg/transform.h"

namespace tarn::iceberg {
namespace {

Int128 FromDecimal128(const arrow::Decimal128& value) {
  return (static_cast<Int128>(value.high_bits()) << 64) | value.low_bits();
}

// Timestamps and times of any unit in the unit of the type.
int64_t Rescale(const Type& type, arrow::TimeUnit::type unit, int64_t value) {
  const bool nanos = type.id == TypeId::kTimestampNs || type.id == TypeId::kTimestampTzNs;
  switch (unit) {
    case arrow::TimeUnit::SECOND:
      return value * (nanos ? 1'000'000'000 : 1'000'000);
    case arrow::TimeUnit::MILLI:
      return value * (nanos ? 1'000'000 : 1'000);
    case arrow::TimeUnit::MICRO:
      return nanos ? value * 1000 : value;
    case arrow::TimeUnit::NANO:
      return nanos ? value : FloorDiv(value, 1000);
  }
  return value;
}

template <typename Array>
auto ValueOf(const arrow::Array& column, int64_t row) {
  return static_cast<const Array&>(column).Value(row);
}

template <typename Array>
std::string ViewOf(const arrow::Array& column, int64_t row) {
  return std::string(static_cast<const Array&>(column).GetView(row));
}

Status NoLiteral(const Type& type, const arrow::DataType& arrow_type) {
  return Status::InvalidArgument(fmt::format("Arrow values of type {} are not values of type {}",
                                             arrow_type.ToString(), FormatType(type)));
}

Result<Literal> RawLiteralAt(const Type& type, const arrow::Array& column, int64_t row) {
  switch (column.type_id()) {
    case arrow::Type::BOOL:
      return Literal::Boolean(ValueOf<arrow::BooleanArray>(column, row));
    case arrow::Type::INT8:
      return Literal::Long(ValueOf<arrow::Int8Array>(column, row));
    case arrow::Type::INT16:
      return Literal::Long(ValueOf<arrow::Int16Array>(column, row));
    case arrow::Type::INT32:
      return Literal::Long(ValueOf<arrow::Int32Array>(column, row));
    case arrow::Type::INT64:
      return Literal::Long(ValueOf<arrow::Int64Array>(column, row));
    case arrow::Type::UINT8:
      return Literal::Long(ValueOf<arrow::UInt8Array>(column, row));
    case arrow::Type::UINT16:
      return Literal::Long(ValueOf<arrow::UInt16Array>(column, row));
    case arrow::Type::UINT32:
      return Literal::Long(ValueOf<arrow::UInt32Array>(column, row));
    case arrow::Type::UINT64:
      return Literal::Decimal(static_cast<Int128>(ValueOf<arrow::UInt64Array>(column, row)));
    case arrow::Type::FLOAT:
      return Literal::Double(ValueOf<arrow::FloatArray>(column, row));
    case arrow::Type::DOUBLE:
      return Literal::Double(ValueOf<arrow::DoubleArray>(column, row));
    case arrow::Type::DATE32:
      return Literal::Long(ValueOf<arrow::Date32Array>(column, row));
    case arrow::Type::DATE64:
      return Literal::Long(FloorDiv(ValueOf<arrow::Date64Array>(column, row), 86'400'000));
    case arrow::Type::TIME32:
      return Literal::Long(Rescale(type,
                                   static_cast<const arrow::Time32Type&>(*column.type()).unit(),
                                   ValueOf<arrow::Time32Array>(column, row)));
    case arrow::Type::TIME64:
      return Literal::Long(Rescale(type,
                                   static_cast<const arrow::Time64Type&>(*column.type()).unit(),
                                   ValueOf<arrow::Time64Array>(column, row)));
    case arrow::Type::TIMESTAMP:
      return Literal::Long(Rescale(type,
                                   static_cast<const arrow::TimestampType&>(*column.type()).unit(),
                                   ValueOf<arrow::TimestampArray>(column, row)));
    case arrow::Type::DECIMAL128:
      return Literal::Decimal(FromDecimal128(
          arrow::Decimal128(static_cast<const arrow::Decimal128Array&>(column).GetValue(row))));
    case arrow::Type::STRING:
      return Literal::String(ViewOf<arrow::StringArray>(column, row));
    case arrow::Type::LARGE_STRING:
      return Literal::String(ViewOf<arrow::LargeStringArray>(column, row));
    case arrow::Type::STRING_VIEW:
      return Literal::String(ViewOf<arrow::StringViewArray>(column, row));
    case arrow::Type::BINARY:
      return Literal::String(ViewOf<arrow::BinaryArray>(column, row));
    case arrow::Type::LARGE_BINARY:
      return Literal::String(ViewOf<arrow::LargeBinaryArray>(column, row));
    case arrow::Type::BINARY_VIEW:
      return Literal::String(ViewOf<arrow::BinaryViewArray>(column, row));
    case arrow::Type::FIXED_SIZE_BINARY:
      return Literal::String(ViewOf<arrow::FixedSizeBinaryArray>(column, row));
    default:
      return NoLiteral(type, *column.type());
  }
}

// The Arrow result of a transform, built one value at a time.
Status AppendTo(arrow::ArrayBuilder& builder, const Literal& literal) {
  if (literal.is_null()) {
    TARN_RETURN_IF_ERROR(builder.AppendNull());
    return Status::Ok();
  }
  const auto* number = std::get_if<int64_t>(&literal.value);
  switch (builder.type()->id()) {
    case arrow::Type::INT32:
      return FromArrow(
          static_cast<arrow::Int32Builder&>(builder).Append(static_cast<int32_t>(*number)));
    case arrow::Type::DATE32:
      return FromArrow(
          static_cast<arrow::Date32Builder&>(builder).Append(static_cast<int32_t>(*number)));
    case arrow::Type::INT64:
      return FromArrow(static_cast<arrow::Int64Builder&>(builder).Append(*number));
    case arrow::Type::TIME64:
      return FromArrow(static_cast<arrow::Time64Builder&>(builder).Append(*number));
    case arrow::Type::TIMESTAMP:
      return FromArrow(static_cast<arrow::TimestampBuilder&>(builder).Append(*number));
    case arrow::Type::BOOL:
      return FromArrow(
          static_cast<arrow::BooleanBuilder&>(builder).Append(std::get<bool>(literal.value)));
    case arrow::Type::FLOAT:
      return FromArrow(static_cast<arrow::FloatBuilder&>(builder).Append(
          static_cast<float>(std::get<double>(literal.value))));
    case arrow::Type::DOUBLE:
      return FromArrow(
          static_cast<arrow::DoubleBuilder&>(builder).Append(std::get<double>(literal.value)));
    case arrow::Type::DECIMAL128: {
      const Int128 value = std::get<Int128>(literal.value);
      return FromArrow(static_cast<arrow::Decimal128Builder&>(builder).Append(
          arrow::Decimal128(static_cast<int64_t>(value >> 64), static_cast<uint64_t>(value))));
    }
    case arrow::Type::STRING:
      return FromArrow(static_cast<arrow::StringBuilder&>(builder).Append(literal.AsString()));
    case arrow::Type::BINARY:
      return FromArrow(static_cast<arrow::BinaryBuilder&>(builder).Append(literal.AsString()));
    case arrow::Type::FIXED_SIZE_BINARY:
      return FromArrow(
          static_cast<arrow::FixedSizeBinaryBuilder&>(builder).Append(literal.AsString()));
    default:
      return Status::Internal(
          fmt::format("no builder for Arrow type {}", builder.type()->ToString()));
  }
}

}  // namespace

Result<Literal> LiteralAt(const Type& type, const arrow::Array& column, int64_t row) {
  if (column.IsNull(row) || column.type_id() == arrow::Type::NA) {
    return Literal::Null();
  }
  if (column.type_id() == arrow::Type::EXTENSION) {
    return LiteralAt(type, *static_cast<const arrow::ExtensionArray&>(column).storage(), row);
  }
  if (column.type_id() == arrow::Type::DICTIONARY) {
    const auto& dictionary = static_cast<const arrow::DictionaryArray&>(column);
    return LiteralAt(type, *dictionary.dictionary(), dictionary.GetValueIndex(row));
  }
  TARN_ASSIGN_OR_RETURN(Literal literal, RawLiteralAt(type, column, row));
  if (const auto* number = std::get_if<int64_t>(&literal.value);
      number != nullptr && type.id == TypeId::kDecimal) {
    TARN_ASSIGN_OR_RETURN(literal, CastLiteral(Type::Long(), type, literal));
  }
  if (!IsLiteralOf(type, literal)) {
    return NoLiteral(type, *column.type());
  }
  return literal;
}

Result<Literal> LiteralFromScalar(const Type& type, const arrow::Scalar& scalar) {
  if (!scalar.is_valid) {
    return Literal::Null();
  }
  TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::Array> column,
                        arrow::MakeArrayFromScalar(scalar, 1));
  return LiteralAt(type, *column, 0);
}

Result<std::shared_ptr<arrow::Array>> ApplyTransform(const Transform& transform, const Type& source,
                                                     const arrow::Array& column) {
  TARN_ASSIGN_OR_RETURN(const Type result, TransformResultType(transform, source));
  TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::DataType> type, ToArrowType(result));
  if (transform.kind == TransformKind::kIdentity && column.type()->Equals(*type)) {
    return arrow::MakeArray(column.data());
  }
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<arrow::ArrayBuilder> builder,
                        arrow::MakeBuilder(type));
  TARN_RETURN_IF_ERROR(builder->Reserve(column.length()));
  for (int64_t row = 0; row < column.length(); ++row) {
    TARN_ASSIGN_OR_RETURN(const Literal value, LiteralAt(source, column, row));
    TARN_ASSIGN_OR_RETURN(const Literal transformed, ApplyTransform(transform, source, value));
    TARN_RETURN_IF_ERROR(AppendTo(*builder, transformed));
  }
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> out, builder->Finish());
  return out;
}

}  // namespace tarn::iceberg
