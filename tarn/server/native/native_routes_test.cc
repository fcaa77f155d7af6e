#include "tarn/server/native/native_routes.h"

#include <arrow/io/memory.h>
#include <arrow/ipc/reader.h>

#include "tarn/access/audit.h"
#include "tarn/metastore/migrations.h"
#include "tarn/server/control_fixture.h"

namespace tarn::server::native {

namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class NativeRoutesTest : public ControlFixture {
 protected:
  void SetUp() override {
    ControlFixture::SetUp();
    ASSERT_OK(AddNativeRoutes(router_, {.query = deps(), .control = *control_}));
    ASSERT_OK_AND_ASSIGN(orders_, OpenTarget(MakeSpec("orders")));
    ASSERT_OK(Append(*orders_, {{.id = 1, .name = "a", .time_ms = 1000},
                                {.id = 2, .name = "b", .time_ms = 1000}}));
  }

  http::Response Sql(const json& body, const std::string& accept = "application/json") {
    return Call("POST", "/tarn/v1/sql", body.dump(), {{"Accept", accept}});
  }

  // A caller who may do nothing yet.
  access::Principal BecomeUser(const std::string& name) {
    const access::Principal user = MakeUser(name);
    Result<std::string> token = MakeToken(user.user_id);
    EXPECT_OK(token);
    token_ = *token;
    return user;
  }

  std::unique_ptr<lakehouse::TargetTable> orders_;
};

TEST_F(NativeRoutesTest, SqlComesInEachFormat) {
  const json body = {{"query", "SELECT id, name FROM shop.orders ORDER BY id"}};
  const http::Response rows = Sql(body);
  EXPECT_EQ(rows.status, 200);
  EXPECT_EQ(json::parse(rows.body),
            json::parse(R"([{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])"));
  const http::Response csv = Sql(body, "text/csv");
  EXPECT_THAT(csv.body, StartsWith("id,name\r\n1,a\r\n"));
  EXPECT_THAT(std::string(csv.headers.Find("Content-Type").value_or("")), StartsWith("text/csv"));
  const http::Response stream = Sql(body, "application/vnd.apache.arrow.stream");
  ASSERT_OK_AND_ASSIGN(
      const auto reader,
      arrow::ipc::RecordBatchStreamReader::Open(
          std::make_shared<arrow::io::BufferReader>(arrow::Buffer::FromString(stream.body))));
  ASSERT_OK_AND_ASSIGN(const auto table, reader->ToTable());
  EXPECT_EQ(table->num_rows(), 2);
  EXPECT_EQ(Sql(body, "image/png").status, 406);
}

TEST_F(NativeRoutesTest, SqlFailuresAreAnswers) {
  EXPECT_EQ(Sql({{"query", "SELEC"}}).status, 400);
  EXPECT_EQ(Sql({{"query", "SELECT * FROM shop.none"}}).status, 404);
  EXPECT_EQ(Sql({{"query", "SELECT 1"}, {"project", "moon"}}).status, 404);
  EXPECT_EQ(Sql(json::object()).status, 400);
  EXPECT_EQ(Sql({{"query", 5}}).status, 400);
  EXPECT_EQ(Sql({{"query", "SELECT * FROM read_csv('/etc/passwd')"}}).status, 403);
  const http::Response late = Sql({{"query", "SELECT CAST(name AS INTEGER) FROM shop.orders"}});
  EXPECT_EQ(late.status, 400) << late.body;
  BecomeUser("eve");
  EXPECT_EQ(Sql({{"query", "SELECT * FROM shop.orders"}}).status, 404);
}

// Bytes that go nowhere.
struct NoSink final : http::BodySink {
  Status Write(std::string_view /*bytes*/) override { return Status::Ok(); }
};

TEST_F(NativeRoutesTest, WhyAnAnswerBrokeOffIsToldToWhoAsked) {
  http::Request request;
  request.method = "POST";
  request.target = "/tarn/v1/sql";
  request.headers.Add("Authorization", "Bearer " + admin_token_);
  request.body = std::make_unique<http::StringBodyReader>(
      json{{"query",
            "SELECT CAST(CASE WHEN range > 3000000 THEN 'none' ELSE '1' END AS INT) AS n FROM "
            "range(4000000)"}}
          .dump());
  http::Response response = router_.Handle(request);
  ASSERT_TRUE(response.producer);
  NoSink sink;
  ASSERT_FALSE(response.producer(sink).ok());
  const std::string target =
      "/tarn/v1/failures/" + std::string(response.headers.Find("X-Request-Id").value_or(""));
  const http::Response why = Call("GET", target);
  EXPECT_EQ(why.status, 400);
  EXPECT_THAT(why.body, HasSubstr("Could not convert"));
  EXPECT_EQ(CallJson("GET", "/tarn/v1/failures/none")["error"]["name"], "FailureNotFound");
  BecomeUser("eve");
  EXPECT_EQ(Call("GET", target).status, 404);
}

TEST_F(NativeRoutesTest, TablesViewsAndFoldersAreDropped) {
  const auto change = [&](const std::string& sql) {
    return Call("POST", "/tarn/v1/sql:change", json{{"query", sql}}.dump()).status;
  };
  EXPECT_EQ(change("CREATE SCHEMA own"), 200);
  EXPECT_EQ(change("CREATE TABLE own.t AS SELECT 1 AS id"), 200);
  const json folder = CallJson("GET", "/tarn/v1/resources?path=default/own");
  const std::string target = "/tarn/v1/folders/" + folder.value("rid", "");
  EXPECT_EQ(CallJson("DELETE", target)["error"]["name"], "FolderNotEmpty");
  EXPECT_EQ(Call("DELETE", "/tarn/v1/views/own.t").status, 400);
  EXPECT_EQ(Call("DELETE", "/tarn/v1/tables/own.t?purge=maybe").status, 400);
  EXPECT_EQ(CallJson("DELETE", "/tarn/v1/tables/own.t?purge=true")["dropped"], "own.t");
  EXPECT_EQ(Call("DELETE", "/tarn/v1/tables/own.t").status, 404);
  EXPECT_EQ(Call("DELETE", target).status, 200);
  EXPECT_EQ(Call("DELETE", target).status, 404);
  for (const char* of_pipeline :
       {"/tarn/v1/views/shop.orders", "/tarn/v1/tables/shop_internal.orders_internal"}) {
    EXPECT_EQ(Call("DELETE", of_pipeline).status, 403) << of_pipeline;
  }
}

TEST_F(NativeRoutesTest, ResourcesAreFoundByEveryName) {
  ASSERT_OK_AND_ASSIGN(const dataset::DatasetRid dataset, MakeDataset("landing", "events"));
  for (const std::string& name :
       {std::string("/Default/default/landing/events"), std::string("default/landing/events"),
        std::string("Default/default/landing/events"), std::string("landing.events"),
        dataset.ToString()}) {
    const json found = CallJson("GET", "/tarn/v1/resources?path=" + EncodeUrl(name));
    EXPECT_EQ(found.value("rid", ""), dataset.ToString()) << name << " " << found;
    EXPECT_EQ(found.value("type", ""), "dataset");
    EXPECT_EQ(found.value("path", ""), "/Default/default/landing/events");
  }
  EXPECT_EQ(CallJson("GET", "/tarn/v1/resources?path=default").value("type", ""), "project");
  const http::Response missing = Call("GET", "/tarn/v1/resources?path=default/landing/none");
  EXPECT_EQ(missing.status, 404);
  const json listed = CallJson("GET", "/tarn/v1/resources?type=dataset&project=default");
  ASSERT_EQ(listed["data"].size(), 1U) << listed;
  EXPECT_EQ(listed["data"][0]["rid"], dataset.ToString());
  BecomeUser("eve");
  EXPECT_EQ(Call("GET", "/tarn/v1/resources?path=default/landing/events").status, 404);
  EXPECT_EQ(CallJson("GET", "/tarn/v1/resources?type=dataset")["data"], json::array());
  EXPECT_EQ(Call("GET", "/tarn/v1/resources?type=datasets").status, 400);
  EXPECT_EQ(Call("GET", "/tarn/v1/resources?type=pipeline").status, 400);
}

TEST_F(NativeRoutesTest, ViewTextIsGivenPerDialect) {
  const json spark = CallJson("GET", "/tarn/v1/views/shop.orders");
  EXPECT_THAT(spark.value("sql", ""), HasSubstr("LEFT ANTI JOIN"));
  const json duckdb = CallJson("GET", "/tarn/v1/views/shop.orders?dialect=duckdb");
  EXPECT_THAT(duckdb.value("sql", ""), HasSubstr("ANTI JOIN"));
  EXPECT_EQ(Call("GET", "/tarn/v1/views/shop.orders?dialect=oracle").status, 400);
  EXPECT_EQ(Call("GET", "/tarn/v1/views/shop_internal.orders_internal").status, 400);
  EXPECT_EQ(Call("GET", "/tarn/v1/views/shop.none").status, 404);
}

TEST_F(NativeRoutesTest, TablesAreShown) {
  const json tables = CallJson("GET", "/tarn/v1/tables");
  ASSERT_EQ(tables["data"].size(), 2U) << tables;
  EXPECT_EQ(tables["data"][0]["name"], "default.shop.orders__applied");
  EXPECT_EQ(tables["data"][1]["name"], "default.shop_internal.orders_internal");
  const std::string target = "/tarn/v1/tables/shop_internal.orders_internal";
  const json table = CallJson("GET", target);
  EXPECT_EQ(table["formatVersion"], 2) << table;
  EXPECT_EQ(table["columns"][0]["name"], "hdr__partition");
  const json snapshots = CallJson("GET", target + "/snapshots");
  ASSERT_EQ(snapshots["data"].size(), 1U);
  EXPECT_EQ(snapshots["data"][0]["operation"], "append");
  EXPECT_EQ(snapshots["data"][0]["snapshotId"], table["snapshotId"]);
  const json files = CallJson("GET", target + "/files");
  ASSERT_EQ(files["data"].size(), 2U) << files;
  EXPECT_EQ(files["data"][0]["content"], "data");
  EXPECT_EQ(CallJson("GET", target + "/history")["data"].size(), 1U);
  EXPECT_THAT(Call("GET", "/tarn/v1/tables/shop.orders").body,
              HasSubstr("its table is shop_internal.orders_internal"));
  EXPECT_EQ(Call("GET", "/tarn/v1/tables/shop.none").status, 404);
}

TEST_F(NativeRoutesTest, UsersAndTokensAreMadeAndRevoked) {
  const json user = CallJson("POST", "/tarn/v1/users", R"({"name": "vera"})");
  ASSERT_EQ(user.value("name", ""), "vera") << user;
  EXPECT_EQ(Call("POST", "/tarn/v1/users", R"({"name": "vera"})").status, 409);
  EXPECT_EQ(Call("POST", "/tarn/v1/users", R"({})").status, 400);
  EXPECT_EQ(CallJson("GET", "/tarn/v1/users")["data"].size(), 2U);
  const json token = CallJson("POST", "/tarn/v1/tokens",
                              R"({"user": "vera", "expires": "90d",
                                  "scopes": "api:admin-read api:admin-write"})");
  ASSERT_THAT(token.value("token", ""), StartsWith("tarn_")) << token;
  EXPECT_EQ(Call("POST", "/tarn/v1/tokens", R"({"expires": "soon"})").status, 400);
  EXPECT_EQ(Call("POST", "/tarn/v1/tokens", R"({"user": "nobody"})").status, 404);

