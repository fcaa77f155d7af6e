#include "tarn/iceberg/update/table_replacement.h"

#include <algorithm>

#include <fmt/format.h>

namespace tarn::iceberg {

namespace {

// The field alone, with ids from 1 and without words about it.
SchemaField Shape(const SchemaField& field) {
  Schema single;
  single.fields = {field};
  single.fields.front().doc.clear();
  int32_t last = 0;
  return AssignFreshIds(single, last).fields.front();
}

// The columns of `given` with the ids that they have or get in `base`.
Schema Settle(const TableMetadata& base, const Schema& given) {
  const Schema& current = base.CurrentSchema();
  int32_t last = base.last_column_id;
  Schema settled;
  for (const SchemaField& field : given.fields) {
    const auto same = std::ranges::find_if(current.fields, [&](const SchemaField& existing) {
      return existing.name == field.name && Shape(existing) == Shape(field);
    });
    if (same != current.fields.end()) {
      settled.fields.push_back(*same);
      settled.fields.back().doc = field.doc;
      continue;
    }
    Schema single;
    single.fields = {field};
    settled.fields.push_back(AssignFreshIds(single, last).fields.front());
  }
  return settled;
}

Result<int32_t> MapId(const Schema& from, const Schema& to, int32_t id) {
  const std::optional<std::string> name = from.NameOf(id);
  const SchemaField* field = name ? to.FindField(*name) : nullptr;
  if (field == nullptr) {
    return Status::InvalidArgument(fmt::format("there is no column with the id {}", id));
  }
  return field->id;
}

}  // namespace

Result<std::vector<TableUpdate>> PlanReplacement(const TableMetadata& base,
                                                 const TableDefinition& definition) {
  std::map<std::string, std::string> properties = definition.properties;
  // Fails where the definition does, and names what is wrong with it.
  if (!properties.contains("format-version")) {
    properties["format-version"] = std::to_string(base.format_version);
  }
  TableDefinition checked = definition;
  checked.properties = properties;
  checked.location = definition.location.empty() ? base.location : definition.location;
  TARN_RETURN_IF_ERROR(MakeTableMetadata(checked, base.last_updated_ms));
  Schema schema = Settle(base, definition.schema);
  for (const int32_t id : definition.schema.identifier_field_ids) {
    TARN_ASSIGN_OR_RETURN(const int32_t settled, MapId(definition.schema, schema, id));
    schema.identifier_field_ids.push_back(settled);
  }
  PartitionSpec spec = definition.spec;
  for (PartitionField& field : spec.fields) {
    TARN_ASSIGN_OR_RETURN(field.source_id, MapId(definition.schema, schema, field.source_id));
    field.field_id = 0;
  }
  SortOrder order = definition.sort_order;
  for (SortField& field : order.fields) {
    TARN_ASSIGN_OR_RETURN(field.source_id, MapId(definition.schema, schema, field.source_id));
  }
  // Properties first: they may raise the version, which the schema may need.
  std::vector<TableUpdate> updates = {
      table_update::SetProperties{.updates = std::move(properties)},
      table_update::RemoveSnapshotRef{.name = "main"},
      table_update::AddSchema{.schema = std::move(schema), .last_column_id = {}},
      table_update::SetCurrentSchema{},
      table_update::AddSpec{.spec = std::move(spec)},
      table_update::SetDefaultSpec{},
      table_update::AddSortOrder{.order = std::move(order)},
      table_update::SetDefaultSortOrder{}};
  if (!definition.location.empty()) {
    updates.emplace_back(table_update::SetLocation{.location = definition.location});
  }
  return updates;
}

}  // namespace tarn::iceberg
