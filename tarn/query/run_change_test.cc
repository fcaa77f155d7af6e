#include "tarn/query/run_change.h"

#include <filesystem>
#include <random>
#include <set>
#include <stop_token>
#include <thread>

#include <fmt/format.h>

#include "tarn/access/audit.h"
#include "tarn/access/grant.h"
#include "tarn/catalog/pointer_store.h"
#include "tarn/lakehouse/scan/plain_table_fixture.h"
#include "tarn/query/query_fixture.h"
#include "tarn/query/stoppable_sql.h"
#include "tarn/storage/faulty_store.h"

namespace tarn::query {

namespace {

using nlohmann::json;

// A store that lets others act just before a file is written.
class OvertakenStore final : public storage::ObjectStore {
 public:
  OvertakenStore(storage::ObjectStore& store, std::function<void()> act)
      : store_(store), act_(std::move(act)) {}

  [[nodiscard]] storage::Capabilities capabilities() const override {
    return store_.capabilities();
  }
  [[nodiscard]] const std::string& base_uri() const override { return store_.base_uri(); }
  Result<storage::ObjectMeta> Head(std::string_view key) override { return store_.Head(key); }
  Result<std::unique_ptr<storage::ObjectReader>> OpenReader(std::string_view key) override {
    return store_.OpenReader(key);
  }
  Result<std::unique_ptr<storage::ObjectWriter>> OpenWriter(std::string_view key,
                                                            storage::WriteMode mode) override {
    if (key.ends_with(".parquet")) {
      act_();
    }
    return store_.OpenWriter(key, mode);
  }
  Result<storage::ListPage> List(const storage::ListRequest& request) override {
    return store_.List(request);
  }
  Status Delete(std::string_view key) override { return store_.Delete(key); }
  Result<std::string> Presign(std::string_view key, std::chrono::seconds valid_for) override {
    return store_.Presign(key, valid_for);
  }

 private:
  storage::ObjectStore& store_;
  const std::function<void()> act_;
};

class RunChangeTest : public QueryFixture, public ::testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    QueryFixture::SetUp();
    ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(const tree::Node node,
                            tree_.EnsureFolder(sql, project_, "shop", admin_.user_id));
      folder_ = node.rid;
      return Status::Ok();
    }));
    ASSERT_OK_AND_ASSIGN(rid_, MakePlain("plain"));
    ASSERT_OK(Insert("SELECT range AS id, 'a' AS p FROM range(4)"));
    ASSERT_OK(Insert("SELECT range AS id, 'b' AS p FROM range(2)"));
  }

  Result<Rid> MakePlain(const std::string& name, std::map<std::string, std::string> more = {}) {
    iceberg::TableDefinition definition = lakehouse::PlainDefinition(GetParam(), true);
    definition.table_uuid = uuids_.NextV7().ToString();
    definition.location = storage::UriOf(*warehouse_, "tables/" + name);
    definition.properties.merge(more);
    TARN_ASSIGN_OR_RETURN(const iceberg::TableMetadata metadata,
                          iceberg::MakeTableMetadata(definition, ToMillis(clock_.Now())));
    TARN_ASSIGN_OR_RETURN(
        const catalog::LoadedTable table,
        catalog_->CreateTable({.folder = folder_, .name = name, .by = admin_.user_id}, metadata));
    return table.object.rid;
  }

  Result<std::optional<catalog::CatalogObject>> FindTable(const std::string& name) {
    std::optional<catalog::CatalogObject> object;
    TARN_RETURN_IF_ERROR(database_->Read([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(object, catalog::FindObject(sql, folder_, name));
      return Status::Ok();
    }));
    return object;
  }

  Status Insert(const std::string& select) {
    clock_.Advance(std::chrono::seconds(1));
    return StatusOf(lakehouse::AppendSelect(*catalog_, *engine_, rid_, select));
  }

  Result<int64_t> Change(const std::string& sql) {
    clock_.Advance(std::chrono::seconds(1));
    TARN_ASSIGN_OR_RETURN(const ChangeResult result, RunChange({.sql = sql}, admin_, deps()));
    EXPECT_EQ(result.snapshot_id.has_value(), result.changed_rows > 0);
    return result.changed_rows;
  }

  std::string Content(const std::string& expression = "p || id",
                      const std::string& from = "plain") {
    const auto rows = Rows("SELECT string_agg(x, ' ' ORDER BY x) AS x FROM (SELECT " + expression +
                           " AS x FROM " + from + ")");
    EXPECT_OK(rows);
    const json x = rows.ok() ? rows->front().at("x") : json();
    return x.is_string() ? x.get<std::string>() : std::string();
  }

  // All files of the warehouse.
  std::set<std::string> Files() {
    std::set<std::string> files;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(warehouse_->root_path())) {
      if (entry.is_regular_file()) {
        files.insert(entry.path().string());
      }
    }
    return files;
  }

  iceberg::TableMetadata Metadata() { return *catalog_->LoadTable(rid_).value().metadata; }

  Rid folder_;
  Rid rid_;
};

