#include "tarn/lakehouse/target_table.h"

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include <arrow/api.h>
#include <arrow/compute/initialize.h>

#include "tarn/base/arrow_status.h"
#include "tarn/iceberg/schema_arrow.h"
#include "tarn/lakehouse/file_rows.h"
#include "tarn/lakehouse/header_columns.h"
#include "tarn/lakehouse/internal_schema.h"
#include "tarn/lakehouse/table_files.h"
#include "tarn/metastore/sqlite_database.h"
#include "tarn/storage/memory_store.h"
#include "test/support/matchers.h"
#include "test/support/temporary_directory.h"

namespace tarn::lakehouse {
namespace {

using ::testing::UnorderedElementsAreArray;

// key, value, operation, from, to (or -1)
using StoredRow = std::tuple<int64_t, std::string, std::string, int64_t, int64_t>;

// A metastore with project `default`, a store in memory and a catalog.
class World {
 public:
  World() : store_(clock_), uuids_(clock_), tree_(uuids_, clock_) {
    TARN_CHECK(arrow::compute::Initialize().ok());
    Result<std::unique_ptr<metastore::SqliteDatabase>> opened =
        metastore::SqliteDatabase::Open({.path = directory_.path() / "metastore.db"});
    TARN_CHECK(opened.ok());
    database_ = std::move(opened).value();
    std::vector<metastore::Migration> migrations;
    for (const std::vector<metastore::Migration>& room :
         {tree::Migrations(), catalog::Migrations(), lakehouse::Migrations()}) {
      migrations.insert(migrations.end(), room.begin(), room.end());
    }
    TARN_CHECK(database_->Migrate(migrations).ok());
    TARN_CHECK(database_
                   ->Write([&](metastore::SqlTransaction& sql) -> Status {
                     TARN_ASSIGN_OR_RETURN(project_, tree_.Bootstrap(sql, "test"));
                     return Status::Ok();
                   })
                   .ok());
    catalog_ = std::make_unique<catalog::Catalog>(
        catalog::CatalogOptions{}, catalog::CatalogDeps{*database_, store_, tree_, uuids_, clock_});
  }

  std::unique_ptr<TargetTable> OpenTarget(const TableSpec& spec) {
    Result<std::unique_ptr<TargetTable>> table =
        TargetTable::Open(spec, {.project = project_, .by = "test"}, *catalog_);
    TARN_CHECK(table.ok());
    return std::move(table).value();
  }

  ManualClock& clock() { return clock_; }
  storage::MemoryStore& store() { return store_; }
  catalog::Catalog& catalog() { return *catalog_; }

