#include "tarn/task/landed_relation.h"

#include <algorithm>

#include <arrow/api.h>
#include <fmt/format.h>

#include "tarn/base/arrow_status.h"
#include "tarn/engine/quoting.h"
#include "tarn/engine/scan_sql.h"
#include "tarn/format/parquet_reader.h"
#include "tarn/format/widen_batch.h"
#include "tarn/task/change_split.h"
#include "tarn/transform/mapping.h"

namespace tarn::task {

namespace {

// True when the file has no column of another type than `fields` says; missing ones are fine.
Result<bool> IsUniform(storage::ObjectStore& store, const LandedFile& file,
                       const arrow::Schema& wanted) {
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<format::ParquetReader> reader,
                        format::ParquetReader::Open(store, file.location));
  for (const std::shared_ptr<arrow::Field>& field : reader->schema()->fields()) {
    const std::shared_ptr<arrow::Field> want = wanted.GetFieldByName(field->name());
    if (want != nullptr && !want->type()->Equals(*field->type(), /*check_metadata=*/false)) {
      return false;
    }
  }
  return true;
}

// Reads the files one after the other, cast up, with tarn_row.
class WideningReader final : public arrow::RecordBatchReader {
 public:
  WideningReader(storage::ObjectStore& store, const LandedBatch& batch,
                 std::vector<format::Field> fields, std::shared_ptr<arrow::Schema> schema)
      : store_(store), batch_(batch), fields_(std::move(fields)), schema_(std::move(schema)) {}

  std::shared_ptr<arrow::Schema> schema() const override { return schema_; }

  arrow::Status ReadNext(std::shared_ptr<arrow::RecordBatch>* out) override {
    Result<std::shared_ptr<arrow::RecordBatch>> next = Next();
    if (!next.ok()) {
      return ToArrow(next.status());
    }
    *out = std::move(next).value();
    return arrow::Status::OK();
  }

 private:
  Result<std::shared_ptr<arrow::RecordBatch>> Next() {
    while (true) {
      if (reader_ == nullptr) {
        if (file_ == batch_.files.size()) {
          return std::shared_ptr<arrow::RecordBatch>();
        }
        TARN_ASSIGN_OR_RETURN(reader_,
                              format::ParquetReader::Open(store_, batch_.files[file_].location));
        TARN_RETURN_IF_ERROR(reader_->Scan({}));
        position_ = 0;
      }
      TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> batch, reader_->Next());
      if (batch == nullptr) {
        reader_.reset();
        ++file_;
        continue;
      }
      TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> wide,
                            format::WidenBatch(batch, fields_));
      arrow::Int64Builder rows;
      TARN_RETURN_IF_ERROR(rows.Reserve(wide->num_rows()));
      for (int64_t i = 0; i < wide->num_rows(); ++i) {
        rows.UnsafeAppend(InputRow(static_cast<int64_t>(file_), position_++));
      }
      TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> row_array, rows.Finish());
      arrow::ArrayVector columns = wide->columns();
      columns.push_back(std::move(row_array));
      return arrow::RecordBatch::Make(schema_, wide->num_rows(), std::move(columns));
    }
  }

  storage::ObjectStore& store_;
  const LandedBatch& batch_;
  std::vector<format::Field> fields_;
  std::shared_ptr<arrow::Schema> schema_;
  std::unique_ptr<format::ParquetReader> reader_;
  size_t file_ = 0;
  int64_t position_ = 0;
};

// The SQL name of the engine for a column's type.
Result<std::vector<engine::ScanColumn>> ScanColumns(engine::Session& session,
                                                    const arrow::Schema& schema) {
  // The engine names its own types: an empty relation of these columns is described.
  TARN_RETURN_IF_ERROR(
      session.RegisterBatches("tarn_types", std::make_shared<arrow::Schema>(schema), {}));
  TARN_ASSIGN_OR_RETURN(
      const std::unique_ptr<engine::ArrowStream> stream,
      session.Query("SELECT column_name, column_type FROM (DESCRIBE tarn_types)"));
  TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::Table> table, engine::ReadAll(*stream));
  std::vector<engine::ScanColumn> columns;
  for (int64_t i = 0; i < table->num_rows(); ++i) {
    TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::Scalar> name,
                          table->column(0)->GetScalar(i));
    TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::Scalar> type,
                          table->column(1)->GetScalar(i));
    engine::ScanColumn column;
    column.name = name->ToString();
    column.type = type->ToString();
    columns.push_back(std::move(column));
  }
  return columns;
}

Status RegisterScan(engine::Session& session, storage::ObjectStore& store, const LandedBatch& batch,
                    const arrow::Schema& schema) {
  engine::ScanRequest request;
  TARN_ASSIGN_OR_RETURN(request.columns, ScanColumns(session, schema));
  request.match = engine::ScanMatch::kName;
  request.with_position = true;
  for (const LandedFile& file : batch.files) {
    request.files.push_back(
        {.path = storage::UriOf(store, file.location), .has_deletes = false, .constants = {}});
  }
  TARN_ASSIGN_OR_RETURN(const std::string scan, engine::BuildScan(request));
  return session.Execute(
      fmt::format("CREATE OR REPLACE TEMP VIEW {} AS SELECT * EXCLUDE (tarn_file, tarn_pos), "
                  "(tarn_file << {}) | tarn_pos AS {} FROM ({})",
                  transform::kInputRelation, kRowPositionBits, transform::kRowColumn, scan));
}

}  // namespace

Status RegisterLanded(engine::Session& session, storage::ObjectStore& store,
                      const LandedBatch& batch, const std::vector<format::Field>& fields) {
  const std::shared_ptr<arrow::Schema> schema = format::ToArrowSchema(fields);
  bool uniform = true;
  for (const LandedFile& file : batch.files) {
    if (uniform) {
      TARN_ASSIGN_OR_RETURN(uniform, IsUniform(store, file, *schema));
    }
  }
  if (uniform && !batch.files.empty()) {
    return RegisterScan(session, store, batch, *schema);
  }
  arrow::FieldVector with_row = schema->fields();
  with_row.push_back(arrow::field(std::string(transform::kRowColumn), arrow::int64()));
  const std::shared_ptr<arrow::Schema> input = arrow::schema(std::move(with_row));
  TARN_RETURN_IF_ERROR(session.RegisterReader(
      "tarn_widened", input,
      [&store, &batch, fields, input]() -> Result<std::shared_ptr<arrow::RecordBatchReader>> {
        return std::shared_ptr<arrow::RecordBatchReader>(
            std::make_shared<WideningReader>(store, batch, fields, input));
      }));
  // Batches of a reader come in no order; the sort gives the one that identifiers follow.
  return session.Execute(
      fmt::format("CREATE OR REPLACE TEMP VIEW {} AS SELECT * FROM tarn_widened ORDER BY {}",
                  transform::kInputRelation, transform::kRowColumn));
}

}  // namespace tarn::task
