#include "tarn/lakehouse/scan/snapshot_relation.h"

#include <random>
#include <set>

#include <arrow/api.h>
#include <fmt/format.h>

#include "tarn/base/arrow_status.h"
#include "tarn/engine/quoting.h"
#include "tarn/format/parquet_writer.h"
#include "tarn/iceberg/delete_index.h"
#include "tarn/iceberg/deletes/deletion_vector.h"
#include "tarn/iceberg/json.h"
#include "tarn/iceberg/position_delete.h"
#include "tarn/iceberg/schema_arrow.h"
#include "tarn/lakehouse/scan/sql_type.h"
#include "tarn/storage/local_store.h"
#include "test/support/matchers.h"
#include "test/support/temporary_directory.h"

namespace tarn::lakehouse {

namespace {

using iceberg::DataFile;
using iceberg::DataFileContent;
using iceberg::FileScanTask;
using iceberg::Literal;
using iceberg::Schema;
using iceberg::SchemaField;
using iceberg::Type;
using ::testing::ElementsAre;

SchemaField Column(int32_t id, const std::string& name, Type type) {
  SchemaField field;
  field.id = id;
  field.name = name;
  field.type = std::move(type);
  return field;
}

// A table in a folder; files are written by the engine, as other writers would.
class SnapshotRelationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(store_, storage::LocalStore::Open({.root = directory_.path() / "w"}));
    ASSERT_OK_AND_ASSIGN(
        engine_, engine::Engine::Open({.allowed_directories = {directory_.path().string()}}));
    ASSERT_OK_AND_ASSIGN(session_, engine_->OpenSession());
    metadata_.format_version = 3;
    metadata_.partition_specs = {
        {.spec_id = 0},
        {.spec_id = 1, .fields = {{.source_id = 2, .field_id = 1000, .name = "p"}}}};
    SetSchema({Column(1, "id", Type::Long()), Column(2, "p", Type::String())});
  }

  void SetSchema(std::vector<SchemaField> fields) {
    Schema schema;
    schema.schema_id = static_cast<int32_t>(metadata_.schemas.size());
    schema.fields = std::move(fields);
    metadata_.schemas.push_back(std::make_shared<const Schema>(schema));
    metadata_.current_schema_id = schema.schema_id;
  }

  // Writes the rows of a SELECT; `ids`: the FIELD_IDS of COPY, empty for none.
  std::string Write(const std::string& name, const std::string& select, const std::string& ids) {
    const std::string path = store_->root_path() + "/" + name;
    EXPECT_OK(session_->Execute(
        fmt::format("COPY ({}) TO {} (FORMAT parquet{})", select, engine::QuoteText(path),
                    ids.empty() ? "" : fmt::format(", FIELD_IDS {{{}}}", ids))));
    return "file://" + path;
  }

  static FileScanTask Task(const std::string& path, int64_t rows, int64_t sequence = 1,
                           int32_t spec_id = 0, iceberg::PartitionValues partition = {}) {
    FileScanTask task;
    task.file.file_path = path;
    task.file.record_count = rows;
    task.file.spec_id = spec_id;
    task.file.partition = std::move(partition);
    task.sequence_number = sequence;
    return task;
  }

  // An equality delete file with the rows of a SELECT.
  iceberg::DeleteFilePtr EqualityDelete(const std::string& name, const std::string& select,
                                        const std::string& ids, std::vector<int32_t> equality_ids,
                                        int64_t sequence, int32_t spec_id = 0,
                                        iceberg::PartitionValues partition = {}) {
    DataFile file;
    file.content = DataFileContent::kEqualityDeletes;
    file.file_path = Write(name, select, ids);
    file.equality_ids = std::move(equality_ids);
    file.spec_id = spec_id;
    file.partition = std::move(partition);
    return std::make_shared<const iceberg::DeleteFile>(iceberg::DeleteFile{file, sequence});
  }

