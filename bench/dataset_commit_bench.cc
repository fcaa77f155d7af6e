// What does a versioned commit cost beyond writing its rows, and how fast are views of many files?
//
// dataset_commit_bench [files of the view, default 1000000] [directory, default .]
// Every number stands beside a bound measured in the same run: the same rows inserted into a plain
// SQLite table with the same columns and key, or read from the same table by a plain scan.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tarn/base/check.h"
#include "tarn/base/clock.h"
#include "tarn/base/uuid.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/dataset/physical_name.h"
#include "tarn/metastore/sqlite_database.h"

namespace {

using tarn::Result;
using tarn::Status;
using tarn::dataset::CommitFilesRequest;
using tarn::dataset::DatasetRid;
using tarn::dataset::DatasetStore;
using tarn::dataset::File;
using tarn::dataset::StoredFile;
using tarn::dataset::Transaction;
using tarn::dataset::TransactionType;
using tarn::dataset::ViewSelector;
using tarn::metastore::Blob;
using tarn::metastore::Durability;
using tarn::metastore::SqlRow;
using tarn::metastore::SqlTransaction;

constexpr int kCommits = 400;
constexpr int kFilesPerCommit = 10;
constexpr int64_t kFilesPerBigCommit = 100'000;

constexpr const char* kRawTable =
    "CREATE TABLE raw_files (root INTEGER NOT NULL, path BLOB NOT NULL, line INTEGER NOT NULL, "
    "ordinal INTEGER NOT NULL, operation INTEGER NOT NULL, replaces INTEGER NOT NULL, size_bytes "
    "INTEGER NOT NULL, updated_at INTEGER NOT NULL, managed INTEGER NOT NULL, checksum INTEGER, "
    "row_count INTEGER, transaction_uuid BLOB NOT NULL, location TEXT NOT NULL, etag TEXT, "
    "statistics BLOB, PRIMARY KEY (root, path, line, ordinal)) WITHOUT ROWID";

double MillisOf(const auto& function) {
  const auto begin = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
    std::abort();
  }
  return std::move(result).value();
}

void Must(const Status& status) {
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    std::abort();
  }
}

std::string PathOf(int64_t number) {
  char path[64];
  std::snprintf(path, sizeof path, "year=2026/day=%03d/part-%010lld.parquet",
                static_cast<int>(number % 365), static_cast<long long>(number));
  return path;
}

// One metastore, one dataset, and what the measurements share. One owner thread.
class Bench {
 public:
  explicit Bench(const std::filesystem::path& directory)
      : uuids_(clock_),
        database_(Must(tarn::metastore::SqliteDatabase::Open({.path = directory / "m.db"}))),
        store_(*database_, clock_, uuids_),
        rid_{.uuid = uuids_.NextV4()} {
    auto migrations = tarn::dataset::Migrations();
    migrations.push_back({.room = "bench", .version = 1, .sql = kRawTable});
    Must(database_->Migrate(migrations));
    Must(database_->Write([&](SqlTransaction& sql) {
      return StatusOf(store_.InitializeDataset(sql, rid_, "", "bench"));
    }));
  }

  void SmallCommits() {
    std::vector<double> raw;
    std::vector<double> at_once;
    std::vector<double> in_steps;
    for (int i = 0; i < kCommits; ++i) {
      const auto files = MakeFiles(kFilesPerCommit);
      raw.push_back(MillisOf([&] { InsertRaw(files, i); }));
      CommitFilesRequest request;
      request.dataset = rid_;
      request.files = MakeFiles(kFilesPerCommit);
      at_once.push_back(MillisOf([&] {
        Must(database_->Write(
            [&](SqlTransaction& sql) { return StatusOf(store_.CommitFiles(sql, request)); }));
      }));
      in_steps.push_back(MillisOf([&] { CommitInSteps(MakeFiles(kFilesPerCommit)); }));
    }
    const double bound = Median(raw);
    std::printf(
        "commit of %d files, p50 ms: raw insert %.3f, commit at once %.3f (+%.3f), "
        "start+register+commit %.3f (+%.3f); target: raw + 0.4\n",
        kFilesPerCommit, bound, Median(at_once), Median(at_once) - bound, Median(in_steps),
        Median(in_steps) - bound);
  }

