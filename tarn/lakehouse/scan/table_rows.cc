#include "tarn/lakehouse/scan/table_rows.h"

#include <algorithm>

#include <arrow/api.h>
#include <arrow/compute/api.h>
#include <arrow/extension_type.h>
#include <fmt/format.h>

#include "tarn/base/arrow_status.h"
#include "tarn/iceberg/schema_arrow.h"
#include "tarn/lakehouse/scan/snapshot_relation.h"

namespace tarn::lakehouse {

namespace {

using ArrayPtr = std::shared_ptr<arrow::Array>;

Result<ArrayPtr> Convert(const ArrayPtr& array, const arrow::Field& field, const std::string& path);

// Fixed-length values from bytes of any length.
Result<ArrayPtr> ToFixed(const arrow::BinaryArray& array, const arrow::Field& field,
                         const std::string& path) {
  const auto& type = static_cast<const arrow::FixedSizeBinaryType&>(*field.type());
  arrow::FixedSizeBinaryBuilder builder(field.type());
  for (int64_t i = 0; i < array.length(); ++i) {
    if (array.IsNull(i)) {
      TARN_RETURN_IF_ERROR(builder.AppendNull());
      continue;
    }
    const std::string_view value = array.GetView(i);
    if (value.size() != static_cast<size_t>(type.byte_width())) {
      return Status::InvalidArgument(fmt::format("column {}: a value of {} bytes, it takes {}",
                                                 path, value.size(), type.byte_width()));
    }
    TARN_RETURN_IF_ERROR(builder.Append(value));
  }
  TARN_ASSIGN_OR_RETURN(ArrayPtr fixed, builder.Finish());
  return fixed;
}

// The same layout of lists, maps and structs with converted members.
Result<ArrayPtr> ConvertNested(const ArrayPtr& array, const arrow::Field& field,
                               const std::string& path) {
  if (array->type_id() != field.type()->id()) {
    return Status::InvalidArgument(fmt::format("column {}: {} cannot be stored as {}", path,
                                               array->type()->ToString(),
                                               field.type()->ToString()));
  }
  const std::shared_ptr<arrow::ArrayData> data = array->data()->Copy();
  if (static_cast<int>(data->child_data.size()) != field.type()->num_fields()) {
    return Status::InvalidArgument(fmt::format("column {}: {} members, it takes {}", path,
                                               data->child_data.size(),
                                               field.type()->num_fields()));
  }
  for (int i = 0; i < field.type()->num_fields(); ++i) {
    const arrow::Field& member = *field.type()->field(i);
    TARN_ASSIGN_OR_RETURN(const ArrayPtr child,
                          Convert(arrow::MakeArray(data->child_data[static_cast<size_t>(i)]),
                                  *member.WithNullable(true), path + "." + member.name()));
    data->child_data[static_cast<size_t>(i)] = child->data();
  }
  data->type = field.type();
  return arrow::MakeArray(data);
}

Result<ArrayPtr> Convert(const ArrayPtr& array, const arrow::Field& field,
                         const std::string& path) {
  if (!field.nullable() && array->null_count() > 0) {
    return Status::InvalidArgument(fmt::format("column {} is required: it cannot be NULL", path));
  }
  if (array->type_id() == arrow::Type::EXTENSION) {
    return Convert(static_cast<const arrow::ExtensionArray&>(*array).storage(), field, path);
  }
  if (field.type()->num_fields() > 0) {
    return ConvertNested(array, field, path);
  }
  if (array->type()->Equals(*field.type())) {
    return array;
  }
  if (field.type()->id() == arrow::Type::FIXED_SIZE_BINARY &&
      array->type_id() == arrow::Type::BINARY) {
    return ToFixed(static_cast<const arrow::BinaryArray&>(*array), field, path);
  }
  const arrow::Result<arrow::Datum> cast =
      arrow::compute::Cast(arrow::Datum(array), field.type(), arrow::compute::CastOptions::Safe());
  if (!cast.ok()) {
    return Status::InvalidArgument(fmt::format("column {}: {}", path, cast.status().message()));
  }
  return cast->make_array();
}

}  // namespace

Result<std::shared_ptr<arrow::RecordBatch>> AsTableRows(
    const std::vector<iceberg::SchemaField>& columns,
    const std::shared_ptr<arrow::RecordBatch>& batch) {
  if (batch->num_columns() != static_cast<int>(columns.size())) {
    return Status::InvalidArgument(fmt::format("{} columns are given, the table takes {}",
                                               batch->num_columns(), columns.size()));
  }
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (size_t i = 0; i < columns.size(); ++i) {
    TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Field> field, iceberg::ToArrowField(columns[i]));
    TARN_ASSIGN_OR_RETURN(ArrayPtr array,
                          Convert(batch->column(static_cast<int>(i)), *field, columns[i].name));
    fields.push_back(std::move(field));
    arrays.push_back(std::move(array));
  }
  return arrow::RecordBatch::Make(arrow::schema(std::move(fields)), batch->num_rows(),
                                  std::move(arrays));
}

iceberg::TableMetadata WithLineageColumns(const iceberg::TableMetadata& metadata) {
  iceberg::Schema schema = metadata.CurrentSchema();
  for (const auto& [id, name] : {std::pair(kRowIdFieldId, kRowIdColumn),
                                 std::pair(kRowSequenceFieldId, kRowSequenceColumn)}) {
    iceberg::SchemaField field;
    field.id = id;
    field.name = name;
    field.type = iceberg::Type::Long();
    schema.fields.push_back(std::move(field));
  }
  iceberg::TableMetadata widened = metadata;
  std::erase_if(widened.schemas, [&](const iceberg::SchemaPtr& known) {
    return known->schema_id == schema.schema_id;
  });
  widened.schemas.push_back(std::make_shared<const iceberg::Schema>(std::move(schema)));
  return widened;
}

SortRows SortRuleOf(const iceberg::TableMetadata& metadata) {
  const iceberg::Schema& schema = metadata.CurrentSchema();
  const std::vector<iceberg::SortField>& fields = metadata.DefaultSortOrder().fields;
  const bool plain =
      !fields.empty() &&
      std::all_of(fields.begin(), fields.end(), [&](const iceberg::SortField& field) {
        return field.transform == iceberg::Transform::Identity() &&
               std::any_of(schema.fields.begin(), schema.fields.end(),
                           [&](const iceberg::SchemaField& c) { return c.id == field.source_id; });
      });
  return plain ? SortRows::kByTableOrder : SortRows::kNo;
}

TableWriterOptions RowWriterOptions(const iceberg::TableMetadata& metadata) {
  return {.metadata = &metadata,
          .spec_id = metadata.default_spec_id,
          .partition = {},
          .sort = SortRuleOf(metadata),
          .target_bytes = metadata.LongProperty("write.target-file-size-bytes", 512LL << 20)};
}

}  // namespace tarn::lakehouse
