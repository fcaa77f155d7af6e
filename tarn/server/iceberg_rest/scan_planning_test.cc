// Scans that the server plans: pages, filters, rights.
#include <fmt/format.h>

#include "tarn/catalog/pointer_store.h"
#include "tarn/iceberg/snapshot_update.h"
#include "tarn/server/home_fixture.h"
#include "tarn/server/iceberg_rest/iceberg_routes.h"

namespace tarn::server::iceberg_rest {

namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kTable = "/iceberg/v1/namespaces/a/tables/t";

class ScanPlanningTest : public HomeFixture {
 protected:
  void SetUp() override {
    HomeFixture::SetUp();
    ASSERT_OK(AddIcebergRoutes(router_, {}, {*catalog_, authorizer_}));
    Call("POST", "/iceberg/v1/namespaces", R"({"namespace":["a"]})");
    const http::Response made =
        Call("POST", "/iceberg/v1/namespaces/a/tables",
             R"({"name":"t","schema":{"type":"struct","fields":[)"
             R"({"id":1,"name":"id","required":true,"type":"long"},)"
             R"({"id":2,"name":"kind","required":false,"type":"string"}]},)"
             R"("partition-spec":{"fields":[{"name":"kind","transform":"identity",)"
             R"("source-id":2,"field-id":1000}]}})");
    ASSERT_EQ(made.status, 200) << made.body;
    ASSERT_OK(database_->Read([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> folder,
                            tree::FindChild(sql, project_, "a"));
      TARN_ASSIGN_OR_RETURN(const auto object, catalog::FindObject(sql, folder->rid, "t"));
      table_ = *object;
      return Status::Ok();
    }));
  }

  /// Appends files "<kind>-<first>" …, each with ten ids from ten times its number.
  Result<int64_t> AppendFiles(const std::string& kind, int first, int count) {
    iceberg::SnapshotUpdate update;
    for (int i = first; i < first + count; ++i) {
      iceberg::DataFile file;
      file.file_path = fmt::format("{}/data/{}-{}.parquet", table_.location, kind, i);
      file.partition = {iceberg::Literal::String(kind)};
      file.record_count = 10;
      file.file_size_bytes = 1000;
      file.value_counts = {{1, 10}, {2, 10}};
      file.null_value_counts = {{1, 0}, {2, 0}};
      const auto bound = [](int64_t value) {
        return iceberg::EncodeLiteral(iceberg::Type::Long(), iceberg::Literal::Long(value)).value();
      };
      file.lower_bounds = {{1, bound(i * 10)}};
      file.upper_bounds = {{1, bound(i * 10 + 9)}};
      update.added_data_files.push_back(std::move(file));
    }
    return CommitFiles(std::move(update));
  }
  Result<int64_t> CommitFiles(iceberg::SnapshotUpdate update) {
    clock_.Advance(std::chrono::seconds(1));
    TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable base, catalog_->LoadTable(table_.rid));
    iceberg::SnapshotProducer producer(std::move(update),
                                       {*warehouse_, catalog_->manifest_cache()});
    TARN_ASSIGN_OR_RETURN(const iceberg::PreparedSnapshot prepared,
                          producer.Prepare(*base.metadata, ToMillis(clock_.Now())));
    TARN_RETURN_IF_ERROR(catalog_->CommitTables(
        {{.table = base.object, .requirements = {}, .updates = prepared.updates}}));
    return prepared.snapshot.snapshot_id;
  }
  json Plan(const json& request = json::object()) {
    return json::parse(Call("POST", std::string(kTable) + "/plan", request.dump()).body);
  }
  static std::vector<std::string> Names(const json& plan) {
    std::vector<std::string> names;
    EXPECT_TRUE(plan.contains("file-scan-tasks")) << plan;
    for (const json& task : plan.value("file-scan-tasks", json::array())) {
      const std::string path = task["data-file"]["file-path"];
      names.push_back(path.substr(path.rfind('/') + 1));
    }
    return names;
  }
  void ExpectError(const http::Response& response, int status, const std::string& type) {
    EXPECT_EQ(response.status, status) << response.body;
    EXPECT_EQ(json::parse(response.body)["error"]["type"], type) << response.body;
  }

  catalog::CatalogObject table_;
};

