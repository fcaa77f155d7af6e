#include "tarn/lakehouse/changes_writer.h"

#include <algorithm>

#include <arrow/api.h>
#include <fmt/format.h>

#include "tarn/base/arrow_status.h"
#include "tarn/lakehouse/header_columns.h"
#include "tarn/lakehouse/internal_schema.h"
#include "tarn/lakehouse/version_rows.h"
#include "tarn/transform/canonical_text.h"

namespace tarn::lakehouse {

namespace {

TableWriterOptions WriterOptions(const ChangesWriterOptions& options) {
  TableWriterOptions writer;
  writer.metadata = options.metadata;
  const bool merge = options.spec->mode == Mode::kMerge;
  writer.spec_id = merge ? kInternalSpecId : options.metadata->default_spec_id;
  writer.partition = merge ? std::string(kChangesPartition) : std::string();
  writer.sort = merge ? SortRows::kNo : SortRows::kByTableOrder;
  if (merge) {
    // Changes are read once or twice and then dropped: time counts for more than size.
    writer.compression = format::ParquetCompression::kSnappy;
  }
  return writer;
}

// Columns under construction, in order.
struct Columns {
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;

  void Add(std::string_view name, std::shared_ptr<arrow::Array> array) {
    fields.push_back(arrow::field(std::string(name), array->type()));
    arrays.push_back(std::move(array));
  }
  void AddAll(const arrow::RecordBatch& batch) {
    for (int i = 0; i < batch.num_columns(); ++i) {
      Add(batch.schema()->field(i)->name(), batch.column(i));
    }
  }
  [[nodiscard]] std::shared_ptr<arrow::RecordBatch> Finish(int64_t row_count) {
    return arrow::RecordBatch::Make(arrow::schema(std::move(fields)), row_count, std::move(arrays));
  }
};

Result<std::shared_ptr<arrow::Array>> MakeOperations(const std::vector<Operation>& operations) {
  arrow::StringBuilder builder;
  TARN_RETURN_IF_ERROR(builder.Reserve(static_cast<int64_t>(operations.size())));
  TARN_RETURN_IF_ERROR(builder.ReserveData(static_cast<int64_t>(operations.size())));
  for (const Operation operation : operations) {
    const char letter = static_cast<char>(operation);
    builder.UnsafeAppend(std::string_view(&letter, 1));
  }
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> array, builder.Finish());
  return array;
}

}  // namespace

ChangesWriter::ChangesWriter(ChangesWriterOptions options, TableWriterDeps deps)
    : options_(std::move(options)),
      numbering_(options_.last),
      writer_(WriterOptions(options_), deps) {}

Result<std::shared_ptr<arrow::Array>> ChangesWriter::MakeIdentifiers(const ChangeBatch& batch) {
  const auto count = static_cast<size_t>(batch.rows->num_rows());
  TARN_ASSIGN_OR_RETURN(std::unique_ptr<arrow::Buffer> characters,
                        arrow::AllocateBuffer(static_cast<int64_t>(count * kChangeIdentifierSize)));
  TARN_ASSIGN_OR_RETURN(std::unique_ptr<arrow::Buffer> offsets,
                        arrow::AllocateBuffer(static_cast<int64_t>((count + 1) * sizeof(int32_t))));
  auto* offset = reinterpret_cast<int32_t*>(offsets->mutable_data());
  char* text = reinterpret_cast<char*>(characters->mutable_data());
  for (size_t row = 0; row < count; ++row) {
    offset[row] = static_cast<int32_t>(row * kChangeIdentifierSize);
    numbering_.Next(FromMicros(batch.landed_micros[row]), FromMicros(batch.source_micros[row]),
                    text + row * kChangeIdentifierSize);
  }
  offset[count] = static_cast<int32_t>(count * kChangeIdentifierSize);
  return std::shared_ptr<arrow::Array>(std::make_shared<arrow::StringArray>(
      static_cast<int64_t>(count), std::move(offsets), std::move(characters)));
}

