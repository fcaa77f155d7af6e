#include "tarn/query/run_sql.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "tarn/access/grant.h"
#include "tarn/query/memory_watch.h"
#include "tarn/query/query_fixture.h"

namespace tarn::query {

namespace {

using lakehouse::Operation;
using nlohmann::json;

class RunSqlTest : public QueryFixture {
 protected:
  void SetUp() override {
    QueryFixture::SetUp();
    ASSERT_OK_AND_ASSIGN(orders_, OpenTarget(MakeSpec("orders")));
    ASSERT_OK(Append(*orders_, {Insert(1, "a"), Insert(2, "b")}));
  }

  static TestChange Insert(int64_t id, const std::string& name) {
    return {.operation = Operation::kInsert, .id = id, .name = name, .time_ms = 1000};
  }

  Status Grant(const std::string& folder, const access::Principal& principal, access::Role role) {
    return database_->Write([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> node,
                            tree::FindChild(sql, project_, folder));
      return access::AddGrant(
          sql, {.resource = node->rid, .principal_id = principal.user_id, .role = role}, "me",
          clock_.Now());
    });
  }

  // A view made by a person, with one text for the engine.
  Status MakeView(const std::string& name, const std::string& text, const std::string& dialect,
                  const std::vector<std::string>& columns) {
    iceberg::Schema schema;
    for (const std::string& column : columns) {
      iceberg::SchemaField field;
      field.id = static_cast<int32_t>(schema.fields.size()) + 1;
      field.name = column;
      field.type = iceberg::Type::Long();
      schema.fields.push_back(field);
    }
    iceberg::ViewVersion version;
    version.schema_id = iceberg::kLastAdded;
    version.default_namespace = {"shop"};
    version.representations.push_back(
        {.type = "sql", .sql = text, .dialect = dialect, .unknown = {}});
    const std::string uuid = uuids_.NextV7().ToString();
    TARN_ASSIGN_OR_RETURN(
        const iceberg::ViewUpdateResult made,
        iceberg::ApplyViewUpdates(
            nullptr,
            {iceberg::table_update::AssignUuid{.uuid = uuid},
             iceberg::table_update::SetLocation{.location =
                                                    storage::UriOf(*warehouse_, "views/" + uuid)},
             iceberg::table_update::SetProperties{
                 .updates = {{"tarn.view", "current"}, {"tarn.internal-table", "forged"}}},
             iceberg::table_update::AddSchema{.schema = schema, .last_column_id = {}},
             iceberg::view_update::AddViewVersion{.version = version},
             iceberg::view_update::SetCurrentViewVersion{.version_id = iceberg::kLastAdded}},
            1000));
    TARN_ASSIGN_OR_RETURN(const std::string location, catalog_->WriteFirst(made.metadata));
    return database_->Write([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(const tree::Node folder,
                            tree_.EnsureFolder(sql, project_, "shop", admin_.user_id));
      return StatusOf(catalog::CreateObject(sql, tree_,
                                            {.kind = catalog::ObjectKind::kView,
                                             .folder = folder.rid,
                                             .name = name,
                                             .uuid = uuid,
                                             .metadata_location = location,
                                             .by = admin_.user_id}));
    });
  }

