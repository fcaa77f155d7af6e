#include "tarn/lakehouse/internal_schema.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace tarn::lakehouse {

namespace {

using iceberg::PartitionField;
using iceberg::Schema;
using iceberg::SchemaField;
using iceberg::Type;

Type HeaderTypeOf(HeaderType type) {
  switch (type) {
    case HeaderType::kString:
      return Type::String();
    case HeaderType::kFixed20:
      return Type::Fixed(20);
    case HeaderType::kTimestampTz:
      return Type::TimestampTz();
  }
  return Type::String();
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') {
    text.remove_prefix(1);
  }
  while (!text.empty() && text.back() == ' ') {
    text.remove_suffix(1);
  }
  return text;
}

// "bucket(16, id)" taken apart: transform "bucket[16]" and column "id".
struct PartitionText {
  std::string transform = "identity";
  std::string column;
};

Result<PartitionText> SplitPartitionText(std::string_view expression) {
  const std::string_view text = Trim(expression);
  const size_t open = text.find('(');
  if (open == std::string_view::npos) {
    return PartitionText{.column = std::string(text)};
  }
  if (!text.ends_with(')')) {
    return Status::InvalidArgument(
        fmt::format("partition_by \"{}\": expected ')' at the end", expression));
  }
  PartitionText parts;
  parts.transform = std::string(Trim(text.substr(0, open)));
  const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  const size_t comma = inside.find(',');
  if (comma == std::string_view::npos) {
    parts.column = std::string(Trim(inside));
    return parts;
  }
  parts.transform += fmt::format("[{}]", Trim(inside.substr(0, comma)));
  parts.column = std::string(Trim(inside.substr(comma + 1)));
  return parts;
}

Result<PartitionField> ParsePartitionField(std::string_view expression, const Schema& schema) {
  TARN_ASSIGN_OR_RETURN(const PartitionText parts, SplitPartitionText(expression));
  const SchemaField* source = schema.FindField(parts.column, iceberg::CaseRule::kInsensitive);
  if (source == nullptr || IsHeaderName(parts.column)) {
    return Status::InvalidArgument(
        fmt::format("partition_by \"{}\": there is no column {}", expression, parts.column));
  }
  TARN_ASSIGN_OR_RETURN(iceberg::Transform transform, iceberg::ParseTransform(parts.transform));
  if (transform.kind == iceberg::TransformKind::kUnknown) {
    return Status::InvalidArgument(fmt::format(
        "partition_by \"{}\": {} is none of identity, bucket, truncate, year, month, day, hour",
        expression, parts.transform));
  }
  const Result<Type> type = iceberg::TransformResultType(transform, source->type);
  if (!type.ok()) {
    return type.status().WithContext(fmt::format("partition_by \"{}\"", expression));
  }
  return PartitionField{.source_id = source->id,
                        .field_id = 0,
                        .name = iceberg::DefaultPartitionFieldName(source->name, transform),
                        .transform = std::move(transform)};
}

// The internal spec's field, which every later spec starts with.
PartitionField PartitionColumnField() {
  return {.source_id = Spec(HeaderColumn::kPartition).field_id,
          .field_id = iceberg::kFirstPartitionFieldId,
          .name = std::string(Name(HeaderColumn::kPartition)),
          .transform = iceberg::Transform::Identity()};
}

Status AddUserSpec(const std::vector<PartitionField>& fields, Mode mode,
                   iceberg::TableMetadata& metadata) {
  iceberg::PartitionSpec spec{.spec_id = 1, .fields = {}};
  if (mode == Mode::kMerge) {
    spec.fields.push_back(PartitionColumnField());
  }
  for (PartitionField field : fields) {
    field.field_id = ++metadata.last_partition_id;
    spec.fields.push_back(std::move(field));
  }
  TARN_RETURN_IF_ERROR(iceberg::ValidatePartitionSpec(spec, metadata.CurrentSchema()));
  metadata.default_spec_id = spec.spec_id;
  metadata.partition_specs.push_back(std::move(spec));
  return Status::Ok();
}

}  // namespace