  Status Make(const std::vector<FileScanTask>& tasks, bool lineage = false) {
    return MakeSnapshotRelation(*session_, *store_,
                                {.name = "t",
                                 .metadata = &metadata_,
                                 .columns = metadata_.CurrentSchema().fields,
                                 .files = tasks,
                                 .with_position = lineage,
                                 .with_lineage = lineage});
  }

  // Rows as text, sorted.
  std::vector<std::string> Rows(const std::string& sql = "SELECT t::VARCHAR FROM t") {
    std::vector<std::string> rows;
    const auto stream = session_->Query(sql);
    EXPECT_OK(stream);
    if (!stream.ok()) {
      return rows;
    }
    const auto table = engine::ReadAll(**stream);
    EXPECT_OK(table);
    for (int64_t i = 0; table.ok() && i < (*table)->num_rows(); ++i) {
      rows.push_back((*(*table)->column(0)->GetScalar(i))->ToString());
    }
    std::sort(rows.begin(), rows.end());
    return rows;
  }

  TemporaryDirectory directory_;
  std::unique_ptr<storage::LocalStore> store_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<engine::Session> session_;
  iceberg::TableMetadata metadata_;
};

// Every type that tables can have must be one that the engine knows.
TEST_F(SnapshotRelationTest, TypesAreTheEnginesOwn) {
  const auto of = [](iceberg::TypeId id) {
    Type type;
    type.id = id;
    return type;
  };
  const std::vector<std::pair<Type, std::string>> types = {
      {Type::Boolean(), "BOOLEAN"},
      {Type::Int(), "INTEGER"},
      {Type::Long(), "BIGINT"},
      {Type::Float(), "FLOAT"},
      {Type::Double(), "DOUBLE"},
      {Type::Decimal(38, 4), "DECIMAL(38,4)"},
      {Type::Date(), "DATE"},
      {Type::Time(), "TIME"},
      {Type::Timestamp(), "TIMESTAMP"},
      {Type::TimestampTz(), "TIMESTAMP WITH TIME ZONE"},
      {of(iceberg::TypeId::kTimestampNs), "TIMESTAMP_NS"},
      {of(iceberg::TypeId::kTimestampTzNs), "TIMESTAMP WITH TIME ZONE"},
      {of(iceberg::TypeId::kUnknown), "INTEGER"},
      {Type::String(), "VARCHAR"},
      {Type::Uuid(), "UUID"},
      {Type::Fixed(20), "BLOB"},
      {Type::Binary(), "BLOB"},
      {Type::List(3, Type::Long(), false), "BIGINT[]"},
      {Type::Map(3, Type::String(), 4, Type::Date(), false), "MAP(VARCHAR, DATE)"},
      {Type::Struct({Column(3, "a \"b\"", Type::List(4, Type::Int(), false))}),
       "STRUCT(\"a \"\"b\"\"\" INTEGER[])"},
  };
  std::vector<SchemaField> columns;
  for (const auto& [type, text] : types) {
    EXPECT_THAT(SqlTypeOf(type), IsOkAndHolds(text));
    const auto id = static_cast<int32_t>(columns.size());
    columns.push_back(Column(id + 100, "c" + std::to_string(id), type));
  }
  SetSchema(columns);
  ASSERT_OK(Make({}, true));
  ASSERT_OK_AND_ASSIGN(const auto schema, session_->Describe("SELECT * FROM t"));
  EXPECT_EQ(schema->num_fields(), static_cast<int>(types.size()) + 4);
}

TEST_F(SnapshotRelationTest, WhatCannotBeReadIsRefusedByName) {
  FileScanTask orc = Task("file:///x.orc", 1);
  orc.file.file_format = "ORC";
  EXPECT_THAT(Make({orc}), FailsWith(ErrorCode::kUnimplemented, "file:///x.orc"));
  FileScanTask secret = Task("file:///secret.parquet", 1);
  secret.file.key_metadata = "k";
  EXPECT_THAT(Make({secret}), FailsWith(ErrorCode::kUnimplemented, "secret.parquet is encrypted"));
  FileScanTask nested = Task("file:///x.parquet", 1);
  DataFile deletes;
  deletes.content = DataFileContent::kEqualityDeletes;
  deletes.file_path = "file:///d.parquet";
  deletes.equality_ids = {77};
  nested.deletes = {std::make_shared<const iceberg::DeleteFile>(iceberg::DeleteFile{deletes, 2})};
  EXPECT_THAT(Make({nested}), FailsWith(ErrorCode::kUnimplemented, "field 77"));
  Type variant;
  variant.id = iceberg::TypeId::kVariant;
  SetSchema({Column(1, "shape", variant)});
  EXPECT_THAT(Make({}), FailsWith(ErrorCode::kUnimplemented, "shape"));
}