  std::unique_ptr<lakehouse::TargetTable> orders_;
};

TEST_F(RunSqlTest, NamesOfEveryFormMeanTheTable) {
  const std::vector<json> two = {{{"n", 2}}};
  for (const char* name :
       {"shop.orders", "\"default\".shop.orders", "orders", "\"/Default/default/shop/orders\""}) {
    EXPECT_THAT(Rows(std::string("SELECT count(*) AS n FROM ") + name), IsOkAndHolds(two)) << name;
  }
  ASSERT_OK_AND_ASSIGN(
      const std::vector<json> qualified,
      Rows("SELECT \"default\".shop.orders.id FROM \"default\".shop.orders ORDER BY id LIMIT 1"));
  EXPECT_EQ(json(qualified), json::parse(R"([{"id": 1}])"));
}

TEST_F(RunSqlTest, JoinsCommonTableExpressionsAndSubQueriesSeeTheTables) {
  const std::vector<json> rows = {{{"id", 1}, {"other", "b"}}};
  EXPECT_THAT(Rows("WITH tarn_relation_1 AS (SELECT 7 AS id) SELECT a.id, b.name AS other FROM "
                   "shop.orders a JOIN orders b ON a.id + 1 = b.id WHERE a.id IN (SELECT id FROM "
                   "shop.orders) AND (SELECT max(id) FROM tarn_relation_1) = 7"),
              IsOkAndHolds(rows));
}

TEST_F(RunSqlTest, StatementsWithoutTablesRun) {
  const std::vector<json> rows = {{{"x", 3}}};
  EXPECT_THAT(Rows("SELECT 1 + 2 AS x"), IsOkAndHolds(rows));
}

TEST_F(RunSqlTest, WrongStatementsAreRefused) {
  for (const char* sql : {"", "SELEC 1", "DROP TABLE shop.orders", "SELECT 1; SELECT 2",
                          "INSERT INTO shop.orders VALUES (1)"}) {
    EXPECT_THAT(Rows(std::string(sql)), Fails(ErrorCode::kInvalidArgument)) << sql;
  }
  EXPECT_THAT(Rows("SELECT * FROM read_parquet('/etc/passwd')"),
              Fails(ErrorCode::kPermissionDenied));
  EXPECT_THAT(Rows("SELECT * FROM '/etc/passwd'"), Fails(ErrorCode::kNotFound));
  EXPECT_THAT(Rows("SELECT nothing FROM shop.orders"),
              FailsWith(ErrorCode::kInvalidArgument, "nothing"));
  EXPECT_THAT(Rows("SELECT * FROM shop.customers"),
              FailsWith(ErrorCode::kNotFound, "shop.customers"));
  EXPECT_THAT(Rows("SELECT * FROM nowhere"), FailsWith(ErrorCode::kNotFound, "nowhere"));
  EXPECT_THAT(Rows("SELECT 1", "last tuesday"), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(Rows({.sql = "SELECT 1", .project = "moon"}, admin_),
              FailsWith(ErrorCode::kNotFound, "moon"));
}

TEST_F(RunSqlTest, WithoutGrantATableIsAsIfItWereNotThere) {
  const access::Principal user = MakeUser("eve");
  const Status hidden = StatusOf(Rows({.sql = "SELECT * FROM shop.orders"}, user));
  const Status missing = StatusOf(Rows({.sql = "SELECT * FROM shop.absent"}, user));
  EXPECT_THAT(hidden, FailsWith(ErrorCode::kNotFound, "shop.orders does not exist"));
  EXPECT_THAT(missing, FailsWith(ErrorCode::kNotFound, "shop.absent does not exist"));
  EXPECT_THAT(Rows({.sql = "SELECT * FROM orders"}, user), Fails(ErrorCode::kNotFound));
  ASSERT_OK(Grant("shop", user, access::Role::kDiscoverer));
  EXPECT_THAT(Rows({.sql = "SELECT * FROM shop.orders"}, user),
              Fails(ErrorCode::kPermissionDenied));
}

TEST_F(RunSqlTest, ViewerOfAViewNeedsNotSeeTheInternalTable) {
  const access::Principal user = MakeUser("vera");
  ASSERT_OK(Grant("shop", user, access::Role::kViewer));
  const std::vector<json> two = {{{"n", 2}}};
  EXPECT_THAT(Rows({.sql = "SELECT count(*) AS n FROM shop.orders"}, user), IsOkAndHolds(two));
  EXPECT_THAT(Rows({.sql = "SELECT * FROM shop_internal.orders_internal"}, user),
              Fails(ErrorCode::kNotFound));
  access::Principal narrow = user;
  narrow.scopes = access::ScopeSet::Of({access::Scope::kDatasetsRead});
  EXPECT_THAT(Rows({.sql = "SELECT * FROM shop.orders"}, narrow),
              Fails(ErrorCode::kPermissionDenied));
}

// The properties of a view say which internal table it shows; the table says whose view may show
// it.
TEST_F(RunSqlTest, AViewTurnedToTheTableOfAnotherFolderNeedsTheRightsOfTheReader) {
  lakehouse::TableSpec secret = MakeSpec("secret");
  secret.external_schema = "vault";
  secret.internal_schema = "vault_internal";
  ASSERT_OK_AND_ASSIGN(const auto table, OpenTarget(secret));
  ASSERT_OK(Append(*table, {Insert(7, "s")}));
  const access::Principal user = MakeUser("vera");
  ASSERT_OK(Grant("shop", user, access::Role::kOwner));
  std::optional<catalog::CatalogObject> view;
  ASSERT_OK(database_->Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> folder,
                          tree::FindChild(sql, project_, "shop"));
    TARN_ASSIGN_OR_RETURN(view, catalog::FindObject(sql, folder->rid, "orders"));
    return Status::Ok();
  }));
  ASSERT_OK(StatusOf(
      catalog_->CommitView({.view = *view,
                            .requirements = {},
                            .updates = {iceberg::table_update::SetProperties{
                                .updates = {{"tarn.internal-schema", "vault_internal"},
                                            {"tarn.internal-table", "secret_internal"}}}}})));
  const std::string sql = "SELECT id FROM shop.orders";
  EXPECT_THAT(Rows({.sql = sql}, user),
              FailsWith(ErrorCode::kPermissionDenied, "shop.orders was changed"));
  ASSERT_OK(Grant("vault_internal", user, access::Role::kViewer));
  EXPECT_THAT(Rows({.sql = sql}, user), IsOkAndHolds(std::vector<json>{{{"id", 7}}}));
}

