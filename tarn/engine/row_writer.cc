#include "tarn/engine/row_writer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include <arrow/api.h>

#include "tarn/base/arrow_status.h"
#include "tarn/base/json_text.h"
#include "tarn/engine/value_text.h"

namespace tarn::engine {
namespace {

Status AppendValue(const arrow::Array& array, int64_t row, bool json, std::string& out);

bool IsUuid(const arrow::DataType& type) {
  return type.id() == arrow::Type::EXTENSION &&
         static_cast<const arrow::ExtensionType&>(type).extension_name() == "arrow.uuid";
}

bool IsNested(const arrow::DataType& type) { return arrow::is_nested(type.id()); }

bool IsNumber(const arrow::DataType& type) {
  return arrow::is_numeric(type.id()) || arrow::is_decimal(type.id());
}

void AppendText(std::string_view text, bool json, std::string& out) {
  if (json) {
    AppendJsonString(text, out);
  } else {
    out += text;
  }
}

/// Runs `append` between quotes in JSON.
template <typename Append>
void Quoted(bool json, std::string& out, const Append& append) {
  out += json ? "\"" : "";
  append();
  out += json ? "\"" : "";
}

template <typename ArrayType>
void AppendReal(const arrow::Array& array, int64_t row, bool json, std::string& out) {
  const auto value = static_cast<const ArrayType&>(array).Value(row);
  const bool quoted = json && !std::isfinite(value);
  Quoted(quoted, out, [&] {
    if constexpr (std::is_same_v<ArrayType, arrow::FloatArray>) {
      AppendFloat(value, out);
    } else {
      AppendDouble(value, out);
    }
  });
}

int64_t ToMicros(int64_t value, arrow::TimeUnit::type unit) {
  switch (unit) {
    case arrow::TimeUnit::SECOND:
      return value * 1'000'000;
    case arrow::TimeUnit::MILLI:
      return value * 1000;
    default:
      return value;
  }
}

/// Time or timestamp of `value` units; nanoseconds keep their three further digits.
template <typename Append>
void AppendUnits(int64_t value, arrow::TimeUnit::type unit, std::string& out,
                 const Append& append) {
  if (unit != arrow::TimeUnit::NANO) {
    append(ToMicros(value, unit));
    return;
  }
  const int64_t rest = ((value % 1000) + 1000) % 1000;
  append((value - rest) / 1000);
  std::string digits = std::to_string(1000 + rest).substr(1);
  const bool zone = !out.empty() && out.back() == 'Z';
  out.insert(out.size() - (zone ? 1 : 0), digits);
}

void AppendTimestampValue(const arrow::Array& array, int64_t row, std::string& out) {
  const auto& type = static_cast<const arrow::TimestampType&>(*array.type());
  const auto suffix = type.timezone().empty() ? ZoneSuffix::kNone : ZoneSuffix::kUtc;
  AppendUnits(static_cast<const arrow::TimestampArray&>(array).Value(row), type.unit(), out,
              [&](int64_t micros) { AppendTimestamp(micros, suffix, out); });
}

Status AppendList(const arrow::Array& values, int64_t begin, int64_t end, std::string& out) {
  out += '[';
  for (int64_t i = begin; i < end; ++i) {
    out += i > begin ? "," : "";
    TARN_RETURN_IF_ERROR(AppendJsonValue(values, i, out));
  }
  out += ']';
  return Status::Ok();
}

Status AppendStruct(const arrow::StructArray& array, int64_t row, std::string& out) {
  out += '{';
  for (int i = 0; i < array.num_fields(); ++i) {
    out += i > 0 ? "," : "";
    AppendJsonString(array.struct_type()->field(i)->name(), out);
    out += ':';
    TARN_RETURN_IF_ERROR(AppendJsonValue(*array.field(i), row, out));
  }
  out += '}';
  return Status::Ok();
}

/// A map is an object when its keys are text, else an array of {"key", "value"}.
Status AppendMap(const arrow::MapArray& array, int64_t row, std::string& out) {
  const bool object = array.map_type()->key_type()->id() == arrow::Type::STRING;
  out += object ? '{' : '[';
  for (int64_t i = array.value_offset(row); i < array.value_offset(row + 1); ++i) {
    out += i > array.value_offset(row) ? "," : "";
    out += object ? "" : "{\"key\":";
    TARN_RETURN_IF_ERROR(AppendJsonValue(*array.keys(), i, out));
    out += object ? ":" : ",\"value\":";
    TARN_RETURN_IF_ERROR(AppendJsonValue(*array.items(), i, out));
    out += object ? "" : "}";
  }
  out += object ? '}' : ']';
  return Status::Ok();
}

Status AppendNested(const arrow::Array& array, int64_t row, std::string& out) {
  switch (array.type_id()) {
    case arrow::Type::LIST: {
      const auto& list = static_cast<const arrow::ListArray&>(array);
      return AppendList(*list.values(), list.value_offset(row), list.value_offset(row + 1), out);
    }
    case arrow::Type::LARGE_LIST: {
      const auto& list = static_cast<const arrow::LargeListArray&>(array);
      return AppendList(*list.values(), list.value_offset(row), list.value_offset(row + 1), out);
    }
    case arrow::Type::FIXED_SIZE_LIST: {
      const auto& list = static_cast<const arrow::FixedSizeListArray&>(array);
      return AppendList(*list.values(), list.value_offset(row),
                        list.value_offset(row) + list.value_length(), out);
    }
    case arrow::Type::MAP:
      return AppendMap(static_cast<const arrow::MapArray&>(array), row, out);
    default:
      return AppendStruct(static_cast<const arrow::StructArray&>(array), row, out);
  }
}

Status AppendBytes(const arrow::Array& array, int64_t row, bool json, std::string& out) {
  std::string_view bytes;
  switch (array.type_id()) {
    case arrow::Type::BINARY:
      bytes = static_cast<const arrow::BinaryArray&>(array).GetView(row);
      break;
    case arrow::Type::LARGE_BINARY:
      bytes = static_cast<const arrow::LargeBinaryArray&>(array).GetView(row);
      break;
    default:
      bytes = static_cast<const arrow::FixedSizeBinaryArray&>(array).GetView(row);
      break;
  }
  Quoted(json, out, [&] { AppendHex(bytes, HexCase::kLower, out); });
  return Status::Ok();
}

Status AppendTimes(const arrow::Array& array, int64_t row, bool json, std::string& out) {
  Quoted(json, out, [&] {
    const auto append = [&](int64_t micros) { AppendTime(micros, out); };
    switch (array.type_id()) {
      case arrow::Type::DATE32:
        AppendDate(static_cast<const arrow::Date32Array&>(array).Value(row), out);
        break;
      case arrow::Type::TIME32:
        AppendUnits(static_cast<const arrow::Time32Array&>(array).Value(row),
                    static_cast<const arrow::Time32Type&>(*array.type()).unit(), out, append);
        break;
      case arrow::Type::TIME64:
        AppendUnits(static_cast<const arrow::Time64Array&>(array).Value(row),
                    static_cast<const arrow::Time64Type&>(*array.type()).unit(), out, append);
        break;
      default:
        AppendTimestampValue(array, row, out);
        break;
    }
  });
  return Status::Ok();
}

void AppendInteger(const arrow::Array& array, int64_t row, std::string& out) {
  switch (array.type_id()) {
    case arrow::Type::INT8:
      engine::AppendInteger(static_cast<const arrow::Int8Array&>(array).Value(row), out);
      break;
    case arrow::Type::INT16:
      engine::AppendInteger(static_cast<const arrow::Int16Array&>(array).Value(row), out);
      break;
    case arrow::Type::INT32:
      engine::AppendInteger(static_cast<const arrow::Int32Array&>(array).Value(row), out);
      break;
    case arrow::Type::INT64:
      engine::AppendInteger(static_cast<const arrow::Int64Array&>(array).Value(row), out);
      break;
    case arrow::Type::UINT8:
      AppendUnsigned(static_cast<const arrow::UInt8Array&>(array).Value(row), out);
      break;
    case arrow::Type::UINT16:
      AppendUnsigned(static_cast<const arrow::UInt16Array&>(array).Value(row), out);
      break;
    case arrow::Type::UINT32:
      AppendUnsigned(static_cast<const arrow::UInt32Array&>(array).Value(row), out);
      break;
    case arrow::Type::UINT64:
      AppendUnsigned(static_cast<const arrow::UInt64Array&>(array).Value(row), out);
      break;
    default:
      break;
  }
}

/// One value that is not NULL; without `json` as plain text (nested values as JSON all the same).
Status AppendValue(const arrow::Array& array, int64_t row, bool json, std::string& out) {
  if (arrow::is_integer(array.type_id())) {
    AppendInteger(array, row, out);
    return Status::Ok();
  }
  switch (array.type_id()) {
    case arrow::Type::BOOL:
      out += static_cast<const arrow::BooleanArray&>(array).Value(row) ? "true" : "false";
      return Status::Ok();
    case arrow::Type::FLOAT:
      AppendReal<arrow::FloatArray>(array, row, json, out);
      return Status::Ok();
    case arrow::Type::DOUBLE:
      AppendReal<arrow::DoubleArray>(array, row, json, out);
      return Status::Ok();
    case arrow::Type::DECIMAL128:
      AppendDecimal(static_cast<const arrow::Decimal128Array&>(array).GetValue(row),
                    static_cast<const arrow::Decimal128Type&>(*array.type()).scale(), out);
      return Status::Ok();
    case arrow::Type::STRING:
      AppendText(static_cast<const arrow::StringArray&>(array).GetView(row), json, out);
      return Status::Ok();
    case arrow::Type::LARGE_STRING:
      AppendText(static_cast<const arrow::LargeStringArray&>(array).GetView(row), json, out);
      return Status::Ok();
    case arrow::Type::BINARY:
    case arrow::Type::LARGE_BINARY:
    case arrow::Type::FIXED_SIZE_BINARY:
      return AppendBytes(array, row, json, out);
    case arrow::Type::DATE32:
    case arrow::Type::TIME32:
    case arrow::Type::TIME64:
    case arrow::Type::TIMESTAMP:
      return AppendTimes(array, row, json, out);
    case arrow::Type::LIST:
    case arrow::Type::LARGE_LIST:
    case arrow::Type::FIXED_SIZE_LIST:
    case arrow::Type::MAP:
    case arrow::Type::STRUCT:
      return AppendNested(array, row, out);
    case arrow::Type::EXTENSION:
      if (IsUuid(*array.type())) {
        const auto& storage = static_cast<const arrow::FixedSizeBinaryArray&>(
            *static_cast<const arrow::ExtensionArray&>(array).storage());
        Quoted(json, out, [&] { AppendUuid(storage.GetValue(row), out); });
        return Status::Ok();
      }
      break;
    default:
      break;
  }
  return Status::Unimplemented("values of type " + array.type()->ToString() +
                               " cannot be written as text");
}

Status CheckType(const arrow::DataType& type) {
  if (IsNested(type)) {
    for (const auto& field : type.fields()) {
      TARN_RETURN_IF_ERROR(CheckType(*field->type()));
    }
    return type.id() == arrow::Type::DENSE_UNION || type.id() == arrow::Type::SPARSE_UNION
               ? Status::Unimplemented("unions cannot be written as text")
               : Status::Ok();
  }
  if (type.id() == arrow::Type::NA) {
    return Status::Ok();
  }
  const auto sample = arrow::MakeArrayOfNull(type.GetSharedPtr(), 1);
  TARN_RETURN_IF_ERROR(StatusOf(sample));
  static constexpr arrow::Type::type kRefused[] = {arrow::Type::DICTIONARY,
                                                   arrow::Type::HALF_FLOAT,
                                                   arrow::Type::DECIMAL256,
                                                   arrow::Type::INTERVAL_MONTHS,
                                                   arrow::Type::INTERVAL_DAY_TIME,
                                                   arrow::Type::DURATION,
                                                   arrow::Type::DATE64,
                                                   arrow::Type::STRING_VIEW,
                                                   arrow::Type::BINARY_VIEW,
                                                   arrow::Type::DECIMAL32,
                                                   arrow::Type::DECIMAL64,
                                                   arrow::Type::INTERVAL_MONTH_DAY_NANO};
  const bool refused =
      std::find(std::begin(kRefused), std::end(kRefused), type.id()) != std::end(kRefused) ||
      (type.id() == arrow::Type::EXTENSION && !IsUuid(type));
  return refused ? Status::Unimplemented("values of type " + type.ToString() +
                                         " cannot be written as text")
                 : Status::Ok();
}

class JsonWriter : public RowWriter {
 public:
  JsonWriter(RowFormat format, const std::shared_ptr<arrow::Schema>& schema, TextSink sink)
      : lines_(format == RowFormat::kJsonLines), sink_(std::move(sink)) {
    for (const auto& field : schema->fields()) {
      std::string name = names_.empty() ? "{" : ",";
      AppendJsonString(field->name(), name);
      names_.push_back(name + ":");
    }
  }

