#include "tarn/format/background_writer.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <arrow/api.h>

#include "tarn/base/bounded_queue.h"
#include "tarn/base/thread_name.h"

namespace tarn::format {

namespace {
constexpr size_t kQueuedBatchesMax = 2;
}

struct BackgroundWriter::State {
  explicit State(std::unique_ptr<ParquetWriter> parquet_writer)
      : writer(std::move(parquet_writer)), queue(kQueuedBatchesMax), thread([this] { Run(); }) {}

  void Run() {
    NameThisThread("parquet-writer");
    while (std::optional<std::shared_ptr<arrow::RecordBatch>> batch = queue.Pop()) {
      if (abandoned.load() || !Failure().ok()) {
        continue;
      }
      Status written = writer->Write(**batch);
      size_bytes.store(writer->size_bytes());
      if (!written.ok()) {
        const std::lock_guard lock(mutex);
        failure = std::move(written);
      }
    }
  }

  Status Failure() {
    const std::lock_guard lock(mutex);
    return failure;
  }

  void Join() {
    queue.Close();
    if (thread.joinable()) {
      thread.join();
    }
  }

  std::unique_ptr<ParquetWriter> writer;  // Of the thread until it has ended.
  BoundedQueue<std::shared_ptr<arrow::RecordBatch>> queue;
  std::atomic<int64_t> size_bytes{0};
  std::atomic<bool> abandoned{false};
  std::mutex mutex;
  Status failure;      // Guarded by mutex; the first one.
  std::thread thread;  // Last: it uses everything above.
};

BackgroundWriter::BackgroundWriter(std::unique_ptr<ParquetWriter> writer)
    : state_(std::make_unique<State>(std::move(writer))) {}

BackgroundWriter::~BackgroundWriter() {
  state_->abandoned.store(true);
  state_->Join();
}

Status BackgroundWriter::Write(std::shared_ptr<arrow::RecordBatch> batch) {
  TARN_RETURN_IF_ERROR(state_->Failure());
  if (!state_->queue.Push(std::move(batch))) {
    return Status::Internal("rows for a Parquet file that is closed");
  }
  return Status::Ok();
}

int64_t BackgroundWriter::size_bytes() const { return state_->size_bytes.load(); }

Result<FileStatistics> BackgroundWriter::Close() {
  state_->Join();
  TARN_RETURN_IF_ERROR(state_->Failure());
  return state_->writer->Close();
}

}  // namespace tarn::format