TEST_F(RunSqlTest, StoredViewRunsItsTextWithTheRightsOfTheReader) {
  ASSERT_OK(MakeView("big", "SELECT id AS x, id * 10 AS y FROM orders WHERE id > 1", "duckdb",
                     {"key", "tenfold"}));
  ASSERT_OK(
      MakeView("peek", "SELECT count(*) AS n FROM shop_internal.orders_internal", "duckdb", {"n"}));
  ASSERT_OK(MakeView("outer_view", "SELECT tenfold FROM big", "duckdb", {"tenfold"}));
  ASSERT_OK(MakeView("round", "SELECT n FROM round", "duckdb", {"n"}));
  ASSERT_OK(MakeView("sparkling", "SELECT 1", "spark", {"n"}));
  const std::vector<json> rows = {{{"key", 2}, {"tenfold", 20}}};
  EXPECT_THAT(Rows("SELECT * FROM shop.big"), IsOkAndHolds(rows));
  const std::vector<json> outer = {{{"tenfold", 20}}};
  EXPECT_THAT(Rows("SELECT * FROM shop.outer_view"), IsOkAndHolds(outer));
  EXPECT_THAT(Rows("SELECT * FROM shop.round"), FailsWith(ErrorCode::kInvalidArgument, "deep"));
  EXPECT_THAT(Rows("SELECT * FROM shop.sparkling"), FailsWith(ErrorCode::kUnimplemented, "duckdb"));
  EXPECT_OK(Rows("SELECT * FROM shop.peek"));
  const access::Principal user = MakeUser("vera");
  ASSERT_OK(Grant("shop", user, access::Role::kViewer));
  EXPECT_THAT(Rows({.sql = "SELECT * FROM shop.peek"}, user), Fails(ErrorCode::kNotFound));
}

TEST_F(RunSqlTest, RunningQueryKeepsItsSnapshot) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunningQuery> query,
                       RunSql({.sql = "SELECT id FROM shop.orders ORDER BY id"}, admin_, deps()));
  ASSERT_OK(Append(*orders_, {Insert(3, "c")}));
  ASSERT_OK(Apply(*orders_));
  int64_t rows = 0;
  while (true) {
    ASSERT_OK_AND_ASSIGN(const std::shared_ptr<arrow::RecordBatch> batch, query->Next());
    if (batch == nullptr) {
      break;
    }
    rows += batch->num_rows();
  }
  EXPECT_EQ(rows, 2);
}

