#include "tarn/lakehouse/table_writer.h"

#include <algorithm>
#include <optional>

#include <arrow/api.h>
#include <arrow/compute/api.h>
#include <fmt/format.h>

#include "tarn/base/arrow_status.h"
#include "tarn/base/log.h"
#include "tarn/format/background_writer.h"
#include "tarn/iceberg/data_file.h"
#include "tarn/iceberg/schema_arrow.h"
#include "tarn/iceberg/snapshot_update.h"
#include "tarn/lakehouse/header_columns.h"

namespace tarn::lakehouse {

namespace {

// Indexes that sort `rows` by the table's order; identity transforms only, which is what
// ParseSortBy makes.
Result<std::shared_ptr<arrow::RecordBatch>> SortBatch(
    const std::shared_ptr<arrow::RecordBatch>& rows, const iceberg::SortOrder& order,
    const iceberg::Schema& schema) {
  std::vector<arrow::compute::SortKey> keys;
  for (const iceberg::SortField& field : order.fields) {
    const iceberg::SchemaField* source = schema.FindField(field.source_id);
    if (source == nullptr) {
      continue;  // The column was dropped; the rest of the order still helps.
    }
    keys.emplace_back(arrow::FieldRef(source->name),
                      field.direction == iceberg::SortDirection::kAscending
                          ? arrow::compute::SortOrder::Ascending
                          : arrow::compute::SortOrder::Descending,
                      field.null_order == iceberg::NullOrder::kFirst
                          ? arrow::compute::NullPlacement::AtStart
                          : arrow::compute::NullPlacement::AtEnd);
  }
  if (keys.empty()) {
    return rows;
  }
  const arrow::compute::SortOptions options(keys);
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> indices,
                        arrow::compute::SortIndices(arrow::Datum(rows), options));
  TARN_ASSIGN_OR_RETURN(const arrow::Datum sorted,
                        arrow::compute::Take(arrow::Datum(rows), arrow::Datum(indices)));
  return sorted.record_batch();
}

Result<std::shared_ptr<arrow::RecordBatch>> Concatenate(
    const std::vector<std::shared_ptr<arrow::RecordBatch>>& batches) {
  if (batches.size() == 1) {
    return batches.front();
  }
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::RecordBatch> joined,
                        arrow::ConcatenateRecordBatches(batches));
  return joined;
}

int64_t BytesOf(const arrow::RecordBatch& batch) {
  int64_t bytes = 0;
  for (const std::shared_ptr<arrow::Array>& column : batch.columns()) {
    for (const std::shared_ptr<arrow::Buffer>& buffer : column->data()->buffers) {
      bytes += buffer == nullptr ? 0 : buffer->size();
    }
  }
  return bytes;
}

}  // namespace

struct TableWriter::OpenFile {
  std::string file_path;
  std::unique_ptr<format::BackgroundWriter> writer;
};

struct TableWriter::Group {
  iceberg::PartitionValues partition;
  std::string path;  // "country=DE/", or empty.
  std::optional<OpenFile> file;
  std::vector<std::shared_ptr<arrow::RecordBatch>> pending;  // To be sorted.
  int64_t pending_bytes = 0;
};

TableWriter::TableWriter(TableWriterOptions options, TableWriterDeps deps)
    : options_(std::move(options)), deps_(deps) {}

TableWriter::~TableWriter() {
  groups_.clear();  // Open Parquet writers abort.
  RemoveFiles(deps_.store, finished_);
}

Result<std::shared_ptr<arrow::RecordBatch>> TableWriter::WithPartitionColumn(
    const std::shared_ptr<arrow::RecordBatch>& rows) {
  if (options_.partition.empty()) {
    return rows;
  }
  if (partition_column_ == nullptr || partition_column_->length() < rows->num_rows()) {
    TARN_ASSIGN_OR_RETURN(
        partition_column_,
        arrow::MakeArrayFromScalar(arrow::StringScalar(options_.partition), rows->num_rows()));
  }
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::RecordBatch> widened,
                        rows->AddColumn(0, std::string(Name(HeaderColumn::kPartition)),
                                        partition_column_->Slice(0, rows->num_rows())));
  return widened;
}