  void BigCommit() {
    const auto files = MakeFiles(kFilesPerBigCommit);
    const double raw = MillisOf([&] { InsertRaw(files, kCommits); });
    const auto again = MakeFiles(kFilesPerBigCommit);
    const double ours = MillisOf([&] { CommitInSteps(again); });
    std::printf("commit of %lld files: raw insert %.0f ms, ours %.0f ms (%.2fx); target: 1 s\n",
                static_cast<long long>(kFilesPerBigCommit), raw, ours, ours / raw);
  }

  void Views(int64_t file_count) {
    // A snapshot of its own, so that the view has exactly these files.
    TransactionType type = TransactionType::kSnapshot;
    for (int64_t done = 0; done < file_count; done += kFilesPerBigCommit) {
      CommitInSteps(MakeFiles(std::min(kFilesPerBigCommit, file_count - done)), type);
      type = TransactionType::kAppend;
    }
    const auto view = Must(store_.ResolveView(rid_, {}));
    const double page = FirstPage({});
    int64_t counted = 0;
    uint64_t sum = 0;
    const double scan = MillisOf([&] { sum = PlainScan(view.lineage.front().root); });
    const double stream = MillisOf([&] {
      Must(store_.StreamFiles(view, "", [&](std::span<const File> files) {
        counted += static_cast<int64_t>(files.size());
        return Status::Ok();
      }));
    });
    TARN_CHECK(counted == file_count && sum != 0);
    constexpr int kStats = 20'000;
    const double stat = MillisOf([&] {
      for (int i = 0; i < kStats; ++i) {
        Must(store_.StatFile(view, PathOf(next_ - 1 - (i * 37) % file_count)));
      }
    });
    std::printf(
        "view of %lld files: first page %.2f ms (target 5), stream %.0f ms, plain scan "
        "%.0f ms (%.2fx; target 2x), %.0f stats/s (target 20000)\n",
        static_cast<long long>(file_count), page, stream, scan, stream / scan,
        kStats / stat * 1000);
  }

  // Branches that each overwrote the same paths: their rows lie side by side in one view root.
  void Branches(int branch_count) {
    constexpr int kPaths = 300;
    NextDataset();
    next_ = 0;
    CommitInSteps(MakeFiles(kPaths), TransactionType::kSnapshot);
    for (int i = 0; i < branch_count; ++i) {
      const std::string name = "branch" + std::to_string(i);
      Must(store_.CreateBranch(rid_, name, {.from_branch = "master"}));
      next_ = 0;
      CommitInSteps(MakeFiles(kPaths), TransactionType::kUpdate, name);
    }
    ViewSelector last;
    last.branch = "branch" + std::to_string(branch_count - 1);
    std::printf(
        "%d branches that overwrote the same %d paths: first page %.2f ms on master, "
        "%.2f ms on the last branch (target 5)\n",
        branch_count, kPaths, FirstPage({}), FirstPage(last));
  }