  token_ = token["token"];
  EXPECT_EQ(Call("GET", "/tarn/v1/users").status, 403);
  EXPECT_EQ(Call("POST", "/tarn/v1/tokens", R"({"user": "admin"})").status, 403);
  EXPECT_EQ(Call("POST", "/tarn/v1/tokens", R"({"scopes": "api:iceberg-read"})").status, 403);
  const json own = CallJson("GET", "/tarn/v1/tokens");
  ASSERT_EQ(own["data"].size(), 1U) << own;
  EXPECT_EQ(own["data"][0]["id"], token["id"]);
  const json narrow = CallJson("POST", "/tarn/v1/tokens", R"({"scopes": "api:admin-read"})");
  ASSERT_TRUE(narrow.contains("id")) << narrow;
  token_.clear();
  const json all = CallJson("GET", "/tarn/v1/tokens");
  ASSERT_FALSE(all["data"].empty());
  const std::string admin_token = all["data"][0]["id"];
  token_ = token["token"];
  EXPECT_EQ(Call("DELETE", "/tarn/v1/tokens/" + admin_token).status, 403);
  EXPECT_EQ(Call("DELETE", "/tarn/v1/tokens/" + narrow["id"].get<std::string>()).status, 204);
  token_ = narrow["token"];
  EXPECT_EQ(Call("GET", "/tarn/v1/tokens").status, 401);
}

