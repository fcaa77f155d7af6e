#include "tarn/iceberg/position_delete.h"

#include <algorithm>

#include <arrow/api.h>
#include <fmt/format.h>

#include "tarn/base/arrow_status.h"
#include "tarn/format/parquet_reader.h"
#include "tarn/format/parquet_writer.h"
#include "tarn/iceberg/data_file.h"
#include "tarn/iceberg/delete_index.h"
#include "tarn/iceberg/deletes/deletion_vector.h"
#include "tarn/iceberg/schema_arrow.h"

namespace tarn::iceberg {
namespace {

constexpr int64_t kBatchRows = 64 * 1024;

Schema DeleteSchema() {
  Schema schema;
  schema.fields.push_back(
      {.id = kFilePathColumnId, .name = "file_path", .required = true, .type = Type::String()});
  schema.fields.push_back(
      {.id = kPositionColumnId, .name = "pos", .required = true, .type = Type::Long()});
  return schema;
}

Result<std::shared_ptr<arrow::RecordBatch>> MakeBatch(const std::shared_ptr<arrow::Schema>& schema,
                                                      const std::string& path,
                                                      const Positions& positions, size_t first,
                                                      size_t count) {
  arrow::StringBuilder paths;
  arrow::Int64Builder rows;
  TARN_RETURN_IF_ERROR(paths.Reserve(static_cast<int64_t>(count)));
  TARN_RETURN_IF_ERROR(paths.ReserveData(static_cast<int64_t>(count * path.size())));
  for (size_t i = 0; i < count; ++i) {
    paths.UnsafeAppend(path);
  }
  TARN_RETURN_IF_ERROR(rows.AppendValues(positions.data() + first, static_cast<int64_t>(count)));
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> path_column, paths.Finish());
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> row_column, rows.Finish());
  return arrow::RecordBatch::Make(schema, static_cast<int64_t>(count),
                                  {std::move(path_column), std::move(row_column)});
}

// Index of a top-level column by field id, else by name.
Result<int> FindColumn(const arrow::Schema& schema, int32_t id, const std::string& name) {
  for (int i = 0; i < schema.num_fields(); ++i) {
    const auto& metadata = schema.field(i)->metadata();
    if (metadata != nullptr) {
      const auto text = metadata->Get(kArrowFieldIdKey);
      if (text.ok() && *text == std::to_string(id)) {
        return i;
      }
    }
  }
  const int index = schema.GetFieldIndex(name);
  if (index < 0) {
    return Status::Corruption(fmt::format("there is no column '{}'", name));
  }
  return index;
}

std::string PathAt(const arrow::Array& column, int64_t row) {
  const Result<Literal> value = LiteralAt(Type::String(), column, row);
  return value.ok() && !value->is_null() ? value->AsString() : std::string();
}

void SortUnique(Positions& positions) {
  std::sort(positions.begin(), positions.end());
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
}

// Calls visit(path, position) for every row.
template <typename Visit>
Status VisitDeletes(storage::ObjectStore& store, const DataFile& file, const Visit& visit) {
  std::string upper = file.file_format;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (upper != "PARQUET") {
    return Status(ErrorCode::kUnimplemented,
                  fmt::format("position deletes in {} cannot be read here", file.file_format));
  }
  TARN_ASSIGN_OR_RETURN(const std::string key, KeyOf(store, file.file_path));
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<format::ParquetReader> reader,
                        format::ParquetReader::Open(store, key));
  TARN_ASSIGN_OR_RETURN(const int path_index,
                        FindColumn(*reader->schema(), kFilePathColumnId, "file_path"));
  TARN_ASSIGN_OR_RETURN(const int row_index,
                        FindColumn(*reader->schema(), kPositionColumnId, "pos"));
  TARN_RETURN_IF_ERROR(
      reader->Scan({.columns = std::vector<int>{path_index, row_index}, .batch_rows = kBatchRows}));
  while (true) {
    TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> batch, reader->Next());
    if (batch == nullptr) {
      return Status::Ok();
    }
    const arrow::Array& paths = *batch->column(0);
    if (batch->column(1)->type_id() != arrow::Type::INT64 || batch->column(1)->null_count() > 0) {
      return Status::Corruption("column 'pos' must be long without null");
    }
    const auto& rows = static_cast<const arrow::Int64Array&>(*batch->column(1));
    for (int64_t i = 0; i < batch->num_rows(); ++i) {
      visit(paths, i, rows.Value(i));
    }
  }
}

}  // namespace

