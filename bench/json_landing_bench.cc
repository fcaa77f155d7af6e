// How fast do JSON events become Parquet on one core, and where does the time go?
//
// Prints rows per second for: the index of structural characters alone (the bound), the tape, the
// columns, and columns plus Parquet (zstd) written nowhere. Events are flat, about 200 bytes, from
// a fixed seed.
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <thread>

#include <arrow/api.h>

#include "tarn/base/check.h"
#include "tarn/format/json_columns.h"
#include "tarn/format/json_index.h"
#include "tarn/format/json_splitter.h"
#include "tarn/format/parquet_writer.h"

namespace {

// A moment in real time and in processor time of the whole process, which other load on the machine
// does not change.
struct Moment {
  std::chrono::steady_clock::time_point wall = std::chrono::steady_clock::now();
  std::clock_t cpu = std::clock();
};

std::string MakeEvents(int64_t rows) {
  std::mt19937_64 random(42);
  static constexpr const char* kTypes[] = {"view", "click", "purchase", "refund", "signup"};
  static constexpr const char* kCountries[] = {"DE", "FR", "US", "JP", "BR", "IN", "PL", "SE"};
  std::string text;
  for (int64_t i = 0; i < rows; ++i) {
    char line[400];
    const int size = std::snprintf(
        line, sizeof line,
        "{\"id\":%" PRId64 ",\"user_id\":%" PRIu64
        ",\"type\":\"%s\",\"country\":\"%s\",\"price\":%" PRIu64 ".%02" PRIu64
        ",\"quantity\":%" PRIu64 ",\"session\":\"%016" PRIx64 "\",\"ts\":\"2026-01-%02" PRIu64
        "T%02" PRIu64 ":%02" PRIu64 ":%02" PRIu64 ".%03" PRIu64
        "Z\",\"ok\":%s,\"page\":\"/p/%" PRIu64 "\"}\n",
        i, random() % 1'000'000, kTypes[random() % 5], kCountries[random() % 8], random() % 500,
        random() % 100, 1 + random() % 9, random(), 1 + random() % 28, random() % 24, random() % 60,
        random() % 60, random() % 1000, random() % 2 == 0 ? "true" : "false", random() % 5000);
    text.append(line, static_cast<size_t>(size));
  }
  return text;
}

// Discards what is written.
class NullWriter final : public tarn::storage::ObjectWriter {
 public:
  tarn::Status Write(std::string_view bytes) override {
    size_ += bytes.size();
    return {};
  }
  tarn::Result<tarn::storage::ObjectMeta> Close() override {
    return tarn::storage::ObjectMeta{.key = "null", .size_bytes = size_};
  }
  void Abort() override {}

 private:
  uint64_t size_ = 0;
};

void Report(const char* what, int64_t rows, size_t bytes, const Moment& start) {
  const Moment now;
  const double wall = std::chrono::duration<double>(now.wall - start.wall).count();
  const double cpu = static_cast<double>(now.cpu - start.cpu) / CLOCKS_PER_SEC;
  const auto count = static_cast<double>(rows);
  std::printf("%-28s %7.0f k rows/s real %7.0f k rows/s cpu  %5.0f MB/s  %5.0f ns/row\n", what,
              count / wall / 1e3, count / cpu / 1e3, static_cast<double>(bytes) / cpu / 1e6,
              cpu * 1e9 / count);
}

void IndexOnly(const std::string& text, int64_t rows) {
  const Moment start;
  tarn::format::JsonIndex index;
  constexpr size_t kWindow = 256 << 10;
  uint64_t seen = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end =
        std::min(text.rfind('\n', std::min(at + kWindow, text.size()) - 1) + 1, text.size());
    TARN_CHECK(index.Find(std::string_view(text).substr(at, end - at)));
    seen += index.size();
    at = end;
  }
  TARN_CHECK(seen > static_cast<uint64_t>(rows));
  Report("index alone", rows, text.size(), start);
}

template <typename Row>
void Stream(const std::string& text, Row row) {
  tarn::format::JsonSplitter splitter;
  tarn::format::JsonRecord record;
  constexpr size_t kChunk = 1 << 20;
  for (size_t at = 0; at < text.size(); at += kChunk) {
    splitter.Feed(std::string_view(text).substr(at, kChunk));
    if (at + kChunk >= text.size()) {
      splitter.Finish();
    }
    while (splitter.Next(record)) {
      row(record);
    }
  }
}

void TapeOnly(const std::string& text, int64_t rows) {
  const Moment start;
  int64_t seen = 0;
  Stream(text, [&](const tarn::format::JsonRecord& record) {
    TARN_CHECK(record.failure.ok());
    ++seen;
  });
  TARN_CHECK(seen == rows);
  Report("splitter and tape", rows, text.size(), start);
}

void TapePerMessage(const std::string& text, int64_t rows) {
  const Moment start;
  tarn::format::JsonTape tape;
  size_t at = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const size_t end = text.find('\n', at);
    TARN_CHECK(tape.Parse(std::string_view(text).substr(at, end - at)).ok());
    at = end + 1;
  }
  Report("tape, message by message", rows, text.size(), start);
}

void Columns(const std::string& text, int64_t rows, bool parquet, bool threads) {
  const Moment start;
  auto columns = std::move(*tarn::format::JsonColumns::Make({}));
  std::unique_ptr<tarn::format::ParquetWriter> writer;
  std::thread writing;
  const auto flush = [&] {
    auto batch = columns->Finish();
    TARN_CHECK(batch.ok());
    if (!parquet) {
      return;
    }
    if (writing.joinable()) {
      writing.join();
    }
    if (writer == nullptr) {
      auto opened =
          tarn::format::ParquetWriter::Open(std::make_unique<NullWriter>(), batch->batch->schema());
      TARN_CHECK(opened.ok());
      writer = std::move(*opened);
    }
    if (threads) {
      writing =
          std::thread([&writer, kept = batch->batch] { TARN_CHECK(writer->Write(*kept).ok()); });
    } else {
      TARN_CHECK(writer->Write(*batch->batch).ok());
    }
  };
  Stream(text, [&](const tarn::format::JsonRecord& record) {
    TARN_CHECK(columns->Append(record.value).ok());
    if (columns->row_count() == 65536) {
      flush();
    }
  });
  flush();
  if (writing.joinable()) {
    writing.join();
  }
  if (writer != nullptr) {
    const auto statistics = writer->Close();
    TARN_CHECK(statistics.ok() && statistics->row_count == rows);
    if (!threads) {
      for (const auto& column : statistics->columns) {
        std::printf("    %-10s %9" PRId64 " bytes\n", column.path.c_str(),
                    column.column_size_bytes);
      }
    }
  }
  Report(parquet ? (threads ? "columns + Parquet, 2 threads" : "columns + Parquet") : "columns",
         rows, text.size(), start);
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t rows = argc > 1 ? std::atoll(argv[1]) : 1'000'000;
  const std::string text = MakeEvents(rows);
  std::printf("%" PRId64 " events of %.0f bytes\n", rows,
              static_cast<double>(text.size()) / static_cast<double>(rows));
  for (int round = 0; round < 2; ++round) {
    IndexOnly(text, rows);
    TapeOnly(text, rows);
    TapePerMessage(text, rows);
    Columns(text, rows, false, false);
    Columns(text, rows, true, false);
    Columns(text, rows, true, true);
  }
  return 0;
}