TEST_F(SnapshotRelationTest, EqualityDeletesApplyToOlderRowsOfTheirPartition) {
  const std::string ids = "id: 1, p: 2";
  const iceberg::PartitionValues x{Literal::String("x")};
  const iceberg::PartitionValues y{Literal::String("y")};
  std::vector<FileScanTask> tasks = {
      Task(Write("a", "SELECT unnest([1, 2, 3, 4])::BIGINT AS id, 'x' AS p", ids), 4, 1, 1, x),
      Task(Write("b", "SELECT unnest([2, 3, 4])::BIGINT AS id, 'y' AS p", ids), 3, 1, 1, y),
      Task(Write("c", "SELECT unnest([2, 4])::BIGINT AS id, 'x' AS p", ids), 2, 5, 1, x)};
  const auto in_x = EqualityDelete("d1", "SELECT 2::BIGINT AS id", "id: 1", {1}, 5, 1, x);
  const auto everywhere =
      EqualityDelete("d2", "SELECT 4::BIGINT AS id UNION ALL SELECT NULL", "id: 1", {1}, 6);
  const auto by_two =
      EqualityDelete("d3", "SELECT 'y' AS p, 3::INTEGER AS id", "id: 1, p: 2", {2, 1}, 4, 1, y);
  tasks[0].deletes = {in_x, everywhere};
  tasks[1].deletes = {by_two, everywhere};
  tasks[2].deletes = {everywhere};
  ASSERT_OK(Make(tasks));
  // Row 2 of c has the number of the delete, so it is as new.
  EXPECT_THAT(Rows("SELECT p || id FROM t"), ElementsAre("x1", "x2", "x3", "y2"));
}

TEST_F(SnapshotRelationTest, EqualityDeletesMatchNullAndDroppedColumns) {
  SetSchema({Column(1, "id", Type::Long())});  // p was dropped.
  FileScanTask task =
      Task(Write("a", "SELECT unnest([1, 2, NULL])::BIGINT AS id, unnest(['x', NULL, 'x']) AS p",
                 "id: 1, p: 2"),
           3);
  task.deletes = {EqualityDelete("d1", "SELECT NULL::VARCHAR AS p", "p: 2", {2}, 3),
                  EqualityDelete("d2", "SELECT NULL::BIGINT AS id", "id: 1", {1}, 3)};
  ASSERT_OK(Make({task}));
  EXPECT_THAT(Rows("SELECT id::VARCHAR FROM t"), ElementsAre("1"));
}

TEST_F(SnapshotRelationTest, VectorsAndEqualityDeletesAddUp) {
  FileScanTask task =
      Task(Write("a", "SELECT range AS id, 'x' AS p FROM range(6)", "id: 1, p: 2"), 6);
  ASSERT_OK_AND_ASSIGN(const std::vector<DataFile> vectors,
                       iceberg::WriteDeletionVectors(
                           *store_, "file://" + store_->root_path() + "/v.puffin",
                           {{.data_file_path = task.file.file_path, .positions = {0, 3}}}));
  task.deletes = {std::make_shared<const iceberg::DeleteFile>(iceberg::DeleteFile{vectors[0], 2}),
                  EqualityDelete("d", "SELECT 5::BIGINT AS id", "id: 1", {1}, 2)};
  const FileScanTask clean =
      Task(Write("b", "SELECT 0::BIGINT AS id, 'c' AS p", "id: 1, p: 2"), 1, 9);
  ASSERT_OK(Make({task, clean}));
  EXPECT_THAT(Rows("SELECT p || id FROM t"), ElementsAre("c0", "x1", "x2", "x4"));
}