  // A view whose oldest prefixes retention took out.
  void AfterRetention() {
    constexpr int64_t kFiles = 200'000;
    NextDataset();
    next_ = 0;
    CommitInSteps(MakeFiles(kFiles), TransactionType::kSnapshot);
    std::vector<std::string> oldest;
    for (int64_t number = 0; number < kFiles; ++number) {
      if (number % 365 < 274) {
        oldest.push_back(PathOf(number));
      }
    }
    const Transaction started = Must(
        store_.StartTransaction(rid_, "master", {.type = TransactionType::kDelete, .by = "bench"}));
    Must(store_.RemoveFiles(rid_, started.rid, oldest, tarn::dataset::MissingPath::kIgnore));
    tarn::dataset::CommitOptions options;
    options.by_retention = true;
    Must(store_.CommitTransaction(rid_, started.rid, options));
    const double before = FirstPage({});
    const auto requests = Must(store_.ListCheckpointRequests(10'000));
    TARN_CHECK(std::any_of(requests.begin(), requests.end(),
                           [&](const auto& request) { return request.dataset == rid_; }));
    const double checkpoint = MillisOf([&] { Must(store_.WriteCheckpoint(rid_, "master")); });
    std::printf(
        "%zu of %lld files taken out by retention: first page %.2f ms, after the "
        "checkpoint it asked for (%.0f ms) %.2f ms (target 5)\n",
        oldest.size(), static_cast<long long>(kFiles), before, checkpoint, FirstPage({}));
  }

  void Difference() {
    ViewSelector before;
    before.end = Must(store_.GetBranch(rid_, "master")).head;
    CommitInSteps(MakeFiles(1000));
    std::vector<double> times;
    for (int i = 0; i < 10; ++i) {
      times.push_back(MillisOf([&] {
        const auto page = Must(store_.CompareViews(rid_, before, {}, 2000, ""));
        TARN_CHECK(page.differences.size() == 1000);
      }));
    }
    std::printf("difference of 1000 files: %.2f ms (target 20)\n", Median(times));
  }

 private:
  void NextDataset() {
    rid_ = {.uuid = uuids_.NextV4()};
    Must(database_->Write([&](SqlTransaction& sql) {
      return StatusOf(store_.InitializeDataset(sql, rid_, "", "bench"));
    }));
  }

  double FirstPage(const ViewSelector& selector) {
    std::vector<double> times;
    for (int i = 0; i < 20; ++i) {
      times.push_back(MillisOf([&] { Must(store_.ListFiles(rid_, selector, {})); }));
    }
    return Median(times);
  }

  std::vector<StoredFile> MakeFiles(int64_t count) {
    std::vector<StoredFile> files;
    for (int64_t i = 0; i < count; ++i) {
      StoredFile file;
      file.path = PathOf(next_++);
      file.location = tarn::dataset::PhysicalName(rid_, uuids_.NextV7(), file.path);
      file.size_bytes = 128 << 20;
      file.checksum = 0x0123456789ABCDEFULL + static_cast<uint64_t>(i);
      file.row_count = 1'000'000;
      files.push_back(std::move(file));
    }
    return files;
  }

  void InsertRaw(const std::vector<StoredFile>& files, int64_t ordinal) {
    const std::string uuid(16, 'u');
    Must(database_->Write([&](SqlTransaction& sql) -> Status {
      for (const StoredFile& file : files) {
        TARN_RETURN_IF_ERROR(sql.Execute(
            "INSERT INTO raw_files (root, path, line, ordinal, operation, size_bytes, updated_at, "
            "managed, checksum, row_count, transaction_uuid, location, etag, statistics, replaces) "
            "VALUES (1, ?1, 1, ?2, 0, ?3, ?4, 1, ?5, ?6, ?7, ?8, NULL, NULL, 0)",
            {Blob{file.path}, ordinal, file.size_bytes, tarn::ToMicros(clock_.Now()),
             static_cast<int64_t>(*file.checksum), *file.row_count, Blob{uuid}, file.location}));
      }
      return Status::Ok();
    }));
  }

  void CommitInSteps(const std::vector<StoredFile>& files,
                     TransactionType type = TransactionType::kAppend,
                     const std::string& branch = "master") {
    const Transaction started =
        Must(store_.StartTransaction(rid_, branch, {.type = type, .by = "bench"}));
    Must(store_.RegisterFiles(rid_, started.rid, files));
    Must(store_.CommitTransaction(rid_, started.rid, {}));
  }

  // Touches every column as a listing does; returns something that depends on all of them.
  uint64_t PlainScan(int64_t root) {
    uint64_t sum = 0;
    Must(database_->Read([&](SqlTransaction& sql) {
      return sql.Query(
          "SELECT path, line, ordinal, operation, size_bytes, updated_at, managed, checksum, "
          "row_count, transaction_uuid, location, etag FROM dataset_files WHERE root = ?1 ORDER "
          "BY path, line, ordinal",
          {root}, [&](const SqlRow& row) -> Result<tarn::metastore::RowAction> {
            sum +=
                row.Text(0).size() + row.Text(9).size() + row.Text(10).size() + row.Text(11).size();
            for (const int column : {1, 2, 3, 4, 5, 6, 7, 8}) {
              sum += static_cast<uint64_t>(row.Int(column));
            }
            return tarn::metastore::RowAction::kContinue;
          });
    }));
    return sum;
  }

  tarn::SystemClock clock_;
  tarn::UuidGenerator uuids_;
  std::unique_ptr<tarn::metastore::SqliteDatabase> database_;
  DatasetStore store_;
  DatasetRid rid_;
  int64_t next_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const int64_t file_count = argc > 1 ? std::atoll(argv[1]) : 1'000'000;
  const std::filesystem::path directory =
      std::filesystem::path(argc > 2 ? argv[2] : ".") / "dataset_commit_bench.tmp";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    Bench bench(directory);
    bench.SmallCommits();
    bench.BigCommit();
    bench.Views(file_count);
    bench.Difference();
    bench.Branches(1000);
    bench.AfterRetention();
  }
  std::filesystem::remove_all(directory);
  return 0;
}
