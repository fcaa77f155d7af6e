#include "tarn/task/direct_rows.h"

#include <algorithm>

#include <arrow/api.h>

#include "tarn/base/arrow_status.h"
#include "tarn/format/parquet_reader.h"
#include "tarn/format/widen_batch.h"
#include "tarn/task/change_split.h"

namespace tarn::task {

namespace {

// True for a column of booleans none of which is true.
bool IsFalse(const format::ColumnStatistics& column) {
  const auto* max = dynamic_cast<const arrow::BooleanScalar*>(column.max.get());
  return max != nullptr && max->is_valid && !max->value;
}

// True when the file's statistics say that no row needs the statement.
bool Fits(const format::FileStatistics& statistics, const transform::DirectMapping& mapping) {
  const auto find = [&](const std::string& name) -> const format::ColumnStatistics* {
    const auto found =
        std::find_if(statistics.columns.begin(), statistics.columns.end(),
                     [&](const format::ColumnStatistics& column) { return column.path == name; });
    return found == statistics.columns.end() ? nullptr : &*found;
  };
  const bool nulls = std::all_of(
      mapping.null_columns().begin(), mapping.null_columns().end(), [&](const std::string& name) {
        const format::ColumnStatistics* column = find(name);
        return column == nullptr || column->null_count == statistics.row_count || IsFalse(*column);
      });
  return nulls && std::all_of(mapping.full_columns().begin(), mapping.full_columns().end(),
                              [&](const std::string& name) {
                                const format::ColumnStatistics* column = find(name);
                                return column != nullptr && column->null_count == 0;
                              });
}

}  // namespace

DirectRows::DirectRows(storage::ObjectStore& store, const LandedBatch& batch,
                       const transform::DirectMapping& mapping)
    : store_(store), batch_(batch), mapping_(mapping) {}

DirectRows::~DirectRows() = default;

Result<std::unique_ptr<DirectRows>> DirectRows::Open(storage::ObjectStore& store,
                                                     const LandedBatch& batch,
                                                     const transform::DirectMapping& mapping,
                                                     const std::vector<format::Field>& fields) {
  for (const LandedFile& file : batch.files) {
    TARN_ASSIGN_OR_RETURN(const std::unique_ptr<format::ParquetReader> reader,
                          format::ParquetReader::Open(store, file.location));
    TARN_ASSIGN_OR_RETURN(const format::FileStatistics statistics, reader->ReadStatistics());
    if (!Fits(statistics, mapping)) {
      return std::unique_ptr<DirectRows>();
    }
  }
  std::unique_ptr<DirectRows> rows(new DirectRows(store, batch, mapping));
  for (const std::string& name : mapping.landed_columns()) {
    const auto field =
        std::find_if(fields.begin(), fields.end(),
                     [&](const format::Field& candidate) { return candidate.name == name; });
    if (field == fields.end()) {
      return Status::Internal("the mapping reads the column " + name + ", which was not landed");
    }
    rows->fields_.push_back(*field);
  }
  return rows;
}

Status DirectRows::OpenFile() {
  TARN_ASSIGN_OR_RETURN(reader_, format::ParquetReader::Open(store_, batch_.files[file_].location));
  position_ = 0;
  format::ParquetScan scan;
  scan.columns.emplace();
  const arrow::Schema& schema = *reader_->schema();
  for (int i = 0; i < schema.num_fields(); ++i) {
    const std::string& name = schema.field(i)->name();
    if (std::find(mapping_.landed_columns().begin(), mapping_.landed_columns().end(), name) !=
        mapping_.landed_columns().end()) {
      scan.columns->push_back(i);
    }
  }
  return reader_->Scan(scan);
}

Result<std::shared_ptr<arrow::RecordBatch>> DirectRows::Next() {
  while (file_ < batch_.files.size()) {
    if (reader_ == nullptr) {
      TARN_RETURN_IF_ERROR(OpenFile());
    }
    TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> read, reader_->Next());
    if (read == nullptr) {
      reader_.reset();
      ++file_;
      continue;
    }
    TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> wide,
                          format::WidenBatch(read, fields_));
    const int64_t first = InputRow(static_cast<int64_t>(file_), position_);
    position_ += wide->num_rows();
    return mapping_.Map(*wide, first);
  }
  return nullptr;
}

}  // namespace tarn::task
