#include "tarn/engine/result_types.h"

#include <cstdlib>

#include <arrow/api.h>
#include <arrow/c/bridge.h>
#include <arrow/compute/api.h>
#include <arrow/extension/uuid.h>
#include <arrow/util/decimal.h>

#include "tarn/base/arrow_status.h"
#include "tarn/base/uuid.h"

namespace tarn::engine {
namespace {

using ArrowType = std::shared_ptr<arrow::DataType>;

Result<ResultNode> Plan(duckdb_logical_type type, const ArrowType& raw);

Result<ResultNode> PlanList(duckdb_logical_type child, const ArrowType& raw) {
  const auto& list = static_cast<const arrow::BaseListType&>(*raw);
  TARN_ASSIGN_OR_RETURN(ResultNode element, Plan(child, list.value_type()));
  const auto field = arrow::field("element", element.type);
  ResultNode node{.step = ResultStep::kNested};
  switch (raw->id()) {
    case arrow::Type::LIST:
      node.type = arrow::list(field);
      break;
    case arrow::Type::FIXED_SIZE_LIST:
      node.type = arrow::fixed_size_list(
          field, static_cast<const arrow::FixedSizeListType&>(*raw).list_size());
      break;
    default:
      return Status::Internal("a list came as " + raw->ToString());
  }
  node.children.push_back(std::move(element));
  return node;
}

Result<ResultNode> PlanStruct(duckdb_logical_type type, const ArrowType& raw) {
  ResultNode node{.step = ResultStep::kNested};
  arrow::FieldVector fields;
  for (int i = 0; i < raw->num_fields(); ++i) {
    const TypeHandle child(duckdb_struct_type_child_type(type, static_cast<idx_t>(i)));
    TARN_ASSIGN_OR_RETURN(ResultNode member, Plan(child.get(), raw->field(i)->type()));
    fields.push_back(arrow::field(raw->field(i)->name(), member.type));
    node.children.push_back(std::move(member));
  }
  node.type = arrow::struct_(fields);
  return node;
}

Result<ResultNode> PlanMap(duckdb_logical_type type, const ArrowType& raw) {
  const TypeHandle key_type(duckdb_map_type_key_type(type));
  const TypeHandle value_type(duckdb_map_type_value_type(type));
  const auto& map = static_cast<const arrow::MapType&>(*raw);
  TARN_ASSIGN_OR_RETURN(ResultNode key, Plan(key_type.get(), map.key_type()));
  TARN_ASSIGN_OR_RETURN(ResultNode value, Plan(value_type.get(), map.item_type()));
  ResultNode entries{.step = ResultStep::kNested};
  const auto map_type = arrow::map(key.type, arrow::field("value", value.type));
  entries.type = static_cast<const arrow::MapType&>(*map_type).value_type();
  entries.children.push_back(std::move(key));
  entries.children.push_back(std::move(value));
  ResultNode node{.step = ResultStep::kNested, .type = map_type};
  node.children.push_back(std::move(entries));
  return node;
}

Result<ResultNode> Plan(duckdb_logical_type type, const ArrowType& raw) {
  switch (duckdb_get_type_id(type)) {
    case DUCKDB_TYPE_UUID:
      return ResultNode{.step = ResultStep::kUuid, .type = arrow::extension::uuid()};
    case DUCKDB_TYPE_HUGEINT:
      return ResultNode{.step = ResultStep::kHuge, .type = arrow::decimal128(38, 0)};
    case DUCKDB_TYPE_ENUM:
      return ResultNode{.step = ResultStep::kDecode, .type = arrow::utf8()};
    case DUCKDB_TYPE_INTERVAL:
      return ResultNode{.step = ResultStep::kInterval, .type = arrow::utf8()};
    case DUCKDB_TYPE_TIMESTAMP_S:
    case DUCKDB_TYPE_TIMESTAMP_MS:
      return ResultNode{.step = ResultStep::kMicros,
                        .type = arrow::timestamp(arrow::TimeUnit::MICRO)};
    case DUCKDB_TYPE_TIMESTAMP_TZ:
      return ResultNode{.type = arrow::timestamp(arrow::TimeUnit::MICRO, "UTC")};
    case DUCKDB_TYPE_LIST: {
      const TypeHandle child(duckdb_list_type_child_type(type));
      return PlanList(child.get(), raw);
    }
    case DUCKDB_TYPE_ARRAY: {
      const TypeHandle child(duckdb_array_type_child_type(type));
      return PlanList(child.get(), raw);
    }
    case DUCKDB_TYPE_STRUCT:
      return PlanStruct(type, raw);
    case DUCKDB_TYPE_MAP:
      return PlanMap(type, raw);
    case DUCKDB_TYPE_UHUGEINT:
    case DUCKDB_TYPE_TIME_TZ:
    case DUCKDB_TYPE_UNION:
    case DUCKDB_TYPE_BIT:
    case DUCKDB_TYPE_BIGNUM:
    case DUCKDB_TYPE_INVALID:
    case DUCKDB_TYPE_ANY:
      return Status::InvalidArgument(
          "has a type without a counterpart; cast it, for example to "
          "VARCHAR");
    default:
      return ResultNode{.type = raw};
  }
}

bool Changes(const ResultNode& node, const arrow::DataType& raw) {
  if (node.step != ResultStep::kKeep && node.step != ResultStep::kNested) {
    return true;
  }
  if (!node.type->Equals(raw, true)) {
    return true;
  }
  for (size_t i = 0; i < node.children.size(); ++i) {
    if (Changes(node.children[i], *raw.field(static_cast<int>(i))->type())) {
      return true;
    }
  }
  return false;
}

Result<std::shared_ptr<arrow::Array>> ParseUuids(const arrow::Array& array, const ArrowType& type) {
  const auto& texts = static_cast<const arrow::StringArray&>(array);
  arrow::FixedSizeBinaryBuilder builder(arrow::fixed_size_binary(16));
  TARN_RETURN_IF_ERROR(builder.Reserve(texts.length()));
  for (int64_t i = 0; i < texts.length(); ++i) {
    if (texts.IsNull(i)) {
      builder.UnsafeAppendNull();
      continue;
    }
    TARN_ASSIGN_OR_RETURN(const Uuid uuid, Uuid::Parse(texts.GetView(i)));
    builder.UnsafeAppend(uuid.bytes.data());
  }
  TARN_ASSIGN_OR_RETURN(const auto bytes, builder.Finish());
  return arrow::ExtensionType::WrapArray(type, bytes);
}

Status CheckHuge(const arrow::Array& array) {
  const auto& values = static_cast<const arrow::Decimal128Array&>(array);
  for (int64_t i = 0; i < values.length(); ++i) {
    if (values.IsValid(i) && !arrow::Decimal128(values.GetValue(i)).FitsInPrecision(38)) {
      return Status::InvalidArgument("value " +
                                     arrow::Decimal128(values.GetValue(i)).ToIntegerString() +
                                     " has more than 38 digits; cast it, for example to VARCHAR");
    }
  }
  return Status::Ok();
}

void AppendUnit(int64_t count, std::string_view unit, std::string& out) {
  if (count != 0) {
    out += out.empty() ? "" : " ";
    out += std::to_string(count) + " " + std::string(unit);
    out += std::llabs(count) == 1 ? "" : "s";
  }
}

/// The engine's own text of an interval: "1 year 2 months 3 days 04:05:06.5".
std::string FormatInterval(const arrow::MonthDayNanoIntervalType::MonthDayNanos& value) {
  std::string out;
  AppendUnit(value.months / 12, "year", out);
  AppendUnit(value.months % 12, "month", out);
  AppendUnit(value.days, "day", out);
  const int64_t micros = value.nanoseconds / 1000;
  if (micros == 0) {
    return out.empty() ? "00:00:00" : out;
  }
  const int64_t size = std::llabs(micros);
  const auto pad = [](int64_t number, size_t width) {
    std::string digits = std::to_string(number);
    return digits.size() < width ? std::string(width - digits.size(), '0') + digits : digits;
  };
  out += out.empty() ? "" : " ";
  out += micros < 0 ? "-" : "";
  out += pad(size / 3'600'000'000, 2) + ":" + pad(size / 60'000'000 % 60, 2) + ":" +
         pad(size / 1'000'000 % 60, 2);
  if (size % 1'000'000 != 0) {
    std::string fraction = pad(size % 1'000'000, 6);
    fraction.erase(fraction.find_last_not_of('0') + 1);
    out += "." + fraction;
  }
  return out;
}

Result<std::shared_ptr<arrow::Array>> FormatIntervals(const arrow::Array& array) {
  const auto& values = static_cast<const arrow::MonthDayNanoIntervalArray&>(array);
  arrow::StringBuilder builder;
  for (int64_t i = 0; i < values.length(); ++i) {
    if (values.IsNull(i)) {
      TARN_RETURN_IF_ERROR(builder.AppendNull());
    } else {
      TARN_RETURN_IF_ERROR(builder.Append(FormatInterval(values.GetValue(i))));
    }
  }
  TARN_ASSIGN_OR_RETURN(auto texts, builder.Finish());
  return std::shared_ptr<arrow::Array>(std::move(texts));
}

Result<std::shared_ptr<arrow::ArrayData>> ConvertData(const std::shared_ptr<arrow::ArrayData>& raw,
                                                      const ResultNode& node) {
  const auto data =
      [](Result<std::shared_ptr<arrow::Array>> array) -> Result<std::shared_ptr<arrow::ArrayData>> {
    TARN_RETURN_IF_ERROR(array.status());
    return (*array)->data();
  };
  switch (node.step) {
    case ResultStep::kUuid:
      return data(ParseUuids(*arrow::MakeArray(raw), node.type));
    case ResultStep::kInterval:
      return data(FormatIntervals(*arrow::MakeArray(raw)));
    case ResultStep::kDecode:
    case ResultStep::kMicros: {
      TARN_ASSIGN_OR_RETURN(const auto array,
                            arrow::compute::Cast(*arrow::MakeArray(raw), node.type));
      return array->data();
    }
    case ResultStep::kHuge:
      TARN_RETURN_IF_ERROR(CheckHuge(*arrow::MakeArray(raw)));
      break;
    case ResultStep::kKeep:
    case ResultStep::kNested:
      break;
  }
  auto copy = raw->Copy();
  copy->type = node.type;
  for (size_t i = 0; i < node.children.size(); ++i) {
    TARN_ASSIGN_OR_RETURN(copy->child_data[i], ConvertData(raw->child_data[i], node.children[i]));
  }
  return copy;
}

}  // namespace

Result<ResultTypes> ResultTypes::Make(ArrowOptionsHandle options, std::vector<TypeHandle> types,
                                      const std::vector<std::string>& names) {
  std::vector<duckdb_logical_type> raw_types;
  std::vector<const char*> raw_names;
  for (size_t i = 0; i < types.size(); ++i) {
    raw_types.push_back(types[i].get());
    raw_names.push_back(names[i].c_str());
  }
  ArrowSchema exported;
  TARN_RETURN_IF_ERROR(FromDuckError(duckdb_to_arrow_schema(
      options.get(), raw_types.data(), raw_names.data(), types.size(), &exported)));
  ResultTypes result;
  result.options_ = std::move(options);
  TARN_ASSIGN_OR_RETURN(result.raw_schema_, arrow::ImportSchema(&exported));
  arrow::FieldVector fields;
  for (size_t i = 0; i < types.size(); ++i) {
    const ArrowType& raw = result.raw_schema_->field(static_cast<int>(i))->type();
    Result<ResultNode> node = Plan(types[i].get(), raw);
    if (!node.ok()) {
      return node.status().WithContext("column \"" + names[i] + "\"");
    }
    result.changed_ = result.changed_ || Changes(*node, *raw);
    fields.push_back(arrow::field(names[i], node->type));
    result.nodes_.push_back(*std::move(node));
  }
  result.schema_ = arrow::schema(fields);
  return result;
}

Result<std::shared_ptr<arrow::RecordBatch>> ResultTypes::Convert(duckdb_data_chunk chunk) const {
  ArrowArray exported;
  TARN_RETURN_IF_ERROR(FromDuckError(duckdb_data_chunk_to_arrow(options_.get(), chunk, &exported)));
  TARN_ASSIGN_OR_RETURN(const auto raw, arrow::ImportRecordBatch(&exported, raw_schema_));
  if (!changed_) {
    return arrow::RecordBatch::Make(schema_, raw->num_rows(), raw->column_data());
  }
  std::vector<std::shared_ptr<arrow::ArrayData>> columns;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    Result<std::shared_ptr<arrow::ArrayData>> column =
        ConvertData(raw->column_data(static_cast<int>(i)), nodes_[i]);
    if (!column.ok()) {
      return column.status().WithContext("column \"" + schema_->field(static_cast<int>(i))->name() +
                                         "\"");
    }
    columns.push_back(*std::move(column));
  }
  return arrow::RecordBatch::Make(schema_, raw->num_rows(), std::move(columns));
}

}  // namespace tarn::engine