// A table of random files and deletes of every form, with a model of what is left of it.
class RandomDeletes {
 public:
  RandomDeletes(storage::LocalStore& store, engine::Session& session, uint64_t seed)
      : store_(store), session_(session), random_(seed) {}

  void AddFiles() {
    for (uint64_t i = 1 + random_() % 4; i > 0; --i) {
      FileScanTask task;
      const std::string path = NewPath();
      task.file.file_path = "file://" + path;
      task.file.record_count = static_cast<int64_t>(random_() % 3 == 0 ? 1 : random_() % 4000);
      task.sequence_number = static_cast<int64_t>(1 + random_() % 5);
      ASSERT_OK(session_.Execute(
          fmt::format("COPY (SELECT range + {} AS id, 'x' AS p FROM range({})) TO {} "
                      "(FORMAT parquet, FIELD_IDS {{id: 1, p: 2}}, ROW_GROUP_SIZE 2048)",
                      tasks.size() * 1'000'000, task.file.record_count, engine::QuoteText(path))));
      tasks.push_back(std::move(task));
      positions_.emplace_back();
      vectors_.emplace_back();
    }
  }

  // Some rows of a file: none, few, many or all; also one that it does not have.
  std::set<int64_t> Draw(const FileScanTask& task) {
    std::set<int64_t> rows;
    const uint64_t share = std::vector<uint64_t>{0, 3, 500, 1000}[random_() % 4];
    for (int64_t row = 0; row < task.file.record_count; ++row) {
      if (random_() % 1000 < share) {
        rows.insert(row);
      }
    }
    if (random_() % 4 == 0) {
      rows.insert(task.file.record_count + 7);
    }
    return rows;
  }

  void AddOfOneFile(bool as_vector) {
    const size_t at = random_() % tasks.size();
    const std::set<int64_t> rows = Draw(tasks[at]);
    if (rows.empty() || (as_vector && vectors_[at].first > 0)) {
      return;
    }
    const auto sequence = static_cast<int64_t>(1 + random_() % 6);
    const std::string& of = tasks[at].file.file_path;
    const iceberg::Positions positions(rows.begin(), rows.end());
    if (as_vector) {
      ASSERT_OK_AND_ASSIGN(
          const std::vector<DataFile> written,
          iceberg::WriteDeletionVectors(store_, "file://" + NewPath(),
                                        {{.data_file_path = of, .positions = positions}}));
      AddEntry(written.front(), sequence);
      vectors_[at] = {sequence, rows};
      return;
    }
    ASSERT_OK_AND_ASSIGN(
        const DataFile written,
        iceberg::WritePositionDeletes(
            store_, {.file_path = "file://" + NewPath(), .data_file_path = of}, positions));
    AddEntry(written, sequence);
    positions_[at].emplace_back(sequence, rows);
  }

  // As other writers may: of several data files, in no order, with doubles.
  void AddShared() {
    const auto sequence = static_cast<int64_t>(1 + random_() % 6);
    std::vector<std::string> values = {"('file:///elsewhere', 0)"};
    for (size_t at = 0; at < tasks.size(); ++at) {
      const std::set<int64_t> rows = Draw(tasks[at]);
      for (const int64_t row : rows) {
        const std::string value = fmt::format("('{}', {})", tasks[at].file.file_path, row);
        values.insert(values.end(), 1 + random_() % 2, value);
      }
      positions_[at].emplace_back(sequence, rows);
    }
    std::shuffle(values.begin(), values.end(), random_);
    const std::string path = NewPath();
    ASSERT_OK(session_.Execute(fmt::format(
        "COPY (SELECT file_path, pos::BIGINT AS pos FROM (VALUES {}) AS v(file_path, pos)) TO {} "
        "(FORMAT parquet)",
        fmt::join(values, ", "), engine::QuoteText(path))));
    DataFile file;
    file.content = DataFileContent::kPositionDeletes;
    file.file_path = "file://" + path;
    AddEntry(file, sequence);
  }

