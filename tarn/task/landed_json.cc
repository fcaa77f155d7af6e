#include "tarn/task/landed_json.h"

#include <arrow/api.h>
#include <fmt/format.h>

#include "tarn/engine/row_writer.h"
#include "tarn/format/parquet_reader.h"
#include "tarn/format/widen_batch.h"
#include "tarn/task/change_split.h"

namespace tarn::task {

namespace {

constexpr int64_t kReadRows = 8 * 1024;

}  // namespace

LandedJson::LandedJson(storage::ObjectStore& store, const LandedBatch& batch,
                       const std::vector<format::Field>& fields)
    : store_(store), batch_(batch), fields_(fields) {}

LandedJson::~LandedJson() = default;

Status LandedJson::OpenFile(size_t file) {
  TARN_ASSIGN_OR_RETURN(reader_, format::ParquetReader::Open(store_, batch_.files[file].location));
  file_ = file;
  group_ = -1;
  group_end_ = 0;
  return Status::Ok();
}

// Starts to read the row group of a position, unless that is being read.
Status LandedJson::FindGroup(int64_t position) {
  if (group_ >= 0 && position < group_end_) {
    return Status::Ok();
  }
  do {
    if (group_ + 1 == reader_->row_group_count()) {
      return Status::Internal(fmt::format("row {} of a rejected row is not in {}", position,
                                          batch_.files[file_].location));
    }
    ++group_;
    rows_end_ = group_end_;
    group_end_ += reader_->row_group_rows(group_);
  } while (position >= group_end_);
  format::ParquetScan scan;
  scan.row_groups = {group_};
  scan.batch_rows = kReadRows;
  return reader_->Scan(scan);
}

Status LandedJson::MoveTo(int64_t row) {
  const auto file = static_cast<size_t>(row >> kRowPositionBits);
  const int64_t position = row - InputRow(static_cast<int64_t>(file), 0);
  if (row < newest_ || file >= batch_.files.size()) {
    return Status::Internal(fmt::format("rejected row {} came after {}, in a batch of {} files",
                                        row, newest_, batch_.files.size()));
  }
  if (reader_ == nullptr || file != file_) {
    TARN_RETURN_IF_ERROR(OpenFile(file));
  }
  TARN_RETURN_IF_ERROR(FindGroup(position));
  std::shared_ptr<arrow::RecordBatch> read;
  while (position >= rows_end_) {
    TARN_ASSIGN_OR_RETURN(read, reader_->Next());
    if (read == nullptr) {
      return Status::Corruption(
          fmt::format("{} ends before its row {}", batch_.files[file_].location, position));
    }
    rows_begin_ = rows_end_;
    rows_end_ += read->num_rows();
  }
  if (read != nullptr) {
    TARN_ASSIGN_OR_RETURN(rows_, format::WidenBatch(read, fields_));
  }
  return Status::Ok();
}

Result<std::string> LandedJson::Read(int64_t row) {
  if (row == newest_) {
    return text_;
  }
  TARN_RETURN_IF_ERROR(MoveTo(row));
  const int64_t index = row - InputRow(static_cast<int64_t>(file_), 0) - rows_begin_;
  text_ = "{";
  for (int i = 0; i < rows_->num_columns(); ++i) {
    text_ += i > 0 ? "," : "";
    engine::AppendJsonString(rows_->schema()->field(i)->name(), text_);
    text_ += ':';
    TARN_RETURN_IF_ERROR(engine::AppendJsonValue(*rows_->column(i), index, text_));
  }
  text_ += '}';
  newest_ = row;
  return text_;
}

}  // namespace tarn::task