TEST_F(RunSqlTest, ATableIsReadOnABranchThatItHasAndOnNoOther) {
  std::optional<catalog::CatalogObject> table;
  ASSERT_OK(database_->Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> folder,
                          tree::FindChild(sql, project_, "shop_internal"));
    TARN_ASSIGN_OR_RETURN(table, catalog::FindObject(sql, folder->rid, "orders_internal"));
    return Status::Ok();
  }));
  ASSERT_OK_AND_ASSIGN(const catalog::LoadedTable loaded, catalog_->LoadTable(table->rid));
  const int64_t old = loaded.metadata->CurrentSnapshot()->snapshot_id;
  ASSERT_OK(
      StatusOf(catalog_->CommitTables({{.table = *table,
                                        .requirements = {},
                                        .updates = {iceberg::table_update::SetSnapshotRef{
                                            .name = "kept", .ref = {.snapshot_id = old}}}}})));
  ASSERT_OK(Append(*orders_, {Insert(3, "c")}));
  ASSERT_OK(Apply(*orders_));
  const auto count = [&](const std::string& name, const std::string& branch,
                         const std::string& at = "") {
    return Rows({.sql = "SELECT count(DISTINCT id) AS n FROM " + name, .branch = branch, .at = at},
                admin_);
  };
  const std::vector<json> two = {{{"n", 2}}};
  const std::vector<json> three = {{{"n", 3}}};
  for (const char* name : {"shop.orders", "shop_internal.orders_internal"}) {
    EXPECT_THAT(count(name, "master"), IsOkAndHolds(three)) << name;
    EXPECT_THAT(count(name, "main"), IsOkAndHolds(three)) << name;
    EXPECT_THAT(count(name, "kept"), IsOkAndHolds(two)) << name;
    EXPECT_THAT(count(name, "main", std::to_string(old)), IsOkAndHolds(two)) << name;
    EXPECT_THAT(count(name, "kept", std::to_string(old)), IsOkAndHolds(two)) << name;
    EXPECT_THAT(count(name, "nope"), FailsWith(ErrorCode::kNotFound, "branch or tag nope")) << name;
    EXPECT_THAT(count(name, "nope", std::to_string(old)), Fails(ErrorCode::kNotFound)) << name;
    EXPECT_THAT(count(name, "kept", "2030-01-01T00:00:00Z"),
                FailsWith(ErrorCode::kInvalidArgument, "branch kept"))
        << name;
    // A branch or tag is a point, too.
    EXPECT_THAT(count(name, "master", "kept"), IsOkAndHolds(two)) << name;
    EXPECT_THAT(count(name + std::string(" AT (VERSION => 'kept')"), "master"), IsOkAndHolds(two))
        << name;
    EXPECT_THAT(count(name, "master", "last tuesday"),
                FailsWith(ErrorCode::kInvalidArgument, "no branch or tag"))
        << name;
    EXPECT_THAT(count(name, "kept", "last tuesday"), Fails(ErrorCode::kInvalidArgument)) << name;
  }
  ASSERT_OK(MakeView("few", "SELECT id FROM orders", "duckdb", {"id"}));
  EXPECT_THAT(count("shop.few", "nope"), FailsWith(ErrorCode::kNotFound, "branch or tag nope"));
}

TEST_F(RunSqlTest, InterruptEndsALongQuery) {
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<RunningQuery> query,
      RunSql({.sql = "SELECT a.range FROM range(10000000) a, range(10000000) b"}, admin_, deps()));
  std::thread other([&] { query->Interrupt(); });
  Status status;
  while (status.ok()) {
    status = StatusOf(query->Next());
  }
  other.join();
  EXPECT_THAT(status, Fails(ErrorCode::kCancelled));
}

// The values of rows are no part of what the engine counts.
TEST_F(RunSqlTest, AStatementThatMakesTheProcessTooLargeIsStopped) {
  std::atomic<uint64_t> used{100};
  MemoryWatch watch({.limit_bytes = 1000,
                     .growth_bytes = 500,
                     .interval = std::chrono::milliseconds(1),
                     .used_bytes = [&used] { return used.load(); }});
  QueryDeps watched = deps();
  watched.memory_watch = &watch;
  const QueryRequest endless{.sql = "SELECT a.range FROM range(1000000000) AS a, range(1000) AS b"};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunningQuery> query, RunSql(endless, admin_, watched));
  ASSERT_OK(StatusOf(query->Next()));
  used = 2000;
  Status status;
  while (status.ok()) {
    status = StatusOf(query->Next());
  }
  EXPECT_THAT(status, FailsWith(ErrorCode::kResourceExhausted, "the statement was stopped"));
  // What is over already stops nobody.
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunningQuery> next,
                       RunSql({.sql = "SELECT 1"}, admin_, watched));
  EXPECT_OK(StatusOf(next->Next()));
}

}  // namespace

}  // namespace tarn::query