Result<TableWriter::Group*> TableWriter::GroupOf(const arrow::RecordBatch& rows, int64_t row) {
  const iceberg::TableMetadata& metadata = *options_.metadata;
  const iceberg::PartitionSpec* spec = metadata.FindSpec(options_.spec_id);
  if (spec == nullptr) {
    return Status::Internal(fmt::format("the table has no partition spec {}", options_.spec_id));
  }
  const iceberg::Schema& schema = metadata.CurrentSchema();
  TARN_ASSIGN_OR_RETURN(iceberg::PartitionValues values,
                        iceberg::PartitionValuesAt(*spec, schema, rows, row));
  TARN_ASSIGN_OR_RETURN(std::string path, iceberg::FormatPartitionPath(*spec, schema, values));
  std::unique_ptr<Group>& group = groups_[path];
  if (group == nullptr) {
    group = std::make_unique<Group>();
    group->partition = std::move(values);
    group->path = path.empty() ? path : path + "/";
  }
  return group.get();
}

Status TableWriter::Write(const std::shared_ptr<arrow::RecordBatch>& input) {
  if (input->num_rows() == 0) {
    return Status::Ok();
  }
  row_count_ += input->num_rows();
  TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> rows, WithPartitionColumn(input));
  const iceberg::PartitionSpec* spec = options_.metadata->FindSpec(options_.spec_id);
  const size_t fixed_fields = options_.partition.empty() ? 0 : 1;
  if (spec != nullptr && spec->fields.size() <= fixed_fields) {
    TARN_ASSIGN_OR_RETURN(Group* const group, GroupOf(*rows, 0));
    return AddToGroup(*group, rows);
  }
  std::map<Group*, std::vector<int64_t>> rows_by_group;
  for (int64_t row = 0; row < rows->num_rows(); ++row) {
    TARN_ASSIGN_OR_RETURN(Group* const group, GroupOf(*rows, row));
    rows_by_group[group].push_back(row);
  }
  for (auto& [group, indexes] : rows_by_group) {
    arrow::Int64Builder builder;
    TARN_RETURN_IF_ERROR(builder.AppendValues(indexes));
    TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::Array> take, builder.Finish());
    TARN_ASSIGN_OR_RETURN(const arrow::Datum taken,
                          arrow::compute::Take(arrow::Datum(rows), arrow::Datum(take)));
    TARN_RETURN_IF_ERROR(AddToGroup(*group, taken.record_batch()));
  }
  return Status::Ok();
}

Status TableWriter::AddToGroup(Group& group, std::shared_ptr<arrow::RecordBatch> rows) {
  if (options_.sort == SortRows::kNo || options_.metadata->DefaultSortOrder().fields.empty()) {
    return WriteRows(group, rows);
  }
  group.pending_bytes += BytesOf(*rows);
  group.pending.push_back(std::move(rows));
  int64_t all_bytes = 0;
  for (const auto& [path, other] : groups_) {
    all_bytes += other->pending_bytes;
  }
  return all_bytes >= options_.sort_buffer_bytes ? FlushGroup(group) : Status::Ok();
}

Status TableWriter::FlushGroup(Group& group) {
  if (group.pending.empty()) {
    return Status::Ok();
  }
  TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> joined,
                        Concatenate(group.pending));
  group.pending.clear();
  group.pending_bytes = 0;
  TARN_ASSIGN_OR_RETURN(
      const std::shared_ptr<arrow::RecordBatch> sorted,
      SortBatch(joined, options_.metadata->DefaultSortOrder(), options_.metadata->CurrentSchema()));
  TARN_RETURN_IF_ERROR(WriteRows(group, sorted));
  return FinishFile(group);  // Each file is one sorted run.
}

Status TableWriter::WriteRows(Group& group, const std::shared_ptr<arrow::RecordBatch>& rows) {
  if (!group.file) {
    TARN_RETURN_IF_ERROR(OpenFileOf(group, *rows->schema()));
  }
  TARN_RETURN_IF_ERROR(group.file->writer->Write(rows));
  return group.file->writer->size_bytes() >= options_.target_bytes ? FinishFile(group)
                                                                   : Status::Ok();
}