  void FindDeletes(const iceberg::TableMetadata& metadata) {
    std::vector<const iceberg::ManifestEntry*> entries;
    for (const iceberg::ManifestEntry& entry : entries_) {
      entries.push_back(&entry);
    }
    const iceberg::DeleteIndex index = iceberg::DeleteIndex::Build(metadata, entries);
    for (FileScanTask& task : tasks) {
      task.deletes = index.Find(task.file, task.sequence_number);
    }
  }

  // Ids of the rows that are left.
  std::vector<int64_t> Left() const {
    std::vector<int64_t> left;
    for (size_t at = 0; at < tasks.size(); ++at) {
      std::set<int64_t> deleted;
      if (vectors_[at].first >= tasks[at].sequence_number) {
        deleted = vectors_[at].second;  // Stands alone.
      } else {
        for (const auto& [sequence, rows] : positions_[at]) {
          if (sequence >= tasks[at].sequence_number) {
            deleted.insert(rows.begin(), rows.end());
          }
        }
      }
      for (int64_t row = 0; row < tasks[at].file.record_count; ++row) {
        if (!deleted.contains(row)) {
          left.push_back(static_cast<int64_t>(at) * 1'000'000 + row);
        }
      }
    }
    return left;
  }

  std::vector<FileScanTask> tasks;

 private:
  using Deletes = std::pair<int64_t, std::set<int64_t>>;  // Sequence number and rows.

  std::string NewPath() { return fmt::format("{}/{}-{}", store_.root_path(), random_(), next_++); }
  void AddEntry(const DataFile& file, int64_t sequence) {
    iceberg::ManifestEntry entry;
    entry.sequence_number = sequence;
    entry.data_file = file;
    entries_.push_back(std::move(entry));
  }

  storage::LocalStore& store_;
  engine::Session& session_;
  std::mt19937_64 random_;
  int next_ = 0;
  std::vector<std::vector<Deletes>> positions_;  // By file.
  std::vector<Deletes> vectors_;                 // By file; number 0 = none.
  std::vector<iceberg::ManifestEntry> entries_;
};

TEST_F(SnapshotRelationTest, AnyDeletesLeaveTheRightRows) {
  const std::string difference =
      "SELECT count(*)::VARCHAR FROM ((SELECT id FROM t {0} EXCEPT ALL SELECT id FROM expected {0})"
      " UNION ALL (SELECT id FROM expected {0} EXCEPT ALL SELECT id FROM t {0}))";
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    SCOPED_TRACE(seed);
    RandomDeletes table(*store_, *session_, seed);
    table.AddFiles();
    for (uint64_t i = 0; i < seed % 4; ++i) {
      table.AddOfOneFile(/*as_vector=*/false);
    }
    for (uint64_t i = 0; i < seed % 3; ++i) {
      table.AddOfOneFile(/*as_vector=*/true);
    }
    for (uint64_t i = 0; i < seed % 5 / 2; ++i) {
      table.AddShared();
    }
    table.FindDeletes(metadata_);
    arrow::Int64Builder ids;
    const std::vector<int64_t> left = table.Left();
    ASSERT_OK(StatusOf(ids.AppendValues(left)));
    const auto schema = arrow::schema({arrow::field("id", arrow::int64())});
    ASSERT_OK(session_->RegisterBatches(
        "expected", schema,
        {arrow::RecordBatch::Make(schema, static_cast<int64_t>(left.size()), {*ids.Finish()})}));
    for (const bool positions : {false, true}) {
      ASSERT_OK(Make(table.tasks, positions));
      for (const char* filter : {"", "WHERE id % 5 = 2", "WHERE id BETWEEN 1000000 AND 1002000"}) {
        EXPECT_THAT(Rows(fmt::format(fmt::runtime(difference), filter)), ElementsAre("0"))
            << filter;
      }
      if (positions) {
        EXPECT_THAT(Rows("SELECT count(*)::VARCHAR FROM t WHERE tarn_file * 1000000 + tarn_pos != "
                         "id"),
                    ElementsAre("0"));
      }
    }
  }
}