TEST_F(NativeRoutesTest, DatasetsAreComparedAndBranchesMoved) {
  ASSERT_OK_AND_ASSIGN(const dataset::DatasetRid rid, MakeDataset("landing", "events"));
  const auto land = [&](const std::string& path) {
    dataset::StoredFile file;
    file.path = path;
    file.location = "at/" + path;
    return CommitFiles(rid, {file});
  };
  ASSERT_OK_AND_ASSIGN(const dataset::TransactionRid first, land("a"));
  const std::string then = FormatTimestamp(clock_.Now());
  ASSERT_OK_AND_ASSIGN(const dataset::TransactionRid second, land("b"));
  const std::string base = "/tarn/v1/datasets/" + rid.ToString();
  EXPECT_EQ(CallJson("GET", base + "/transactions:at?at=" + EncodeUrl(then))["transactionRid"],
            first.ToString());
  EXPECT_EQ(Call("GET", base + "/transactions:at?at=1970-01-01T00:00:00Z").status, 404);
  EXPECT_EQ(Call("GET", base + "/transactions:at?at=soon").status, 404);  // No branch or tag.
  EXPECT_EQ(Call("GET", base + "/transactions:at").status, 400);
  const json increment = CallJson("GET", base + "/increment?since=" + first.ToString());
  EXPECT_EQ(increment["incremental"], true) << increment;
  ASSERT_EQ(increment["added"].size(), 1U);
  EXPECT_EQ(increment["added"][0]["path"], "b");
  EXPECT_EQ(increment["headTransactionRid"], second.ToString());
  const std::string reset = base + "/branches/master:reset";
  EXPECT_EQ(Call("POST", reset, json{{"transactionRid", first.ToString()}}.dump()).status, 200);
  const json compared = CallJson("GET", base + "/compare?to=" + second.ToString());
  ASSERT_EQ(compared["added"].size(), 1U) << compared;
  EXPECT_EQ(compared["added"][0]["path"], "b");
  const std::string forward = base + "/branches/master:fastForward";
  EXPECT_EQ(CallJson("POST", forward, json{{"to", second.ToString()}}.dump())["transactionRid"],
            second.ToString());
  EXPECT_EQ(Call("POST", forward, json{{"to", first.ToString()}}.dump()).status, 409);
  const access::Principal user = BecomeUser("eve");
  EXPECT_EQ(Call("GET", base + "/increment").status, 404);
  ASSERT_OK(Grant("landing", user, access::Role::kViewer));
  EXPECT_EQ(Call("GET", base + "/increment").status, 200);
  EXPECT_EQ(Call("POST", reset, json{{"transactionRid", first.ToString()}}.dump()).status, 403);
}

