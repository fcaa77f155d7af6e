#include "tarn/lakehouse/file_rows.h"

#include <algorithm>
#include <optional>

#include <arrow/api.h>
#include <arrow/compute/api.h>
#include <arrow/util/bitmap_ops.h>
#include <fmt/format.h>

#include "tarn/base/arrow_status.h"
#include "tarn/format/parquet_reader.h"
#include "tarn/iceberg/schema_arrow.h"

namespace tarn::lakehouse {

namespace {

int32_t FieldIdOf(const arrow::Field& field) {
  if (!field.HasMetadata()) {
    return -1;
  }
  const Result<std::string> text = [&]() -> Result<std::string> {
    TARN_ASSIGN_OR_RETURN(std::string value, field.metadata()->Get(iceberg::kArrowFieldIdKey));
    return value;
  }();
  return text.ok() ? std::atoi(text->c_str()) : -1;
}

Result<std::shared_ptr<arrow::Array>> ToType(const std::shared_ptr<arrow::Array>& array,
                                             const std::shared_ptr<arrow::DataType>& type);

// Struct members by name: one added later is NULL in older files, one dropped is left out.
Result<std::shared_ptr<arrow::Array>> ToStruct(const arrow::StructArray& array,
                                               const std::shared_ptr<arrow::DataType>& type) {
  arrow::ArrayVector children;
  for (const std::shared_ptr<arrow::Field>& member : type->fields()) {
    const std::shared_ptr<arrow::Array> child = array.GetFieldByName(member->name());
    if (child == nullptr) {
      TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> nulls,
                            arrow::MakeArrayOfNull(member->type(), array.length()));
      children.push_back(std::move(nulls));
      continue;
    }
    TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> cast, ToType(child, member->type()));
    children.push_back(std::move(cast));
  }
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Buffer> validity, [&]() {
    return array.offset() == 0 || array.null_bitmap() == nullptr
               ? arrow::Result<std::shared_ptr<arrow::Buffer>>(array.null_bitmap())
               : arrow::internal::CopyBitmap(arrow::default_memory_pool(), array.null_bitmap_data(),
                                             array.offset(), array.length());
  }());
  return std::shared_ptr<arrow::Array>(std::make_shared<arrow::StructArray>(
      type, array.length(), std::move(children), std::move(validity)));
}

Result<std::shared_ptr<arrow::Array>> ToType(const std::shared_ptr<arrow::Array>& array,
                                             const std::shared_ptr<arrow::DataType>& type) {
  if (array->type()->Equals(*type)) {
    return array;
  }
  if (array->type_id() == arrow::Type::STRUCT && type->id() == arrow::Type::STRUCT) {
    return ToStruct(static_cast<const arrow::StructArray&>(*array), type);
  }
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> cast,
                        arrow::compute::Cast(*array, type, arrow::compute::CastOptions::Safe()));
  return cast;
}

}  // namespace

struct FileRows::State {
  std::unique_ptr<format::ParquetReader> reader;
  std::shared_ptr<arrow::Schema> schema;
  // For each result column the index among the columns read, or nothing when the file lacks it.
  std::vector<std::optional<int>> read_index;
  std::string file_path;
  int64_t position = 0;
};

FileRows::FileRows(std::unique_ptr<State> state) : state_(std::move(state)) {}
FileRows::~FileRows() = default;

const std::shared_ptr<arrow::Schema>& FileRows::schema() const { return state_->schema; }

Result<std::unique_ptr<FileRows>> FileRows::Open(storage::ObjectStore& store,
                                                 FileRowsRequest request) {
  auto state = std::make_unique<State>();
  state->file_path = request.file_path;
  TARN_ASSIGN_OR_RETURN(const std::string key, storage::KeyOf(store, request.file_path));
  TARN_ASSIGN_OR_RETURN(state->reader, format::ParquetReader::Open(store, key));
  const arrow::Schema& file_schema = *state->reader->schema();
  arrow::FieldVector fields;
  std::vector<int> read;
  for (const std::string& column : request.columns) {
    const iceberg::SchemaField* field = request.schema->FindField(column);
    if (field == nullptr) {
      return Status::InvalidArgument("there is no column " + column);
    }
    TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Field> arrow_field, iceberg::ToArrowField(*field));
    fields.push_back(std::move(arrow_field));
    std::optional<int> index;
    for (int i = 0; i < file_schema.num_fields(); ++i) {
      if (FieldIdOf(*file_schema.field(i)) == field->id) {
        index = static_cast<int>(read.size());
        read.push_back(i);
      }
    }
    state->read_index.push_back(index);
  }
  state->schema = arrow::schema(std::move(fields));
  format::ParquetScan scan;
  scan.columns = std::move(read);
  TARN_RETURN_IF_ERROR(state->reader->Scan(scan));
  return std::unique_ptr<FileRows>(new FileRows(std::move(state)));
}

Result<FileRowsBatch> FileRows::Next() {
  FileRowsBatch result;
  result.first_position = state_->position;
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::RecordBatch> batch, state_->reader->Next());
  if (batch == nullptr) {
    return result;
  }
  arrow::ArrayVector columns;
  for (int i = 0; i < state_->schema->num_fields(); ++i) {
    const std::shared_ptr<arrow::DataType>& type = state_->schema->field(i)->type();
    const std::optional<int>& index = state_->read_index[static_cast<size_t>(i)];
    if (!index) {
      TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> nulls,
                            arrow::MakeArrayOfNull(type, batch->num_rows()));
      columns.push_back(std::move(nulls));
      continue;
    }
    Result<std::shared_ptr<arrow::Array>> column = ToType(batch->column(*index), type);
    if (!column.ok()) {
      return column.status().WithContext(
          fmt::format("column {} of {}", state_->schema->field(i)->name(), state_->file_path));
    }
    columns.push_back(std::move(column).value());
  }
  state_->position += batch->num_rows();
  result.rows = arrow::RecordBatch::Make(state_->schema, batch->num_rows(), std::move(columns));
  return result;
}

std::vector<int64_t> LiveRows(const FileRowsBatch& batch, const std::vector<int64_t>& deleted) {
  const int64_t end = batch.first_position + batch.rows->num_rows();
  std::vector<int64_t> rows;
  rows.reserve(static_cast<size_t>(batch.rows->num_rows()));
  auto next = std::lower_bound(deleted.begin(), deleted.end(), batch.first_position);
  for (int64_t position = batch.first_position; position < end; ++position) {
    if (next != deleted.end() && *next == position) {
      ++next;
      continue;
    }
    rows.push_back(position - batch.first_position);
  }
  return rows;
}

}  // namespace tarn::lakehouse