Schema InternalSchema(const Schema& users) {
  Schema schema;
  for (const HeaderColumnSpec& column : kHeaderColumns) {
    SchemaField field;
    field.id = column.field_id;
    field.name = std::string(column.name);
    field.required = false;
    field.type = HeaderTypeOf(column.type);
    schema.fields.push_back(std::move(field));
  }
  int32_t next_id = kFirstUserFieldId;
  for (SchemaField field : users.fields) {
    field.id = next_id++;  // Placeholder: the table gives ids at every level afresh.
    field.required = false;
    schema.fields.push_back(std::move(field));
  }
  return schema;
}

Schema UserSchema(const Schema& internal) {
  Schema users;
  for (const SchemaField& field : internal.fields) {
    if (field.id >= kFirstUserFieldId) {
      users.fields.push_back(field);
    }
  }
  return users;
}

std::vector<std::string> UserColumnNames(const Schema& internal) {
  std::vector<std::string> names;
  for (const SchemaField& field : internal.fields) {
    if (field.id >= kFirstUserFieldId) {
      names.push_back(field.name);
    }
  }
  return names;
}

iceberg::PartitionSpec InternalSpec() {
  return {.spec_id = kInternalSpecId, .fields = {PartitionColumnField()}};
}

Result<std::vector<PartitionField>> ParsePartitionBy(const std::vector<std::string>& expressions,
                                                     const Schema& schema) {
  std::vector<PartitionField> fields;
  for (const std::string& expression : expressions) {
    TARN_ASSIGN_OR_RETURN(PartitionField field, ParsePartitionField(expression, schema));
    fields.push_back(std::move(field));
  }
  return fields;
}

Result<iceberg::SortOrder> ParseSortBy(const std::vector<std::string>& expressions,
                                       const Schema& schema) {
  iceberg::SortOrder order;
  for (const std::string& expression : expressions) {
    std::string_view text = Trim(expression);
    iceberg::SortField field;
    const size_t space = text.rfind(' ');
    const std::string_view last =
        space == std::string_view::npos ? std::string_view() : text.substr(space + 1);
    if (last == "desc" || last == "asc") {
      field.direction =
          last == "desc" ? iceberg::SortDirection::kDescending : iceberg::SortDirection::kAscending;
      text = Trim(text.substr(0, space));
    }
    field.null_order = field.direction == iceberg::SortDirection::kAscending
                           ? iceberg::NullOrder::kFirst
                           : iceberg::NullOrder::kLast;
    const SchemaField* source = schema.FindField(text, iceberg::CaseRule::kInsensitive);
    if (source == nullptr || source->type.is_nested()) {
      return Status::InvalidArgument(
          fmt::format("sort_by \"{}\": there is no plain column {}", expression, text));
    }
    field.source_id = source->id;
    order.fields.push_back(std::move(field));
  }
  order.order_id = order.fields.empty() ? 0 : 1;
  return order;
}

const SchemaField* FindColumn(const std::vector<SchemaField>& columns, std::string_view name) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  const auto alike = [&](const SchemaField& column) {
    return std::equal(column.name.begin(), column.name.end(), name.begin(), name.end(),
                      [&](char a, char b) { return lower(a) == lower(b); });
  };
  auto found = std::find_if(columns.begin(), columns.end(),
                            [&](const SchemaField& column) { return column.name == name; });
  if (found == columns.end()) {
    found = std::find_if(columns.begin(), columns.end(), alike);
  }
  return found == columns.end() ? nullptr : &*found;
}

std::vector<std::string> SpelledKey(const std::vector<std::string>& key, const Schema& users) {
  std::vector<std::string> spelled;
  for (const std::string& name : key) {
    const SchemaField* column = FindColumn(users.fields, name);
    spelled.push_back(column == nullptr ? name : column->name);
  }
  return spelled;
}

