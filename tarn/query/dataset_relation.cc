#include "tarn/query/dataset_relation.h"

#include <algorithm>
#include <array>

#include <arrow/api.h>
#include <fmt/format.h>

#include "tarn/base/arrow_status.h"
#include "tarn/engine/quoting.h"
#include "tarn/engine/scan_sql.h"
#include "tarn/engine/sql_type.h"
#include "tarn/format/parquet_reader.h"
#include "tarn/format/widen_batch.h"
#include "tarn/query/dataset_files.h"
#include "tarn/query/json_relation.h"
#include "tarn/query/text_relation.h"

namespace tarn::query {

namespace {

using format::Field;
using format::FieldKind;

constexpr std::string_view kParquetMagic = "PAR1";

// The kinds of both enumerations have the same names.
Result<Field> FieldOf(const dataset::Field& from) {
  Field field;
  field.name = from.name;
  field.nullable = from.nullable;
  TARN_ASSIGN_OR_RETURN(field.type.kind, format::ParseFieldKind(dataset::FieldTypeName(from.type)));
  field.type.precision = from.precision;
  field.type.scale = from.scale;
  for (const dataset::Field& child : from.children) {
    TARN_ASSIGN_OR_RETURN(Field inner, FieldOf(child));
    if (inner.name.empty()) {
      const bool map = from.type == dataset::FieldType::kMap;
      inner.name = !map ? "element" : field.type.children.empty() ? "key" : "value";
    }
    field.type.children.push_back(std::move(inner));
  }
  return field;
}

using ReaderPtr = std::unique_ptr<format::ParquetReader>;

Result<ReaderPtr> OpenParquet(storage::ObjectStore& store, const StoreFile& file) {
  TARN_ASSIGN_OR_RETURN(std::unique_ptr<storage::ObjectReader> object, store.OpenReader(file.key));
  std::array<char, 4> magic{};
  TARN_ASSIGN_OR_RETURN(const size_t size, object->ReadAt(0, magic.size(), magic.data()));
  if (std::string_view(magic.data(), size) != kParquetMagic) {
    return Status::InvalidArgument(
        fmt::format("file {} is not Parquet: SQL reads datasets of Parquet files only", file.path));
  }
  return format::ParquetReader::Open(std::move(object));
}

std::vector<Field>::iterator FindIgnoringCase(std::vector<Field>& fields, std::string_view name) {
  const std::string lower = engine::LowerCase(name);
  return std::find_if(fields.begin(), fields.end(),
                      [&](const Field& field) { return engine::LowerCase(field.name) == lower; });
}

// Adds the columns of one more file to those seen, in the widest types.
Status WidenFields(const arrow::Schema& schema, std::vector<Field>& fields) {
  TARN_ASSIGN_OR_RETURN(const std::vector<Field> more, format::FromArrowSchema(schema));
  for (const Field& field : more) {
    const auto known = FindIgnoringCase(fields, field.name);
    if (known == fields.end()) {
      fields.push_back(field);
    } else {
      known->type = format::WidenType(known->type, field.type);
    }
  }
  return Status::Ok();
}

// A dataset schema has no word for wall-clock times, times of day and UUIDs: where the kinds agree,
// the files say which it is.
void TakeDetails(std::vector<Field>& stored, std::vector<Field>& files) {
  for (Field& field : stored) {
    const auto found = FindIgnoringCase(files, field.name);
    if (found != files.end() && found->type.kind == field.type.kind &&
        found->type.detail != format::FieldDetail::kUntyped) {
      field.type.detail = found->type.detail;
    }
  }
}

// True when every wanted column that the file has is there under its very name and type.
bool IsUniform(const arrow::Schema& file, const arrow::Schema& wanted) {
  for (const std::shared_ptr<arrow::Field>& want : wanted.fields()) {
    const std::string lower = engine::LowerCase(want->name());
    for (const std::shared_ptr<arrow::Field>& field : file.fields()) {
      if (engine::LowerCase(field->name()) == lower &&
          (field->name() != want->name() || !want->type()->Equals(*field->type(), false))) {
        return false;
      }
    }
  }
  return true;
}

// Reads the files one after the other, cast up to `fields`.
class WideningReader final : public arrow::RecordBatchReader {
 public:
  WideningReader(storage::ObjectStore& store, std::vector<StoreFile> files,
                 std::vector<Field> fields)
      : store_(store),
        files_(std::move(files)),
        fields_(std::move(fields)),
        schema_(format::ToArrowSchema(fields_)) {}

  [[nodiscard]] std::shared_ptr<arrow::Schema> schema() const override { return schema_; }

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
        if (next_ == files_.size()) {
          return std::shared_ptr<arrow::RecordBatch>();
        }
        TARN_ASSIGN_OR_RETURN(reader_, OpenParquet(store_, files_[next_]));
        TARN_RETURN_IF_ERROR(reader_->Scan({}));
      }
      TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> batch, reader_->Next());
      if (batch != nullptr) {
        Result<std::shared_ptr<arrow::RecordBatch>> wide = format::WidenBatch(batch, fields_);
        return wide.ok() ? wide : wide.status().WithContext("file " + files_[next_].path);
      }
      reader_.reset();
      ++next_;
    }
  }

  storage::ObjectStore& store_;
  std::vector<StoreFile> files_;
  std::vector<Field> fields_;
  std::shared_ptr<arrow::Schema> schema_;
  ReaderPtr reader_;
  size_t next_ = 0;
};

// Reads one dataset for one query.
class DatasetReader {
 public:
  DatasetReader(engine::Session& session, dataset::DatasetStore& datasets,
                storage::ObjectStore& store, const DatasetRelation& relation)
      : session_(session), datasets_(datasets), store_(store), relation_(relation) {}

