#include "tarn/access/audit.h"
#include "tarn/server/control_fixture.h"
#include "tarn/server/native/native_routes.h"

namespace tarn::server::native {

namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class TableMaintenanceTest : public ControlFixture {
 protected:
  void SetUp() override {
    ControlFixture::SetUp();
    ASSERT_OK(AddNativeRoutes(router_, {.query = deps(), .control = *control_}));
    ASSERT_OK_AND_ASSIGN(orders_, OpenTarget(MakeSpec("orders")));
    ASSERT_OK(Append(*orders_, {{.id = 1, .name = "a", .time_ms = 1000},
                                {.id = 2, .name = "b", .time_ms = 1000}}));
    ASSERT_OK(Apply(*orders_));
    ASSERT_OK(Append(
        *orders_,
        {{.operation = lakehouse::Operation::kUpdate, .id = 1, .name = "c", .time_ms = 2000}}));
    iceberg::TableDefinition definition;
    for (const char* name : {"id", "p"}) {
      iceberg::SchemaField field;
      field.id = static_cast<int32_t>(definition.schema.fields.size()) + 1;
      field.name = name;
      field.type = field.id == 1 ? iceberg::Type::Long() : iceberg::Type::String();
      definition.schema.fields.push_back(std::move(field));
    }
    definition.table_uuid = uuids_.NextV7().ToString();
    definition.location = storage::UriOf(*warehouse_, "tables/plain");
    ASSERT_OK_AND_ASSIGN(const iceberg::TableMetadata metadata,
                         iceberg::MakeTableMetadata(definition, ToMillis(clock_.Now())));
    Rid folder;
    ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(const tree::Node node,
                            tree_.EnsureFolder(sql, project_, "shop", admin_.user_id));
      folder = node.rid;
      return Status::Ok();
    }));
    ASSERT_OK(
        catalog_->CreateTable({.folder = folder, .name = "plain", .by = admin_.user_id}, metadata));
  }

  json Changed(const std::string& sql) {
    clock_.Advance(std::chrono::seconds(1));
    return CallJson("POST", "/tarn/v1/sql:change", json{{"query", sql}}.dump());
  }

  std::unique_ptr<lakehouse::TargetTable> orders_;
};

TEST_F(TableMaintenanceTest, ATraceIsEveryRowOfAKey) {
  for (const char* name : {"shop.orders", "shop_internal.orders_internal"}) {
    const json trace =
        CallJson("GET", std::string("/tarn/v1/tables/") + name + "/trace?key=1")["data"];
    ASSERT_EQ(trace.size(), 2U) << trace;
    EXPECT_EQ(trace[0]["store"], "Current");
    EXPECT_EQ(trace[0]["row"]["name"], "a");
    EXPECT_EQ(trace[1]["store"], "Changes");
    EXPECT_EQ(trace[1]["operation"], "U");
  }
  // A change that came late is behind what was applied before it, whatever its time.
  ASSERT_OK_AND_ASSIGN(
      const int64_t late,
      Append(*orders_,
             {{.operation = lakehouse::Operation::kUpdate, .id = 2, .name = "d", .time_ms = 500}}));
  const json trace = CallJson("GET", "/tarn/v1/tables/shop.orders/trace?key=2")["data"];
  ASSERT_EQ(trace.size(), 2U) << trace;
  EXPECT_EQ(trace[0]["store"], "Current");
  EXPECT_TRUE(trace[0]["change_identifier"].is_null());
  EXPECT_TRUE(trace[0]["snapshot_id"].is_number()) << trace;
  EXPECT_NE(trace[0]["snapshot_id"], late);
  EXPECT_EQ(trace[1]["row"]["name"], "d");
  EXPECT_EQ(trace[1]["snapshot_id"], late);
  EXPECT_EQ(Call("GET", "/tarn/v1/tables/shop.orders/trace").status, 400);
  EXPECT_EQ(Call("GET", "/tarn/v1/tables/shop.orders/trace?key=x").status, 400);
  EXPECT_EQ(Call("GET", "/tarn/v1/tables/shop.plain/trace?key=1").status, 400);
}

TEST_F(TableMaintenanceTest, APlainTableIsChangedAndCaredFor) {
  EXPECT_EQ(Changed("INSERT INTO shop.plain VALUES (1, 'a'), (2, 'b')")["changedRows"], 2);
  EXPECT_EQ(Changed("INSERT INTO plain VALUES (3, 'c')")["changedRows"], 1);
  const json deleted = Changed("DELETE FROM plain WHERE id = 2");
  EXPECT_EQ(deleted["changedRows"], 1);
  EXPECT_TRUE(deleted["snapshotId"].is_number());
  EXPECT_TRUE(Changed("DELETE FROM plain WHERE id = 2")["snapshotId"].is_null());
  const std::string target = "/tarn/v1/tables/shop.plain";
  EXPECT_TRUE(CallJson("GET", target + "/doctor")["data"].is_array());
  EXPECT_EQ(CallJson("POST", target + ":compact", R"({"dryRun": true})")["filesBefore"], 2);
  const json report = CallJson("POST", target + ":compact", "{}");
  EXPECT_EQ(report["filesAfter"], 1);
  EXPECT_EQ(report["deletedRows"], 1);
  clock_.Advance(std::chrono::hours(1));
  const json expired = CallJson("POST", target + ":expire", R"({"olderThan": "1m", "keep": 1})");
  EXPECT_EQ(expired["snapshots"].size(), 3U);
  EXPECT_EQ(expired["dataFiles"], 3);  // Two files and one of deletes.
  EXPECT_EQ(CallJson("POST", target + ":orphans", R"({"dryRun": true})")["found"], 0);
  EXPECT_EQ(CallJson("POST", "/tarn/v1/sql",
                     R"({"query": "SELECT count(*) AS n FROM shop.plain"})")[0]["n"],
            2);
}