TEST_P(RunChangeTest, DeletedRowsAreGone) {
  EXPECT_THAT(Change("DELETE FROM shop.plain WHERE id = 1"), IsOkAndHolds(2));
  EXPECT_EQ(Content(), "a0 a2 a3 b0");
  EXPECT_THAT(Change("DELETE FROM plain AS t WHERE t.id >= (SELECT max(id) FROM plain)"),
              IsOkAndHolds(1));
  EXPECT_EQ(Content(), "a0 a2 b0");
  EXPECT_THAT(Change("DELETE FROM plain WHERE id = 99"), IsOkAndHolds(0));
  // What was deleted before does not count, and a file without a row is removed whole.
  EXPECT_THAT(Change("DELETE FROM plain WHERE p = 'b'"), IsOkAndHolds(1));
  EXPECT_EQ(Content(), "a0 a2");
  EXPECT_EQ(Metadata().CurrentSnapshot()->summary.at("deleted-data-files"), "1");
  EXPECT_EQ(Metadata().CurrentSnapshot()->summary.at("total-delete-files"), "1");
  EXPECT_THAT(Change("DELETE FROM plain"), IsOkAndHolds(2));
  EXPECT_EQ(Content(), "");
  EXPECT_THAT(Change("DELETE FROM plain"), IsOkAndHolds(0));
}

TEST_P(RunChangeTest, UpdatedRowsMoveAndKeepTheirIds) {
  const std::string ids = Content("_row_id || ''", "plain$rows");
  EXPECT_THAT(Change("UPDATE plain SET id = id + 10, p = CASE WHEN id = 3 THEN 'b' ELSE p END "
                     "WHERE id > 1"),
              IsOkAndHolds(2));
  EXPECT_EQ(Content(), "a0 a1 a12 b0 b1 b13");
  EXPECT_EQ(Metadata().CurrentSnapshot()->operation, iceberg::SnapshotOperation::kOverwrite);
  if (GetParam() == 3) {
    EXPECT_EQ(Content("_row_id || ''", "plain$rows"), ids);
    EXPECT_EQ(Content("id || ':' || _last_updated_sequence_number", "plain$rows WHERE id > 9"),
              "12:3 13:3");
  }
  EXPECT_THAT(Change("UPDATE plain SET id = NULL"), IsOkAndHolds(6));
  EXPECT_EQ(Content("p || coalesce(id, -1)"), "a-1 a-1 a-1 b-1 b-1 b-1");
}

TEST_P(RunChangeTest, InsertedRowsAreCastToTheColumns) {
  EXPECT_THAT(Change("INSERT INTO plain VALUES ('7', 'c'), ('8', NULL)"), IsOkAndHolds(2));
  EXPECT_THAT(Change("INSERT INTO plain (p) SELECT p || 'x' FROM plain WHERE id = 0"),
              IsOkAndHolds(2));
  EXPECT_EQ(Content("coalesce(p, '-') || coalesce(id, -1)"), "-8 a0 a1 a2 a3 ax-1 b0 b1 bx-1 c7");
  EXPECT_THAT(Change("INSERT INTO plain SELECT 1, 'z' WHERE false"), IsOkAndHolds(0));
}

