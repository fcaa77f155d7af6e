#include "tarn/transform/canonical_text.h"

#include <array>
#include <charconv>

#include <arrow/api.h>
#include <arrow/compute/api.h>
#include <arrow/extension/uuid.h>

#include "tarn/base/arrow_status.h"
#include "tarn/engine/value_text.h"
#include "tarn/transform/sha1_block.h"

namespace tarn::transform {
namespace {

constexpr char kSeparator = '\x08';
constexpr char kNull = '\0';

bool IsUuid(const arrow::DataType& type) {
  return type.id() == arrow::Type::EXTENSION &&
         static_cast<const arrow::ExtensionType&>(type).extension_name() == "arrow.uuid";
}

/// Appends the text of each row; `append` writes that of one value that is not NULL.
template <typename Append>
CanonicalTexts Collect(const arrow::Array& array, int64_t bytes_per_row, const Append& append) {
  CanonicalTexts texts;
  const int64_t count = array.length();
  texts.offsets.reserve(static_cast<size_t>(count) + 1);
  texts.bytes.reserve(static_cast<size_t>(count * bytes_per_row));
  texts.offsets.push_back(0);
  const bool has_nulls = array.null_count() > 0;
  for (int64_t i = 0; i < count; ++i) {
    if (has_nulls && array.IsNull(i)) {
      texts.bytes += kNull;
    } else {
      append(i, texts.bytes);
    }
    texts.offsets.push_back(static_cast<int64_t>(texts.bytes.size()));
  }
  return texts;
}

template <typename ArrayType>
CanonicalTexts CollectIntegers(const arrow::Array& array) {
  const auto* values = static_cast<const ArrayType&>(array).raw_values();
  return Collect(array, 12, [values](int64_t i, std::string& out) {
    std::array<char, 24> buffer;
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), values[i]).ptr;
    out.append(buffer.data(), end);
  });
}

template <typename ArrayType>
CanonicalTexts CollectBytes(const arrow::Array& array, bool hex) {
  const auto& values = static_cast<const ArrayType&>(array);
  return Collect(array, 16, [&values, hex](int64_t i, std::string& out) {
    if (hex) {
      engine::AppendHex(values.GetView(i), engine::HexCase::kUpper, out);
    } else {
      out += values.GetView(i);
    }
  });
}

/// Microseconds of one timestamp or time unit; beyond-range units are cut to whole microseconds.
int64_t ToMicros(int64_t value, arrow::TimeUnit::type unit) {
  switch (unit) {
    case arrow::TimeUnit::SECOND:
      return value * 1'000'000;
    case arrow::TimeUnit::MILLI:
      return value * 1000;
    case arrow::TimeUnit::MICRO:
      return value;
    case arrow::TimeUnit::NANO:
      return value / 1000 - (value % 1000 < 0 ? 1 : 0);
  }
  return value;
}

CanonicalTexts CollectTimestamps(const arrow::Array& array) {
  const auto& type = static_cast<const arrow::TimestampType&>(*array.type());
  const auto suffix =
      type.timezone().empty() ? engine::ZoneSuffix::kNone : engine::ZoneSuffix::kUtc;
  const int64_t* values = static_cast<const arrow::TimestampArray&>(array).raw_values();
  return Collect(array, 27, [&type, suffix, values](int64_t i, std::string& out) {
    engine::AppendTimestamp(ToMicros(values[i], type.unit()), suffix, out);
  });
}

template <typename ArrayType>
CanonicalTexts CollectTimes(const arrow::Array& array, arrow::TimeUnit::type unit) {
  const auto* values = static_cast<const ArrayType&>(array).raw_values();
  return Collect(array, 15, [unit, values](int64_t i, std::string& out) {
    engine::AppendTime(ToMicros(values[i], unit), out);
  });
}

CanonicalTexts CollectUuids(const arrow::Array& array) {
  const auto& storage = static_cast<const arrow::FixedSizeBinaryArray&>(
      *static_cast<const arrow::ExtensionArray&>(array).storage());
  return Collect(array, 36, [&storage](int64_t i, std::string& out) {
    engine::AppendUuid(storage.GetValue(i), out);
  });
}

CanonicalTexts CollectDecimals(const arrow::Array& array) {
  const auto& values = static_cast<const arrow::Decimal128Array&>(array);
  const int32_t scale = static_cast<const arrow::Decimal128Type&>(*array.type()).scale();
  return Collect(array, 20, [&values, scale](int64_t i, std::string& out) {
    engine::AppendDecimal(values.GetValue(i), scale, out);
  });
}