TEST_F(TableMaintenanceTest, UpkeepAndItsDenialsAreAudited) {
  size_t known = 0;
  const auto added = [&] {
    std::vector<std::string> events;
    EXPECT_OK(database_->Read([&](metastore::SqlTransaction& sql) -> Status {
      events.clear();
      TARN_ASSIGN_OR_RETURN(const auto records, access::ListAudit(sql, 0, 1000));
      for (size_t i = known; i < records.size(); ++i) {
        events.push_back(records[i].action + " " + records[i].resource + " " +
                         std::to_string(static_cast<int>(records[i].outcome)));
      }
      known = records.size();
      return Status::Ok();
    }));
    return events;
  };
  Changed("INSERT INTO shop.plain VALUES (1, 'a')");
  Changed("INSERT INTO shop.plain VALUES (2, 'b')");
  clock_.Advance(std::chrono::hours(1));
  added();
  const std::string target = "/tarn/v1/tables/shop.plain";
  for (const char* verb : {":compact", ":expire", ":orphans"}) {
    EXPECT_EQ(Call("POST", target + verb, R"({"dryRun": true})").status, 200) << verb;
  }
  EXPECT_THAT(added(), ::testing::IsEmpty());
  EXPECT_EQ(CallJson("POST", target + ":compact", "{}")["groups"], 1);
  EXPECT_FALSE(CallJson("POST", target + ":expire", R"({"olderThan": "0", "keep": 1})")["snapshots"]
                   .empty());
  EXPECT_EQ(Call("POST", target + ":orphans", "{}").status, 200);
  EXPECT_THAT(added(), ::testing::ElementsAre("table.compact default.shop.plain 0",
                                              "table.expire default.shop.plain 0",
                                              "table.orphans default.shop.plain 0"));
  const access::Principal vera = MakeUser("vera");
  ASSERT_OK(Grant("shop", vera, access::Role::kViewer));
  ASSERT_OK_AND_ASSIGN(token_, MakeToken(vera.user_id));
  for (const char* verb : {":compact", ":expire", ":orphans"}) {
    EXPECT_EQ(Call("POST", target + verb, "{}").status, 403) << verb;
  }
  EXPECT_EQ(Call("POST", "/tarn/v1/sql:change", R"({"query": "DELETE FROM shop.plain"})").status,
            403);
  EXPECT_THAT(added(),
              ::testing::ElementsAre("table.compact shop.plain 1", "table.expire shop.plain 1",
                                     "table.orphans shop.plain 1", "table.commit shop.plain 1"));
}

TEST_F(TableMaintenanceTest, ATableIsMadeAndMergedInto) {
  const json made =
      Changed("CREATE TABLE shop.copy AS SELECT * FROM (VALUES (1, 'a')) AS v(id, p)");
  EXPECT_EQ(made["changedRows"], 1);
  EXPECT_TRUE(made["snapshotId"].is_number());
  EXPECT_EQ(Changed("MERGE INTO shop.copy AS t USING (VALUES (1, 'x'), (2, 'y')) AS s(id, p) ON "
                    "t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
                ["changedRows"],
            2);
  EXPECT_EQ(
      CallJson("POST", "/tarn/v1/sql",
               R"({"query": "SELECT string_agg(p, '') AS p FROM shop.copy WHERE id < 9"})")[0]["p"]
          .get<std::string>()
          .size(),
      2U);
  EXPECT_EQ(
      Call("POST", "/tarn/v1/sql:change", R"({"query": "CREATE TABLE shop.copy AS SELECT 1 AS x"})")
          .status,
      409);
}

TEST_F(TableMaintenanceTest, TablesOfPipelinesCareForThemselves) {
  const std::string target = "/tarn/v1/tables/shop_internal.orders_internal";
  EXPECT_TRUE(CallJson("GET", target + "/doctor")["data"].is_array());
  for (const char* verb : {":compact", ":expire"}) {
    const http::Response response = Call("POST", target + verb, "{}");
    EXPECT_EQ(response.status, 412) << response.body;
    EXPECT_THAT(response.body, HasSubstr("belongs to a pipeline"));
  }
  EXPECT_EQ(CallJson("POST", target + ":orphans", R"({"dryRun": true, "olderThan": "0"})")["found"],
            0);
  EXPECT_EQ(Call("POST", "/tarn/v1/sql:change",
                 R"({"query": "DELETE FROM shop_internal.orders_internal"})")
                .status,
            403);
}

TEST_F(TableMaintenanceTest, WrongBodiesAreRefused) {
  const std::string target = "/tarn/v1/tables/shop.plain";
  for (const auto& [verb, body] :
       {std::pair(":expire", R"({"keep": 0})"), std::pair(":expire", R"({"olderThan": 7})"),
        std::pair(":expire", R"({"olderThan": "soon"})"), std::pair(":expire", R"({"dry": true})"),
        std::pair(":expire", R"({"dryRun": 1})"), std::pair(":expire", "[]"),
        std::pair(":compact", R"({"keep": 1})"), std::pair(":orphans", R"({"keep": 1})"),
        std::pair(":orphans", R"({"olderThan": "1h"})")}) {
    EXPECT_EQ(Call("POST", target + verb, body).status, 400) << verb << body;
  }
  EXPECT_EQ(Call("POST", "/tarn/v1/sql:change", R"({"query": "SELECT 1"})").status, 400);
}

}  // namespace

}  // namespace tarn::server::native
