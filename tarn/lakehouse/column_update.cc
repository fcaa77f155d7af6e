#include "tarn/lakehouse/column_update.h"

#include <algorithm>

#include <fmt/format.h>

#include "tarn/lakehouse/internal_schema.h"

namespace tarn::lakehouse {

namespace {

// Brings what `wanted` has and the column `path` lacks into the update: members of structs, at any
// depth, and wider types. Columns keep their ids.
Status MergeType(const iceberg::Type& known, const iceberg::Type& wanted, const std::string& path,
                 int32_t format_version, iceberg::SchemaUpdate& update) {
  if (known.id == wanted.id && known.is_nested()) {
    for (const iceberg::SchemaField& field : wanted.fields) {
      const iceberg::SchemaField* same = FindColumn(known.fields, field.name);
      if (same == nullptr) {
        TARN_RETURN_IF_ERROR(update.AddColumn(
            {.parent = path, .name = field.name, .type = field.type, .doc = {}, .position = {}}));
      } else {
        TARN_RETURN_IF_ERROR(
            MergeType(same->type, field.type, path + "." + same->name, format_version, update));
      }
    }
    return Status::Ok();
  }
  if (known == wanted || iceberg::IsPromotionAllowed(wanted, known, format_version)) {
    return Status::Ok();
  }
  if (!known.is_nested() && iceberg::IsPromotionAllowed(known, wanted, format_version)) {
    return update.WidenColumn(path, wanted);
  }
  return Status::InvalidArgument(fmt::format("column {} is {} in the table and {} in the rows",
                                             path, iceberg::FormatType(known),
                                             iceberg::FormatType(wanted)));
}

// What keeps a column in its table; empty when nothing does.
std::string UseOf(const TableSpec& spec, const iceberg::TableMetadata& metadata,
                  const iceberg::SchemaField& column) {
  if (std::find(spec.key.begin(), spec.key.end(), column.name) != spec.key.end()) {
    return "it belongs to the key";
  }
  for (const auto& partitions : metadata.partition_specs) {
    for (const iceberg::PartitionField& field : partitions.fields) {
      if (field.source_id == column.id) {
        return "the table is partitioned by it";
      }
    }
  }
  for (const auto& order : metadata.sort_orders) {
    for (const iceberg::SortField& field : order.fields) {
      if (field.source_id == column.id) {
        return "the table is sorted by it";
      }
    }
  }
  return {};
}

}  // namespace

Result<iceberg::SchemaUpdate> PlanColumns(const iceberg::TableMetadata& metadata,
                                          const iceberg::Schema& users) {
  iceberg::SchemaUpdate update(metadata.CurrentSchema(), metadata.last_column_id,
                               metadata.format_version);
  for (const iceberg::SchemaField& field : users.fields) {
    const iceberg::SchemaField* known = FindColumn(metadata.CurrentSchema().fields, field.name);
    if (known == nullptr) {
      TARN_RETURN_IF_ERROR(update.AddColumn(
          {.parent = {}, .name = field.name, .type = field.type, .doc = {}, .position = {}}));
    } else if (known->type.is_nested()) {
      TARN_RETURN_IF_ERROR(
          MergeType(known->type, field.type, known->name, metadata.format_version, update));
    } else if (!(known->type == field.type) &&
               iceberg::IsPromotionAllowed(known->type, field.type, metadata.format_version)) {
      TARN_RETURN_IF_ERROR(update.WidenColumn(known->name, field.type));
    } else if (known->type.id != field.type.id &&
               !iceberg::IsPromotionAllowed(field.type, known->type, metadata.format_version)) {
      return Status::InvalidArgument(fmt::format("column {} is {} in the table and {} in the rows",
                                                 field.name, iceberg::FormatType(known->type),
                                                 iceberg::FormatType(field.type)));
    }
  }
  return update;
}

Result<iceberg::SchemaUpdate> PlanDrops(const TableSpec& spec,
                                        const iceberg::TableMetadata& metadata,
                                        const std::vector<std::string>& names) {
  iceberg::SchemaUpdate update(metadata.CurrentSchema(), metadata.last_column_id,
                               metadata.format_version);
  for (const std::string& name : names) {
    const iceberg::SchemaField* column = FindColumn(metadata.CurrentSchema().fields, name);
    if (column == nullptr) {
      continue;
    }
    const std::string use = UseOf(spec, metadata, *column);
    if (!use.empty()) {
      return Status::FailedPrecondition(
          fmt::format("column {} cannot be dropped: {}; recreate the table, or set drop_column: "
                      "ignore",
                      column->name, use));
    }
    TARN_RETURN_IF_ERROR(update.DropColumn(column->name));
  }
  return update;
}

}  // namespace tarn::lakehouse