  Status Write(const arrow::RecordBatch& batch) override {
    text_.clear();
    for (int64_t row = 0; row < batch.num_rows(); ++row) {
      text_ += lines_ ? "" : (started_ ? ",\n" : "[");
      started_ = true;
      for (int i = 0; i < batch.num_columns(); ++i) {
        text_ += names_[static_cast<size_t>(i)];
        TARN_RETURN_IF_ERROR(AppendJsonValue(*batch.column(i), row, text_));
      }
      text_ += names_.empty() ? "{}" : "}";
      text_ += lines_ ? "\n" : "";
    }
    return sink_(text_);
  }

  Status Finish() override { return lines_ ? Status::Ok() : sink_(started_ ? "]\n" : "[]\n"); }

 private:
  bool lines_;
  bool started_ = false;
  TextSink sink_;
  std::vector<std::string> names_;
  std::string text_;
};

class CsvWriter : public RowWriter {
 public:
  CsvWriter(const std::shared_ptr<arrow::Schema>& schema, TextSink sink) : sink_(std::move(sink)) {
    for (const auto& field : schema->fields()) {
      header_ += header_.empty() ? "" : ",";
      AppendField(field->name(), header_);
    }
    header_ += "\r\n";
  }

  Status Write(const arrow::RecordBatch& batch) override {
    std::string text = TakeHeader();
    std::string field;
    for (int64_t row = 0; row < batch.num_rows(); ++row) {
      for (int i = 0; i < batch.num_columns(); ++i) {
        text += i > 0 ? "," : "";
        if (batch.column(i)->IsValid(row)) {
          field.clear();
          TARN_RETURN_IF_ERROR(AppendValue(*batch.column(i), row, false, field));
          AppendField(field, text);
        }
      }
      text += "\r\n";
    }
    return sink_(text);
  }