Status TableWriter::OpenFileOf(Group& group, const arrow::Schema& rows) {
  TARN_RETURN_IF_ERROR(LimitOpenFiles());
  arrow::FieldVector fields;
  for (const std::shared_ptr<arrow::Field>& column : rows.fields()) {
    const iceberg::SchemaField* field =
        options_.metadata->CurrentSchema().FindField(column->name());
    if (field == nullptr) {
      return Status::Internal("the table has no column " + column->name());
    }
    TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Field> arrow_field, iceberg::ToArrowField(*field));
    fields.push_back(std::move(arrow_field));
  }
  OpenFile file;
  file.file_path = fmt::format("{}/{}{}.parquet", iceberg::DataFolder(*options_.metadata),
                               group.path, deps_.uuids.NextV7().ToString());
  TARN_ASSIGN_OR_RETURN(const std::string key, storage::KeyOf(deps_.store, file.file_path));
  TARN_ASSIGN_OR_RETURN(std::unique_ptr<storage::ObjectWriter> object,
                        deps_.store.OpenWriter(key, storage::WriteMode::kPutIfAbsent));
  format::ParquetWriterOptions options;
  options.compression = options_.compression;
  TARN_ASSIGN_OR_RETURN(
      std::unique_ptr<format::ParquetWriter> writer,
      format::ParquetWriter::Open(std::move(object), arrow::schema(fields), options));
  file.writer = std::make_unique<format::BackgroundWriter>(std::move(writer));
  group.file = std::move(file);
  return Status::Ok();
}

Status TableWriter::FinishFile(Group& group) {
  if (!group.file) {
    return Status::Ok();
  }
  OpenFile file = std::move(*group.file);
  group.file.reset();
  TARN_ASSIGN_OR_RETURN(const format::FileStatistics statistics, file.writer->Close());
  const iceberg::TableMetadata& metadata = *options_.metadata;
  std::vector<int32_t> sort_columns;
  for (const iceberg::SortField& field : metadata.DefaultSortOrder().fields) {
    sort_columns.push_back(field.source_id);
  }
  iceberg::DataFileOptions options;
  options.file_path = file.file_path;
  options.spec_id = options_.spec_id;
  options.partition = group.partition;
  if (options_.sort == SortRows::kByTableOrder && metadata.default_sort_order_id != 0) {
    options.sort_order_id = metadata.default_sort_order_id;
  }
  options.metrics =
      iceberg::MetricsConfig::From(metadata.properties, metadata.CurrentSchema(), sort_columns);
  // Identifiers are told apart by their last digits only; files of deletes are known by the bounds
  // of their operations, old ones by when their rows came: whatever the properties of the table
  // say.
  for (const HeaderColumn column : {HeaderColumn::kChangeIdentifier, HeaderColumn::kKeyHash,
                                    HeaderColumn::kOperation, HeaderColumn::kInsertedTimestamp}) {
    options.metrics.columns[Spec(column).field_id] = {iceberg::MetricsMode::Kind::kFull, 0};
  }
  TARN_ASSIGN_OR_RETURN(iceberg::DataFile data_file,
                        iceberg::MakeDataFile(metadata.CurrentSchema(), statistics, options));
  finished_.push_back(std::move(data_file));
  return Status::Ok();
}

Status TableWriter::LimitOpenFiles() {
  size_t open = 0;
  Group* largest = nullptr;
  for (const auto& [path, group] : groups_) {
    if (!group->file) {
      continue;
    }
    ++open;
    if (largest == nullptr ||
        group->file->writer->size_bytes() > largest->file->writer->size_bytes()) {
      largest = group.get();
    }
  }
  return open < options_.open_files_max ? Status::Ok() : FinishFile(*largest);
}

Result<std::vector<iceberg::DataFile>> TableWriter::Close() {
  for (const auto& [path, group] : groups_) {
    TARN_RETURN_IF_ERROR(FlushGroup(*group));
    TARN_RETURN_IF_ERROR(FinishFile(*group));
  }
  groups_.clear();
  return std::exchange(finished_, {});
}

void RemoveFiles(storage::ObjectStore& store, const std::vector<iceberg::DataFile>& files) {
  for (const iceberg::DataFile& file : files) {
    const Result<std::string> key = storage::KeyOf(store, file.file_path);
    const Status removed = key.ok() ? store.Delete(*key) : key.status();
    if (!removed.ok()) {
      Log(LogLevel::kWarning, "lakehouse",
          "left " + file.file_path + " behind: " + removed.ToString());
    }
  }
}

}  // namespace tarn::lakehouse