TEST_P(RunChangeTest, AMergeIsOneSnapshot) {
  const std::string ids = Content("_row_id || ''", "plain$rows WHERE id = 0");
  EXPECT_THAT(
      Change("MERGE INTO plain AS t USING (SELECT unnest([0, 1, 7]) AS id, 'new' AS note) s "
             "ON t.id = s.id AND t.p = 'a' "
             "WHEN MATCHED AND s.id = 0 THEN UPDATE SET t.p = s.note "
             "WHEN MATCHED THEN DELETE "
             "WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, 'c') "
             "WHEN NOT MATCHED BY SOURCE AND t.p = 'b' THEN DELETE"),
      IsOkAndHolds(5));
  EXPECT_EQ(Content(), "a2 a3 c7 new0");
  EXPECT_EQ(Metadata().snapshots.size(), 3U);
  if (GetParam() == 3) {
    EXPECT_EQ(ids.find(Content("_row_id || ''", "plain$rows WHERE id = 0")), 0U);
    EXPECT_EQ(Content("_last_updated_sequence_number || ''", "plain$rows WHERE id IN (0, 7)"),
              "3 3");
  }
  EXPECT_THAT(Change("MERGE INTO plain USING (SELECT 99 AS id) s ON plain.id = s.id "
                     "WHEN MATCHED THEN DELETE"),
              IsOkAndHolds(0));
  EXPECT_THAT(Change("MERGE INTO plain USING plain AS s ON plain.id = s.id + 100 "
                     "WHEN NOT MATCHED THEN INSERT VALUES (s.id + 100, s.p)"),
              IsOkAndHolds(4));
  EXPECT_EQ(Content(), "a102 a103 a2 a3 c107 c7 new0 new100");
  EXPECT_EQ(Metadata().snapshots.size(), 4U);
}

TEST_P(RunChangeTest, AMergeFillsAnEmptyTable) {
  ASSERT_OK(MakePlain("target"));
  const std::string merge =
      "MERGE INTO target t USING plain s ON t.id = s.id AND t.p = s.p "
      "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *";
  EXPECT_THAT(Change(merge), IsOkAndHolds(6));
  EXPECT_EQ(Content("p || id", "target"), "a0 a1 a2 a3 b0 b1");
  EXPECT_THAT(Change(merge), IsOkAndHolds(6));
  EXPECT_EQ(Content("p || id", "target"), "a0 a1 a2 a3 b0 b1");
}

TEST_P(RunChangeTest, ARowIsMergedOnce) {
  for (const char* action : {"DELETE", "UPDATE SET p = s.x"}) {
    EXPECT_THAT(
        Change(std::string("MERGE INTO plain t USING (VALUES (1, 'x'), (1, 'y')) AS s(id, x) ON "
                           "t.id = s.id WHEN MATCHED THEN ") +
               action),
        FailsWith(ErrorCode::kInvalidArgument, "several rows of the source"));
  }
  EXPECT_EQ(Content(), "a0 a1 a2 a3 b0 b1");
  EXPECT_EQ(Metadata().snapshots.size(), 2U);
}

// Random merges against those of the engine on a table of its own.
TEST_P(RunChangeTest, AMergeDoesWhatTheEngineWould) {
  std::mt19937_64 random(5);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<engine::Session> session, engine_->OpenSession());
  ASSERT_OK(
      session->Execute("CREATE TEMP TABLE plain AS SELECT range AS id, 'a' AS p FROM range(4) "
                       "UNION ALL SELECT range, 'b' FROM range(2)"));
  const std::vector<std::string> clauses = {
      "WHEN MATCHED AND s.x % 3 = 0 THEN DELETE",
      "WHEN MATCHED AND t.id % 2 = 0 THEN UPDATE SET p = t.p || s.x",
      "WHEN MATCHED AND s.x > 6 THEN DO NOTHING",
      "WHEN MATCHED THEN UPDATE SET id = t.id + 1, p = CASE WHEN s.x > 3 THEN 'big' ELSE NULL END",
      "WHEN NOT MATCHED AND s.x < 5 THEN INSERT (p, id) VALUES ('n' || s.x, s.id)",
      "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id + 20)",
      "WHEN NOT MATCHED BY SOURCE AND t.id > 10 THEN DELETE",
      "WHEN NOT MATCHED BY SOURCE AND t.p = 'a' THEN UPDATE SET p = 'left'"};
  for (int round = 0; round < 25; ++round) {
    SCOPED_TRACE(round);
    std::string source;
    std::set<uint64_t> ids;
    while (ids.size() < 4) {
      ids.insert(random() % 30);
    }
    for (const uint64_t id : ids) {
      source += (source.empty() ? "" : ", ") +
                ("(" + std::to_string(id) + ", " + std::to_string(random() % 10) + ")");
    }
    std::string merge = "MERGE INTO plain AS t USING (SELECT * FROM (VALUES " + source +
                        ") AS v(id, x)) AS s ON t.id = s.id";
    bool any = false;
    for (const std::string& clause : clauses) {
      if (random() % 2 == 0) {
        merge += " " + clause;
        any = true;
      }
    }
    if (!any) {
      continue;
    }
    SCOPED_TRACE(merge);
    ASSERT_OK(Change(merge));
    ASSERT_OK(session->Execute(merge));
    ASSERT_OK_AND_ASSIGN(
        const auto stream,
        session->Query("SELECT string_agg(x, ' ' ORDER BY x) FROM (SELECT coalesce(p, '-') || "
                       "coalesce(id, -1) AS x FROM plain)"));
    ASSERT_OK_AND_ASSIGN(const auto expected, engine::ReadAll(*stream));
    ASSERT_EQ(Content("coalesce(p, '-') || coalesce(id, -1)"),
              expected->column(0)->GetScalar(0).ValueOrDie()->ToString());
  }
}