constexpr const char* kPipeline = R"(pipeline: shop
sources:
  in: {type: files, uri: "file:///tmp/none"}
landing:
  events: {source: in, content: {type: json}}
transform:
  things: {from: events, key: [id]}
)";

TEST_F(NativeRoutesTest, PipelinesAreAppliedListedAndDeleted) {
  const json applied = CallJson("POST", "/tarn/v1/pipelines", kPipeline);
  ASSERT_EQ(applied.value("name", ""), "shop") << applied;
  EXPECT_EQ(applied["project"], "default");
  EXPECT_EQ(applied["state"], "STOPPED");
  const json listed = CallJson("GET", "/tarn/v1/pipelines");
  ASSERT_EQ(listed["data"].size(), 1U) << listed;
  EXPECT_EQ(Call("GET", "/tarn/v1/pipelines/shop:export").body, kPipeline);
  const json status = CallJson("GET", "/tarn/v1/status");
  ASSERT_EQ(status["tasks"].size(), 2U) << status;
  for (const char* key : {"task", "kind", "state", "rows_in", "rows_out", "rejected", "filtered",
                          "unapplied", "lag_rows", "lag_bytes", "lag_seconds", "rows_per_second",
                          "data_updated_to", "last_error"}) {
    EXPECT_TRUE(status["tasks"][0].contains(key)) << key;
  }
  EXPECT_EQ(CallJson("GET", "/tarn/v1/tasks/shop.things").value("kind", ""), "transform");
  EXPECT_EQ(Call("GET", "/tarn/v1/tasks/shop.none").status, 404);
  EXPECT_EQ(Call("GET", "/tarn/v1/tasks/shop").status, 400);
  EXPECT_EQ(Call("POST", "/tarn/v1/tasks/shop.events:apply", "{}").status, 400);
  EXPECT_EQ(CallJson("POST", "/tarn/v1/pipelines:validate", kPipeline).value("valid", false), true);
  const json invalid = CallJson("POST", "/tarn/v1/pipelines:validate", "pipeline: [x]");
  EXPECT_EQ(invalid["error"]["line"], 1) << invalid;
  EXPECT_EQ(Call("GET", "/tarn/v1/runs/none").status, 404);
  EXPECT_EQ(CallJson("GET", "/tarn/v1/runs/pipeline:shop").value("state", ""), "SUCCEEDED");

  const access::Principal user = BecomeUser("eve");
  EXPECT_EQ(Call("POST", "/tarn/v1/pipelines", kPipeline).status, 404);
  EXPECT_EQ(Call("GET", "/tarn/v1/pipelines/shop").status, 404);
  EXPECT_EQ(CallJson("GET", "/tarn/v1/pipelines")["data"], json::array());
  EXPECT_EQ(CallJson("GET", "/tarn/v1/status")["tasks"], json::array());
  ASSERT_OK(Grant("", user, access::Role::kViewer));
  EXPECT_EQ(Call("GET", "/tarn/v1/pipelines/shop").status, 200);
  EXPECT_EQ(Call("DELETE", "/tarn/v1/pipelines/shop").status, 403);
  ASSERT_OK(Grant("", user, access::Role::kEditor));
  EXPECT_EQ(Call("DELETE", "/tarn/v1/pipelines/shop").status, 204);
  EXPECT_EQ(Call("GET", "/tarn/v1/pipelines/shop").status, 404);
}