TEST_F(SnapshotRelationTest, ABrokenDeleteFileIsNamed) {
  FileScanTask task = Task(Write("a", "SELECT 1::BIGINT AS id", "id: 1"), 1);
  DataFile deletes;
  deletes.content = DataFileContent::kPositionDeletes;
  deletes.file_path = "file://" + store_->root_path() + "/broken-deletes";
  task.deletes = {std::make_shared<const iceberg::DeleteFile>(iceberg::DeleteFile{deletes, 2})};
  FileScanTask second = task;
  EXPECT_THAT(Make({task}), FailsWith(ErrorCode::kNotFound, "broken-deletes"));
  ASSERT_OK(WriteObject(*store_, "broken-deletes", "not parquet", storage::WriteMode::kOverwrite));
  EXPECT_THAT(Make({task}), FailsWith(ErrorCode::kCorruption, "broken-deletes"));
  EXPECT_THAT(Make({task, second}), FailsWith(ErrorCode::kCorruption, "broken-deletes"));
}

TEST_F(SnapshotRelationTest, LineageIsOfTheFileOrOfTheRow) {
  FileScanTask first =
      Task(Write("a", "SELECT range AS id, 'x' AS p FROM range(2)", "id: 1, p: 2"), 2, 7);
  first.file.first_row_id = 100;
  FileScanTask moved = Task(
      Write("b", "SELECT 9::BIGINT AS id, 'x' AS p, 3::BIGINT AS r, unnest([2, NULL])::BIGINT AS s",
            "id: 1, p: 2, r: 2147483540, s: 2147483539"),
      2, 8);
  moved.file.first_row_id = 200;
  const FileScanTask old =
      Task(Write("c", "SELECT 5::BIGINT AS id, 'x' AS p", "id: 1, p: 2"), 1, 1);
  ASSERT_OK(Make({first, moved, old}, true));
  EXPECT_THAT(Rows("SELECT concat_ws(' ', id, tarn_file, tarn_pos, coalesce(_row_id, -1), "
                   "coalesce(_last_updated_sequence_number, -1)) FROM t"),
              ElementsAre("0 0 0 100 7", "1 0 1 101 7", "5 2 0 -1 -1", "9 1 0 3 2", "9 1 1 3 8"));
}

TEST_F(SnapshotRelationTest, MissingColumnsHaveTheirDefault) {
  std::vector<SchemaField> fields = {
      Column(1, "id", Type::Long()), Column(5, "n", Type::Decimal(5, 2)),
      Column(6, "b", Type::Binary()), Column(7, "made", Type::TimestampTz())};
  fields[1].initial_default = "\"1.50\"";
  fields[2].initial_default = "\"00ff\"";
  fields[3].initial_default = "\"2024-02-03T04:05:06.000007+00:00\"";
  SetSchema(fields);
  ASSERT_OK(Make(
      {Task(Write("a", "SELECT 1::BIGINT AS id", "id: 1"), 1),
       Task(Write("b", "SELECT 2::BIGINT AS id, NULL::DECIMAL(5,2) AS n", "id: 1, n: 5"), 1)}));
  EXPECT_THAT(
      Rows("SELECT concat_ws(' ', id, coalesce(n, 0), b, epoch_us(made)) FROM t"),
      ElementsAre("1 1.50 \\x00\\xFF 1706933106000007", "2 0.00 \\x00\\xFF 1706933106000007"));
}