Status CheckKeyColumns(const TableSpec& spec, const Schema& users) {
  for (const std::string& key : spec.key) {
    const SchemaField* field = FindColumn(users.fields, key);
    if (field == nullptr) {
      return Status::InvalidArgument(
          fmt::format("table {}: key column {} is not among its columns", spec.name, key));
    }
    const bool inexact =
        field->type.id == iceberg::TypeId::kFloat || field->type.id == iceberg::TypeId::kDouble;
    if (inexact || field->type.is_nested()) {
      return Status::InvalidArgument(
          fmt::format("table {}: column {} of type {} cannot be a key: engines do not agree when "
                      "two of its values are equal; cast it to decimal, long or string",
                      spec.name, key, iceberg::FormatType(field->type)));
    }
  }
  if (spec.key.empty() && spec.mode == Mode::kMerge) {
    return Status::InvalidArgument(
        fmt::format("table {}: mode merge needs key: [column, …]", spec.name));
  }
  return Status::Ok();
}

Result<iceberg::TableMetadata> NewInternalTable(const TableSpec& spec, const Schema& users,
                                                std::string_view location,
                                                std::string_view table_uuid, int64_t now_ms) {
  TARN_RETURN_IF_ERROR(CheckKeyColumns(spec, users));
  iceberg::TableDefinition table;
  table.table_uuid = std::string(table_uuid);
  table.location = std::string(location);
  table.schema = InternalSchema(users);
  if (spec.mode == Mode::kMerge) {
    table.spec = InternalSpec();
  }
  table.properties["format-version"] = "2";
  table.properties["write.parquet.compression-codec"] = "zstd";
  for (const auto& [name, value] : spec.table_properties) {
    table.properties[name] = value;
  }
  TARN_ASSIGN_OR_RETURN(iceberg::TableMetadata metadata, iceberg::MakeTableMetadata(table, now_ms));
  TARN_ASSIGN_OR_RETURN(const std::vector<PartitionField> fields,
                        ParsePartitionBy(spec.partition_by, metadata.CurrentSchema()));
  if (!fields.empty()) {
    TARN_RETURN_IF_ERROR(AddUserSpec(fields, spec.mode, metadata));
  }
  TARN_ASSIGN_OR_RETURN(const iceberg::SortOrder order,
                        ParseSortBy(spec.sort_by, metadata.CurrentSchema()));
  if (!order.fields.empty()) {
    metadata.sort_orders.push_back(order);
    metadata.default_sort_order_id = order.order_id;
  }
  TARN_RETURN_IF_ERROR(iceberg::ValidateTableMetadata(metadata));
  return metadata;
}

Result<iceberg::TableMetadata> NewAppliedTable(const iceberg::TableMetadata& internal,
                                               std::string_view location,
                                               std::string_view table_uuid, int64_t now_ms) {
  iceberg::TableMetadata metadata;
  metadata.format_version = internal.format_version;
  metadata.table_uuid = std::string(table_uuid);
  metadata.location = std::string(location);
  metadata.last_updated_ms = now_ms;
  metadata.last_column_id = internal.last_column_id;
  Schema schema = UserSchema(internal.CurrentSchema());
  schema.schema_id = 0;
  metadata.schemas.push_back(std::make_shared<const Schema>(std::move(schema)));
  metadata.last_partition_id = internal.last_partition_id;
  for (const iceberg::PartitionSpec& from : internal.partition_specs) {
    iceberg::PartitionSpec spec{.spec_id = from.spec_id, .fields = {}};
    for (const PartitionField& field : from.fields) {
      if (field.source_id >= kFirstUserFieldId) {
        spec.fields.push_back(field);
      }
    }
    metadata.partition_specs.push_back(std::move(spec));
  }
  metadata.default_spec_id = internal.default_spec_id;
  metadata.sort_orders = internal.sort_orders;
  metadata.default_sort_order_id = internal.default_sort_order_id;
  // Its files belong to the internal table, whose clean-up respects what this one refers to.
  metadata.properties["gc.enabled"] = "false";
  TARN_RETURN_IF_ERROR(iceberg::ValidateTableMetadata(metadata));
  return metadata;
}

}  // namespace tarn::lakehouse