  Status Finish() override { return sink_(TakeHeader()); }

 private:
  std::string TakeHeader() { return std::exchange(header_, std::string()); }

  static void AppendField(std::string_view field, std::string& out) {
    if (!field.empty() && field.find_first_of(",\"\r\n") == std::string_view::npos &&
        field.front() != ' ' && field.back() != ' ') {
      out += field;
      return;
    }
    out += '"';
    for (const char c : field) {
      out += c;
      out += c == '"' ? "\"" : "";
    }
    out += '"';
  }

  TextSink sink_;
  std::string header_;  // Until it is written.
};

/// Columns of a text in a terminal: code points, which is right for most scripts.
size_t ShownWidth(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

class TableWriter : public RowWriter {
 public:
  TableWriter(std::shared_ptr<arrow::Schema> schema, TextSink sink)
      : schema_(std::move(schema)), sink_(std::move(sink)) {}

  Status Write(const arrow::RecordBatch& batch) override {
    std::vector<std::vector<std::string>> cells;
    for (int i = 0; i < batch.num_columns(); ++i) {
      cells.emplace_back();
      for (int64_t row = 0; row < batch.num_rows(); ++row) {
        TARN_ASSIGN_OR_RETURN(std::string cell, CellText(*batch.column(i), row));
        cells.back().push_back(std::move(cell));
      }
    }
    std::string text = Header(cells);
    for (size_t row = 0; row < static_cast<size_t>(batch.num_rows()); ++row) {
      for (size_t i = 0; i < cells.size(); ++i) {
        AppendCell(cells[i][row], i, text);
      }
      text += '\n';
    }
    row_count_ += batch.num_rows();
    return sink_(text);
  }

  Status Finish() override {
    return sink_(Header({}) + "(" + std::to_string(row_count_) +
                 (row_count_ == 1 ? " row)\n" : " rows)\n"));
  }

 private:
  static Result<std::string> CellText(const arrow::Array& array, int64_t row) {
    if (array.IsNull(row)) {
      return std::string("NULL");
    }
    std::string value;
    TARN_RETURN_IF_ERROR(AppendValue(array, row, false, value));
    std::string out;
    for (const char c : value) {
      if (c == '\n') {
        out += "\\n";
      } else if (static_cast<uint8_t>(c) < 0x20 || c == 0x7f) {
        // Control characters would move the cursor.
        out += "\\x";
        AppendHex({&c, 1}, HexCase::kLower, out);
      } else {
        out += c;
      }
    }
    return out;
  }

  /// The two lines above the rows, the first time it is called.
  std::string Header(const std::vector<std::vector<std::string>>& cells) {
    if (!widths_.empty() || schema_->num_fields() == 0) {
      return {};
    }
    for (int i = 0; i < schema_->num_fields(); ++i) {
      size_t width = ShownWidth(schema_->field(i)->name());
      if (!cells.empty()) {
        for (const std::string& cell : cells[static_cast<size_t>(i)]) {
          width = std::max(width, ShownWidth(cell));
        }
      }
      widths_.push_back(width);
    }
    std::string text;
    for (int i = 0; i < schema_->num_fields(); ++i) {
      AppendCell(schema_->field(i)->name(), static_cast<size_t>(i), text);
    }
    text += '\n';
    for (size_t i = 0; i < widths_.size(); ++i) {
      text += i > 0 ? "-+-" : "";
      text.append(widths_[i], '-');
    }
    return text + '\n';
  }

  void AppendCell(std::string_view cell, size_t column, std::string& out) const {
    const size_t width = ShownWidth(cell);
    const size_t fill = widths_[column] > width ? widths_[column] - width : 0;
    const bool right = IsNumber(*schema_->field(static_cast<int>(column))->type());
    const bool last = column + 1 == widths_.size();
    out += column > 0 ? " | " : "";
    out.append(right ? fill : 0, ' ');
    out += cell;
    out.append(right || last ? 0 : fill, ' ');
  }

  std::shared_ptr<arrow::Schema> schema_;
  TextSink sink_;
  std::vector<size_t> widths_;
  int64_t row_count_ = 0;
};

}  // namespace

void AppendJsonString(std::string_view text, std::string& out) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
  });
  if (plain) {
    out += '"';
    out += text;
    out += '"';
  } else {
    out += JsonString(text);
  }
}

Status AppendJsonValue(const arrow::Array& array, int64_t row, std::string& out) {
  if (array.IsNull(row) || array.type_id() == arrow::Type::NA) {
    out += "null";
    return Status::Ok();
  }
  return AppendValue(array, row, true, out);
}

Result<std::unique_ptr<RowWriter>> MakeRowWriter(RowFormat format,
                                                 std::shared_ptr<arrow::Schema> schema,
                                                 TextSink sink) {
  for (const auto& field : schema->fields()) {
    TARN_RETURN_IF_ERROR(CheckType(*field->type()).WithContext("column \"" + field->name() + "\""));
  }
  switch (format) {
    case RowFormat::kCsv:
      return std::unique_ptr<RowWriter>(std::make_unique<CsvWriter>(schema, std::move(sink)));
    case RowFormat::kTable:
      return std::unique_ptr<RowWriter>(
          std::make_unique<TableWriter>(std::move(schema), std::move(sink)));
    case RowFormat::kJson:
    case RowFormat::kJsonLines:
      break;
  }
  return std::unique_ptr<RowWriter>(std::make_unique<JsonWriter>(format, schema, std::move(sink)));
}

}  // namespace tarn::engine