TEST_P(RunChangeTest, ATableIsMadeFromASelect) {
  EXPECT_THAT(Change("CREATE TABLE shop.copy PARTITIONED BY (p, bucket(4, id)) TBLPROPERTIES "
                     "('format-version' = '" +
                     std::to_string(GetParam()) +
                     "', 'owner' = 'me') AS SELECT id, p, id / 2 AS half, DATE '2026-01-02' AS day "
                     "FROM plain WHERE id < 3"),
              IsOkAndHolds(5));
  EXPECT_EQ(Content("p || id || ':' || half || ':' || day", "shop.copy"),
            "a0:0.0:2026-01-02 a1:0.5:2026-01-02 a2:1.0:2026-01-02 b0:0.0:2026-01-02 "
            "b1:0.5:2026-01-02");
  ASSERT_OK_AND_ASSIGN(const auto object, FindTable("copy"));
  ASSERT_TRUE(object.has_value());
  const iceberg::TableMetadata made = *catalog_->LoadTable(object->rid).value().metadata;
  EXPECT_EQ(made.format_version, GetParam());
  EXPECT_EQ(made.snapshots.size(), 1U);
  EXPECT_EQ(made.properties.at("owner"), "me");
  ASSERT_EQ(made.DefaultSpec().fields.size(), 2U);
  EXPECT_EQ(made.DefaultSpec().fields[1].name, "id_bucket");
  EXPECT_EQ(made.CurrentSchema().fields[3].type, iceberg::Type::Date());
  EXPECT_THAT(Change("CREATE TABLE shop.copy AS SELECT 1 AS x"),
              FailsWith(ErrorCode::kAlreadyExists, "copy"));
  EXPECT_THAT(Change("CREATE TABLE shop.\"COPY\" AS SELECT 1 AS x"),
              Fails(ErrorCode::kAlreadyExists));
  EXPECT_THAT(Change("CREATE TABLE IF NOT EXISTS shop.copy AS SELECT 1 AS x"), IsOkAndHolds(0));
  EXPECT_THAT(Change("UPDATE shop.copy SET half = 9 WHERE p = 'b'"), IsOkAndHolds(2));
  EXPECT_THAT(Change("CREATE TABLE shop.empty AS SELECT 1 AS x WHERE false"), IsOkAndHolds(0));
  EXPECT_EQ(Content("x || ''", "shop.empty"), "");
  EXPECT_THAT(Change("INSERT INTO shop.empty VALUES (3)"), IsOkAndHolds(1));
}

TEST_P(RunChangeTest, AReplacedTableKeepsItsHistory) {
  const iceberg::TableMetadata before = Metadata();
  const int64_t first = before.CurrentSnapshot()->snapshot_id;
  // Of its own rows, too: they are read as they were when the statement began.
  EXPECT_THAT(Change("CREATE OR REPLACE TABLE shop.plain PARTITIONED BY (q) TBLPROPERTIES ('a' = "
                     "'b') AS SELECT id, p || '!' AS q, id + 1 AS more FROM plain WHERE id < 2"),
              IsOkAndHolds(4));
  EXPECT_EQ(Content("q || id || more"), "a!01 a!12 b!01 b!12");
  EXPECT_EQ(Content("p || id", fmt::format("plain AT (VERSION => {})", first)),
            "a0 a1 a2 a3 b0 b1");
  const iceberg::TableMetadata after = Metadata();
  EXPECT_EQ(after.table_uuid, before.table_uuid);
  EXPECT_EQ(after.location, before.location);
  EXPECT_EQ(after.snapshots.size(), before.snapshots.size() + 1);
  EXPECT_EQ(after.properties.at("a"), "b");
  EXPECT_EQ(after.DefaultSpec().fields.size(), 1U);
  EXPECT_GT(after.CurrentSchema().FindField("q")->id, before.last_column_id);
  // What is there can be worked with, replaced again, and by nothing.
  EXPECT_THAT(Change("UPDATE plain SET more = 7 WHERE id = 0"), IsOkAndHolds(2));
  EXPECT_THAT(Change("CREATE OR REPLACE TABLE shop.plain AS SELECT 1 AS x WHERE false"),
              IsOkAndHolds(0));
  EXPECT_EQ(Content("x || ''"), "");
  EXPECT_EQ(Metadata().snapshots.size(), before.snapshots.size() + 2);
  EXPECT_THAT(Change("CREATE OR REPLACE TABLE shop.fresh AS SELECT 2 AS x"), IsOkAndHolds(1));
  EXPECT_EQ(Content("x || ''", "shop.fresh"), "2");
}

