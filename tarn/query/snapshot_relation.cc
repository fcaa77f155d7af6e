#include "tarn/query/snapshot_relation.h"

#include <arrow/api.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/base/arrow_status.h"
#include "tarn/engine/quoting.h"
#include "tarn/engine/scan_sql.h"
#include "tarn/iceberg/json.h"
#include "tarn/lakehouse/table_files.h"

namespace tarn::query {

namespace {

using iceberg::FileScanTask;
using iceberg::SchemaField;
using iceberg::Type;
using iceberg::TypeId;

Result<std::string> NestedSqlType(const Type& type) {
  std::vector<std::string> inner;
  for (const SchemaField& field : type.fields) {
    TARN_ASSIGN_OR_RETURN(std::string text, SqlTypeOf(field.type));
    inner.push_back(type.id == TypeId::kStruct
                        ? fmt::format("{} {}", engine::QuoteName(field.name), text)
                        : std::move(text));
  }
  const std::string list = fmt::format("{}", fmt::join(inner, ", "));
  switch (type.id) {
    case TypeId::kStruct:
      return fmt::format("STRUCT({})", list);
    case TypeId::kMap:
      return fmt::format("MAP({})", list);
    default:
      return list + "[]";
  }
}

// What a file without the column holds in it (format version 3), as text.
Result<std::optional<std::string>> DefaultText(const SchemaField& field) {
  if (!field.initial_default) {
    return std::optional<std::string>();
  }
  TARN_ASSIGN_OR_RETURN(const iceberg::Json value,
                        iceberg::ParseJson(*field.initial_default, "default of " + field.name));
  if (value.is_null()) {
    return std::optional<std::string>();
  }
  if (field.type.is_nested() || field.type.id == TypeId::kBinary ||
      field.type.id == TypeId::kFixed) {
    return Status::Unimplemented(fmt::format("column {} has a default of type {}", field.name,
                                             iceberg::FormatType(field.type)));
  }
  return std::optional<std::string>(value.is_string() ? value.get<std::string>() : value.dump());
}

Result<std::vector<engine::ScanColumn>> ScanColumns(const std::vector<SchemaField>& fields) {
  std::vector<engine::ScanColumn> columns;
  for (const SchemaField& field : fields) {
    engine::ScanColumn column;
    column.name = field.name;
    column.field_id = field.id;
    Result<std::string> type = SqlTypeOf(field.type);
    if (!type.ok()) {
      return type.status().WithContext("column " + field.name);
    }
    column.type = std::move(type).value();
    TARN_ASSIGN_OR_RETURN(column.default_text, DefaultText(field));
    columns.push_back(std::move(column));
  }
  return columns;
}

// Deleted rows of all files by the index of the file.
class DeletedRows {
 public:
  Status Add(size_t file_index, const std::vector<int64_t>& positions) {
    for (const int64_t position : positions) {
      TARN_RETURN_IF_ERROR(files_.Append(static_cast<int64_t>(file_index)));
      TARN_RETURN_IF_ERROR(positions_.Append(position));
    }
    return Status::Ok();
  }

  Status Register(engine::Session& session, const std::string& name) {
    TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> files, files_.Finish());
    TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> positions, positions_.Finish());
    const int64_t count = files->length();
    const std::shared_ptr<arrow::Schema> schema = arrow::schema(
        {arrow::field("file_index", arrow::int64()), arrow::field("pos", arrow::int64())});
    return session.RegisterBatches(
        name, schema,
        {arrow::RecordBatch::Make(schema, count, {std::move(files), std::move(positions)})});
  }

 private:
  arrow::Int64Builder files_;
  arrow::Int64Builder positions_;
};

}  // namespace

Result<std::string> SqlTypeOf(const Type& type) {
  switch (type.id) {
    case TypeId::kBoolean:
      return "BOOLEAN";
    case TypeId::kInt:
      return "INTEGER";
    case TypeId::kLong:
      return "BIGINT";
    case TypeId::kFloat:
      return "FLOAT";
    case TypeId::kDouble:
      return "DOUBLE";
    case TypeId::kDecimal:
      return fmt::format("DECIMAL({},{})", type.precision, type.scale);
    case TypeId::kDate:
      return "DATE";
    case TypeId::kTime:
      return "TIME";
    case TypeId::kTimestamp:
      return "TIMESTAMP";
    case TypeId::kTimestampTz:
      return "TIMESTAMP WITH TIME ZONE";
    case TypeId::kTimestampNs:
      return "TIMESTAMP_NS";
    case TypeId::kString:
      return "VARCHAR";
    case TypeId::kUuid:
      return "UUID";
    case TypeId::kFixed:
    case TypeId::kBinary:
      return "BLOB";
    case TypeId::kStruct:
    case TypeId::kList:
    case TypeId::kMap:
      return NestedSqlType(type);
    default:
      return Status::Unimplemented(
          fmt::format("type {} cannot be read by SQL", iceberg::FormatType(type)));
  }
}

Status MakeSnapshotRelation(engine::Session& session, storage::ObjectStore& store,
                            const SnapshotRelation& relation) {
  engine::ScanRequest request;
  TARN_ASSIGN_OR_RETURN(request.columns, ScanColumns(relation.columns));
  request.deletes_view = relation.name + "_deletes";
  DeletedRows deleted;
  bool any_deleted = false;
  for (size_t i = 0; i < relation.files.size(); ++i) {
    const FileScanTask& task = relation.files[i];
    if (task.file.file_format != "PARQUET" && task.file.file_format != "parquet") {
      return Status::Unimplemented(fmt::format("{} is {}: only Parquet files can be read by SQL",
                                               task.file.file_path, task.file.file_format));
    }
    TARN_ASSIGN_OR_RETURN(const std::vector<int64_t> positions,
                          lakehouse::DeletedPositions(store, task));
    TARN_RETURN_IF_ERROR(deleted.Add(i, positions));
    any_deleted = any_deleted || !positions.empty();
    request.files.push_back({.path = task.file.file_path, .has_deletes = !positions.empty()});
  }
  if (any_deleted) {
    TARN_RETURN_IF_ERROR(deleted.Register(session, request.deletes_view));
  }
  TARN_ASSIGN_OR_RETURN(const std::string scan, engine::BuildScan(request));
  return session.Execute(
      fmt::format("CREATE OR REPLACE TEMP VIEW {} AS {}", engine::QuoteName(relation.name), scan));
}

}  // namespace tarn::query