TEST_F(ScanPlanningTest, OnlyFilesThatMayMatchArePlanned) {
  EXPECT_EQ(Plan(), json::parse(R"({"status":"completed","file-scan-tasks":[]})"));
  ASSERT_OK(AppendFiles("x", 0, 3));
  ASSERT_OK(AppendFiles("y", 3, 2));
  const json all = Plan({{"select", {"id"}}, {"stats-fields", {"id"}}});
  EXPECT_EQ(all["status"], "completed");
  EXPECT_FALSE(all.contains("plan-tasks"));
  ASSERT_EQ(all["file-scan-tasks"].size(), 5u);
  EXPECT_EQ(all["file-scan-tasks"][0]["residual-filter"], true);
  json file = all["file-scan-tasks"][0]["data-file"];
  EXPECT_EQ(file["value-counts"], json::parse(R"({"keys":[1],"values":[10]})"));
  file =
      Plan({{"filter",
             {{"type", "eq"}, {"term", "id"}, {"value", 15}}}})["file-scan-tasks"][0]["data-file"];
  EXPECT_EQ(file, json({{"spec-id", 0},
                        {"content", "data"},
                        {"file-path", table_.location + "/data/x-1.parquet"},
                        {"file-format", "parquet"},
                        {"partition", {"x"}},
                        {"file-size-in-bytes", 1000},
                        {"record-count", 10}}));
  const json filter = {{"type", "and"},
                       {"left", {{"type", "eq"}, {"term", "kind"}, {"value", "y"}}},
                       {"right", {{"type", "gt"}, {"term", "ID"}, {"value", 39}}}};
  EXPECT_EQ(Names(Plan({{"filter", filter}, {"case-sensitive", false}})),
            std::vector<std::string>{"y-4.parquet"});
  ExpectError(Call("POST", std::string(kTable) + "/plan", json({{"filter", filter}}).dump()), 400,
              "BadRequestException");
  EXPECT_EQ(Names(Plan({{"filter", false}})), std::vector<std::string>());
}

TEST_F(ScanPlanningTest, SnapshotsAndWhatWasAppendedBetween) {
  ASSERT_OK_AND_ASSIGN(const int64_t first, AppendFiles("x", 0, 1));
  ASSERT_OK_AND_ASSIGN(const int64_t second, AppendFiles("x", 1, 2));
  ASSERT_OK_AND_ASSIGN(const int64_t third, AppendFiles("y", 3, 1));
  EXPECT_EQ(Names(Plan({{"snapshot-id", first}})), std::vector<std::string>{"x-0.parquet"});
  EXPECT_EQ(Names(Plan({{"snapshot-id", second}})).size(), 3u);
  EXPECT_EQ(Names(Plan({{"start-snapshot-id", first}, {"end-snapshot-id", third}})),
            (std::vector<std::string>{"x-1.parquet", "x-2.parquet", "y-3.parquet"}));
  EXPECT_EQ(Names(Plan({{"start-snapshot-id", first},
                        {"end-snapshot-id", third},
                        {"filter", {{"type", "eq"}, {"term", "kind"}, {"value", "y"}}}})),
            std::vector<std::string>{"y-3.parquet"});
  for (const json& wrong :
       {json({{"snapshot-id", 5}}), json({{"start-snapshot-id", first}}),
        json({{"start-snapshot-id", third}, {"end-snapshot-id", first}}),
        json({{"snapshot-id", first}, {"start-snapshot-id", first}, {"end-snapshot-id", third}}),
        json({{"stats-fields", {"nothing"}}}), json({{"filter", 7}}), json::array()}) {
    const http::Response refused = Call("POST", std::string(kTable) + "/plan", wrong.dump());
    ExpectError(refused, 400, "BadRequestException");
  }
}