// "action resource outcome" of what the log has beyond the first `skipped` records.
std::vector<std::string> AuditOf(metastore::Database& database, size_t skipped) {
  std::vector<std::string> events;
  EXPECT_OK(database.Read([&](metastore::SqlTransaction& sql) -> Status {
    events.clear();
    TARN_ASSIGN_OR_RETURN(const std::vector<access::AuditRecord> records,
                          access::ListAudit(sql, 0, 1000));
    for (size_t i = skipped; i < records.size(); ++i) {
      static constexpr const char* kOutcomes[] = {"done", "denied", "failed"};
      events.push_back(records[i].action + " " + records[i].resource + " " +
                       kOutcomes[static_cast<size_t>(records[i].outcome)]);
    }
    return Status::Ok();
  }));
  return events;
}

TEST_F(NativeRoutesTest, ChangesOfUsersAndTokensAreAudited) {
  const size_t before = AuditOf(*database_, 0).size();
  const json vera = CallJson("POST", "/tarn/v1/users", R"({"name": "vera"})");
  const json robot = CallJson("POST", "/tarn/v1/users", R"({"name": "robot", "kind": "service"})");
  const std::string robot_id = robot.value("id", "");
  EXPECT_EQ(Call("POST", "/tarn/v1/users/" + robot_id + ":renewSecret").status, 200);
  EXPECT_EQ(Call("POST", "/tarn/v1/users", R"({"name": "vera"})").status, 409);
  const json token = CallJson("POST", "/tarn/v1/tokens", R"({"user": "vera"})");
  const std::string token_id = token.value("id", "");
  token_ = token.value("token", "");
  EXPECT_EQ(Call("POST", "/tarn/v1/users", R"({"name": "eve"})").status, 403);
  EXPECT_EQ(Call("POST", "/tarn/v1/tokens", R"({"user": "admin"})").status, 403);
  EXPECT_EQ(Call("DELETE", "/tarn/v1/tokens/" + token_id).status, 204);
  EXPECT_THAT(AuditOf(*database_, before),
              ::testing::ElementsAre(
                  "user.create " + vera.value("id", "") + " done",
                  "user.create " + robot_id + " done", "user.renewSecret " + robot_id + " done",
                  "token.create " + token_id + " done", "user.create eve denied",
                  "token.create admin denied", "token.revoke " + token_id + " done"));
}

