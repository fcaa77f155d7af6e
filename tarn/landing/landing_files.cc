#include "tarn/landing/landing_files.h"

#include <utility>

#include <arrow/api.h>

#include "tarn/base/log.h"
#include "tarn/dataset/physical_name.h"
#include "tarn/format/background_writer.h"

namespace tarn::landing {

namespace {

// Landed rows are written once and mostly read once, soon: a third less work of the processor is
// worth a quarter more bytes.
constexpr int kCompressionLevel = -1;

}  // namespace

struct LandingFiles::State {
  State(LandingFilesOptions landing_options, storage::ObjectStore& object_store,
        UuidGenerator& generator)
      : options(landing_options), store(object_store), uuids(generator) {}

  Status Write(std::shared_ptr<arrow::RecordBatch> batch) {
    if (writer != nullptr && !schema->Equals(*batch->schema(), /*check_metadata=*/false)) {
      TARN_RETURN_IF_ERROR(FinishFile());
    }
    if (writer == nullptr) {
      TARN_RETURN_IF_ERROR(StartFile(batch->schema()));
    }
    return writer->Write(std::move(batch));
  }

  Status StartFile(const std::shared_ptr<arrow::Schema>& rows) {
    const Uuid uuid = uuids.NextV7();
    open = {};
    open.path = uuid.ToString() + ".parquet";
    open.location = dataset::PhysicalName(options.dataset, uuid, open.path);
    TARN_ASSIGN_OR_RETURN(std::unique_ptr<storage::ObjectWriter> object,
                          store.OpenWriter(open.location, storage::WriteMode::kPutIfAbsent));
    schema = rows;
    TARN_ASSIGN_OR_RETURN(std::unique_ptr<format::ParquetWriter> parquet,
                          format::ParquetWriter::Open(std::move(object), schema,
                                                      {.compression_level = kCompressionLevel}));
    writer = std::make_unique<format::BackgroundWriter>(std::move(parquet));
    return Status::Ok();
  }

  Status FinishFile() {
    if (writer == nullptr) {
      return Status::Ok();
    }
    const std::unique_ptr<format::BackgroundWriter> finished = std::move(writer);
    TARN_ASSIGN_OR_RETURN(const format::FileStatistics statistics, finished->Close());
    open.size_bytes = statistics.size_bytes;
    open.row_count = statistics.row_count;
    files.push_back(open);
    return Status::Ok();
  }

  void RemoveFiles() {
    writer.reset();
    for (const dataset::StoredFile& file : files) {
      const Status removed = store.Delete(file.location);
      if (!removed.ok()) {
        Log(LogLevel::kWarning, "landing",
            "left " + file.location + " behind: " + removed.ToString());
      }
    }
    files.clear();
  }

  LandingFilesOptions options;
  storage::ObjectStore& store;
  UuidGenerator& uuids;
  bool closed = false;
  Status failure;  // The first one.
  std::unique_ptr<format::BackgroundWriter> writer;
  std::shared_ptr<arrow::Schema> schema;
  dataset::StoredFile open;
  std::vector<dataset::StoredFile> files;
};

LandingFiles::LandingFiles(LandingFilesOptions options, storage::ObjectStore& store,
                           UuidGenerator& uuids)
    : state_(std::make_unique<State>(options, store, uuids)) {}

LandingFiles::~LandingFiles() { Abort(); }

Status LandingFiles::Write(std::shared_ptr<arrow::RecordBatch> batch) {
  if (state_->closed) {
    return Status::Internal("rows for files that are closed");
  }
  if (state_->failure.ok()) {
    state_->failure = state_->Write(std::move(batch));
  }
  return state_->failure;
}

Result<std::vector<dataset::StoredFile>> LandingFiles::Close() {
  state_->closed = true;
  if (state_->failure.ok()) {
    state_->failure = state_->FinishFile();
  }
  if (!state_->failure.ok()) {
    state_->RemoveFiles();
    return state_->failure;
  }
  return std::exchange(state_->files, {});
}

void LandingFiles::Abort() {
  state_->closed = true;
  state_->RemoveFiles();
}

}  // namespace tarn::landing