Result<DataFile> WritePositionDeletes(storage::ObjectStore& store,
                                      const PositionDeleteOptions& options, Positions positions) {
  SortUnique(positions);
  if (positions.empty() || positions.front() < 0) {
    return Status::InvalidArgument(
        fmt::format("deletes of {}: there must be at least one position, none negative",
                    options.data_file_path));
  }
  const Schema schema = DeleteSchema();
  TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::Schema> arrow_schema, ToArrowSchema(schema));
  TARN_ASSIGN_OR_RETURN(const std::string key, KeyOf(store, options.file_path));
  TARN_ASSIGN_OR_RETURN(std::unique_ptr<storage::ObjectWriter> object,
                        store.OpenWriter(key, storage::WriteMode::kOverwrite));
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<format::ParquetWriter> writer,
                        format::ParquetWriter::Open(std::move(object), arrow_schema,
                                                    {.footer = {{"delete-type", "position"}}}));
  for (size_t first = 0; first < positions.size(); first += kBatchRows) {
    const size_t count = std::min<size_t>(kBatchRows, positions.size() - first);
    TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> batch,
                          MakeBatch(arrow_schema, options.data_file_path, positions, first, count));
    TARN_RETURN_IF_ERROR(writer->Write(*batch));
  }
  Result<format::FileStatistics> closed = writer->Close();
  if (!closed.ok()) {
    // Nothing refers to the file yet, so an unknown outcome is only a failed write.
    return closed.status().code() == ErrorCode::kCommitStateUnknown
               ? Status::Unavailable(closed.status().message())
               : closed.status();
  }
  const format::FileStatistics statistics = std::move(closed).value();
  TARN_ASSIGN_OR_RETURN(DataFile file,
                        MakeDataFile(schema, statistics,
                                     {.file_path = options.file_path,
                                      .content = DataFileContent::kPositionDeletes,
                                      .spec_id = options.spec_id,
                                      .partition = options.partition,
                                      .metrics = {.otherwise = {MetricsMode::Kind::kFull, 0}}}));
  // The whole path as both bounds tells readers, also older ones, that one file is concerned.
  file.lower_bounds.Set(kFilePathColumnId, options.data_file_path);
  file.upper_bounds.Set(kFilePathColumnId, options.data_file_path);
  file.referenced_data_file = options.data_file_path;
  return file;
}

Result<std::map<std::string, Positions>> ReadPositionDeletes(storage::ObjectStore& store,
                                                             const DataFile& delete_file) {
  std::map<std::string, Positions> deletes;
  std::string last_path;
  Positions* last = nullptr;
  const Status status = VisitDeletes(store, delete_file,
                                     [&](const arrow::Array& paths, int64_t row, int64_t position) {
                                       const std::string path = PathAt(paths, row);
                                       if (last == nullptr || path != last_path) {
                                         last_path = path;
                                         last = &deletes[path];
                                       }
                                       last->push_back(position);
                                     });
  if (!status.ok()) {
    return status.WithContext(fmt::format("delete file {}", delete_file.file_path));
  }
  for (auto& [path, positions] : deletes) {
    SortUnique(positions);
  }
  return deletes;
}

Result<Positions> ReadPositionDeletesOf(storage::ObjectStore& store,
                                        const std::vector<DataFile>& delete_files,
                                        const std::string& data_file_path) {
  Positions positions;
  for (const DataFile& file : delete_files) {
    if (file.is_deletion_vector()) {
      TARN_ASSIGN_OR_RETURN(const Positions rows, ReadDeletionVector(store, file));
      positions.insert(positions.end(), rows.begin(), rows.end());
      continue;
    }
    const bool whole = ReferencedDataFile(file) == data_file_path;
    const Status status =
        VisitDeletes(store, file, [&](const arrow::Array& paths, int64_t row, int64_t position) {
          if (whole || PathAt(paths, row) == data_file_path) {
            positions.push_back(position);
          }
        });
    if (!status.ok()) {
      return status.WithContext(fmt::format("delete file {}", file.file_path));
    }
  }
  SortUnique(positions);
  return positions;
}

Positions MergePositions(const Positions& a, const Positions& b) {
  Positions merged;
  merged.reserve(a.size() + b.size());
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(merged));
  return merged;
}

}  // namespace tarn::iceberg