TEST_F(NativeRoutesTest, ChangesOfPipelinesAndTasksAreAudited) {
  ASSERT_OK(database_->Migrate(metastore::Migrations()));  // Tasks have leases.
  const size_t before = AuditOf(*database_, 0).size();
  ASSERT_EQ(Call("POST", "/tarn/v1/pipelines", kPipeline).status, 200);
  EXPECT_EQ(Call("POST", "/tarn/v1/pipelines:validate", kPipeline).status, 200);
  EXPECT_EQ(Call("POST", "/tarn/v1/pipelines", "pipeline: [x]").status, 400);
  EXPECT_EQ(Call("POST", "/tarn/v1/tasks/shop.events:stop", "{}").status, 200);
  EXPECT_EQ(Call("POST", "/tarn/v1/tasks/shop.none:stop", "{}").status, 404);
  EXPECT_EQ(Call("POST", "/tarn/v1/tasks/shop.things:recreate", "{}").status, 200);
  const std::string reload = "/tarn/v1/tasks/shop.things:reload";
  EXPECT_EQ(Call("POST", reload, R"({"type": "all"})").status, 400);
  EXPECT_EQ(Call("POST", reload, R"({"from": "x"})").status, 400);
  EXPECT_EQ(Call("POST", "/tarn/v1/tasks/shop.events:reload", "{}").status, 400);
  EXPECT_EQ(Call("POST", reload, "{}").status, 200);
  EXPECT_EQ(Call("POST", "/tarn/v1/landing:replayRejected", kPipeline).status, 200);
  EXPECT_EQ(Call("POST", "/tarn/v1/pipelines/shop:stop", "{}").status, 200);
  const access::Principal user = BecomeUser("eve");
  ASSERT_OK(Grant("", user, access::Role::kViewer));
  EXPECT_EQ(Call("DELETE", "/tarn/v1/pipelines/shop").status, 403);
  token_.clear();
  EXPECT_EQ(Call("DELETE", "/tarn/v1/pipelines/shop").status, 204);
  EXPECT_THAT(
      AuditOf(*database_, before),
      ::testing::ElementsAre("pipeline.apply shop done", "task.stop shop.events done",
                             "task.recreate shop.things done", "task.reload shop.things done",
                             "landing.replay shop done", "pipeline.stop shop done",
                             "pipeline.delete shop denied", "pipeline.delete shop done"));
}

TEST_F(NativeRoutesTest, DescriptionListsExactlyWhatIsServed) {
  token_ = "nonsense";
  const json description = CallJson("GET", "/tarn/v1/openapi.json");
  EXPECT_THAT(description.value("openapi", ""), StartsWith("3.1"));
  std::vector<std::string> described = {"GET /tarn/v1/openapi.json"};
  for (const auto& [path, operations] : description["paths"].items()) {
    for (const auto& [method, operation] : operations.items()) {
      std::string upper = method;
      std::ranges::transform(upper, upper.begin(), [](char c) { return std::toupper(c); });
      described.push_back(upper + " " + path);
      EXPECT_FALSE(operation.value("summary", "").empty()) << path;
    }
  }
  std::sort(described.begin(), described.end());
  EXPECT_EQ(described, router_.ListRoutes());
}

}  // namespace

}  // namespace tarn::server::native
