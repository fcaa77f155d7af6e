#include "tarn/server/foundry/foundry_fixture.h"

namespace tarn::server::foundry {
namespace {

class DatasetsTest : public FoundryFixture {};

TEST_F(DatasetsTest, CreatedOnesAreRead) {
  const Answer answer =
      Post("/datasets", {{"parentFolderRid", project_.ToString()}, {"name", "größe 😀"}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json created = answer.document();
  EXPECT_EQ(created["name"], "größe 😀");
  EXPECT_EQ(created["parentFolderRid"], project_.ToString());
  EXPECT_EQ(created.size(), 3U);
  EXPECT_EQ(Get("/datasets/" + created["rid"].get<std::string>()).document(), created);
  EXPECT_EQ(Get("/datasets/" + created["rid"].get<std::string>() + "/branches").document(),
            json::parse(R"({"data":[{"name":"master"}]})"));
}

TEST_F(DatasetsTest, FailuresOfCreation) {
  const auto create = [&](const json& body) { return Post("/datasets", body).outcome(); };
  const std::string folder = project_.ToString();
  EXPECT_EQ(create({{"parentFolderRid", folder}, {"name", "d"}}), "409 ResourceNameAlreadyExists");
  const json parameters =
      Post("/datasets", {{"parentFolderRid", folder}, {"name", "d"}}).parameters();
  EXPECT_EQ(parameters["parentFolderRid"], folder);
  EXPECT_EQ(parameters["displayName"], "d");
  EXPECT_EQ(parameters["resourceName"], "d");
  EXPECT_EQ(create({{"parentFolderRid", folder}, {"name", ""}}), "400 InvalidDisplayName");
  EXPECT_EQ(create({{"parentFolderRid", folder}, {"name", "a/b"}}), "400 InvalidDisplayName");
  EXPECT_EQ(create({{"parentFolderRid", "ri.compass.main.folder.none"}, {"name", "x"}}),
            "404 FolderNotFound");
  EXPECT_EQ(create({{"parentFolderRid", "nonsense"}, {"name", "x"}}), "404 FolderNotFound");
  EXPECT_EQ(create({{"name", "x"}}), "400 InvalidBody");
  EXPECT_EQ(create({{"parentFolderRid", folder}, {"name", 7}}), "400 InvalidBody");
  EXPECT_EQ(create(json::array()), "400 InvalidBody");
  EXPECT_EQ(Call("POST", "/datasets", "{").outcome(), "400 MalformedJson");
  EXPECT_EQ(Call("POST", "/datasets", "").outcome(), "400 MissingPostBody");
}

TEST_F(DatasetsTest, UnknownOnesAndTrailingSlashes) {
  EXPECT_EQ(Get("/datasets/ri.foundry.main.dataset.00000000-0000-0000-0000-000000000000").outcome(),
            "404 DatasetNotFound");
  EXPECT_EQ(Get("/datasets/views").outcome(), "404 DatasetNotFound");
  EXPECT_EQ(Get(Dataset("/")).outcome(), "404 RouteNotFound");
  EXPECT_EQ(Call("DELETE", Dataset("/")).outcome(), "404 RouteNotFound");
}

TEST_F(DatasetsTest, HiddenFromStrangersVisibleToDiscoverers) {
  ActAs(access::Role::kNone);
  EXPECT_EQ(Get(Dataset()).outcome(), "404 DatasetNotFound");
  EXPECT_EQ(Post("/datasets", {{"parentFolderRid", project_.ToString()}, {"name", "x"}}).outcome(),
            "404 FolderNotFound");
  ActAs(access::Role::kDiscoverer);
  EXPECT_EQ(Get(Dataset()).status, 200);
  EXPECT_EQ(Get(Dataset("/branches")).status, 403);
  ActAs(access::Role::kViewer);
  EXPECT_EQ(Get(Dataset("/branches")).status, 200);
  const Answer denied =
      Post("/datasets", {{"parentFolderRid", project_.ToString()}, {"name", "x"}});
  EXPECT_EQ(denied.outcome(), "403 CreateDatasetPermissionDenied");
  EXPECT_EQ(denied.parameters()["name"], "x");
  ActAs(access::Role::kEditor);
  EXPECT_EQ(Post("/datasets", {{"parentFolderRid", project_.ToString()}, {"name", "x"}}).status,
            200);
}

TEST_F(DatasetsTest, PreviewRoutesWantPreview) {
  EXPECT_EQ(Get(Dataset("/transactions")).outcome(), "400 ApiFeaturePreviewUsageOnly");
  EXPECT_EQ(Get(Dataset("/transactions?preview=false")).outcome(),
            "400 ApiFeaturePreviewUsageOnly");
  EXPECT_EQ(Get(Dataset("/transactions?preview=true")).document()["data"], json::array());
  EXPECT_EQ(Get(Dataset("?preview=true")).status, 200);
}

TEST_F(DatasetsTest, BuildsAndChecksAreEmpty) {
  const json none = {{"data", json::array()}};
  EXPECT_EQ(Get(Dataset("/getSchedules")).document(), none);
  EXPECT_EQ(Get(Dataset("/getHealthChecks?preview=true")).document(), none);
  EXPECT_EQ(Get(Dataset("/getHealthCheckReports?preview=true")).document()["data"], json::object());
  EXPECT_EQ(Post(Dataset("/jobs?preview=true"), {{"orderBy", json::array()}}).document(), none);
  EXPECT_EQ(Get(Dataset("/getSchedules?branchName=none")).outcome(), "404 BranchNotFound");
}

TEST_F(DatasetsTest, DenialsAndChangesAreAudited) {
  ActAs(access::Role::kViewer);
  EXPECT_EQ(Post(Dataset("/branches"), {{"name", "b"}}).status, 403);
  ActAsAdmin();
  EXPECT_EQ(Post(Dataset("/branches"), {{"name", "b"}}).status, 200);
  std::vector<access::AuditRecord> records;
  ASSERT_OK(database_->Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(records, access::ListAudit(sql, 0, 100));
    return Status::Ok();
  }));
  std::vector<std::pair<std::string, access::AuditOutcome>> of_branch;
  for (const access::AuditRecord& record : records) {
    if (record.action == "branch.create") {
      of_branch.emplace_back(record.resource, record.outcome);
    }
  }
  EXPECT_EQ(of_branch,
            (std::vector<std::pair<std::string, access::AuditOutcome>>{
                {rid_, access::AuditOutcome::kDenied}, {rid_, access::AuditOutcome::kDone}}));
}

}  // namespace
}  // namespace tarn::server::foundry
