#include "tarn/query/infer_schema.h"

#include <algorithm>
#include <array>

#include <arrow/api.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/engine/quoting.h"
#include "tarn/format/json_columns.h"
#include "tarn/format/json_splitter.h"
#include "tarn/format/parquet_reader.h"
#include "tarn/query/dataset_files.h"
#include "tarn/query/json_relation.h"
#include "tarn/query/text_inference.h"
#include "tarn/storage/object_key.h"

namespace tarn::query {

namespace {

using format::Field;
using nlohmann::json;

constexpr size_t kHeadBytes = 4096;
constexpr size_t kPieceBytes = 1 << 20;
constexpr int64_t kJsonRowsAtOnce = 10'000;

// What a file looks like by its first bytes.
Result<FileForm> FormOf(std::string_view head) {
  if (head.starts_with("PAR1")) {
    return FileForm::kParquet;
  }
  if (head.starts_with("Obj\x01")) {
    return Status::Unimplemented("Avro files are not read");
  }
  if (head.starts_with("\x1f\x8b") || head.starts_with("\x28\xb5\x2f\xfd") ||
      head.starts_with("BZh")) {
    return Status::Unimplemented("the file is compressed");
  }
  if (head.find('\0') != std::string_view::npos) {
    return Status::Unimplemented("the file is neither Parquet nor text");
  }
  if (head.starts_with("\xef\xbb\xbf")) {
    head.remove_prefix(3);
  }
  const size_t first = head.find_first_not_of(" \t\r\n");
  const bool is_json =
      first != std::string_view::npos && (head[first] == '{' || head[first] == '[');
  return is_json ? FileForm::kJson : FileForm::kCsv;
}

// Adds the columns of one more file, in the widest types.
void Widen(const std::vector<Field>& more, std::vector<Field>& fields) {
  for (const Field& field : more) {
    const auto known = std::find_if(fields.begin(), fields.end(), [&](const Field& one) {
      return engine::LowerCase(one.name) == engine::LowerCase(field.name);
    });
    if (known == fields.end()) {
      fields.push_back(field);
    } else {
      known->type = format::WidenType(known->type, field.type);
    }
  }
}

void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = from.empty() ? std::string::npos : text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// A failure in words of the dataset: libraries name the object of the store that they read.
Status InDataset(const Status& failure, const storage::ObjectStore& store, const StoreFile& file) {
  if (failure.ok()) {
    return failure;
  }
  const std::string uri = storage::UriOf(store, file.key);
  std::string message = failure.message();
  ReplaceAll(message, uri, file.path);
  if (const Result<std::string> path = storage::PathOfFileUri(uri); path.ok()) {
    ReplaceAll(message, *path, file.path);
  }
  ReplaceAll(message, file.key, file.path);
  return Status(failure.code(), message).WithReason(failure.reason(), failure.details());
}

class Inference {
 public:
  Inference(engine::Session& session, storage::ObjectStore& store, const InferenceSample& sample)
      : store_(store), sample_(sample), text_(session) {}

  Result<InferredSchema> Run(const std::vector<StoreFile>& files) {
    Status first_problem;
    for (const StoreFile& file : files) {
      if (sample_.files && static_cast<int64_t>(out_.files.size()) >= *sample_.files) {
        break;
      }
      InferredFile& report = out_.files.emplace_back(InferredFile{.path = file.path});
      if (file.empty) {
        continue;
      }
      const Status read = InDataset(ReadFile(file, report), store_, file);
      // The store's own failures say nothing about the file.
      if (IsRetryable(read.code())) {
        return read.WithContext("file " + file.path);
      }
      if (!read.ok()) {
        report.problem = read.message();
        first_problem = first_problem.ok() ? read.WithContext("file " + file.path) : first_problem;
      }
    }
    if (!form_) {
      return first_problem.ok()
                 ? Status::FailedPrecondition("there are no files with rows to infer a schema from")
                 : Status::FailedPrecondition(first_problem.message());
    }
    out_.form = *form_;
    TARN_RETURN_IF_ERROR(TakeFields());
    return std::move(out_);
  }

 private:
  Status ReadFile(const StoreFile& file, InferredFile& report) {
    TARN_ASSIGN_OR_RETURN(std::unique_ptr<storage::ObjectReader> object,
                          store_.OpenReader(file.key));
    std::string head(kHeadBytes, '\0');
    TARN_ASSIGN_OR_RETURN(const size_t size, object->ReadAt(0, head.size(), head.data()));
    head.resize(size);
    TARN_ASSIGN_OR_RETURN(report.form, FormOf(head));
    if (form_ && *form_ != *report.form) {
      return Status::InvalidArgument(fmt::format("the file is {}, the files before are {}",
                                                 FileFormName(*report.form), FileFormName(*form_)));
    }
    switch (*report.form) {
      case FileForm::kParquet:
        TARN_RETURN_IF_ERROR(ReadParquet(std::move(object), report));
        break;
      case FileForm::kJson:
        TARN_RETURN_IF_ERROR(ReadJson(*object, report));
        break;
      case FileForm::kCsv: {
        TARN_ASSIGN_OR_RETURN(report.rows,
                              text_.Add(storage::UriOf(store_, file.key), sample_.rows_per_file));
        break;
      }
    }
    form_ = report.form;
    return Status::Ok();
  }

  Status ReadParquet(std::unique_ptr<storage::ObjectReader> object, InferredFile& report) {
    TARN_ASSIGN_OR_RETURN(const std::unique_ptr<format::ParquetReader> reader,
                          format::ParquetReader::Open(std::move(object)));
    TARN_ASSIGN_OR_RETURN(const std::vector<Field> fields,
                          format::FromArrowSchema(*reader->schema()));
    report.rows = reader->row_count();
    Widen(fields, out_.fields);
    return Status::Ok();
  }