TEST_P(RunChangeTest, OnlyTablesThatMayBeAreReplaced) {
  const access::Principal viewer = MakeUser("vic");
  ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) {
    return access::AddGrant(
        sql, {.resource = folder_, .principal_id = viewer.user_id, .role = access::Role::kViewer},
        "me", clock_.Now());
  }));
  const std::string sql = "CREATE OR REPLACE TABLE shop.plain AS SELECT 1 AS x";
  const std::set<std::string> files = Files();
  EXPECT_THAT(RunChange({.sql = sql}, viewer, deps()), Fails(ErrorCode::kPermissionDenied));
  ASSERT_OK_AND_ASSIGN(const auto orders, OpenTarget(MakeSpec("orders")));
  EXPECT_THAT(Change("CREATE OR REPLACE TABLE shop.orders__applied AS SELECT 1 AS x"),
              FailsWith(ErrorCode::kPermissionDenied, "pipeline"));
  EXPECT_THAT(Change("CREATE OR REPLACE TABLE shop.orders AS SELECT 1 AS x"),
              FailsWith(ErrorCode::kAlreadyExists, "view orders"));
  EXPECT_THAT(Change("CREATE OR REPLACE TABLE shop.\"PLAIN\" AS SELECT 1 AS x"),
              FailsWith(ErrorCode::kAlreadyExists, "table plain"));
  EXPECT_THAT(Change("CREATE OR REPLACE TABLE shop.plain TBLPROPERTIES ('write.data.path' = "
                     "'/etc') AS SELECT 1 AS x"),
              Fails(ErrorCode::kInvalidArgument));
  EXPECT_EQ(Content(), "a0 a1 a2 a3 b0 b1");
}

TEST_P(RunChangeTest, AReplacementThatIsOvertakenRunsAgainOnTheNewRows) {
  int acts = 1;
  OvertakenStore store(*warehouse_, [&] {
    if (acts-- > 0) {
      ASSERT_OK(Insert("SELECT 9 AS id, 'late' AS p"));
    }
  });
  catalog::Catalog other({}, {*database_, store, tree_, uuids_, clock_});
  const QueryDeps others{authorizer_, other, *datasets_, *engine_};
  const std::string sql =
      "CREATE OR REPLACE TABLE shop.plain AS SELECT count(*) AS id, 'n' AS p FROM plain";
  ASSERT_OK(RunChange({.sql = sql}, admin_, others));
  EXPECT_EQ(Content(), "n7");
  // Overtaken each time, it gives up, and leaves what others did.
  acts = 100;
  EXPECT_THAT(RunChange({.sql = sql}, admin_, others), Fails(ErrorCode::kConflict));
  EXPECT_EQ(acts, 97);
  EXPECT_EQ(Content(), "late9 late9 late9 n7");
}