TEST_F(ScanPlanningTest, LongPlansComeInPagesThatStayWhatTheyAre) {
  ASSERT_OK(AppendFiles("x", 0, 4500));
  const json filter = {{"type", "lt"}, {"term", "id"}, {"value", 44'000}};
  json page = Plan({{"filter", filter}});
  std::vector<std::string> names = Names(page);
  EXPECT_EQ(names.size(), 2000u);
  // A commit meanwhile changes nothing.
  ASSERT_OK(AppendFiles("y", 0, 1));
  while (page.contains("plan-tasks")) {
    ASSERT_EQ(page["plan-tasks"].size(), 1u);
    page = json::parse(Call("POST", std::string(kTable) + "/tasks",
                            json({{"plan-task", page["plan-tasks"][0]}}).dump())
                           .body);
    EXPECT_FALSE(page.contains("status"));
    const std::vector<std::string> more = Names(page);
    names.insert(names.end(), more.begin(), more.end());
  }
  EXPECT_EQ(names.size(), 4400u);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 4400u);
  for (const char* task : {"", "!", "e30=", "eyJzbmFwc2hvdCI6NX0="}) {
    ExpectError(Call("POST", std::string(kTable) + "/tasks", json({{"plan-task", task}}).dump()),
                404, "NoSuchPlanTaskException");
  }
}

TEST_F(ScanPlanningTest, DeletesAreNamedByTheirPlaces) {
  ASSERT_OK(AppendFiles("x", 0, 2));
  ASSERT_OK(AppendFiles("y", 2, 1));
  iceberg::DataFile deletes;
  deletes.content = iceberg::DataFileContent::kPositionDeletes;
  deletes.file_path = table_.location + "/data/deletes.parquet";
  deletes.partition = {iceberg::Literal::String("x")};
  deletes.record_count = 3;
  deletes.file_size_bytes = 100;
  iceberg::SnapshotUpdate update;
  update.operation = iceberg::SnapshotOperation::kDelete;
  update.added_delete_files = {deletes};
  ASSERT_OK(CommitFiles(std::move(update)));
  const json plan = Plan();
  EXPECT_EQ(plan["delete-files"], json({{{"spec-id", 0},
                                         {"content", "position-deletes"},
                                         {"file-path", deletes.file_path},
                                         {"file-format", "parquet"},
                                         {"partition", {"x"}},
                                         {"file-size-in-bytes", 100},
                                         {"record-count", 3}}}));
  std::map<std::string, json> references;
  for (const json& task : plan["file-scan-tasks"]) {
    references[task["data-file"]["file-path"]] = task.value("delete-file-references", json());
  }
  const std::string folder = table_.location + "/data/";
  EXPECT_EQ(references, (std::map<std::string, json>{{folder + "x-0.parquet", {0}},
                                                     {folder + "x-1.parquet", {0}},
                                                     {folder + "y-2.parquet", json()}}));
}

TEST_F(ScanPlanningTest, ReadersMayPlanAndStrangersMayNot) {
  const access::Principal user = MakeUser("ann");
  token_ = MakeToken(user.user_id, access::ScopeSet::Of({access::Scope::kIcebergRead})).value();
  ExpectError(Call("POST", std::string(kTable) + "/plan", "{}"), 404, "NoSuchTableException");
  ExpectError(Call("POST", std::string(kTable) + "/tasks", "{}"), 404, "NoSuchTableException");
  ASSERT_OK(Grant("a", user, access::Role::kViewer));
  EXPECT_EQ(Call("POST", std::string(kTable) + "/plan", "{}").status, 200);
}

}  // namespace

}  // namespace tarn::server::iceberg_rest