CanonicalTexts CollectIntegers(const arrow::Array& array) {
  switch (array.type_id()) {
    case arrow::Type::INT8:
      return CollectIntegers<arrow::Int8Array>(array);
    case arrow::Type::INT16:
      return CollectIntegers<arrow::Int16Array>(array);
    case arrow::Type::INT32:
      return CollectIntegers<arrow::Int32Array>(array);
    case arrow::Type::INT64:
      return CollectIntegers<arrow::Int64Array>(array);
    case arrow::Type::UINT8:
      return CollectIntegers<arrow::UInt8Array>(array);
    case arrow::Type::UINT16:
      return CollectIntegers<arrow::UInt16Array>(array);
    case arrow::Type::UINT32:
      return CollectIntegers<arrow::UInt32Array>(array);
    default:
      return CollectIntegers<arrow::UInt64Array>(array);
  }
}

Status NoText(const arrow::DataType& type) {
  return Status::InvalidArgument("values of type " + type.ToString() + " have no canonical text");
}

/// SHA-1 of the keys that `Text(row)` gives.
template <typename Text>
Result<std::shared_ptr<arrow::Array>> HashRows(int64_t count, const Text& text) {
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Buffer> digests, arrow::AllocateBuffer(count * 20));
  uint8_t* out = digests->mutable_data();
  for (int64_t i = 0; i < count; ++i) {
    Sha1Short(text(i), out + i * 20);
  }
  return std::make_shared<arrow::FixedSizeBinaryArray>(arrow::fixed_size_binary(20), count,
                                                       std::move(digests));
}

std::string_view TextOf(const CanonicalTexts& texts, int64_t row) {
  const auto i = static_cast<size_t>(row);
  return {texts.bytes.data() + texts.offsets[i],
          static_cast<size_t>(texts.offsets[i + 1] - texts.offsets[i])};
}

}  // namespace

bool HasCanonicalText(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::BOOL:
    case arrow::Type::INT8:
    case arrow::Type::INT16:
    case arrow::Type::INT32:
    case arrow::Type::INT64:
    case arrow::Type::UINT8:
    case arrow::Type::UINT16:
    case arrow::Type::UINT32:
    case arrow::Type::UINT64:
    case arrow::Type::FLOAT:
    case arrow::Type::DOUBLE:
    case arrow::Type::DECIMAL128:
    case arrow::Type::STRING:
    case arrow::Type::LARGE_STRING:
    case arrow::Type::BINARY:
    case arrow::Type::LARGE_BINARY:
    case arrow::Type::FIXED_SIZE_BINARY:
    case arrow::Type::DATE32:
    case arrow::Type::TIME32:
    case arrow::Type::TIME64:
    case arrow::Type::TIMESTAMP:
      return true;
    case arrow::Type::DICTIONARY:
      return HasCanonicalText(*static_cast<const arrow::DictionaryType&>(type).value_type());
    default:
      return IsUuid(type);
  }
}

bool CanBeKey(const arrow::DataType& type) {
  if (type.id() == arrow::Type::DICTIONARY) {
    return CanBeKey(*static_cast<const arrow::DictionaryType&>(type).value_type());
  }
  return HasCanonicalText(type) && type.id() != arrow::Type::FLOAT &&
         type.id() != arrow::Type::DOUBLE;
}

