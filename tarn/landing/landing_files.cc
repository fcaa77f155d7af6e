#include "tarn/landing/landing_files.h"

#include <atomic>
#include <mutex>
#include <thread>

#include <arrow/api.h>

#include "tarn/base/bounded_queue.h"
#include "tarn/base/log.h"
#include "tarn/dataset/physical_name.h"
#include "tarn/format/parquet_writer.h"

namespace tarn::landing {

namespace {

// Landed rows are written once and mostly read once, soon: a third less work of the processor is
// worth a quarter more bytes.
constexpr int kCompressionLevel = -1;

}  // namespace

struct LandingFiles::State {
  State(LandingFilesOptions landing_options, storage::ObjectStore& object_store,
        UuidGenerator& generator)
      : options(landing_options),
        store(object_store),
        uuids(generator),
        queue(options.queued_batches_max),
        thread([this] { Run(); }) {}

  void Run() {
    while (std::optional<std::shared_ptr<arrow::RecordBatch>> batch = queue.Pop()) {
      if (!failed.load()) {
        Note(Write(**batch));
      }
    }
    if (!failed.load() && !aborted.load()) {
      Note(FinishFile());
    }
  }

  void Note(Status status) {
    if (!status.ok()) {
      const std::lock_guard lock(mutex);
      failure = std::move(status);
      failed.store(true);
    }
  }

  Status Write(const arrow::RecordBatch& batch) {
    if (writer != nullptr && !schema->Equals(*batch.schema(), /*check_metadata=*/false)) {
      TARN_RETURN_IF_ERROR(FinishFile());
    }
    if (writer == nullptr) {
      const Uuid uuid = uuids.NextV7();
      open = {};
      open.path = uuid.ToString() + ".parquet";
      open.location = dataset::PhysicalName(options.dataset, uuid, open.path);
      TARN_ASSIGN_OR_RETURN(std::unique_ptr<storage::ObjectWriter> object,
                            store.OpenWriter(open.location, storage::WriteMode::kPutIfAbsent));
      schema = batch.schema();
      TARN_ASSIGN_OR_RETURN(writer,
                            format::ParquetWriter::Open(std::move(object), schema,
                                                        {.compression_level = kCompressionLevel}));
    }
    return writer->Write(batch);
  }

  Status FinishFile() {
    if (writer == nullptr) {
      return Status::Ok();
    }
    const std::unique_ptr<format::ParquetWriter> finished = std::move(writer);
    TARN_ASSIGN_OR_RETURN(const format::FileStatistics statistics, finished->Close());
    open.size_bytes = statistics.size_bytes;
    open.row_count = statistics.row_count;
    files.push_back(open);
    return Status::Ok();
  }

  void Stop() {
    queue.Close();
    if (thread.joinable()) {
      thread.join();
    }
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
  BoundedQueue<std::shared_ptr<arrow::RecordBatch>> queue;
  std::atomic<bool> failed{false};
  std::atomic<bool> aborted{false};
  std::mutex mutex;
  Status failure;  // Guarded by mutex; set once.
  // Of the writing thread until it has ended.
  std::unique_ptr<format::ParquetWriter> writer;
  std::shared_ptr<arrow::Schema> schema;
  dataset::StoredFile open;
  std::vector<dataset::StoredFile> files;
  std::thread thread;  // Last: it uses everything above.
};

LandingFiles::LandingFiles(LandingFilesOptions options, storage::ObjectStore& store,
                           UuidGenerator& uuids)
    : state_(std::make_unique<State>(options, store, uuids)) {}

LandingFiles::~LandingFiles() {
  if (state_->thread.joinable()) {
    Abort();
  }
}

Status LandingFiles::Write(std::shared_ptr<arrow::RecordBatch> batch) {
  if (state_->failed.load() || !state_->queue.Push(std::move(batch))) {
    const std::lock_guard lock(state_->mutex);
    return state_->failure.ok() ? Status::Internal("rows for files that are closed")
                                : state_->failure;
  }
  return Status::Ok();
}

Result<std::vector<dataset::StoredFile>> LandingFiles::Close() {
  state_->Stop();
  if (state_->failed.load()) {
    state_->RemoveFiles();
    return state_->failure;
  }
  return std::exchange(state_->files, {});
}

void LandingFiles::Abort() {
  state_->aborted.store(true);
  state_->Stop();
  state_->RemoveFiles();
}

}  // namespace tarn::landing
