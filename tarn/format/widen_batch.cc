#include "tarn/format/widen_batch.h"

#include <algorithm>

#include <arrow/api.h>
#include <arrow/compute/api.h>

#include "tarn/base/arrow_status.h"
#include "tarn/format/column_node.h"
#include "tarn/format/json_escape.h"

namespace tarn::format {

namespace {

using ArrayPtr = std::shared_ptr<arrow::Array>;

bool IsNestedType(const arrow::DataType& type) {
  return type.id() == arrow::Type::STRUCT || type.id() == arrow::Type::LIST ||
         type.id() == arrow::Type::MAP;
}

bool EqualFolded(const std::string& a, const std::string& b) { return FoldCase(a) == FoldCase(b); }

// A scalar of one of our own types as a Cell; its bytes point into the array.
Cell CellAt(const arrow::Array& array, int64_t i) {
  Cell cell;
  const auto integer = [&](ColumnKind kind, int64_t value) {
    cell.kind = kind;
    cell.integer = value;
  };
  switch (array.type_id()) {
    case arrow::Type::BOOL:
      integer(ColumnKind::kBoolean, static_cast<const arrow::BooleanArray&>(array).Value(i));
      break;
    case arrow::Type::INT8:
      integer(ColumnKind::kLong, static_cast<const arrow::Int8Array&>(array).Value(i));
      break;
    case arrow::Type::INT16:
      integer(ColumnKind::kLong, static_cast<const arrow::Int16Array&>(array).Value(i));
      break;
    case arrow::Type::INT32:
      integer(ColumnKind::kLong, static_cast<const arrow::Int32Array&>(array).Value(i));
      break;
    case arrow::Type::INT64:
      integer(ColumnKind::kLong, static_cast<const arrow::Int64Array&>(array).Value(i));
      break;
    case arrow::Type::DATE32:
      integer(ColumnKind::kDate, static_cast<const arrow::Date32Array&>(array).Value(i));
      break;
    case arrow::Type::TIME64:
      integer(ColumnKind::kTime, static_cast<const arrow::Time64Array&>(array).Value(i));
      break;
    case arrow::Type::TIMESTAMP:
      integer(static_cast<const arrow::TimestampType&>(*array.type()).timezone().empty()
                  ? ColumnKind::kWallClock
                  : ColumnKind::kInstant,
              static_cast<const arrow::TimestampArray&>(array).Value(i));
      break;
    case arrow::Type::FLOAT:
      cell.kind = ColumnKind::kFloat;
      cell.real = static_cast<double>(static_cast<const arrow::FloatArray&>(array).Value(i));
      break;
    case arrow::Type::DOUBLE:
      cell.kind = ColumnKind::kDouble;
      cell.real = static_cast<const arrow::DoubleArray&>(array).Value(i);
      break;
    case arrow::Type::DECIMAL128:
      cell.kind = ColumnKind::kDecimal;
      cell.scale = static_cast<const arrow::DecimalType&>(*array.type()).scale();
      memcpy(&cell.decimal, static_cast<const arrow::Decimal128Array&>(array).GetValue(i), 16);
      break;
    case arrow::Type::EXTENSION:
      cell = CellAt(*static_cast<const arrow::ExtensionArray&>(array).storage(), i);
      cell.kind = ColumnKind::kUuid;
      break;
    case arrow::Type::FIXED_SIZE_BINARY:
      cell.kind = ColumnKind::kBinary;
      cell.bytes = static_cast<const arrow::FixedSizeBinaryArray&>(array).GetView(i);
      break;
    default:
      cell.kind =
          array.type_id() == arrow::Type::STRING ? ColumnKind::kString : ColumnKind::kBinary;
      cell.bytes = static_cast<const arrow::BinaryArray&>(array).GetView(i);
      break;
  }
  return cell;
}

void AppendJson(const arrow::Array& array, int64_t i, std::string& out) {
  if (array.IsNull(i)) {
    out += "null";
    return;
  }
  const auto range = [&](const arrow::Array& values, int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      out += k == begin ? "" : ",";
      AppendJson(values, k, out);
    }
  };
  switch (array.type_id()) {
    case arrow::Type::STRUCT: {
      const auto& structs = static_cast<const arrow::StructArray&>(array);
      out.push_back('{');
      for (int f = 0; f < structs.num_fields(); ++f) {
        out += f == 0 ? "" : ",";
        AppendJsonString(array.type()->field(f)->name(), out);
        out.push_back(':');
        AppendJson(*structs.field(f), i, out);
      }
      out.push_back('}');
      return;
    }
    case arrow::Type::LIST: {
      const auto& list = static_cast<const arrow::ListArray&>(array);
      out.push_back('[');
      range(*list.values(), list.value_offset(i), list.value_offset(i + 1));
      out.push_back(']');
      return;
    }
    case arrow::Type::MAP: {
      const auto& map = static_cast<const arrow::MapArray&>(array);
      out.push_back('{');
      for (int64_t k = map.value_offset(i); k < map.value_offset(i + 1); ++k) {
        out += k == map.value_offset(i) ? "" : ",";
        AppendJsonString(TextOf(CellAt(*map.keys(), k)), out);
        out.push_back(':');
        AppendJson(*map.items(), k, out);
      }
      out.push_back('}');
      return;
    }
    default:
      break;
  }
  const Cell cell = CellAt(array, i);
  const bool bare = cell.kind == ColumnKind::kBoolean || cell.kind == ColumnKind::kLong ||
                    cell.kind == ColumnKind::kDecimal ||
                    ((cell.kind == ColumnKind::kDouble || cell.kind == ColumnKind::kFloat) &&
                     TextOf(cell).find_first_of("Ny") == std::string::npos);
  if (bare) {
    out += TextOf(cell);
  } else {
    AppendJsonString(TextOf(cell), out);
  }
}

Result<ArrayPtr> ToText(const arrow::Array& array) {
  arrow::StringBuilder builder;
  std::string text;
  for (int64_t i = 0; i < array.length(); ++i) {
    if (array.IsNull(i)) {
      TARN_RETURN_IF_ERROR(builder.AppendNull());
      continue;
    }
    text.clear();
    if (IsNestedType(*array.type())) {
      AppendJson(array, i, text);
    } else {
      text = TextOf(CellAt(array, i));
    }
    TARN_RETURN_IF_ERROR(builder.Append(text));
  }
  TARN_ASSIGN_OR_RETURN(ArrayPtr result, builder.Finish());
  return result;
}

// Doubles as the decimals their shortest text shows.
Result<ArrayPtr> RealToDecimal(const arrow::Array& array, const FieldType& type,
                               const std::string& name) {
  arrow::Decimal128Builder builder(ToArrowType(type));
  for (int64_t i = 0; i < array.length(); ++i) {
    if (array.IsNull(i)) {
      TARN_RETURN_IF_ERROR(builder.AppendNull());
      continue;
    }
    const std::string text = TextOf(CellAt(array, i));
    ExactDecimal exact;
    if (text.find_first_of("Ny") == std::string::npos) {
      exact = ReadDecimal(text);
    }
    while (exact.fits && exact.scale > type.scale && exact.unscaled % 10 == 0) {
      exact.unscaled /= 10;
      --exact.scale;
    }
    const auto scaled = exact.fits && exact.scale <= type.scale
                            ? Rescale(exact.unscaled, type.scale - exact.scale)
                            : std::nullopt;
    if (!scaled.has_value() || (*scaled != 0 && DigitCount(*scaled) > type.precision)) {
      return Status::InvalidArgument("column " + name + ": " + text + " does not fit " +
                                     FormatTypeName(type));
    }
    arrow::Decimal128 value;
    memcpy(value.mutable_native_endian_bytes(), &*scaled, 16);
    TARN_RETURN_IF_ERROR(builder.Append(value));
  }
  TARN_ASSIGN_OR_RETURN(ArrayPtr result, builder.Finish());
  return result;
}

Result<ArrayPtr> CastTo(const ArrayPtr& array, const std::shared_ptr<arrow::DataType>& type,
                        const std::string& name) {
  static const arrow::Status initialized = arrow::compute::Initialize();
  TARN_RETURN_IF_ERROR(initialized);
  const auto cast = arrow::compute::Cast(*array, type, arrow::compute::CastOptions::Safe());
  if (!cast.ok()) {
    return Status::InvalidArgument("column " + name + ": a value of " + array->type()->ToString() +
                                   " does not fit " + type->ToString() + ": " +
                                   cast.status().message());
  }
  return *cast;
}

Result<std::shared_ptr<arrow::ArrayData>> WidenData(const std::shared_ptr<arrow::ArrayData>& data,
                                                    const FieldType& type,
                                                    const std::string& name) {
  TARN_ASSIGN_OR_RETURN(ArrayPtr widened, WidenArray(arrow::MakeArray(data), type, name));
  return widened->data();
}

// Same shape outside, wider inside. The offset of a slice stays as it is.
Result<ArrayPtr> WidenNested(const arrow::Array& array, const FieldType& type,
                             const std::string& name) {
  auto data = array.data()->Copy();
  data->type = ToArrowType(type);
  if (type.kind == FieldKind::kMap) {
    const auto& entries = array.data()->child_data[0];
    auto pairs = entries->Copy();
    pairs->type = static_cast<const arrow::MapType&>(*data->type).value_type();
    for (size_t i = 0; i < 2; ++i) {
      TARN_ASSIGN_OR_RETURN(pairs->child_data[i],
                            WidenData(entries->child_data[i], type.children[i].type, name));
    }
    data->child_data = {std::move(pairs)};
    return arrow::MakeArray(data);
  }
  if (type.kind == FieldKind::kArray) {
    TARN_ASSIGN_OR_RETURN(data->child_data[0], WidenData(array.data()->child_data[0],
                                                         type.children[0].type, name + ".element"));
    return arrow::MakeArray(data);
  }
  data->child_data.clear();
  for (const Field& member : type.children) {
    std::shared_ptr<arrow::ArrayData> child;
    for (int i = 0; i < array.type()->num_fields(); ++i) {
      if (EqualFolded(array.type()->field(i)->name(), member.name)) {
        child = array.data()->child_data[static_cast<size_t>(i)];
      }
    }
    if (child == nullptr) {
      TARN_ASSIGN_OR_RETURN(
          const ArrayPtr nulls,
          arrow::MakeArrayOfNull(ToArrowType(member.type), array.offset() + array.length()));
      child = nulls->data();
    } else {
      TARN_ASSIGN_OR_RETURN(child, WidenData(child, member.type, name + "." + member.name));
    }
    data->child_data.push_back(std::move(child));
  }
  return arrow::MakeArray(data);
}

}  // namespace