 private:
  TemporaryDirectory directory_;
  ManualClock clock_{FromMillis(1'700'000'000'000)};
  storage::MemoryStore store_;
  UuidGenerator uuids_;
  tree::Tree tree_;
  std::unique_ptr<metastore::SqliteDatabase> database_;
  std::unique_ptr<catalog::Catalog> catalog_;
  Rid project_;
};

TableSpec Spec(FoldOptions fold) {
  TableSpec spec;
  spec.name = "orders";
  spec.external_schema = "orders";
  spec.internal_schema = "orders_internal";
  spec.key = {"id"};
  spec.fold = fold;
  return spec;
}

iceberg::Schema Users() {
  return iceberg::FromArrowSchema(
             *arrow::schema({arrow::field("id", arrow::int64()), arrow::field("v", arrow::utf8())}))
      .value();
}

struct TestChange {
  int64_t key;
  char operation;
  int64_t time;
  std::string value;
};

ChangeBatch Batch(const std::vector<TestChange>& changes, Timestamp landed) {
  arrow::Int64Builder keys;
  arrow::StringBuilder values;
  ChangeBatch batch;
  for (const TestChange& change : changes) {
    EXPECT_TRUE(keys.Append(change.key).ok());
    EXPECT_TRUE(values.Append(change.value).ok());
    batch.operations.push_back(static_cast<Operation>(change.operation));
    batch.timestamps_micros.push_back(change.time);
    batch.landed_micros.push_back(ToMicros(landed));
    batch.source_micros.push_back(ToMicros(landed));
  }
  batch.rows = arrow::RecordBatch::Make(
      arrow::schema({arrow::field("id", arrow::int64()), arrow::field("v", arrow::utf8())}),
      static_cast<int64_t>(changes.size()),
      {keys.Finish().ValueOrDie(), values.Finish().ValueOrDie()});
  return batch;
}

Status Append(World& world, TargetTable& table, const std::vector<TestChange>& changes,
              const std::string& transaction) {
  TARN_RETURN_IF_ERROR(table.EnsureColumns(Users()));
  const Timestamp now = world.clock().Now();
  TARN_ASSIGN_OR_RETURN(const TargetTable::ChangesSession session, table.OpenChanges(now));
  TARN_RETURN_IF_ERROR(session.writer->Write(Batch(changes, now)));
  TARN_ASSIGN_OR_RETURN(WrittenChanges written, session.writer->Close());
  TARN_RETURN_IF_ERROR(table.CommitAppend({.written = std::move(written),
                                           .inputs = {{"ri.dataset", transaction}},
                                           .also = {},
                                           .now = now}));
  return Status::Ok();
}

// Live rows of some files, as they are stored.
Result<std::vector<StoredRow>> ReadRows(World& world, const iceberg::Schema& schema,
                                        const std::vector<FileScanTask>& files) {
  std::vector<StoredRow> rows;
  for (const FileScanTask& task : files) {
    TARN_ASSIGN_OR_RETURN(const std::vector<int64_t> deleted,
                          DeletedPositions(world.store(), task));
    TARN_ASSIGN_OR_RETURN(
        const std::unique_ptr<FileRows> reader,
        FileRows::Open(world.store(), {.file_path = task.file.file_path,
                                       .schema = &schema,
                                       .columns = {"id", "v", "hdr__operation",
                                                   "hdr__from_timestamp", "hdr__to_timestamp"}}));
    while (true) {
      TARN_ASSIGN_OR_RETURN(const FileRowsBatch batch, reader->Next());
      if (batch.rows == nullptr) {
        break;
      }
      const auto& ids = static_cast<const arrow::Int64Array&>(*batch.rows->column(0));
      const auto& values = static_cast<const arrow::StringArray&>(*batch.rows->column(1));
      const auto& operations = static_cast<const arrow::StringArray&>(*batch.rows->column(2));
      const auto& from = static_cast<const arrow::TimestampArray&>(*batch.rows->column(3));
      const auto& to = static_cast<const arrow::TimestampArray&>(*batch.rows->column(4));
      for (const int64_t row : LiveRows(batch, deleted)) {
        rows.emplace_back(ids.Value(row), values.GetString(row), operations.GetString(row),
                          from.Value(row), to.IsNull(row) ? -1 : to.Value(row));
      }
    }
  }
  return rows;
}

// The rules of a merge, key by key.
class Model {
 public:
  explicit Model(FoldOptions options) : options_(options) {}

  void Change(const TestChange& change) {
    const auto found = current_.find(change.key);
    const bool known = found != current_.end();
    const bool live = known && std::get<2>(found->second) != "D";
    if (change.operation == 'D' && !live) {
      return;
    }
    int64_t from = change.time;
    if (known) {
      from = std::max(from, std::get<3>(found->second));
    } else if (options_.history && deleted_.contains(change.key)) {
      from = std::max(from, deleted_[change.key]);
    }
    if (known && options_.history) {
      StoredRow old = found->second;
      std::get<4>(old) = std::get<2>(old) == "D" ? std::get<3>(old) : from;
      prior.push_back(old);
    }
    if (change.operation != 'D') {
      const char* operation = change.operation == 'L' ? "L" : (live ? "U" : "I");
      current_[change.key] = {change.key, change.value, operation, from, -1};
      return;
    }
    const std::string value = std::get<1>(found->second);
    if (options_.soft_delete) {
      current_[change.key] = {change.key, value, "D", from, -1};
      return;
    }
    current_.erase(change.key);
    if (options_.history) {
      prior.emplace_back(change.key, value, "D", from, from);
      deleted_[change.key] = from;
    }
  }

