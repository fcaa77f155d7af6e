#include "tarn/iceberg/data_file.h"

#include <charconv>
#include <cmath>

#include <arrow/api.h>
#include <fmt/format.h>

#include "tarn/iceberg/transform.h"

namespace tarn::iceberg {
namespace {

constexpr std::string_view kDefaultKey = "write.metadata.metrics.default";
constexpr std::string_view kColumnPrefix = "write.metadata.metrics.column.";
constexpr int64_t kColumnsWithBounds = 100;

bool IsInsideCollection(const Schema& schema, int32_t field_id) {
  for (std::optional<int32_t> parent = schema.ParentOf(field_id); parent;
       parent = schema.ParentOf(*parent)) {
    if (schema.FindField(*parent)->type.id != TypeId::kStruct) {
      return true;
    }
  }
  return false;
}

// Zero as the bound that holds both zeros.
Literal WidenZero(const Literal& bound, bool lower) {
  const auto* number = std::get_if<double>(&bound.value);
  return number != nullptr && *number == 0 ? Literal::Double(lower ? -0.0 : 0.0) : bound;
}

bool CanTruncate(const Type& type) {
  return type.id == TypeId::kString || type.id == TypeId::kBinary;
}

Status AddBounds(const SchemaField& field, const format::ColumnStatistics& column,
                 const MetricsMode& mode, DataFile& file) {
  if (column.min == nullptr || column.max == nullptr) {
    return Status::Ok();
  }
  TARN_ASSIGN_OR_RETURN(const Literal min, LiteralFromScalar(field.type, *column.min));
  TARN_ASSIGN_OR_RETURN(const Literal max, LiteralFromScalar(field.type, *column.max));
  if (min.is_null() || max.is_null() || min.is_nan() || max.is_nan()) {
    return Status::Ok();
  }
  TARN_ASSIGN_OR_RETURN(std::string lower, EncodeLiteral(field.type, WidenZero(min, true)));
  TARN_ASSIGN_OR_RETURN(std::string upper, EncodeLiteral(field.type, WidenZero(max, false)));
  if (mode.kind == MetricsMode::Kind::kTruncate && CanTruncate(field.type)) {
    lower = TruncateLower(field.type, lower, mode.length);
    const std::optional<std::string> cut = TruncateUpper(field.type, upper, mode.length);
    if (!cut) {
      file.lower_bounds.Set(field.id, std::move(lower));
      return Status::Ok();
    }
    upper = *cut;
  }
  file.lower_bounds.Set(field.id, std::move(lower));
  file.upper_bounds.Set(field.id, std::move(upper));
  return Status::Ok();
}

}  // namespace

Result<MetricsMode> ParseMetricsMode(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower == "none") {
    return MetricsMode{MetricsMode::Kind::kNone, 0};
  }
  if (lower == "counts") {
    return MetricsMode{MetricsMode::Kind::kCounts, 0};
  }
  if (lower == "full") {
    return MetricsMode{MetricsMode::Kind::kFull, 0};
  }
  if (lower.starts_with("truncate(") && lower.ends_with(")")) {
    int32_t length = 0;
    const char* begin = lower.data() + 9;
    const char* end = lower.data() + lower.size() - 1;
    const auto [stop, error] = std::from_chars(begin, end, length);
    if (error == std::errc() && stop == end && length > 0) {
      return MetricsMode{MetricsMode::Kind::kTruncate, length};
    }
  }
  return Status::InvalidArgument(fmt::format("'{}' is not a metrics mode", text));
}

MetricsMode MetricsConfig::ModeOf(int32_t field_id) const {
  const auto at = columns.find(field_id);
  return at == columns.end() ? otherwise : at->second;
}

MetricsConfig MetricsConfig::From(const std::map<std::string, std::string>& properties,
                                  const Schema& schema,
                                  const std::vector<int32_t>& sort_column_ids) {
  MetricsConfig config;
  const auto given = properties.find(std::string(kDefaultKey));
  const Result<MetricsMode> otherwise = given == properties.end()
                                            ? Result<MetricsMode>(MetricsMode{})
                                            : ParseMetricsMode(given->second);
  config.otherwise = otherwise.ok() ? *otherwise : MetricsMode{};
  if (given == properties.end() || !otherwise.ok()) {
    int64_t leaves = 0;
    for (const SchemaField* field : AllFields(schema)) {
      if (!field->type.is_nested() && ++leaves > kColumnsWithBounds) {
        config.columns[field->id] = {MetricsMode::Kind::kNone, 0};
      }
    }
  }
  std::vector<int32_t> always = schema.identifier_field_ids;
  always.insert(always.end(), sort_column_ids.begin(), sort_column_ids.end());
  for (const int32_t id : always) {
    const MetricsMode mode = config.ModeOf(id);
    if (mode.kind == MetricsMode::Kind::kNone || mode.kind == MetricsMode::Kind::kCounts) {
      config.columns[id] = MetricsMode{};
    }
  }
  for (const auto& [key, value] : properties) {
    if (!key.starts_with(kColumnPrefix)) {
      continue;
    }
    const SchemaField* field = schema.FindField(key.substr(kColumnPrefix.size()));
    const Result<MetricsMode> mode = ParseMetricsMode(value);
    if (field != nullptr && mode.ok()) {
      config.columns[field->id] = *mode;
    }
  }
  return config;
}

Result<DataFile> MakeDataFile(const Schema& schema, const format::FileStatistics& statistics,
                              const DataFileOptions& options) {
  DataFile file;
  file.content = options.content;
  file.file_path = options.file_path;
  file.spec_id = options.spec_id;
  file.partition = options.partition;
  file.record_count = statistics.row_count;
  file.file_size_bytes = statistics.size_bytes;
  file.split_offsets = statistics.split_offsets;
  file.sort_order_id = options.sort_order_id;
  for (const format::ColumnStatistics& column : statistics.columns) {
    const SchemaField* field = column.field_id < 0 ? nullptr : schema.FindField(column.field_id);
    if (field == nullptr || field->type.is_nested()) {
      continue;
    }
    const MetricsMode mode = options.metrics.ModeOf(field->id);
    file.column_sizes.Set(field->id, column.column_size_bytes);
    if (mode.kind == MetricsMode::Kind::kNone || IsInsideCollection(schema, field->id)) {
      continue;
    }
    file.value_counts.Set(field->id, column.value_count);
    if (column.null_count) {
      file.null_value_counts.Set(field->id, *column.null_count);
    }
    if (column.nan_count) {
      file.nan_value_counts.Set(field->id, *column.nan_count);
    }
    if (mode.kind != MetricsMode::Kind::kCounts) {
      const Status status = AddBounds(*field, column, mode, file);
      if (!status.ok()) {
        return status.WithContext(fmt::format("statistics of column '{}'", field->name));
      }
    }
  }
  return file;
}

}  // namespace tarn::iceberg