TEST_P(RunChangeTest, NoTableIsMadeOfAWrongStatement) {
  const std::set<std::string> before = Files();
  for (const char* sql :
       {"CREATE TABLE copy AS SELECT 1 AS x", "CREATE TABLE shop.copy AS SELECT 1 AS x, 2 AS \"X\"",
        "CREATE TABLE shop.copy AS SELECT CAST(1 AS UHUGEINT) AS x",
        "CREATE TABLE shop.copy AS SELECT CAST('x' AS INTEGER) AS x FROM plain",
        "CREATE TABLE shop.copy AS SELECT id FROM plain WHERE nothing",
        "CREATE TABLE shop.copy PARTITIONED BY (y) AS SELECT 1 AS x",
        "CREATE TABLE shop.copy PARTITIONED BY (day(x)) AS SELECT 1 AS x",
        "CREATE TABLE shop.copy PARTITIONED BY (cube(x)) AS SELECT 1 AS x",
        "CREATE TABLE shop.copy TBLPROPERTIES ('format-version' = '9') AS SELECT 1 AS x",
        "CREATE TABLE shop.copy TBLPROPERTIES ('write.data.path' = '/etc') AS SELECT 1 AS x"}) {
    EXPECT_THAT(Change(sql), Fails(ErrorCode::kInvalidArgument)) << sql;
  }
  EXPECT_THAT(Change("CREATE TABLE nowhere.copy AS SELECT 1 AS x"),
              FailsWith(ErrorCode::kNotFound, "no folder nowhere"));
  EXPECT_THAT(
      RunChange({.sql = "CREATE TABLE shop.copy AS SELECT 1 AS x"}, MakeUser("eve"), deps()),
      FailsWith(ErrorCode::kNotFound, "no folder shop"));
  EXPECT_EQ(Files(), before);
  ASSERT_OK_AND_ASSIGN(const auto object, FindTable("copy"));
  EXPECT_FALSE(object.has_value());
}

TEST_P(RunChangeTest, NothingIsLeftOfAReplacementThatFails) {
  std::string content = Content();
  bool more = true;
  for (int64_t n = 1; more; ++n) {
    SCOPED_TRACE(n);
    storage::FaultyStore faulty(*warehouse_, {.fail_at = n});
    catalog::Catalog other({}, {*database_, faulty, tree_, uuids_, clock_});
    const std::set<std::string> files = Files();
    const size_t snapshots = Metadata().snapshots.size();
    clock_.Advance(std::chrono::seconds(1));
    const Result<ChangeResult> result =
        RunChange({.sql = fmt::format("CREATE OR REPLACE TABLE shop.plain AS SELECT {} AS id, p "
                                      "FROM plain",
                                      n)},
                  admin_, {authorizer_, other, *datasets_, *engine_});
    more = faulty.failed();
    ASSERT_LT(n, 500);
    if (result.ok()) {
      EXPECT_NE(std::exchange(content, Content()), content);
      EXPECT_EQ(Metadata().snapshots.size(), snapshots + 1);
      continue;
    }
    EXPECT_TRUE(more) << result.status().ToString();
    EXPECT_EQ(Content(), content);
    EXPECT_EQ(Files(), files) << result.status().ToString();
  }
}

// The n-th operation of the store fails: the table is as it was and no file is left, or all is
// done.
TEST_P(RunChangeTest, NothingIsLeftOfAFailure) {
  std::string content = Content();
  for (const bool create : {true, false}) {
    bool more = true;
    for (int64_t n = 1; more; ++n) {
      SCOPED_TRACE(n);
      storage::FaultyStore faulty(*warehouse_, {.fail_at = n});
      catalog::Catalog other({}, {*database_, faulty, tree_, uuids_, clock_});
      const std::string name = "made" + std::to_string(n);
      const std::string sql =
          create ? "CREATE TABLE shop." + name + " AS SELECT * FROM plain"
                 : "MERGE INTO plain t USING (SELECT 0 AS id UNION ALL SELECT " +
                       std::to_string(100 + n) +
                       ") s ON t.id = s.id WHEN MATCHED THEN UPDATE SET "
                       "p = t.p || 'x' WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, 'new')";
      const std::set<std::string> files = Files();
      clock_.Advance(std::chrono::seconds(1));
      const Result<ChangeResult> result =
          RunChange({.sql = sql}, admin_, {authorizer_, other, *datasets_, *engine_});
      more = faulty.failed();
      ASSERT_LT(n, 500);
      ASSERT_OK_AND_ASSIGN(const auto object, FindTable(name));
      if (create) {
        EXPECT_EQ(object.has_value(), result.ok());
      }
      if (result.ok()) {
        if (create) {
          EXPECT_EQ(Content("p || id", "shop." + name), content);
        }
        EXPECT_EQ(std::exchange(content, Content()) == content, create);
        continue;
      }
      EXPECT_TRUE(more) << result.status().ToString();
      EXPECT_EQ(Content(), content);
      EXPECT_EQ(Files(), files) << result.status().ToString();
    }
  }
}