Result<std::shared_ptr<arrow::Array>> ChangesWriter::MakeKeyHashes(
    const arrow::RecordBatch& rows) const {
  if (options_.spec->key.empty()) {
    TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> nulls,
                          arrow::MakeArrayOfNull(arrow::fixed_size_binary(20), rows.num_rows()));
    return nulls;
  }
  std::vector<int> keys;
  for (const std::string& key : options_.spec->key) {
    const int index = rows.schema()->GetFieldIndex(key);
    if (index < 0) {
      return Status::InvalidArgument(
          fmt::format("rows for {} lack the key column {}", options_.spec->name, key));
    }
    keys.push_back(index);
  }
  return transform::KeyHashes(rows, keys);
}

Result<std::shared_ptr<arrow::RecordBatch>> ChangesWriter::MergeRows(const ChangeBatch& batch) {
  const int64_t count = batch.rows->num_rows();
  Columns columns;
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> hashes, MakeKeyHashes(*batch.rows));
  columns.Add(Name(HeaderColumn::kKeyHash), std::move(hashes));
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> operations, MakeOperations(batch.operations));
  columns.Add(Name(HeaderColumn::kOperation), std::move(operations));
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> times, MakeTimes(batch.timestamps_micros));
  columns.Add(Name(HeaderColumn::kTimestamp), std::move(times));
  TARN_ASSIGN_OR_RETURN(
      std::shared_ptr<arrow::Array> inserted,
      MakeTimes(std::vector<int64_t>(static_cast<size_t>(count), ToMicros(options_.now))));
  columns.Add(Name(HeaderColumn::kInsertedTimestamp), std::move(inserted));
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> identifiers, MakeIdentifiers(batch));
  columns.Add(Name(HeaderColumn::kChangeIdentifier), std::move(identifiers));
  columns.AddAll(*batch.rows);
  return columns.Finish(count);
}

Result<std::shared_ptr<arrow::RecordBatch>> ChangesWriter::AppendRows(
    const ChangeBatch& batch) const {
  std::vector<VersionRow> rows(static_cast<size_t>(batch.rows->num_rows()));
  for (size_t row = 0; row < rows.size(); ++row) {
    rows[row] = {.source_row = static_cast<int64_t>(row),
                 .operation = 'I',
                 .from_micros = batch.timestamps_micros[row],
                 .inserted_micros = ToMicros(options_.now),
                 .modified_micros = ToMicros(options_.now)};
  }
  Columns columns;
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> hashes, MakeKeyHashes(*batch.rows));
  columns.Add(Name(HeaderColumn::kKeyHash), std::move(hashes));
  columns.AddAll(*batch.rows);
  const std::shared_ptr<arrow::RecordBatch> values = columns.Finish(batch.rows->num_rows());
  return MakeCurrentRows(*values, rows);
}

Status ChangesWriter::Write(const ChangeBatch& batch) {
  const auto count = static_cast<size_t>(batch.rows->num_rows());
  const bool whole = batch.operations.size() == count && batch.timestamps_micros.size() == count &&
                     batch.landed_micros.size() == count && batch.source_micros.size() == count;
  if (!whole) {
    return Status::Internal("a change batch whose parts differ in length");
  }
  TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> rows,
                        options_.spec->mode == Mode::kMerge ? MergeRows(batch) : AppendRows(batch));
  return writer_.Write(rows);
}

Result<WrittenChanges> ChangesWriter::Close() {
  WrittenChanges written;
  written.row_count = writer_.row_count();
  TARN_ASSIGN_OR_RETURN(written.files, writer_.Close());
  written.last = numbering_.last();
  if (options_.spec->mode == Mode::kAppend) {
    written.last.change_number += written.row_count;
  }
  return written;
}

}  // namespace tarn::lakehouse
