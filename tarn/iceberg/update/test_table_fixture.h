// TestTable: a table whose pointer is a variable, for tests of commits without a catalog.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <arrow/array/builder_binary.h>
#include <arrow/array/builder_decimal.h>
#include <arrow/array/builder_primitive.h>
#include <arrow/record_batch.h>

#include "tarn/format/parquet_writer.h"
#include "tarn/iceberg/data_file.h"
#include "tarn/iceberg/metadata_builder.h"
#include "tarn/iceberg/scan.h"
#include "tarn/iceberg/schema_arrow.h"
#include "tarn/iceberg/snapshot_update.h"
#include "tarn/iceberg/table_requirement.h"
#include "test/support/matchers.h"

namespace tarn::iceberg {

inline constexpr int64_t kStart = 1'700'000'000'000;

inline Schema TestSchema() {
  Schema schema;
  schema.fields = {{.id = 1, .name = "part", .required = true, .type = Type::String()},
                   {.id = 2, .name = "id", .type = Type::Long()},
                   {.id = 3, .name = "text", .type = Type::String()},
                   {.id = 4, .name = "at", .type = Type::TimestampTz()},
                   {.id = 5, .name = "amount", .type = Type::Decimal(9, 2)}};
  return schema;
}

inline PartitionSpec ByPart() {
  return {.spec_id = 0, .fields = {{.source_id = 1, .field_id = 1000, .name = "part"}}};
}

// A table whose pointer is a variable: what a catalog does, without one.
class TestTable {
 public:
  explicit TestTable(storage::ObjectStore& store,
                     std::map<std::string, std::string> properties = {},
                     const std::string& folder = "t")
      : store_(store) {
    Result<TableMetadata> made =
        MakeTableMetadata({.table_uuid = "9c12d441-03fe-4693-9a96-a0705ddf69c1",
                           .location = store.base_uri() + "/" + folder,
                           .schema = TestSchema(),
                           .spec = ByPart(),
                           .properties = std::move(properties)},
                          kStart);
    metadata_ = std::move(made).value();
  }

  [[nodiscard]] const TableMetadata& metadata() const { return metadata_; }
  storage::ObjectStore& store() { return store_; }
  ManifestCache& cache() { return cache_; }

  Status CommitUpdates(const std::vector<TableUpdate>& updates) {
    TARN_ASSIGN_OR_RETURN(UpdateResult result, ApplyUpdates(&metadata_, updates, ++now_));
    metadata_ = std::move(result.metadata);
    return Status::Ok();
  }

  Result<PreparedSnapshot> Commit(SnapshotUpdate update) {
    SnapshotProducer producer(std::move(update), {store_, cache_});
    now_ += 1000;
    TARN_ASSIGN_OR_RETURN(PreparedSnapshot prepared, producer.Prepare(metadata_, now_));
    TARN_RETURN_IF_ERROR(CheckRequirements(&metadata_, prepared.requirements));
    TARN_RETURN_IF_ERROR(CommitUpdates(prepared.updates));
    producer.CleanUp(&prepared.snapshot);
    return prepared;
  }

  [[nodiscard]] DataFile File(const std::string& name, const std::string& part,
                              int64_t rows = 10) const {
    DataFile file;
    file.file_path = DataFolder(metadata_) + "/" + name;
    file.partition = {Literal::String(part)};
    file.record_count = rows;
    file.file_size_bytes = 100;
    return file;
  }

  // Writes rows first_id … first_id + count - 1.
  Result<DataFile> WriteRows(const std::string& name, const std::string& part, int64_t first_id,
                             int64_t count, int32_t spec_id = 0, PartitionValues partition = {}) {
    TARN_ASSIGN_OR_RETURN(const auto schema, ToArrowSchema(metadata_.CurrentSchema()));
    arrow::StringBuilder parts;
    arrow::Int64Builder ids;
    arrow::StringBuilder texts;
    arrow::TimestampBuilder times(schema->field(3)->type(), arrow::default_memory_pool());
    arrow::Decimal128Builder amounts(schema->field(4)->type());
    for (int64_t i = first_id; i < first_id + count; ++i) {
      EXPECT_TRUE(parts.Append(part).ok());
      EXPECT_TRUE(ids.Append(i).ok());
      EXPECT_TRUE(texts.Append("row number " + std::to_string(i) + " of the table").ok());
      EXPECT_TRUE(times.Append(kStart * 1000 + i).ok());
      EXPECT_TRUE(amounts.Append(arrow::Decimal128(i * 100 + 25)).ok());
    }
    const auto batch = arrow::RecordBatch::Make(
        schema, count,
        {parts.Finish().ValueOrDie(), ids.Finish().ValueOrDie(), texts.Finish().ValueOrDie(),
         times.Finish().ValueOrDie(), amounts.Finish().ValueOrDie()});
    const std::string uri = DataFolder(metadata_) + "/" + name;
    TARN_ASSIGN_OR_RETURN(const std::string key, KeyOf(store_, uri));
    TARN_ASSIGN_OR_RETURN(auto object, store_.OpenWriter(key, storage::WriteMode::kOverwrite));
    TARN_ASSIGN_OR_RETURN(auto writer, format::ParquetWriter::Open(std::move(object), schema));
    TARN_RETURN_IF_ERROR(writer->Write(*batch));
    TARN_ASSIGN_OR_RETURN(const auto statistics, writer->Close());
    if (partition.empty()) {
      partition = {Literal::String(part)};
    }
    return MakeDataFile(metadata_.CurrentSchema(), statistics,
                        {.file_path = uri, .spec_id = spec_id, .partition = std::move(partition)});
  }

  std::vector<std::string> LivePaths() {
    std::vector<std::string> paths;
    Result<std::vector<FileScanTask>> tasks =
        PlanScan(store_, cache_, metadata_, std::nullopt, Expression::True(), {});
    EXPECT_OK(tasks);
    for (const FileScanTask& task : *tasks) {
      paths.push_back(task.file.file_path.substr(DataFolder(metadata_).size() + 1));
    }
    std::sort(paths.begin(), paths.end());
    return paths;
  }

  Result<std::vector<ManifestFile>> Manifests() {
    TARN_ASSIGN_OR_RETURN(const ManifestList list,
                          cache_.ReadList(store_, metadata_, *metadata_.CurrentSnapshot()));
    return *list;
  }

 private:
  storage::ObjectStore& store_;
  ManifestCache cache_;
  TableMetadata metadata_;
  int64_t now_ = kStart;
};

}  // namespace tarn::iceberg