TEST_P(RunChangeTest, WrongStatementsChangeNothing) {
  for (const char* sql :
       {"INSERT INTO plain VALUES (1)",
        "INSERT INTO plain VALUES (1, 'a', 2)",
        "INSERT INTO plain VALUES ('x', 'a')",
        "INSERT INTO plain (id, id) VALUES (1, 2)",
        "INSERT INTO plain (nothing) VALUES (1)",
        "UPDATE plain SET nothing = 1",
        "UPDATE plain SET id = 1, ID = 2",
        "UPDATE plain SET id = 'x'",
        "DELETE FROM plain WHERE nothing = 1",
        "DELETE FROM plain WHERE id = 1) OR (true",
        "DELETE FROM plain WHERE true) --",
        "UPDATE plain SET id = (1",
        "SELECT 1",
        "MERGE INTO plain t USING plain s ON t.id = s.id WHEN MATCHED THEN UPDATE SET nothing = 1",
        "MERGE INTO plain t USING plain s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = 1, ID = "
        "2",
        "MERGE INTO plain t USING plain s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (x) VALUES "
        "(1)",
        "MERGE INTO plain t USING plain s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (1)",
        "MERGE INTO plain t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *",
        "MERGE INTO plain t USING plain s ON t.nothing = s.id WHEN MATCHED THEN DELETE",
        "MERGE INTO plain t USING plain s ON t.id = s.id) -- \n WHEN MATCHED THEN DELETE",
        "MERGE INTO plain t USING (SELECT 0 AS id) s ON t.id = s.id AND t.p = 'a' WHEN MATCHED "
        "THEN "
        "UPDATE SET id = 'x'"}) {
    EXPECT_THAT(Change(sql), Fails(ErrorCode::kInvalidArgument)) << sql;
  }
  EXPECT_THAT(Change("DELETE FROM plain WHERE id IN (SELECT * FROM read_csv('/etc/passwd'))"),
              Fails(ErrorCode::kPermissionDenied));
  EXPECT_THAT(Change("DELETE FROM absent"), Fails(ErrorCode::kNotFound));
  EXPECT_THAT(RunChange({.sql = "DELETE FROM plain", .at = "2026-01-01T00:00:00Z"}, admin_, deps()),
              Fails(ErrorCode::kInvalidArgument));
  EXPECT_EQ(Content(), "a0 a1 a2 a3 b0 b1");
  EXPECT_EQ(Metadata().snapshots.size(), 2U);
}

TEST_P(RunChangeTest, AChangeWhoseClientLeftChangesNothing) {
  const std::set<std::string> before = Files();
  const auto run = [&](const std::string& sql, std::chrono::milliseconds leaves) {
    std::stop_source client;
    std::jthread leave([&] {
      std::this_thread::sleep_for(leaves);
      client.request_stop();
    });
    return StatusOf(RunStoppableChange({.sql = sql}, admin_, deps(), client.get_token()));
  };
  // Hours of work.
  const std::string endless =
      "SELECT count(*) AS id, 'z' AS p FROM range(1000000) a, range(1000000) b WHERE "
      "hash(a.range, b.range) = 7";
  const auto soon = std::chrono::milliseconds(200);
  EXPECT_THAT(run("INSERT INTO plain (id, p) " + endless, soon), Fails(ErrorCode::kCancelled));
  EXPECT_THAT(run("CREATE TABLE shop.made AS " + endless, soon), Fails(ErrorCode::kCancelled));
  EXPECT_THAT(run("DELETE FROM plain WHERE id < (SELECT id FROM (" + endless + "))", soon),
              Fails(ErrorCode::kCancelled));
  // One that left before the end is not committed for.
  std::stop_source gone;
  gone.request_stop();
  EXPECT_THAT(StatusOf(RunStoppableChange({.sql = "INSERT INTO plain (id, p) VALUES (9, 'z')"},
                                          admin_, deps(), gone.get_token())),
              Fails(ErrorCode::kCancelled));
  EXPECT_EQ(Content(), "a0 a1 a2 a3 b0 b1");
  EXPECT_EQ(Files(), before);
}

// The files are gone from the store already: whoever reads rows fails.
TEST_P(RunChangeTest, DeleteWithoutConditionReadsNoRow) {
  ASSERT_OK_AND_ASSIGN(const std::vector<json> files,
                       Rows("SELECT file_path AS x FROM plain$files"));
  ASSERT_EQ(files.size(), 2U);
  for (const json& file : files) {
    ASSERT_OK_AND_ASSIGN(const std::string key,
                         storage::KeyOf(*warehouse_, file.at("x").get<std::string>()));
    ASSERT_OK(warehouse_->Delete(key));
  }
  EXPECT_FALSE(Change("DELETE FROM plain WHERE id >= 0").ok());
  EXPECT_THAT(Change("DELETE FROM shop.plain"), IsOkAndHolds(6));
  EXPECT_EQ(Content(), "");
  EXPECT_THAT(Change("DELETE FROM plain"), IsOkAndHolds(0));
}

