#include "tarn/server/foundry/foundry_fixture.h"

namespace tarn::server::foundry {
namespace {

class ResourcesTest : public FoundryFixture {
 protected:
  [[nodiscard]] std::string Resource(const std::string& rest = "") const {
    return "/filesystem/resources/" + rid_ + rest;
  }
  std::string Folder(const std::string& parent, const std::string& name) {
    return Post("/filesystem/folders", {{"parentFolderRid", parent}, {"displayName", name}})
        .document()
        .value("rid", "");
  }
};

TEST_F(ResourcesTest, APlaceHasTheMembersThatClientsNeed) {
  const json resource = Get(Resource()).document();
  for (const char* member :
       {"rid", "displayName", "path", "type", "createdBy", "updatedBy", "createdTime",
        "updatedTime", "trashStatus", "parentFolderRid", "projectRid", "spaceRid"}) {
    EXPECT_TRUE(resource.contains(member)) << member << " " << resource;
  }
  EXPECT_FALSE(resource.contains("description"));
  EXPECT_EQ(resource["createdBy"], admin_.user_id);
  EXPECT_EQ(resource["path"], "/Default/default/d");
}

TEST_F(ResourcesTest, PermanentDeletionTakesTheDatasetsAway) {
  const std::string folder = Folder(project_.ToString(), "f");
  const std::string inside =
      Post("/datasets", {{"parentFolderRid", folder}, {"name", "x"}}).document().value("rid", "");
  EXPECT_EQ(Call("DELETE", "/filesystem/resources/" + folder).status, 204);
  EXPECT_EQ(Get("/datasets/" + inside).status, 200) << "the trash hides, it does not remove";
  EXPECT_EQ(Post("/filesystem/resources/" + folder + "/permanentlyDelete", nullptr).status, 204);
  EXPECT_EQ(Get("/datasets/" + inside).outcome(), "404 DatasetNotFound");
  EXPECT_EQ(Get("/datasets/" + inside + "/files").outcome(), "404 DatasetNotFound");
}

TEST_F(ResourcesTest, EachChangeAndEachRefusalIsAudited) {
  ActAs(access::Role::kViewer);
  EXPECT_EQ(Call("DELETE", Resource()).outcome(), "403 DeleteResourcePermissionDenied");
  const std::string viewer = caller_.user_id;
  ActAsAdmin();
  EXPECT_EQ(Call("DELETE", Resource()).status, 204);
  std::vector<access::AuditRecord> records;
  ASSERT_OK(database_->Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(records, access::ListAudit(sql, 0, 100));
    return Status::Ok();
  }));
  ASSERT_GE(records.size(), 2U);
  const access::AuditRecord& denied = records[records.size() - 2];
  EXPECT_EQ(denied.outcome, access::AuditOutcome::kDenied);
  EXPECT_EQ(denied.user_id, viewer);
  EXPECT_EQ(denied.resource, rid_);
  EXPECT_EQ(records.back().outcome, access::AuditOutcome::kDone);
  EXPECT_EQ(records.back().action, "resource.trash");
}

TEST_F(ResourcesTest, AFailedGrantChangesNothing) {
  ActAs(access::Role::kNone);
  const std::string user = caller_.user_id;
  ActAsAdmin();
  const auto role = [](const std::string& principal) {
    return json{
        {"roleId", "compass:view"},
        {"resourceRolePrincipal", {{"type", "principalIdOnly"}, {"principalId", principal}}}};
  };
  EXPECT_EQ(Post(Resource("/roles/add"), {{"roles", json::array({role(user), role("nobody")})}})
                .outcome(),
            "404 PrincipalNotFound");
  EXPECT_EQ(Get(Resource("/roles")).document()["data"], json::array());
  EXPECT_EQ(Post(Resource("/roles/add"), {{"roles", json::array({role(user)})}}).status, 204);
  EXPECT_EQ(Get(Resource("/roles")).document()["data"].size(), 1U);
  for (const json& wrong : {json::object(), json{{"roles", 1}}, json{{"roles", {1}}},
                            json{{"roles", json::array({{{"roleId", "compass:view"}}})}}}) {
    EXPECT_EQ(Post(Resource("/roles/add"), wrong).status, 400) << wrong;
  }
}

TEST_F(ResourcesTest, TokensOfAnotherListAreRefused) {
  for (int i = 0; i < 3; ++i) {
    Post(Resource("/addMarkings"), {{"markingIds", {"m" + std::to_string(i)}}});
  }
  const json page = Get(Resource("/markings?pageSize=2")).document();
  EXPECT_EQ(page["data"], json({"m0", "m1"}));
  const std::string token = page.value("nextPageToken", "");
  EXPECT_EQ(Get(Resource("/markings?pageToken=") + EncodeUrl(token)).document()["data"],
            json({"m2"}));
  EXPECT_EQ(Get(Resource("/markings?pageToken=nonsense")).outcome(), "400 InvalidPageToken");
  EXPECT_EQ(Get(Resource("/markings?pageSize=0")).outcome(), "400 InvalidPageSize");
}

}  // namespace
}  // namespace tarn::server::foundry