  Status Make() {
    TARN_RETURN_IF_ERROR(ReadView());
    TARN_ASSIGN_OR_RETURN(const std::optional<dataset::DatasetSchema> schema, ReadSchema());
    if (schema) {
      TARN_ASSIGN_OR_RETURN(const std::optional<TextOptions> text, ReadTextOptions(*schema));
      if (text) {
        return MakeText([&](const auto& uris) { return BuildTextScan(fields_, uris, *text); });
      }
      TARN_ASSIGN_OR_RETURN(const bool is_json, IsJson(*schema));
      if (is_json) {
        return MakeText([&](const auto& uris) { return BuildJsonScan(fields_, uris); });
      }
    }
    TARN_RETURN_IF_ERROR(ReadFields());
    if (fields_.empty()) {
      return Status::FailedPrecondition(
          "the dataset has neither a schema nor files on this branch: there is nothing to read");
    }
    return uniform_ ? MakeScan() : MakeReader();
  }

  // Files that are not Parquet, read as the schema says.
  template <typename Build>
  Status MakeText(const Build& build) {
    std::vector<std::string> uris;
    for (const StoreFile& file : files_) {
      if (!file.empty) {
        uris.push_back(storage::UriOf(store_, file.key));
      }
    }
    TARN_ASSIGN_OR_RETURN(const std::string scan, build(uris));
    return session_.Execute(fmt::format("CREATE OR REPLACE TEMP VIEW {} AS {}",
                                        engine::QuoteName(relation_.name), scan));
  }

 private:
  Status ReadView() {
    TARN_ASSIGN_OR_RETURN(DatasetFiles read, ListDatasetFiles(datasets_, store_, relation_));
    view_ = std::move(read.view);
    files_ = std::move(read.files);
    return Status::Ok();
  }

  // The stored schema, if there is one; fields_ are its columns.
  Result<std::optional<dataset::DatasetSchema>> ReadSchema() {
    if (view_.absent()) {
      return std::optional<dataset::DatasetSchema>();
    }
    Result<dataset::StoredSchema> stored = datasets_.GetSchema(
        relation_.dataset, {.branch = relation_.branch, .end = view_.end, .version = {}});
    if (stored.status().code() == ErrorCode::kNotFound) {
      return std::optional<dataset::DatasetSchema>();
    }
    TARN_RETURN_IF_ERROR(StatusOf(stored));
    fields_ = FieldsOf(stored->schema);
    return std::optional(std::move(stored->schema));
  }

  // The columns: those of the stored schema, else those of the files.
  Status ReadFields() {
    std::vector<Field> of_files;
    std::vector<std::shared_ptr<arrow::Schema>> schemas;
    for (const StoreFile& file : files_) {
      TARN_ASSIGN_OR_RETURN(const ReaderPtr reader, OpenParquet(store_, file));
      schemas.push_back(reader->schema());
      const Status widened = WidenFields(*reader->schema(), of_files);
      if (!widened.ok()) {
        return widened.WithContext("file " + file.path);
      }
    }
    if (fields_.empty()) {
      fields_ = std::move(of_files);
    } else {
      TakeDetails(fields_, of_files);
    }
    const std::shared_ptr<arrow::Schema> wanted = format::ToArrowSchema(fields_);
    uniform_ = std::all_of(schemas.begin(), schemas.end(),
                           [&](const auto& schema) { return IsUniform(*schema, *wanted); });
    return Status::Ok();
  }

  // The engine reads the files itself.
  Status MakeScan() {
    engine::ScanRequest request;
    request.match = engine::ScanMatch::kName;
    const std::shared_ptr<arrow::Schema> schema = format::ToArrowSchema(fields_);
    for (const std::shared_ptr<arrow::Field>& field : schema->fields()) {
      engine::ScanColumn column;
      column.name = field->name();
      TARN_ASSIGN_OR_RETURN(column.type, engine::SqlTypeOf(*field->type()));
      request.columns.push_back(std::move(column));
    }
    for (const StoreFile& file : files_) {
      request.files.push_back({.path = storage::UriOf(store_, file.key)});
    }
    TARN_ASSIGN_OR_RETURN(const std::string scan, engine::BuildScan(request));
    return session_.Execute(fmt::format("CREATE OR REPLACE TEMP VIEW {} AS {}",
                                        engine::QuoteName(relation_.name), scan));
  }

  // The files differ: they are read here and cast up.
  Status MakeReader() {
    return session_.RegisterReader(
        relation_.name, format::ToArrowSchema(fields_),
        [&store = store_, files = files_,
         fields = fields_]() -> Result<std::shared_ptr<arrow::RecordBatchReader>> {
          return std::shared_ptr<arrow::RecordBatchReader>(
              std::make_shared<WideningReader>(store, files, fields));
        });
  }

  engine::Session& session_;
  dataset::DatasetStore& datasets_;
  storage::ObjectStore& store_;
  const DatasetRelation& relation_;
  dataset::FileView view_;
  std::vector<StoreFile> files_;
  std::vector<Field> fields_;
  bool uniform_ = true;
};

}  // namespace

std::vector<Field> FieldsOf(const dataset::DatasetSchema& schema) {
  std::vector<Field> fields;
  for (const dataset::Field& from : schema.fields) {
    Result<Field> field = FieldOf(from);
    TARN_CHECK(field.ok());
    fields.push_back(std::move(field).value());
  }
  return fields;
}

Status MakeDatasetRelation(engine::Session& session, dataset::DatasetStore& datasets,
                           storage::ObjectStore& store, const DatasetRelation& relation) {
  return DatasetReader(session, datasets, store, relation).Make().WithContext(relation.written);
}

}  // namespace tarn::query