TEST_F(SnapshotRelationTest, MembersAreFoundByIdAfterRenames) {
  // Member ids begin at 11 in s, 21 in l, 32 in m.
  const auto item = [](int32_t id) {
    return Type::Struct({Column(id, "a", Type::Int()), Column(id + 1, "b", Type::String())});
  };
  SetSchema({Column(1, "s", item(11)), Column(2, "l", Type::List(20, item(21), false)),
             Column(3, "m", Type::Map(30, Type::String(), 31, item(32), false))});
  const std::string select =
      "SELECT CASE WHEN i < 2 THEN {'a': i, 'b': 'old'} END AS s, [{'a': i, 'b': 'x'}] AS l, "
      "MAP {'k': {'a': i, 'b': 'x'}} AS m FROM (SELECT range::INTEGER AS i FROM range(1, 3))";
  const std::string old_file =
      Write("old", select,
            "s: {__duckdb_field_id: 1, a: 11, b: 12}, "
            "l: {__duckdb_field_id: 2, element: {__duckdb_field_id: 20, a: 21, b: 22}}, "
            "m: {__duckdb_field_id: 3, key: 30, value: {__duckdb_field_id: 31, a: 32, b: 33}}");
  // a was renamed to z and widened; b was dropped and made again under another id.
  const auto renamed = [](int32_t id) {
    return Type::Struct({Column(id, "z", Type::Long()), Column(id + 40, "b", Type::String())});
  };
  SetSchema({Column(1, "s", renamed(11)), Column(2, "l", Type::List(20, renamed(21), false)),
             Column(3, "m", Type::Map(30, Type::String(), 31, renamed(32), false))});
  const std::string new_file =
      Write("new", "SELECT {'z': 9::BIGINT, 'b': 'new'} AS s, NULL AS l, NULL AS m",
            "s: {__duckdb_field_id: 1, z: 11, b: 51}");
  ASSERT_OK(Make({Task(old_file, 2), Task(new_file, 1)}));
  EXPECT_THAT(Rows("SELECT concat_ws('/', coalesce(s::VARCHAR, '-'), coalesce(l::VARCHAR, '-'), "
                   "coalesce(m::VARCHAR, '-')) FROM t"),
              ElementsAre("-/[{'z': 2, 'b': NULL}]/{k={'z': 2, 'b': NULL}}",
                          "{'z': 1, 'b': NULL}/[{'z': 1, 'b': NULL}]/{k={'z': 1, 'b': NULL}}",
                          "{'z': 9, 'b': new}/-/-"));
}

TEST_F(SnapshotRelationTest, MembersThatAllWereMadeAgainKeepTheirStruct) {
  SetSchema({Column(1, "s", Type::Struct({Column(2, "a", Type::Int())}))});
  const std::string file =
      Write("f", "SELECT unnest([{'a': 1}, NULL]) AS s", "s: {__duckdb_field_id: 1, a: 2}");
  std::vector<SchemaField> members = {Column(9, "a", Type::Int())};
  members[0].initial_default = "5";
  SetSchema({Column(1, "s", Type::Struct(members))});
  ASSERT_OK(Make({Task(file, 2)}));
  EXPECT_THAT(Rows("SELECT coalesce(s::VARCHAR, 'null') FROM t"), ElementsAre("null", "{'a': 5}"));
}

TEST_F(SnapshotRelationTest, FilesWithoutIdsAreReadByTheNameMapping) {
  metadata_.properties["schema.name-mapping.default"] =
      R"([{"field-id":1,"names":["ID","id"]},{"field-id":2,"names":["part"]}])";
  ASSERT_OK(Make({Task(Write("a", "SELECT 1::INTEGER AS \"ID\", 'x' AS part", ""), 1),
                  Task(Write("b", "SELECT 2::BIGINT AS id, 'y' AS p", ""), 1),
                  Task(Write("c", "SELECT 3::BIGINT AS other, 'z' AS p", "other: 1, p: 2"), 1)}));
  EXPECT_THAT(Rows("SELECT id || coalesce(p, '-') FROM t"), ElementsAre("1x", "2-", "3z"));
}

TEST_F(SnapshotRelationTest, APartitionGivesTheColumnThatFilesLack) {
  FileScanTask task =
      Task(Write("a", "SELECT 1::BIGINT AS id", "id: 1"), 1, 1, 1, {Literal::String("it's")});
  task.file.value_counts = {{1, 1}};
  FileScanTask null = task;
  null.file.partition = {Literal::Null()};
  ASSERT_OK(Make({task, null}));
  EXPECT_THAT(Rows("SELECT coalesce(p, 'null') FROM t"), ElementsAre("it's", "null"));
}

}  // namespace

}  // namespace tarn::lakehouse