Result<CanonicalTexts> MakeCanonicalTexts(const arrow::Array& column) {
  if (arrow::is_integer(column.type_id())) {
    return CollectIntegers(column);
  }
  switch (column.type_id()) {
    case arrow::Type::BOOL: {
      const auto& values = static_cast<const arrow::BooleanArray&>(column);
      return Collect(column, 5, [&values](int64_t i, std::string& out) {
        out += values.Value(i) ? "true" : "false";
      });
    }
    case arrow::Type::FLOAT: {
      const float* values = static_cast<const arrow::FloatArray&>(column).raw_values();
      return Collect(column, 12, [values](int64_t i, std::string& out) {
        engine::AppendFloat(values[i], out);
      });
    }
    case arrow::Type::DOUBLE: {
      const double* values = static_cast<const arrow::DoubleArray&>(column).raw_values();
      return Collect(column, 18, [values](int64_t i, std::string& out) {
        engine::AppendDouble(values[i], out);
      });
    }
    case arrow::Type::DECIMAL128:
      return CollectDecimals(column);
    case arrow::Type::STRING:
      return CollectBytes<arrow::StringArray>(column, false);
    case arrow::Type::LARGE_STRING:
      return CollectBytes<arrow::LargeStringArray>(column, false);
    case arrow::Type::BINARY:
      return CollectBytes<arrow::BinaryArray>(column, true);
    case arrow::Type::LARGE_BINARY:
      return CollectBytes<arrow::LargeBinaryArray>(column, true);
    case arrow::Type::FIXED_SIZE_BINARY:
      return CollectBytes<arrow::FixedSizeBinaryArray>(column, true);
    case arrow::Type::DATE32: {
      const int32_t* values = static_cast<const arrow::Date32Array&>(column).raw_values();
      return Collect(column, 10,
                     [values](int64_t i, std::string& out) { engine::AppendDate(values[i], out); });
    }
    case arrow::Type::TIME32:
      return CollectTimes<arrow::Time32Array>(
          column, static_cast<const arrow::Time32Type&>(*column.type()).unit());
    case arrow::Type::TIME64:
      return CollectTimes<arrow::Time64Array>(
          column, static_cast<const arrow::Time64Type&>(*column.type()).unit());
    case arrow::Type::TIMESTAMP:
      return CollectTimestamps(column);
    case arrow::Type::DICTIONARY: {
      const auto& type = static_cast<const arrow::DictionaryType&>(*column.type());
      TARN_ASSIGN_OR_RETURN(const auto plain, arrow::compute::Cast(column, type.value_type()));
      return MakeCanonicalTexts(*plain);
    }
    default:
      return IsUuid(*column.type()) ? Result<CanonicalTexts>(CollectUuids(column))
                                    : NoText(*column.type());
  }
}

Result<std::shared_ptr<arrow::Array>> KeyHashes(
    const std::vector<std::shared_ptr<arrow::Array>>& key_columns) {
  if (key_columns.empty()) {
    return Status::InvalidArgument("a key hash needs at least one key column");
  }
  const int64_t count = key_columns[0]->length();
  std::vector<CanonicalTexts> texts;
  for (const auto& column : key_columns) {
    if (!CanBeKey(*column->type())) {
      return Status::InvalidArgument("a column of type " + column->type()->ToString() +
                                     " cannot be part of a key");
    }
    if (column->length() != count) {
      return Status::InvalidArgument("key columns have " + std::to_string(count) + " and " +
                                     std::to_string(column->length()) + " rows");
    }
    TARN_ASSIGN_OR_RETURN(CanonicalTexts text, MakeCanonicalTexts(*column));
    texts.push_back(std::move(text));
  }
  if (texts.size() == 1) {
    return HashRows(count, [&texts](int64_t row) { return TextOf(texts[0], row); });
  }
  std::string joined;
  return HashRows(count, [&texts, &joined](int64_t row) {
    joined.clear();
    for (size_t i = 0; i < texts.size(); ++i) {
      if (i > 0) {
        joined += kSeparator;
      }
      joined += TextOf(texts[i], row);
    }
    return std::string_view(joined);
  });
}

Result<std::shared_ptr<arrow::Array>> KeyHashes(const arrow::RecordBatch& batch,
                                                const std::vector<int>& key_columns) {
  std::vector<std::shared_ptr<arrow::Array>> columns;
  for (const int index : key_columns) {
    if (index < 0 || index >= batch.num_columns()) {
      return Status::InvalidArgument("key column " + std::to_string(index) + " of a batch with " +
                                     std::to_string(batch.num_columns()) + " columns");
    }
    columns.push_back(batch.column(index));
  }
  return KeyHashes(columns);
}

Result<std::shared_ptr<arrow::Array>> HashColumn(const arrow::Array& column) {
  TARN_ASSIGN_OR_RETURN(const CanonicalTexts texts, MakeCanonicalTexts(column));
  arrow::StringBuilder builder;
  TARN_RETURN_IF_ERROR(builder.Reserve(column.length()));
  TARN_RETURN_IF_ERROR(builder.ReserveData(column.length() * 40));
  std::array<uint8_t, 20> digest;
  std::string hex;
  for (int64_t i = 0; i < column.length(); ++i) {
    if (column.IsNull(i)) {
      builder.UnsafeAppendNull();
      continue;
    }
    Sha1Short(TextOf(texts, i), digest.data());
    hex.clear();
    engine::AppendHex({reinterpret_cast<const char*>(digest.data()), digest.size()},
                      engine::HexCase::kLower, hex);
    builder.UnsafeAppend(hex);
  }
  TARN_ASSIGN_OR_RETURN(auto hashes, builder.Finish());
  return std::shared_ptr<arrow::Array>(std::move(hashes));
}

}  // namespace tarn::transform
