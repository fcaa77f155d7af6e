#include "tarn/lakehouse/table_making.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/lakehouse/header_columns.h"
#include "tarn/lakehouse/internal_schema.h"

namespace tarn::lakehouse {

namespace {

using iceberg::TableMetadata;

Status Changed(const TableSpec& spec, std::string_view key, std::string_view known,
               std::string_view wanted) {
  return Status::FailedPrecondition(fmt::format(
      "table {}.{} was made with {}: {}, and now {} is wanted: set it back, or make the table anew "
      "with `tarn task recreate {}`",
      spec.internal_schema, spec.internal_name(), key, known, wanted, spec.owner));
}

std::string PropertyOf(const TableMetadata& metadata, std::string_view name) {
  const auto found = metadata.properties.find(std::string(name));
  return found == metadata.properties.end() ? "" : found->second;
}

std::string ColumnName(const TableMetadata& metadata, int32_t id) {
  const iceberg::SchemaField* field = metadata.CurrentSchema().FindField(id);
  return field == nullptr ? fmt::format("#{}", id) : field->name;
}

// As partition_by has it: "day(c)", "bucket(16, c)", "c".
std::string PartitionText(const TableMetadata& metadata, const iceberg::PartitionField& field) {
  const std::string column = ColumnName(metadata, field.source_id);
  const std::string transform = iceberg::FormatTransform(field.transform);
  if (field.transform.kind == iceberg::TransformKind::kIdentity) {
    return column;
  }
  const size_t bracket = transform.find('[');
  return bracket == std::string::npos ? fmt::format("{}({})", transform, column)
                                      : fmt::format("{}({}, {})", transform.substr(0, bracket),
                                                    field.transform.parameter, column);
}

std::string ListText(const std::vector<std::string>& texts) {
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

std::string PartitionsText(const TableMetadata& metadata,
                           const std::vector<iceberg::PartitionField>& fields) {
  std::vector<std::string> texts;
  for (const iceberg::PartitionField& field : fields) {
    if (field.source_id >= kFirstUserFieldId) {
      texts.push_back(PartitionText(metadata, field));
    }
  }
  return ListText(texts);
}

std::string SortText(const TableMetadata& metadata, const iceberg::SortOrder& order) {
  std::vector<std::string> texts;
  for (const iceberg::SortField& field : order.fields) {
    const bool falls = field.direction == iceberg::SortDirection::kDescending;
    texts.push_back(ColumnName(metadata, field.source_id) + (falls ? " desc" : ""));
  }
  return ListText(texts);
}

Status CheckPartitionBy(const TableSpec& spec, const TableMetadata& metadata) {
  std::string known = "[]";
  for (const iceberg::PartitionSpec& one : metadata.partition_specs) {
    if (one.spec_id == metadata.default_spec_id) {
      known = PartitionsText(metadata, one.fields);
    }
  }
  const auto fields = ParsePartitionBy(spec.partition_by, metadata.CurrentSchema());
  const std::string wanted =
      fields.ok() ? PartitionsText(metadata, *fields) : ListText(spec.partition_by);
  return known == wanted ? Status::Ok() : Changed(spec, "partition_by", known, wanted);
}

Status CheckSortBy(const TableSpec& spec, const TableMetadata& metadata) {
  std::string known = "[]";
  for (const iceberg::SortOrder& one : metadata.sort_orders) {
    if (one.order_id == metadata.default_sort_order_id) {
      known = SortText(metadata, one);
    }
  }
  const auto order = ParseSortBy(spec.sort_by, metadata.CurrentSchema());
  const std::string wanted = order.ok() ? SortText(metadata, *order) : ListText(spec.sort_by);
  return known == wanted ? Status::Ok() : Changed(spec, "sort_by", known, wanted);
}

std::string TablePropertiesText(const TableSpec& spec) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, value] : spec.table_properties) {
    json[name] = value;
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Status CheckTableProperties(const TableSpec& spec, const TableMetadata& metadata) {
  const std::string known = PropertyOf(metadata, kTablePropertiesProperty);
  const std::string wanted = TablePropertiesText(spec);
  if (!known.empty()) {
    return known == wanted ? Status::Ok() : Changed(spec, "table_properties", known, wanted);
  }
  for (const auto& [name, value] : spec.table_properties) {
    if (PropertyOf(metadata, name) != value) {
      return Changed(spec, "table_properties",
                     fmt::format("{} \"{}\"", name, PropertyOf(metadata, name)),
                     fmt::format("\"{}\"", value));
    }
  }
  return Status::Ok();
}

Status CheckNames(const TableSpec& spec, const MadeTarget& made) {
  const std::string schema = PropertyOf(made.internal, kSchemaProperty);
  if (schema.empty() ? !made.has_view : schema != spec.external_schema) {
    return Changed(spec, "schema", schema.empty() ? "another one" : schema, spec.external_schema);
  }
  if (!spec.fold.history) {
    return Status::Ok();
  }
  std::string suffix = PropertyOf(made.internal, kHistorySuffixProperty);
  if (suffix.empty() && made.current_view != nullptr) {
    const std::string& name = made.current_view->history_name;
    suffix = name.starts_with(spec.name) ? name.substr(spec.name.size()) : name;
  }
  return suffix.empty() || suffix == spec.history_suffix
             ? Status::Ok()
             : Changed(spec, "history_suffix", suffix, spec.history_suffix);
}

}  // namespace

std::map<std::string, std::string> MakingProperties(const TableSpec& spec) {
  return {{std::string(kSchemaProperty), spec.external_schema},
          {std::string(kHistorySuffixProperty), spec.history_suffix},
          {std::string(kTablePropertiesProperty), TablePropertiesText(spec)}};
}

Status CheckMaking(const TableSpec& spec, const MadeTarget& made) {
  TARN_RETURN_IF_ERROR(CheckNames(spec, made));
  const bool publishes = spec.publish == Publish::kApplied;
  if (spec.mode == Mode::kMerge && publishes != made.has_applied) {
    return Changed(spec, "publish", made.has_applied ? "applied" : "none",
                   publishes ? "applied" : "none");
  }
  TARN_RETURN_IF_ERROR(CheckPartitionBy(spec, made.internal));
  TARN_RETURN_IF_ERROR(CheckSortBy(spec, made.internal));
  return CheckTableProperties(spec, made.internal);
}

}  // namespace tarn::lakehouse
