#include "tarn/landing/dead_letter_file.h"

#include <arrow/api.h>
#include <nlohmann/json.hpp>

#include "tarn/dataset/physical_name.h"
#include "tarn/format/parquet_writer.h"

namespace tarn::landing {

namespace {

constexpr std::string_view kSchemaNotFound = "SchemaNotFound";  // Reason of GetSchema.

int64_t SizeOf(const DeadLetter& letter) {
  return static_cast<int64_t>(sizeof(DeadLetter) + letter.raw.size() + letter.source.size() +
                              letter.position.size() + letter.error_code.size() +
                              letter.error_text.size() + letter.rejected_by.size());
}

// The schema of the dataset, of the columns that MakeDeadLetters gives.
std::string MakeDeadLetterSchema() {
  nlohmann::json fields = nlohmann::json::array();
  const auto add = [&](const char* name, const char* type) {
    fields.push_back({{"name", name}, {"type", type}, {"nullable", true}});
  };
  add("raw", "BINARY");
  for (const char* name : {"source", "position", "error_code", "error_text", "rejected_by"}) {
    add(name, "STRING");
  }
  add("hdr__landed_timestamp", "TIMESTAMP");
  return nlohmann::json{
      {"fieldSchemaList", std::move(fields)},
      {"dataFrameReaderClass", "com.palantir.foundry.spark.input.ParquetDataFrameReader"}}
      .dump();
}

}  // namespace

DeadLetterFile::DeadLetterFile(DeadLetterFileOptions options, storage::ObjectStore& store,
                               UuidGenerator& uuids)
    : options_(options), store_(store), uuids_(uuids) {}

DeadLetterFile::~DeadLetterFile() = default;

Status DeadLetterFile::Add(DeadLetter letter) {
  piece_bytes_ += SizeOf(letter);
  piece_.push_back(std::move(letter));
  ++row_count_;
  return piece_bytes_ >= options_.piece_bytes ? WritePiece() : Status::Ok();
}

Status DeadLetterFile::WritePiece() {
  TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> rows,
                        MakeDeadLetters(piece_, options_.landed));
  piece_.clear();
  piece_bytes_ = 0;
  if (writer_ == nullptr) {
    const Uuid uuid = uuids_.NextV7();
    file_.path = uuid.ToString() + ".parquet";
    file_.location = dataset::PhysicalName(options_.rejected, uuid, file_.path);
    TARN_ASSIGN_OR_RETURN(std::unique_ptr<storage::ObjectWriter> object,
                          store_.OpenWriter(file_.location, storage::WriteMode::kPutIfAbsent));
    format::ParquetWriterOptions options;
    options.row_group_bytes = options_.group_bytes;
    TARN_ASSIGN_OR_RETURN(writer_,
                          format::ParquetWriter::Open(std::move(object), rows->schema(), options));
  }
  return writer_->Write(*rows);
}

Result<std::optional<dataset::StoredFile>> DeadLetterFile::Close() {
  if (row_count_ == 0) {
    return std::optional<dataset::StoredFile>();
  }
  if (!piece_.empty()) {
    TARN_RETURN_IF_ERROR(WritePiece());
  }
  TARN_ASSIGN_OR_RETURN(const format::FileStatistics statistics, writer_->Close());
  file_.size_bytes = statistics.size_bytes;
  file_.row_count = statistics.row_count;
  return std::optional(file_);
}

Status CommitDeadLetters(metastore::SqlTransaction& sql, dataset::DatasetStore& datasets,
                         const DeadLetterCommit& commit) {
  dataset::CommitFilesRequest request;
  request.dataset = commit.rejected;
  request.files = {commit.file};
  request.commit.by = commit.by;
  TARN_ASSIGN_OR_RETURN(const dataset::Transaction transaction, datasets.CommitFiles(sql, request));
  const Result<dataset::StoredSchema> known = datasets.GetSchema(sql, commit.rejected, {});
  if (known.ok()) {
    return Status::Ok();
  }
  if (known.status().reason() != kSchemaNotFound) {
    return known.status();
  }
  return StatusOf(datasets.PutSchema(sql, commit.rejected, MakeDeadLetterSchema(),
                                     {.end = transaction.rid, .by = commit.by}));
}

}  // namespace tarn::landing
