// What does reading a table through its snapshot cost beyond reading its files, with and without
// deleted rows; how fast is a scan of many files planned; does an append grow with the table?
//
// iceberg_table_bench [rows, default 20000000] [files planned, default 100000] [directory, default
// .] Scans stand beside read_parquet on the same files in the same engine, best of five.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "tarn/base/check.h"
#include "tarn/base/clock.h"
#include "tarn/base/uuid.h"
#include "tarn/engine/engine.h"
#include "tarn/iceberg/deletes/row_deletes.h"
#include "tarn/iceberg/metadata_builder.h"
#include "tarn/iceberg/scan.h"
#include "tarn/iceberg/snapshot_update.h"
#include "tarn/lakehouse/scan/snapshot_relation.h"
#include "tarn/storage/local_store.h"
#include "tarn/storage/memory_store.h"

namespace {

using tarn::Result;
using tarn::Status;
namespace iceberg = tarn::iceberg;

constexpr int kRuns = 5;
constexpr int kFiles = 8;
constexpr int kPartitions = 100;

double MillisOf(const auto& function) {
  const auto begin = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

double Best(const auto& function) {
  double best = MillisOf(function);
  for (int i = 1; i < kRuns; ++i) {
    best = std::min(best, MillisOf(function));
  }
  return best;
}

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
    std::exit(1);
  }
  return std::move(result).value();
}
void Must(const Status& status) {
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    std::exit(1);
  }
}

iceberg::Schema MakeSchema() {
  iceberg::Schema schema;
  const std::vector<std::pair<const char*, iceberg::Type>> columns = {
      {"id", iceberg::Type::Long()},
      {"part", iceberg::Type::Int()},
      {"amount", iceberg::Type::Double()},
      {"note", iceberg::Type::String()}};
  for (const auto& [name, type] : columns) {
    iceberg::SchemaField field;
    field.id = static_cast<int32_t>(schema.fields.size()) + 1;
    field.name = name;
    field.type = type;
    schema.fields.push_back(std::move(field));
  }
  return schema;
}

iceberg::TableMetadata MakeTable(const std::string& location, int version, bool partitioned) {
  iceberg::TableDefinition definition;
  definition.table_uuid = "9c12d441-03fe-4693-9a96-a0705ddf69c1";
  definition.location = location;
  definition.schema = MakeSchema();
  if (partitioned) {
    definition.spec.fields = {{.source_id = 2, .field_id = 1000, .name = "part"}};
  }
  definition.properties["format-version"] = std::to_string(version);
  return Must(iceberg::MakeTableMetadata(definition, 1'700'000'000'000));
}

void CountRows(tarn::engine::Session& session, const std::string& from) {
  const auto stream =
      Must(session.Query("SELECT count(*), sum(id), sum(amount), max(note) FROM " + from));
  while (Must(stream->Next()) != nullptr) {
  }
}

// Scans of a table with deletes of a format version in each file.
void BenchScans(const std::string& directory, int64_t rows) {
  const auto store = Must(tarn::storage::LocalStore::Open({.root = directory + "/scan"}));
  const auto engine =
      Must(tarn::engine::Engine::Open({.memory_limit_bytes = 4ULL << 30,
                                       .row_order = tarn::engine::RowOrder::kAny,
                                       .allowed_directories = {store->root_path()}}));
  const auto session = Must(engine->OpenSession());
  std::vector<iceberg::FileScanTask> tasks;
  std::string list;
  const int64_t rows_each = rows / kFiles;
  for (int i = 0; i < kFiles; ++i) {
    const std::string path = store->root_path() + "/f" + std::to_string(i) + ".parquet";
    Must(session->Execute(
        "COPY (SELECT range + " + std::to_string(i * rows_each) +
        " AS id, (range % 100)::INTEGER AS part, hash(range) / 1e9 AS amount, 'note ' || (range % "
        "5000) AS note FROM range(" +
        std::to_string(rows_each) + ")) TO '" + path +
        "' (FORMAT parquet, COMPRESSION zstd, FIELD_IDS {id: 1, part: 2, amount: 3, note: 4})"));
    iceberg::FileScanTask task;
    task.file.file_path = "file://" + path;
    task.file.record_count = rows_each;
    tasks.push_back(std::move(task));
    list += (list.empty() ? "'" : ", '") + path + "'";
  }
  const double plain = Best([&] { CountRows(*session, "read_parquet([" + list + "])"); });
  std::printf("read_parquet, %lld rows in %d files: %.0f ms\n", static_cast<long long>(rows),
              kFiles, plain);
  tarn::SystemClock clock;
  tarn::UuidGenerator uuids(clock);
  for (const int version : {0, 2, 3}) {
    const iceberg::TableMetadata metadata =
        MakeTable(store->base_uri() + "/t", std::max(version, 2), false);
    std::vector<iceberg::FileScanTask> read = tasks;
    std::mt19937_64 random(7);
    for (iceberg::FileScanTask& task : read) {
      if (version == 0) {
        continue;
      }
      iceberg::Positions positions;
      for (int64_t i = 0; i < rows_each / 100; ++i) {
        positions.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(rows_each)));
      }
      const auto written = Must(iceberg::WriteRowDeletes(*store, metadata, uuids,
                                                         {{.task = task, .positions = positions}}));
      task.deletes = {std::make_shared<const iceberg::DeleteFile>(
          iceberg::DeleteFile{written.added.front(), 1})};
    }
    const char* what = version == 0   ? "snapshot without deletes"
                       : version == 2 ? "snapshot, 1 % position deletes"
                                      : "snapshot, 1 % deletion vectors";
    const double took = Best([&] {
      Must(tarn::lakehouse::MakeSnapshotRelation(*session, *store,
                                                 {.name = "t",
                                                  .metadata = &metadata,
                                                  .columns = metadata.CurrentSchema().fields,
                                                  .files = read}));
      CountRows(*session, "t");
    });
    std::printf("%s: %.0f ms, %.2f times read_parquet's speed\n", what, took, plain / took);
  }
}

