// What does it cost to read a topic without tarn? The bound of kafka_bench.py, which runs this.
//
// Reads a topic from its beginning, by batches of librdkafka, and does with the messages:
//   consume   nothing but adding up their sizes
//   parquet   tarn's columns out of JSON, and one Parquet file (zstd), encoded on a second thread
// Prints one line of JSON: messages, bytes, seconds, cpu_seconds.
//
// Usage: kafka_reader ADDRESS TOPIC MESSAGES consume|parquet FOLDER
#include <sys/resource.h>

#include <array>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include <arrow/api.h>
#include <librdkafka/rdkafka.h>

#include "tarn/base/check.h"
#include "tarn/format/background_writer.h"
#include "tarn/format/json_columns.h"
#include "tarn/format/parquet_writer.h"
#include "tarn/storage/local_store.h"

namespace {

constexpr size_t kBatchMessages = 4096;
constexpr int64_t kBatchRows = 65536;
constexpr int kWaitMs = 30'000;
constexpr int kBatchWaitMs = 50;  // A batch that is not full waits as long.

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

// Rows into one file.
class FileSink {
 public:
  explicit FileSink(const std::string& folder)
      : store_(std::move(*tarn::storage::LocalStore::Open({.root = folder}))),
        columns_(std::move(*tarn::format::JsonColumns::Make({}))) {}

  void Take(std::string_view value) {
    TARN_CHECK(tape_.Parse(value).ok());
    TARN_CHECK(columns_->Append(tape_.root()).ok());
    if (columns_->row_count() == kBatchRows) {
      HandOver();
    }
  }

  void Close() {
    HandOver();
    TARN_CHECK(writer_->Close().ok());
  }

 private:
  void HandOver() {
    auto batch = columns_->Finish();
    TARN_CHECK(batch.ok());
    if (writer_ == nullptr) {
      auto object = store_->OpenWriter("rows.parquet", tarn::storage::WriteMode::kOverwrite);
      TARN_CHECK(object.ok());
      auto writer = tarn::format::ParquetWriter::Open(std::move(*object), batch->batch->schema());
      TARN_CHECK(writer.ok());
      writer_ = std::make_unique<tarn::format::BackgroundWriter>(std::move(*writer));
    }
    TARN_CHECK(writer_->Write(batch->batch).ok());
  }

  std::unique_ptr<tarn::storage::LocalStore> store_;
  std::unique_ptr<tarn::format::JsonColumns> columns_;
  tarn::format::JsonTape tape_;
  std::unique_ptr<tarn::format::BackgroundWriter> writer_;
};

void Set(rd_kafka_conf_t* settings, const char* name, const char* value) {
  std::array<char, 512> error{};
  if (rd_kafka_conf_set(settings, name, value, error.data(), error.size()) != RD_KAFKA_CONF_OK) {
    std::fprintf(stderr, "kafka_reader: %s: %s\n", name, error.data());
    std::exit(2);
  }
}

rd_kafka_t* Connect(const char* address) {
  rd_kafka_conf_t* settings = rd_kafka_conf_new();
  Set(settings, "bootstrap.servers", address);
  Set(settings, "group.id", "kafka_reader");
  Set(settings, "enable.auto.commit", "false");
  Set(settings, "queued.min.messages", "1000000");
  Set(settings, "fetch.message.max.bytes", "8388608");
  std::array<char, 512> error{};
  rd_kafka_t* client = rd_kafka_new(RD_KAFKA_CONSUMER, settings, error.data(), error.size());
  TARN_CHECK(client != nullptr);
  TARN_CHECK(rd_kafka_poll_set_consumer(client) == RD_KAFKA_RESP_ERR_NO_ERROR);
  return client;
}

void AssignAll(rd_kafka_t* client, const char* topic) {
  rd_kafka_topic_t* handle = rd_kafka_topic_new(client, topic, nullptr);
  const rd_kafka_metadata_t* metadata = nullptr;
  TARN_CHECK(rd_kafka_metadata(client, 0, handle, &metadata, kWaitMs) ==
             RD_KAFKA_RESP_ERR_NO_ERROR);
  TARN_CHECK(metadata->topic_cnt == 1 && metadata->topics[0].partition_cnt > 0);
  rd_kafka_topic_partition_list_t* list =
      rd_kafka_topic_partition_list_new(metadata->topics[0].partition_cnt);
  for (int i = 0; i < metadata->topics[0].partition_cnt; ++i) {
    rd_kafka_topic_partition_list_add(list, topic, i)->offset = RD_KAFKA_OFFSET_BEGINNING;
  }
  TARN_CHECK(rd_kafka_assign(client, list) == RD_KAFKA_RESP_ERR_NO_ERROR);
  rd_kafka_topic_partition_list_destroy(list);
  rd_kafka_metadata_destroy(metadata);
  rd_kafka_topic_destroy(handle);
}

struct Seen {
  int64_t messages = 0;
  int64_t bytes = 0;
};

Seen Read(rd_kafka_t* client, int64_t wanted, FileSink* sink) {
  rd_kafka_queue_t* queue = rd_kafka_queue_get_consumer(client);
  std::array<rd_kafka_message_t*, kBatchMessages> batch{};
  Seen seen;
  int idle_ms = 0;
  while (seen.messages < wanted) {
    const ssize_t count =
        rd_kafka_consume_batch_queue(queue, kBatchWaitMs, batch.data(), batch.size());
    idle_ms = count > 0 ? 0 : idle_ms + kBatchWaitMs;
    if (count < 0 || idle_ms > kWaitMs) {
      std::fprintf(stderr, "kafka_reader: nothing came for %d ms\n", kWaitMs);
      std::exit(1);
    }
    for (ssize_t i = 0; i < count; ++i) {
      const rd_kafka_message_t* message = batch[static_cast<size_t>(i)];
      if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        ++seen.messages;
        seen.bytes += static_cast<int64_t>(message->len);
        if (sink != nullptr) {
          sink->Take({static_cast<const char*>(message->payload), message->len});
        }
      }
      rd_kafka_message_destroy(batch[static_cast<size_t>(i)]);
    }
  }
  rd_kafka_queue_destroy(queue);
  return seen;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: kafka_reader ADDRESS TOPIC MESSAGES consume|parquet FOLDER\n");
    return 2;
  }
  const auto start = std::chrono::steady_clock::now();
  const bool files = std::string_view(argv[4]) == "parquet";
  std::unique_ptr<FileSink> sink = files ? std::make_unique<FileSink>(argv[5]) : nullptr;
  rd_kafka_t* client = Connect(argv[1]);
  AssignAll(client, argv[2]);
  const Seen seen = Read(client, std::atoll(argv[3]), sink.get());
  if (sink != nullptr) {
    sink->Close();
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("{\"messages\":%" PRId64 ",\"bytes\":%" PRId64
              ",\"seconds\":%.3f,\"cpu_seconds\":%.3f}\n",
              seen.messages, seen.bytes, seconds, CpuSeconds());
  rd_kafka_consumer_close(client);
  rd_kafka_destroy(client);
  return 0;
}
