#include "tarn/lakehouse/version_rows.h"

#include <arrow/api.h>
#include <arrow/compute/api.h>

#include "tarn/base/arrow_status.h"
#include "tarn/lakehouse/header_columns.h"

namespace tarn::lakehouse {

namespace {

using TimeMember = int64_t VersionRow::*;

struct TimeColumn {
  HeaderColumn column;
  TimeMember member;
};

constexpr TimeColumn kCurrentTimes[] = {
    {HeaderColumn::kFromTimestamp, &VersionRow::from_micros},
    {HeaderColumn::kInsertedTimestamp, &VersionRow::inserted_micros},
    {HeaderColumn::kModifiedTimestamp, &VersionRow::modified_micros},
};
constexpr TimeColumn kPriorTimes[] = {
    {HeaderColumn::kFromTimestamp, &VersionRow::from_micros},
    {HeaderColumn::kToTimestamp, &VersionRow::to_micros},
    {HeaderColumn::kWasCurrentFromTimestamp, &VersionRow::was_current_from_micros},
    {HeaderColumn::kWasCurrentToTimestamp, &VersionRow::was_current_to_micros},
};

Result<std::shared_ptr<arrow::Array>> MakeOperations(const std::vector<VersionRow>& rows) {
  arrow::StringBuilder builder;
  TARN_RETURN_IF_ERROR(builder.Reserve(static_cast<int64_t>(rows.size())));
  TARN_RETURN_IF_ERROR(builder.ReserveData(static_cast<int64_t>(rows.size())));
  for (const VersionRow& row : rows) {
    builder.UnsafeAppend(std::string_view(&row.operation, 1));
  }
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> array, builder.Finish());
  return array;
}

// hdr__key_hash and user columns of `values`, without its other header columns.
std::shared_ptr<arrow::RecordBatch> ValuesOnly(const arrow::RecordBatch& values) {
  arrow::FieldVector fields;
  arrow::ArrayVector columns;
  for (int i = 0; i < values.num_columns(); ++i) {
    const std::string& name = values.schema()->field(i)->name();
    if (!IsHeaderName(name) || name == Name(HeaderColumn::kKeyHash)) {
      fields.push_back(values.schema()->field(i));
      columns.push_back(values.column(i));
    }
  }
  return arrow::RecordBatch::Make(arrow::schema(std::move(fields)), values.num_rows(),
                                  std::move(columns));
}

template <size_t kCount>
Result<std::shared_ptr<arrow::RecordBatch>> MakeRows(const arrow::RecordBatch& values,
                                                     const std::vector<VersionRow>& rows,
                                                     const TimeColumn (&times)[kCount]) {
  std::vector<int64_t> source_rows;
  source_rows.reserve(rows.size());
  for (const VersionRow& row : rows) {
    source_rows.push_back(row.source_row);
  }
  TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> taken,
                        TakeRows(ValuesOnly(values), source_rows));
  arrow::FieldVector fields;
  arrow::ArrayVector columns;
  const auto add = [&](std::string_view name, std::shared_ptr<arrow::Array> array) {
    fields.push_back(arrow::field(std::string(name), array->type()));
    columns.push_back(std::move(array));
  };
  const auto hash = taken->GetColumnByName(std::string(Name(HeaderColumn::kKeyHash)));
  if (hash == nullptr) {
    return Status::Internal("rows without hdr__key_hash");
  }
  add(Name(HeaderColumn::kKeyHash), hash);
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> operations, MakeOperations(rows));
  add(Name(HeaderColumn::kOperation), std::move(operations));
  for (const TimeColumn& time : times) {
    std::vector<int64_t> micros;
    micros.reserve(rows.size());
    for (const VersionRow& row : rows) {
      micros.push_back(row.*time.member);
    }
    TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> array, MakeTimes(micros));
    add(Name(time.column), std::move(array));
  }
  for (int i = 0; i < taken->num_columns(); ++i) {
    if (!IsHeaderName(taken->schema()->field(i)->name())) {
      add(taken->schema()->field(i)->name(), taken->column(i));
    }
  }
  return arrow::RecordBatch::Make(arrow::schema(std::move(fields)), taken->num_rows(),
                                  std::move(columns));
}

}  // namespace

Result<std::shared_ptr<arrow::Array>> MakeTimes(const std::vector<int64_t>& micros) {
  arrow::TimestampBuilder builder(arrow::timestamp(arrow::TimeUnit::MICRO, "UTC"),
                                  arrow::default_memory_pool());
  TARN_RETURN_IF_ERROR(builder.Reserve(static_cast<int64_t>(micros.size())));
  for (const int64_t value : micros) {
    if (value == kNoTimeMicros) {
      builder.UnsafeAppendNull();
    } else {
      builder.UnsafeAppend(value);
    }
  }
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> array, builder.Finish());
  return array;
}

Result<std::shared_ptr<arrow::RecordBatch>> TakeRows(
    const std::shared_ptr<arrow::RecordBatch>& batch, const std::vector<int64_t>& rows) {
  bool whole = static_cast<int64_t>(rows.size()) == batch->num_rows();
  for (size_t i = 0; whole && i < rows.size(); ++i) {
    whole = rows[i] == static_cast<int64_t>(i);
  }
  if (whole) {
    return batch;
  }
  const arrow::Int64Array indices(static_cast<int64_t>(rows.size()),
                                  arrow::Buffer::Wrap(rows.data(), rows.size()));
  TARN_ASSIGN_OR_RETURN(const arrow::Datum taken,
                        arrow::compute::Take(arrow::Datum(batch), arrow::Datum(indices.data()),
                                             arrow::compute::TakeOptions::NoBoundsCheck()));
  return taken.record_batch();
}

Result<std::shared_ptr<arrow::RecordBatch>> MakeCurrentRows(const arrow::RecordBatch& values,
                                                            const std::vector<VersionRow>& rows) {
  return MakeRows(values, rows, kCurrentTimes);
}

Result<std::shared_ptr<arrow::RecordBatch>> MakePriorRows(const arrow::RecordBatch& values,
                                                          const std::vector<VersionRow>& rows) {
  return MakeRows(values, rows, kPriorTimes);
}

}  // namespace tarn::lakehouse