  // Columns meet over all files, so that their types widen as in one stream.
  Status ReadJson(storage::ObjectReader& object, InferredFile& report) {
    TARN_ASSIGN_OR_RETURN(const std::unique_ptr<format::JsonColumns> columns,
                          format::JsonColumns::Make({}, json_columns_));
    format::JsonSplitter splitter;
    std::string piece(kPieceBytes, '\0');
    int64_t bad = 0;
    std::string first_bad;
    const auto is_enough = [&] {
      return sample_.rows_per_file && report.rows >= *sample_.rows_per_file;
    };
    const auto take = [&]() -> Status {
      format::JsonRecord record;
      while (!is_enough() && splitter.Next(record)) {
        const format::RecordFailure failure =
            record.failure.ok() ? columns->Append(record.value) : record.failure;
        ++report.rows;
        if (!failure.ok()) {
          first_bad =
              bad++ == 0 ? fmt::format("record {}: {}", record.row + 1, failure.text) : first_bad;
        }
        if (columns->row_count() >= kJsonRowsAtOnce) {
          TARN_RETURN_IF_ERROR(columns->Finish());  // Only the types are wanted.
        }
      }
      return Status::Ok();
    };
    for (uint64_t at = 0; !is_enough();) {
      TARN_ASSIGN_OR_RETURN(const size_t size, object.ReadAt(at, piece.size(), piece.data()));
      if (size == 0) {
        break;
      }
      splitter.Feed(std::string_view(piece).substr(0, size));
      TARN_RETURN_IF_ERROR(take());
      at += size;
    }
    splitter.Finish();
    TARN_RETURN_IF_ERROR(take());
    if (bad == report.rows && bad > 0) {
      return Status::InvalidArgument(first_bad);
    }
    json_columns_ = columns->column_set();
    if (bad > 0) {
      report.problem = fmt::format("{} records cannot be read; {}", bad, first_bad);
    }
    return Status::Ok();
  }

  Status TakeFields() {
    if (out_.form == FileForm::kJson) {
      out_.fields = format::FieldsOf(json_columns_);
    } else if (out_.form == FileForm::kCsv) {
      out_.fields = text_.Fields();
      out_.text = text_.options();
    }
    return out_.fields.empty()
               ? Status::FailedPrecondition("the files have no columns to infer a schema from")
               : Status::Ok();
  }

  storage::ObjectStore& store_;
  const InferenceSample& sample_;
  std::optional<FileForm> form_;
  InferredSchema out_;
  format::ColumnSet json_columns_;
  TextInference text_;
};

json FieldJson(const Field& field) {
  json object = {
      {"name", field.name}, {"type", format::FieldKindName(field.type.kind)}, {"nullable", true}};
  const std::vector<Field>& children = field.type.children;
  switch (field.type.kind) {
    case format::FieldKind::kDecimal:
      object["precision"] = field.type.precision;
      object["scale"] = field.type.scale;
      break;
    case format::FieldKind::kArray:
      object["arraySubtype"] = FieldJson(children[0]);
      break;
    case format::FieldKind::kMap:
      object["mapKeyType"] = FieldJson(children[0]);
      object["mapValueType"] = FieldJson(children[1]);
      break;
    case format::FieldKind::kStruct:
      object["subSchemas"] = json::array();
      for (const Field& child : children) {
        object["subSchemas"].push_back(FieldJson(child));
      }
      break;
    default:
      break;
  }
  return object;
}

}  // namespace

bool InferredSchema::has_problems() const {
  return std::any_of(files.begin(), files.end(),
                     [](const InferredFile& file) { return !file.problem.empty(); });
}

std::string_view FileFormName(FileForm form) {
  switch (form) {
    case FileForm::kParquet:
      return "PARQUET";
    case FileForm::kCsv:
      return "CSV";
    case FileForm::kJson:
      return "JSON";
  }
  return "";
}

Result<InferredSchema> InferSchema(engine::Session& session, dataset::DatasetStore& datasets,
                                   storage::ObjectStore& store, const DatasetRelation& relation,
                                   const InferenceSample& sample) {
  TARN_ASSIGN_OR_RETURN(const DatasetFiles files, ListDatasetFiles(datasets, store, relation));
  return Inference(session, store, sample).Run(files.files);
}

std::string SchemaJsonOf(const InferredSchema& schema) {
  json fields = json::array();
  for (const Field& field : schema.fields) {
    fields.push_back(FieldJson(field));
  }
  json object = {{"fieldSchemaList", std::move(fields)}};
  switch (schema.form) {
    case FileForm::kParquet:
      object["dataFrameReaderClass"] = "com.palantir.foundry.spark.input.ParquetDataFrameReader";
      object["customMetadata"] = {{"format", "parquet"}};
      break;
    case FileForm::kJson:
      object["dataFrameReaderClass"] = kDataSourceReader;
      object["customMetadata"] = {{"format", "json"}, {"options", json::object()}};
      break;
    case FileForm::kCsv:
      object["dataFrameReaderClass"] = "com.palantir.foundry.spark.input.TextDataFrameReader";
      object["customMetadata"] = {
          {"textParserParams",
           {{"parser", "MULTILINE_CSV_PARSER"},
            {"charsetName", "UTF-8"},
            {"fieldDelimiter", schema.text.delimiter},
            {"recordDelimiter", "\n"},
            {"quoteCharacter", schema.text.quote.empty() ? "\"" : schema.text.quote},
            {"skipLines", schema.text.skip_lines},
            {"nullValues", schema.text.null_values},
            {"jaggedRowBehavior", "THROW_EXCEPTION"},
            {"parseErrorBehavior", "THROW_EXCEPTION"}}}};
      break;
  }
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace tarn::query