iceberg::DataFile MakeFile(const iceberg::TableMetadata& metadata, int64_t n) {
  iceberg::DataFile file;
  file.file_path = iceberg::DataFolder(metadata) + "/part=" + std::to_string(n % kPartitions) +
                   "/0190b1e0-0000-7000-8000-" + std::to_string(100'000'000'000 + n) + ".parquet";
  file.partition = {iceberg::Literal::Long(n % kPartitions)};
  file.record_count = 1000;
  file.file_size_bytes = 1 << 20;
  const iceberg::Schema& schema = metadata.CurrentSchema();
  for (const iceberg::SchemaField& field : schema.fields) {
    file.column_sizes.Set(field.id, 1000);
    file.value_counts.Set(field.id, 1000);
    file.null_value_counts.Set(field.id, 0);
  }
  const auto set = [&](int32_t id, const iceberg::Literal& low, const iceberg::Literal& high) {
    const iceberg::Type& type = schema.FindField(id)->type;
    file.lower_bounds.Set(id, Must(iceberg::EncodeLiteral(type, low)));
    file.upper_bounds.Set(id, Must(iceberg::EncodeLiteral(type, high)));
  };
  set(1, iceberg::Literal::Long(n * 1000), iceberg::Literal::Long(n * 1000 + 999));
  set(3, iceberg::Literal::Double(0), iceberg::Literal::Double(1));
  set(4, iceberg::Literal::String("note 0"), iceberg::Literal::String("note 999"));
  return file;
}

void Commit(tarn::storage::ObjectStore& store, iceberg::ManifestCache& cache,
            iceberg::TableMetadata& metadata, std::vector<iceberg::DataFile> files) {
  iceberg::SnapshotUpdate update;
  update.added_data_files = std::move(files);
  iceberg::SnapshotProducer producer(std::move(update), {store, cache});
  const auto prepared = Must(producer.Prepare(metadata, metadata.last_updated_ms + 1));
  metadata = Must(iceberg::ApplyUpdates(&metadata, prepared.updates, metadata.last_updated_ms + 1))
                 .metadata;
}

void BenchPlanning(int64_t file_count) {
  tarn::SystemClock clock;
  tarn::storage::MemoryStore store(clock);
  iceberg::ManifestCache cache({.size_bytes_max = 1ULL << 30});
  iceberg::TableMetadata metadata = MakeTable("memory://store/t", 2, true);
  int64_t next = 0;
  for (const int64_t size : {file_count / 100, file_count / 10, file_count}) {
    while (next < size) {
      std::vector<iceberg::DataFile> files;
      for (int64_t i = 0; i < std::max<int64_t>(file_count / 200, 1) && next < size; ++i) {
        files.push_back(MakeFile(metadata, next++));
      }
      Commit(store, cache, metadata, std::move(files));
    }
    std::vector<double> appends;
    for (int i = 0; i < 20; ++i) {
      // Kept, so that a merge of manifests that is due is done once.
      std::vector<iceberg::DataFile> one = {MakeFile(metadata, next++)};
      appends.push_back(MillisOf([&] { Commit(store, cache, metadata, one); }));
    }
    std::sort(appends.begin(), appends.end());
    std::printf("append of one file to %lld: %.2f ms (median of 20)\n",
                static_cast<long long>(size), appends[appends.size() / 2]);
  }
  const auto plan = [&](iceberg::ManifestCache& used, const iceberg::Expression& filter) {
    return Must(iceberg::PlanScan(store, used, metadata, {}, filter, {})).size();
  };
  const std::vector<std::pair<const char*, iceberg::Expression>> filters = {
      {"id = 5000", iceberg::Expression::Equal("id", iceberg::Literal::Long(5000))},
      {"part = 7", iceberg::Expression::Equal("part", iceberg::Literal::Long(7))}};
  for (const auto& [name, filter] : filters) {
    size_t found = 0;
    const double warm = Best([&] { found = plan(cache, filter); });
    iceberg::ManifestCache empty({.size_bytes_max = 1ULL << 30});
    const double cold = MillisOf([&] { plan(empty, filter); });
    std::printf(
        "plan of %lld files by %s: %.1f ms, %.1f ms when no manifest is in memory; %zu "
        "files found\n",
        static_cast<long long>(file_count), name, warm, cold, found);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t rows = argc > 1 ? std::atoll(argv[1]) : 20'000'000;
  const int64_t files = argc > 2 ? std::atoll(argv[2]) : 100'000;
  const std::string directory =
      std::filesystem::absolute(argc > 3 ? argv[3] : ".").string() + "/iceberg_table_bench";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  BenchScans(directory, rows);
  std::filesystem::remove_all(directory);
  BenchPlanning(files);
  return 0;
}