  std::vector<StoredRow> Current() const {
    std::vector<StoredRow> rows;
    for (const auto& [key, row] : current_) {
      rows.push_back(row);
    }
    return rows;
  }
  std::vector<StoredRow> prior;

 private:
  FoldOptions options_;
  std::map<int64_t, StoredRow> current_;
  std::map<int64_t, int64_t> deleted_;
};

void ExpectTables(World& world, TargetTable& table, const Model& model) {
  ASSERT_OK_AND_ASSIGN(const catalog::LoadedTable loaded, table.Load());
  ASSERT_OK_AND_ASSIGN(const TableFiles files,
                       ListTableFiles(world.store(), world.catalog().manifest_cache(),
                                      *loaded.metadata, std::nullopt));
  EXPECT_TRUE(files.changes.empty());
  EXPECT_EQ(files.asset_state.size(), 1U);
  const iceberg::Schema& schema = loaded.metadata->CurrentSchema();
  ASSERT_OK_AND_ASSIGN(const std::vector<StoredRow> current,
                       ReadRows(world, schema, files.current));
  ASSERT_THAT(current, UnorderedElementsAreArray(model.Current()));
  ASSERT_OK_AND_ASSIGN(const std::vector<StoredRow> prior, ReadRows(world, schema, files.prior));
  ASSERT_THAT(prior, UnorderedElementsAreArray(model.prior));
  for (const FileScanTask& task : files.current) {
    EXPECT_LE(task.deletes.size(), 1U) << "more than one delete file for one data file";
  }
}

TEST(TargetTableTest, AppendThenApplyMakesCurrentRows) {
  World world;
  const std::unique_ptr<TargetTable> table = world.OpenTarget(Spec({}));
  ASSERT_OK(Append(world, *table, {{1, 'I', 10, "a"}, {2, 'I', 11, "b"}, {1, 'U', 12, "c"}}, "t1"));
  ASSERT_OK_AND_ASSIGN(const UnappliedWork work, table->ReadUnapplied());
  EXPECT_EQ(work.rows, 3);
  ASSERT_OK_AND_ASSIGN(const std::optional<CommittedApply> applied,
                       table->Apply(world.clock().Now()));
  ASSERT_TRUE(applied.has_value());
  EXPECT_EQ(applied->counts.current_rows, 2);
  ASSERT_OK_AND_ASSIGN(const std::optional<CommittedApply> again,
                       table->Apply(world.clock().Now()));
  EXPECT_FALSE(again.has_value());
  ASSERT_OK_AND_ASSIGN(const std::optional<std::string> input, table->ReadInput("ri.dataset"));
  EXPECT_EQ(input, "t1");
}

TEST(TargetTableTest, AnotherTableOfTheNameIsRefused) {
  World world;
  TableSpec spec = Spec({});
  const std::unique_ptr<TargetTable> table = world.OpenTarget(spec);
  ASSERT_OK(table->EnsureColumns(Users()));
  spec.internal_schema = "elsewhere";
  EXPECT_THAT(TargetTable::Open(spec, {}, world.catalog()).ok(), true);
}

TEST(TargetTableTest, NewColumnsAndWiderTypesAreTakenIn) {
  World world;
  const std::unique_ptr<TargetTable> table = world.OpenTarget(Spec({}));
  ASSERT_OK_AND_ASSIGN(
      const iceberg::Schema narrow,
      iceberg::FromArrowSchema(*arrow::schema({arrow::field("id", arrow::int32())})));
  ASSERT_OK(table->EnsureColumns(narrow));
  ASSERT_OK(Append(world, *table, {{1, 'I', 10, "a"}}, "t1"));
  ASSERT_OK_AND_ASSIGN(const catalog::LoadedTable loaded, table->Load());
  EXPECT_EQ(loaded.metadata->CurrentSchema().FindField("id")->type.id, iceberg::TypeId::kLong);
  EXPECT_NE(loaded.metadata->CurrentSchema().FindField("v"), nullptr);
  ASSERT_OK(table->Apply(world.clock().Now()));
}

TEST(TargetTableTest, NewMembersOfNestedColumnsAreTakenIn) {
  World world;
  const std::unique_ptr<TargetTable> table = world.OpenTarget(Spec({}));
  const auto users = [](const arrow::FieldVector& members, const arrow::FieldVector& elements) {
    return iceberg::FromArrowSchema(*arrow::schema(
        {arrow::field("id", arrow::int64()), arrow::field("a", arrow::struct_(members)),
         arrow::field("l", arrow::list(arrow::field("element", arrow::struct_(elements))))}));
  };
  const auto x = arrow::field("x", arrow::int32());
  ASSERT_OK_AND_ASSIGN(const iceberg::Schema narrow, users({x}, {x}));
  ASSERT_OK(table->EnsureColumns(narrow));
  ASSERT_OK_AND_ASSIGN(const catalog::LoadedTable before, table->Load());
  ASSERT_OK_AND_ASSIGN(const iceberg::Schema wide,
                       users({arrow::field("x", arrow::int64()), arrow::field("y", arrow::utf8())},
                             {x, arrow::field("z", arrow::struct_({x}))}));
  ASSERT_OK(table->EnsureColumns(wide));
  ASSERT_OK(table->EnsureColumns(narrow));  // Nothing is lost.
  ASSERT_OK_AND_ASSIGN(const catalog::LoadedTable after, table->Load());
  const iceberg::Schema& schema = after.metadata->CurrentSchema();
  ASSERT_NE(schema.FindField("a.y"), nullptr);
  ASSERT_NE(schema.FindField("l.element.z.x"), nullptr);
  EXPECT_EQ(schema.FindField("a.x")->type.id, iceberg::TypeId::kLong);
  EXPECT_EQ(schema.FindField("a.x")->id, before.metadata->CurrentSchema().FindField("a.x")->id);
}

iceberg::Schema UsersOf(const arrow::FieldVector& fields) {
  return iceberg::FromArrowSchema(*arrow::schema(fields)).value();
}

TEST(TargetTableTest, NamesThatDifferInCaseAreOneColumn) {
  World world;
  TableSpec spec = Spec({});
  spec.key = {"ID"};
  std::unique_ptr<TargetTable> table = world.OpenTarget(spec);
  ASSERT_OK(Append(world, *table, {{1, 'I', 10, "a"}, {2, 'I', 10, "b"}}, "t1"));
  const auto member = [](const char* name) {
    return arrow::struct_({arrow::field(name, arrow::int32())});
  };
  ASSERT_OK(table->EnsureColumns(
      UsersOf({arrow::field("Id", arrow::int64()), arrow::field("V", arrow::utf8()),
               arrow::field("S", member("x"))})));
  ASSERT_OK(table->EnsureColumns(UsersOf({arrow::field("s", member("X"))})));
  spec.key = {"iD"};  // Another life, another spelling.
  table = world.OpenTarget(spec);
  EXPECT_THAT(table->spec().key, ::testing::ElementsAre("id"));
  ASSERT_OK(Append(world, *table, {{1, 'I', 20, "c"}}, "t2"));
  ASSERT_OK(table->Apply(world.clock().Now()));
  ASSERT_OK_AND_ASSIGN(const catalog::LoadedTable loaded, table->Load());
  EXPECT_THAT(UserColumnNames(loaded.metadata->CurrentSchema()),
              ::testing::ElementsAre("id", "v", "S"));
  EXPECT_EQ(loaded.metadata->CurrentSchema().FindField("S")->type.fields.size(), 1U);
  ASSERT_OK_AND_ASSIGN(const UnappliedWork work, table->ReadUnapplied());
  EXPECT_EQ(work.current_rows, 2);
}

TEST(TargetTableTest, TheKeyMayComeFromTheSource) {
  World world;
  TableSpec spec = Spec({});
  spec.key = {};
  std::unique_ptr<TargetTable> table = world.OpenTarget(spec);
  EXPECT_THAT(table->EnsureColumns(Users()), FailsWith(ErrorCode::kInvalidArgument, "key"));
  ASSERT_OK(table->UseKey({"V", "id"}));
  ASSERT_OK(Append(world, *table, {{1, 'I', 10, "a"}}, "t1"));
  table = world.OpenTarget(spec);
  EXPECT_THAT(table->spec().key, ::testing::ElementsAre("v", "id"));
  ASSERT_OK(table->UseKey({"v", "ID"}));
  EXPECT_THAT(table->UseKey({"id"}), FailsWith(ErrorCode::kFailedPrecondition, "v, id"));
  ASSERT_OK(Append(world, *table, {{1, 'U', 20, "a"}}, "t2"));
  ASSERT_OK(table->Apply(world.clock().Now()));
  ASSERT_OK_AND_ASSIGN(const UnappliedWork work, table->ReadUnapplied());
  EXPECT_EQ(work.current_rows, 1);
}

TEST(TargetTableTest, FloatKeysAreRefused) {
  World world;
  const std::unique_ptr<TargetTable> table = world.OpenTarget(Spec({}));
  ASSERT_OK_AND_ASSIGN(
      const iceberg::Schema users,
      iceberg::FromArrowSchema(*arrow::schema({arrow::field("id", arrow::float64())})));
  EXPECT_THAT(table->EnsureColumns(users), FailsWith(ErrorCode::kInvalidArgument, "id"));
}

void RunHistory(uint32_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto pick = [&](uint32_t below) { return static_cast<int64_t>(random() % below); };
  const FoldOptions fold{.history = pick(2) == 0, .soft_delete = pick(2) == 0};
  World world;
  TableSpec spec = Spec(fold);
  if (pick(3) == 0) {
    spec.partition_by = {"bucket(3, id)"};
  }
  if (pick(3) == 0) {
    spec.sort_by = {"v desc"};
  }
  if (pick(3) == 0) {
    spec.memory_bytes = 1;  // Several passes.
  }
  const std::unique_ptr<TargetTable> table = world.OpenTarget(spec);
  Model model(fold);
  int64_t number = 0;
  for (int round = 0; round < 5; ++round) {
    const int64_t appends = 1 + pick(3);
    for (int64_t append = 0; append < appends; ++append) {
      std::vector<TestChange> changes;
      for (int64_t count = pick(40); count >= 0; --count) {
        changes.push_back(
            {pick(25), "IUUDL"[pick(5)], 1000 + pick(200), "v" + std::to_string(++number)});
        model.Change(changes.back());
      }
      world.clock().Advance(std::chrono::milliseconds(pick(3)));
      ASSERT_OK(Append(world, *table, changes, "t" + std::to_string(number)));
    }
    ASSERT_OK(table->Apply(world.clock().Now()));
    ExpectTables(world, *table, model);
  }
}

TEST(TargetTableTest, RandomHistoriesEqualTheModel) {
  for (uint32_t seed = 1; seed <= 25; ++seed) {
    RunHistory(seed);
    if (HasFatalFailure()) {
      return;
    }
  }
}

}  // namespace
}  // namespace tarn::lakehouse