Result<std::shared_ptr<arrow::Array>> WidenArray(const std::shared_ptr<arrow::Array>& array,
                                                 const FieldType& type, const std::string& name) {
  const auto target = ToArrowType(type);
  if (array->type()->Equals(*target)) {
    return array;
  }
  if (array->null_count() == array->length()) {
    TARN_ASSIGN_OR_RETURN(ArrayPtr nulls, arrow::MakeArrayOfNull(target, array->length()));
    return nulls;
  }
  // First to the type of ours that loses nothing: large strings, dictionaries, other units.
  TARN_ASSIGN_OR_RETURN(const FieldType own, FromArrowType(*array->type()));
  ArrayPtr plain = array;
  if (!IsNestedType(*array->type()) && !array->type()->Equals(*ToArrowType(own))) {
    TARN_ASSIGN_OR_RETURN(plain, CastTo(array, ToArrowType(own), name));
  }
  if (plain->type()->Equals(*target)) {
    return plain;
  }
  if (type.kind == FieldKind::kString && type.detail != FieldDetail::kUuid) {
    return ToText(*plain);
  }
  if (own.kind == type.kind && IsNestedType(*plain->type())) {
    return WidenNested(*plain, type, name);
  }
  if (type.kind == FieldKind::kDecimal &&
      (own.kind == FieldKind::kFloat || own.kind == FieldKind::kDouble)) {
    return RealToDecimal(*plain, type, name);
  }
  return CastTo(plain, target, name);
}

Result<std::shared_ptr<arrow::RecordBatch>> WidenBatch(
    const std::shared_ptr<arrow::RecordBatch>& batch, const std::vector<Field>& fields) {
  arrow::ArrayVector arrays;
  arrays.reserve(fields.size());
  for (const Field& field : fields) {
    ArrayPtr found;
    for (int i = 0; i < batch->num_columns(); ++i) {
      if (EqualFolded(batch->column_name(i), field.name)) {
        found = batch->column(i);
      }
    }
    if (found == nullptr) {
      TARN_ASSIGN_OR_RETURN(found,
                            arrow::MakeArrayOfNull(ToArrowType(field.type), batch->num_rows()));
    } else {
      TARN_ASSIGN_OR_RETURN(found, WidenArray(found, field.type, field.name));
    }
    arrays.push_back(std::move(found));
  }
  return arrow::RecordBatch::Make(ToArrowSchema(fields), batch->num_rows(), std::move(arrays));
}

}  // namespace tarn::format
