// What does landing a folder of JSON files cost, thread by thread?
//
// Reads the files through the files source, lands them as a task does (rows, header columns,
// Parquet in zstd), and prints processor seconds per million rows of the landing thread and of the
// writing thread. Bounds: 1.3 s and 0.6 s for Debezium events of 480 bytes.
//
// Usage: landing_bench <folder> [debezium]
#include <sys/resource.h>

#include <cstdio>
#include <filesystem>
#include <string_view>

#include <arrow/api.h>

#include "tarn/base/check.h"
#include "tarn/base/memory_budget.h"
#include "tarn/landing/landing_files.h"
#include "tarn/landing/landing_rows.h"
#include "tarn/source/files/files_source.h"
#include "tarn/storage/local_store.h"

namespace {

using tarn::landing::LandingFiles;
using tarn::landing::LandingRows;
using tarn::source::files::FilePosition;
using tarn::source::files::FilesSource;

double Seconds(int who) {
  rusage usage{};
  getrusage(who, &usage);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

int64_t Land(FilesSource& source, LandingRows& rows, LandingFiles& files) {
  int64_t landed = 0;
  const auto hand_over = [&] {
    auto batch = rows.TakeRows(tarn::SystemClock().Now());
    TARN_CHECK(batch.ok());
    if (*batch != nullptr) {
      landed += (*batch)->num_rows();
      TARN_CHECK(files.Write(*batch).ok());
    }
  };
  bool open = false;
  for (bool caught_up = false; !caught_up;) {
    auto batch = source.Next({.bytes_max = tarn::landing::kReadBytes});
    TARN_CHECK(batch.ok());
    for (const tarn::source::SourceItem& item : batch->items) {
      const auto* position = std::get_if<FilePosition>(&item.position);
      if (position == nullptr) {
        continue;
      }
      if (!std::exchange(open, true)) {
        rows.StartFile(*position);
      }
      TARN_CHECK(rows.Feed(item.payload).ok());
      if (rows.IsPieceFull()) {
        hand_over();
      }
      if (position->end) {
        TARN_CHECK(rows.FinishFile().ok());
        open = false;
      }
    }
    caught_up = batch->caught_up;
  }
  hand_over();
  return landed;
}

}  // namespace

int main(int argc, char** argv) {
  TARN_CHECK(argc >= 2);
  tarn::landing::LandingSpec spec;
  if (argc > 2 && std::string_view(argv[2]) == "debezium") {
    spec.envelope = tarn::landing::Envelope::kDebezium;
  }
  const std::filesystem::path place =
      std::filesystem::temp_directory_path() / ("landing-bench-" + std::to_string(getpid()));
  auto source_store = tarn::source::files::OpenSourceStore("file://" + std::string(argv[1]));
  TARN_CHECK(source_store.ok());
  auto warehouse = tarn::storage::LocalStore::Open({.root = place});
  TARN_CHECK(warehouse.ok());
  tarn::SystemClock clock;
  tarn::MemoryBudget budget(1ULL << 30);
  tarn::source::files::FileLedger ledger;
  auto source =
      FilesSource::Open({}, FilesSource::Dependencies{*source_store->store, ledger, clock, budget});
  TARN_CHECK(source.ok());
  auto rows = LandingRows::Make(spec, {});
  TARN_CHECK(rows.ok());
  tarn::UuidGenerator uuids(clock);
  LandingFiles files({.dataset = {.uuid = uuids.NextV7()}}, **warehouse, uuids);
  const double thread_before = Seconds(RUSAGE_THREAD);
  const double all_before = Seconds(RUSAGE_SELF);
  const auto landed = static_cast<double>(Land(**source, **rows, files));
  const double landing = Seconds(RUSAGE_THREAD) - thread_before;
  const auto closed = files.Close();
  TARN_CHECK(closed.ok());
  const double writing = Seconds(RUSAGE_SELF) - all_before - landing;
  uint64_t bytes = 0;
  for (const auto& file : *closed) {
    bytes += file.size_bytes;
  }
  std::printf(
      "%.0f rows: landing %.3f s, writing %.3f s of processor per 1M rows; %.1f bytes/row\n",
      landed, landing / landed * 1e6, writing / landed * 1e6, static_cast<double>(bytes) / landed);
  std::filesystem::remove_all(place);
  return 0;
}