TEST_P(RunChangeTest, ChangesAndDenialsAreAudited) {
  const auto log = [&] {
    std::vector<std::string> events;
    EXPECT_OK(database_->Read([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(const auto records, access::ListAudit(sql, 0, 1000));
      events.clear();
      for (const access::AuditRecord& record : records) {
        events.push_back(fmt::format("{} {} {} {} {}", record.user_id == admin_.user_id,
                                     record.action, record.resource,
                                     static_cast<int>(record.outcome), record.details));
      }
      return Status::Ok();
    }));
    return events;
  };
  std::vector<std::string> known = log();
  const auto added = [&] {
    std::vector<std::string> all = log();
    const std::vector<std::string> more(all.begin() + static_cast<ptrdiff_t>(known.size()),
                                        all.end());
    known = std::move(all);
    return more;
  };
  ASSERT_OK(Change("INSERT INTO plain VALUES (9, 'z')"));
  ASSERT_OK(Change("UPDATE shop.plain SET id = 8 WHERE id = 9"));
  ASSERT_OK(Change("DELETE FROM plain WHERE id = 8"));
  ASSERT_OK(
      Change("MERGE INTO plain t USING (SELECT 9 AS id, 'z' AS p) s ON false WHEN NOT "
             "MATCHED THEN INSERT *"));
  EXPECT_THAT(added(),
              ::testing::ElementsAre(R"(true table.commit plain 0 {"statement":"insert"})",
                                     R"(true table.commit shop.plain 0 )"
                                     R"({"statement":"update"})",
                                     R"(true table.commit plain 0 {"statement":"delete"})",
                                     R"(true table.commit plain 0 {"statement":"merge"})"));
  // What changes nothing, or is wrong, is no change.
  ASSERT_OK(Change("DELETE FROM plain WHERE id = 77"));
  EXPECT_THAT(Change("DELETE FROM absent"), Fails(ErrorCode::kNotFound));
  EXPECT_THAT(added(), ::testing::IsEmpty());
  const access::Principal viewer = MakeUser("vic");
  ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) {
    return access::AddGrant(
        sql, {.resource = folder_, .principal_id = viewer.user_id, .role = access::Role::kViewer},
        "me", clock_.Now());
  }));
  for (const char* sql : {"DELETE FROM shop.plain", "CREATE TABLE shop.copy AS SELECT 1 AS x",
                          "CREATE OR REPLACE TABLE shop.plain AS SELECT 1 AS x",
                          "DROP TABLE shop.plain", "DROP SCHEMA shop"}) {
    EXPECT_THAT(RunChange({.sql = sql}, viewer, deps()), Fails(ErrorCode::kPermissionDenied))
        << sql;
  }
  EXPECT_THAT(added(), ::testing::ElementsAre(
                           "false table.commit shop.plain 1 ", "false table.create shop.copy 1 ",
                           "false table.replace shop.plain 1 ", "false table.drop shop.plain 1 ",
                           "false namespace.drop shop 1 "));
}

TEST_P(RunChangeTest, OnlyEditorsChangeTablesAndNobodyThoseOfPipelines) {
  const access::Principal user = MakeUser("eve");
  EXPECT_THAT(RunChange({.sql = "DELETE FROM shop.plain"}, user, deps()),
              Fails(ErrorCode::kNotFound));
  ASSERT_OK_AND_ASSIGN(const auto target, OpenTarget(MakeSpec("orders")));
  EXPECT_THAT(Change("DELETE FROM shop_internal.orders_internal"),
              Fails(ErrorCode::kPermissionDenied));
  EXPECT_THAT(
      Change("MERGE INTO shop_internal.orders_internal t USING plain s ON false WHEN MATCHED "
             "THEN DELETE"),
      Fails(ErrorCode::kPermissionDenied));
  EXPECT_THAT(Change("DELETE FROM shop.orders"),
              FailsWith(ErrorCode::kInvalidArgument, "only tables"));
}

INSTANTIATE_TEST_SUITE_P(Versions, RunChangeTest, ::testing::Values(2, 3));

}  // namespace

}  // namespace tarn::query
