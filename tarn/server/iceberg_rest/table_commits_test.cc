// What clients change through the catalog: statuses, types and words of the protocol.
#include <algorithm>

#include <fmt/format.h>

#include "tarn/access/directory.h"
#include "tarn/base/hash.h"
#include "tarn/server/home_fixture.h"
#include "tarn/server/iceberg_rest/iceberg_routes.h"

namespace tarn::server::iceberg_rest {

namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kBase = "/iceberg/v1";
constexpr const char* kColumns =
    R"({"type":"struct","schema-id":7,"fields":[)"
    R"({"id":3,"name":"id","required":true,"type":"long"},)"
    R"({"id":4,"name":"s","required":false,"type":{"type":"struct","fields":[)"
    R"({"id":5,"name":"x","required":false,"type":"string"}]}},)"
    R"({"id":9,"name":"at","required":false,"type":"timestamptz"}]})";

class TableCommitsTest : public HomeFixture {
 protected:
  void SetUp() override {
    HomeFixture::SetUp();
    ASSERT_OK(AddIcebergRoutes(router_, {}, {*catalog_, authorizer_}));
    ASSERT_EQ(Post("/namespaces", R"({"namespace":["a"]})").status, 200);
  }

  http::Response Post(const std::string& target, const std::string& body) {
    return Call("POST", kBase + target, body);
  }
  json Load(const std::string& table) {
    return CallJson("GET", fmt::format("{}/namespaces/a/tables/{}", kBase, table));
  }
  json Create(const std::string& name, const std::string& more = "") {
    const http::Response made =
        Post("/namespaces/a/tables",
             fmt::format(R"({{"name":"{}","schema":{}{}}})", name, kColumns, more));
    EXPECT_EQ(made.status, 200) << made.body;
    return json::parse(made.body, nullptr, false);
  }
  http::Response Commit(const std::string& table, const json& requirements, const json& updates) {
    return Post("/namespaces/a/tables/" + table,
                json({{"requirements", requirements}, {"updates", updates}}).dump());
  }
  static json Snapshot(const json& table, int64_t id, int64_t sequence) {
    const std::string location = table["metadata"]["location"];
    return {{"snapshot-id", id},
            {"sequence-number", sequence},
            {"timestamp-ms", 1'800'000'000'000 + sequence},
            {"manifest-list", fmt::format("{}/metadata/snap-{}.avro", location, id)},
            {"summary", {{"operation", "append"}}}};
  }
  static json AppendUpdates(const json& snapshot) {
    return {{{"action", "add-snapshot"}, {"snapshot", snapshot}},
            {{"action", "set-snapshot-ref"},
             {"ref-name", "main"},
             {"type", "branch"},
             {"snapshot-id", snapshot["snapshot-id"]}}};
  }
  void ExpectError(const http::Response& response, int status, const std::string& type,
                   const std::string& message) {
    EXPECT_EQ(response.status, status) << response.body;
    const json body = json::parse(response.body, nullptr, false);
    ASSERT_TRUE(body.is_object() && body.contains("error")) << response.body;
    EXPECT_EQ(body["error"]["type"], type) << response.body;
    EXPECT_EQ(body["error"]["code"], status);
    EXPECT_THAT(body["error"]["message"].get<std::string>(), HasSubstr(message));
  }
  /// Calls as a new user with this role on the folder `a`.
  void Become(access::Role role) {
    const access::Principal user = MakeUser("user " + std::to_string(++users_));
    ASSERT_OK(Grant("a", user, role));
    ASSERT_OK_AND_ASSIGN(token_, MakeToken(user.user_id));
  }
  int users_ = 0;
};

TEST_F(TableCommitsTest, NamespacesAreMadeNestedChangedAndDropped) {
  const http::Response nested =
      Post("/namespaces", R"({"namespace":["a","b c"],"properties":{"owner":"me"}})");
  EXPECT_EQ(json::parse(nested.body),
            json::parse(R"({"namespace":["a","b c"],"properties":{"owner":"me"}})"));
  const std::string target = std::string(kBase) + "/namespaces/a%1Fb+c";
  EXPECT_EQ(CallJson("GET", target)["properties"]["owner"], "me");
  EXPECT_EQ(CallJson("GET", std::string(kBase) + "/namespaces?parent=a")["namespaces"],
            json::parse(R"([["a","b c"]])"));
  ExpectError(Post("/namespaces", R"({"namespace":["A"]})"), 409, "AlreadyExistsException",
              "Namespace already exists");
  ExpectError(Post("/namespaces", R"({"namespace":["x","y"]})"), 404, "NoSuchNamespaceException",
              "Namespace does not exist: x");
  ExpectError(Post("/namespaces", R"({"namespace":[]})"), 400, "BadRequestException", "empty");
  const http::Response changed =
      Call("POST", target + "/properties", R"({"removals":["owner","z"],"updates":{"k":"v"}})");
  EXPECT_EQ(json::parse(changed.body),
            json::parse(R"({"updated":["k"],"removed":["owner"],"missing":["z"]})"));
  ExpectError(Call("POST", target + "/properties", R"({"removals":["k"],"updates":{"k":"v"}})"),
              422, "UnprocessableEntityException", "Cannot remove and update the same key: k");
  ExpectError(Call("DELETE", std::string(kBase) + "/namespaces/a"), 409,
              "NamespaceNotEmptyException", "is not empty");
  EXPECT_EQ(Call("DELETE", target).status, 204);
  EXPECT_EQ(Call("DELETE", target).status, 404);
  EXPECT_EQ(Call("DELETE", std::string(kBase) + "/namespaces/a").status, 204);
}

// As Java clients send CREATE OR REPLACE TABLE … AS.
TEST_F(TableCommitsTest, ReplacingATableKeepsItsHistory) {
  const json made = Create("t");
  const std::string uuid = made["metadata"]["table-uuid"];
  const json first = Snapshot(made, 11, 1);
  ASSERT_EQ(Commit("t", json::array(), AppendUpdates(first)).status, 200);
  const std::string moved = made["metadata"]["location"].get<std::string>() + "-moved";
  json second = Snapshot(made, 12, 2);
  second["manifest-list"] = moved + "/metadata/snap-12.avro";
  const json schema = {{"type", "struct"},
                       {"schema-id", 1},
                       {"fields",
                        {{{"id", 1}, {"name", "id"}, {"required", true}, {"type", "long"}},
                         {{"id", 6}, {"name", "only"}, {"required", false}, {"type", "string"}}}}};
  json updates = {
      {{"action", "remove-snapshot-ref"}, {"ref-name", "main"}},
      {{"action", "add-schema"}, {"schema", schema}, {"last-column-id", 6}},
      {{"action", "set-current-schema"}, {"schema-id", -1}},
      {{"action", "add-spec"},
       {"spec",
        {{"spec-id", 1},
         {"fields",
          {{{"name", "only"}, {"transform", "identity"}, {"source-id", 6}, {"field-id", 1000}}}}}}},
      {{"action", "set-default-spec"}, {"spec-id", -1}},
      {{"action", "add-sort-order"},
       {"sort-order",
        {{"order-id", 1},
         {"fields",
          {{{"transform", "identity"},
            {"source-id", 1},
            {"direction", "asc"},
            {"null-order", "nulls-first"}}}}}}},
      {{"action", "set-default-sort-order"}, {"sort-order-id", -1}},
      {{"action", "set-location"}, {"location", moved}},
      {{"action", "set-properties"}, {"updates", {{"made", "again"}}}}};
  for (const json& update : AppendUpdates(second)) {
    updates.push_back(update);
  }
  const json requirements = {
      {{"type", "assert-table-uuid"}, {"uuid", uuid}},
      {{"type", "assert-last-assigned-field-id"},
       {"last-assigned-field-id", made["metadata"]["last-column-id"]}},
      {{"type", "assert-last-assigned-partition-id"}, {"last-assigned-partition-id", 999}}};
  const http::Response replaced = Commit("t", requirements, updates);
  ASSERT_EQ(replaced.status, 200) << replaced.body;
  const json after = Load("t")["metadata"];
  EXPECT_EQ(after, json::parse(replaced.body)["metadata"]);
  EXPECT_EQ(after["table-uuid"], uuid);
  EXPECT_EQ(after["location"], moved);
  EXPECT_EQ(after["properties"]["made"], "again");
  EXPECT_EQ(after["current-snapshot-id"], 12);
  EXPECT_EQ(after["snapshots"].size(), 2u);
  EXPECT_EQ(after["snapshots"][0]["manifest-list"], first["manifest-list"]);
  EXPECT_EQ(after["schemas"].size(), 2u);
  EXPECT_EQ(after["partition-specs"].size(), 2u);
  EXPECT_EQ(after["sort-orders"].size(), 2u);
  ASSERT_EQ(after["snapshot-log"].size(), 2u);
  EXPECT_EQ(after["snapshot-log"][0]["snapshot-id"], 11);
  EXPECT_EQ(after["snapshot-log"][1]["snapshot-id"], 12);
  // Whoever planned on what was there before finds it changed.
  ExpectError(
      Commit("t", requirements, {{{"action", "set-properties"}, {"updates", {{"a", "b"}}}}}), 409,
      "CommitFailedException", "last assigned field id changed");
  // Its new place is its own, its former one free.
  ExpectError(Post("/namespaces/a/tables",
                   fmt::format(R"({{"name":"u","schema":{},"location":"{}"}})", kColumns, moved)),
              403, "ForbiddenException", "overlaps");
}

TEST_F(TableCommitsTest, ATableIsMadeWithFreshIds) {
  const json made = Create(
      "t",
      R"(,"partition-spec":{"spec-id":0,"type":"struct","fields":[{"source-id":9,"field-id":1000,)"
      R"("name":"d","transform":"day"}]},"write-order":{"order-id":1,"fields":[{"source-id":3,)"
      R"("transform":"identity","direction":"asc","null-order":"nulls-first"}]},)"
      R"("properties":{"k":"v","format-version":"2"},"location":null,"stage-create":false)");
  const json& metadata = made["metadata"];
  EXPECT_EQ(metadata["schemas"][0]["fields"][0]["id"], 1);
  EXPECT_EQ(metadata["schemas"][0]["fields"][1]["type"]["fields"][0]["id"], 4);
  EXPECT_EQ(metadata["partition-specs"][0]["fields"][0]["source-id"], 3);
  EXPECT_EQ(metadata["sort-orders"][0]["fields"][0]["source-id"], 1);
  EXPECT_EQ(metadata["properties"], json::parse(R"({"k":"v"})"));
  EXPECT_EQ(Load("t"), made);
  ExpectError(Post("/namespaces/a/tables", fmt::format(R"({{"name":"T","schema":{}}})", kColumns)),
              409, "AlreadyExistsException", "Table already exists: a.T");
  ExpectError(
      Post("/namespaces/none/tables", fmt::format(R"({{"name":"t","schema":{}}})", kColumns)), 404,
      "NoSuchNamespaceException", "Namespace does not exist: none");
  ExpectError(Post("/namespaces/a/tables", R"({"name":"u"})"), 400, "BadRequestException",
              "'schema' is missing");
  ExpectError(Post("/namespaces/a/tables", R"({"name":)"), 400, "BadRequestException", "JSON");
}

TEST_F(TableCommitsTest, AStagedTableIsNotThereUntilItsCommit) {
  const json staged = Create("t", R"(,"stage-create":true)");
  EXPECT_FALSE(staged.contains("metadata-location"));
  EXPECT_EQ(Call("GET", std::string(kBase) + "/namespaces/a/tables/t").status, 404);
  const json& metadata = staged["metadata"];
  const json updates = {{{"action", "assign-uuid"}, {"uuid", metadata["table-uuid"]}},
                        {{"action", "upgrade-format-version"}, {"format-version", 2}},
                        {{"action", "add-schema"}, {"schema", metadata["schemas"][0]}},
                        {{"action", "set-current-schema"}, {"schema-id", -1}},
                        {{"action", "add-spec"}, {"spec", metadata["partition-specs"][0]}},
                        {{"action", "set-default-spec"}, {"spec-id", -1}},
                        {{"action", "add-sort-order"}, {"sort-order", metadata["sort-orders"][0]}},
                        {{"action", "set-default-sort-order"}, {"sort-order-id", -1}},
                        {{"action", "set-location"}, {"location", metadata["location"]}},
                        {{"action", "set-properties"}, {"updates", {{"k", "v"}}}}};
  const json create = json::array({{{"type", "assert-create"}}});
  ExpectError(Commit("t", json::array(), updates), 404, "NoSuchTableException",
              "Table does not exist: a.t");
  EXPECT_EQ(Commit("t", create, updates).status, 200);
  EXPECT_EQ(Load("t")["metadata"]["table-uuid"], metadata["table-uuid"]);
  ExpectError(Commit("t", create, updates), 409, "CommitFailedException",
              "Requirement failed: table already exists");
}

TEST_F(TableCommitsTest, CommitsCheckTheirRequirementsAndAreSafeToRepeat) {
  const json table = Create("t");
  const json free = json::array(
      {{{"type", "assert-ref-snapshot-id"}, {"ref", "main"}, {"snapshot-id", nullptr}}});
  const http::Response first = Commit("t", free, AppendUpdates(Snapshot(table, 11, 1)));
  ASSERT_EQ(first.status, 200) << first.body;
  EXPECT_TRUE(first.headers.Find("ETag").has_value());
  EXPECT_EQ(json::parse(first.body)["metadata"]["current-snapshot-id"], 11);
  const http::Response again = Commit("t", free, AppendUpdates(Snapshot(table, 11, 1)));
  EXPECT_EQ(again.status, 200) << "the answer was lost, the commit is there";
  EXPECT_EQ(again.body, first.body);
  ExpectError(Commit("t", free, AppendUpdates(Snapshot(table, 12, 2))), 409,
              "CommitFailedException", "Requirement failed: branch main was created concurrently");
  ExpectError(Commit("t", json::array(), json::array({{{"action", "explode"}}})), 400,
              "BadRequestException", "explode");
  ExpectError(Commit("t", json::array({{{"type", "assert-moon"}}}), json::array()), 400,
              "BadRequestException", "assert-moon");
  EXPECT_EQ(Load("t")["metadata"]["snapshots"].size(), 1U);
}

TEST_F(TableCommitsTest, FilesOfOthersCannotBeClaimed) {
  const json mine = Create("mine");
  const json theirs = Create("theirs");
  const auto refused = [&](const json& update) {
    const http::Response response = Commit("mine", json::array(), json::array({update}));
    return response.status;
  };
  json snapshot = Snapshot(theirs, 5, 1);
  EXPECT_EQ(refused({{"action", "add-snapshot"}, {"snapshot", snapshot}}), 403);
  snapshot["manifest-list"] = "file:///etc/passwd";
  EXPECT_EQ(refused({{"action", "add-snapshot"}, {"snapshot", snapshot}}), 400);
  EXPECT_EQ(refused({{"action", "set-location"}, {"location", theirs["metadata"]["location"]}}),
            403);
  EXPECT_EQ(refused({{"action", "set-properties"},
                     {"updates", {{"write.metadata.path", theirs["metadata"]["location"]}}}}),
            403);
  for (const char* more : {"", R"(,"stage-create":true)"}) {
    const http::Response response = Post(
        "/namespaces/a/tables", fmt::format(R"({{"name":"x","schema":{},"location":{}{}}})",
                                            kColumns, theirs["metadata"]["location"].dump(), more));
    ExpectError(response, 403, "ForbiddenException", "overlaps");
  }
  ExpectError(
      Post("/namespaces/a/register",
           json({{"name", "x"}, {"metadata-location", theirs["metadata-location"]}}).dump()),
      403, "ForbiddenException", "overlaps");
}

TEST_F(TableCommitsTest, ACommitOfNothingIsRefused) {
  ExpectError(Post("/transactions/commit", R"({"table-changes":[]})"), 400, "BadRequestException",
              "empty");
}

TEST_F(TableCommitsTest, SeveralTablesChangeTogetherOrNotAtAll) {
  const json a = Create("one");
  const json b = Create("two");
  const auto change = [](const std::string& name, const std::string& uuid) {
    return json({{"identifier", {{"namespace", {"a"}}, {"name", name}}},
                 {"requirements", {{{"type", "assert-table-uuid"}, {"uuid", uuid}}}},
                 {"updates", {{{"action", "set-properties"}, {"updates", {{"k", "v"}}}}}}});
  };
  const std::string uuid_a = a["metadata"]["table-uuid"];
  const std::string uuid_b = b["metadata"]["table-uuid"];
  const auto commit = [&](const json& changes) {
    return Post("/transactions/commit", json({{"table-changes", changes}}).dump());
  };
  ExpectError(commit({change("one", uuid_a), change("two", uuid_a)}), 409, "CommitFailedException",
              "UUID does not match");
  EXPECT_EQ(Load("one")["metadata"]["properties"], json::object());
  ExpectError(commit({change("one", uuid_a), change("none", uuid_b)}), 404, "NoSuchTableException",
              "a.none");
  ExpectError(commit({change("one", uuid_a), change("one", uuid_a)}), 400, "BadRequestException",
              "twice");
  EXPECT_EQ(commit({change("one", uuid_a), change("two", uuid_b)}).status, 204);
  EXPECT_EQ(Load("one")["metadata"]["properties"]["k"], "v");
  EXPECT_EQ(Load("two")["metadata"]["properties"]["k"], "v");
}

TEST_F(TableCommitsTest, TablesAreRenamedDroppedRegisteredAndPurged) {
  const json table = Create("t");
  Create("u");
  ASSERT_EQ(Post("/namespaces", R"({"namespace":["b"]})").status, 200);
  const auto rename = [&](const std::string& from, const std::string& folder,
                          const std::string& to) {
    return Post("/tables/rename", json({{"source", {{"namespace", {"a"}}, {"name", from}}},
                                        {"destination", {{"namespace", {folder}}, {"name", to}}}})
                                      .dump());
  };
  ExpectError(rename("t", "a", "u"), 409, "AlreadyExistsException",
              "Cannot rename a.t to a.u. Table already exists");
  ExpectError(rename("none", "a", "x"), 404, "NoSuchTableException", "a.none");
  ExpectError(rename("t", "none", "x"), 404, "NoSuchNamespaceException", "none");
  EXPECT_EQ(rename("t", "a", "T").status, 204) << "another case of its own name";
  EXPECT_EQ(rename("T", "b", "moved").status, 204);
  const std::string moved = std::string(kBase) + "/namespaces/b/tables/moved";
  EXPECT_EQ(CallJson("GET", moved)["metadata-location"], table["metadata-location"]);
  EXPECT_EQ(Call("POST", moved + "/metrics", R"({"report-type":"scan-report"})").status, 204);
  EXPECT_EQ(Call("DELETE", moved).status, 204);
  EXPECT_EQ(Call("DELETE", moved).status, 404);
  const std::string registration =
      json({{"name", "again"}, {"metadata-location", table["metadata-location"]}}).dump();
  const http::Response again = Post("/namespaces/b/register", registration);
  ASSERT_EQ(again.status, 200) << again.body;
  EXPECT_EQ(json::parse(again.body)["metadata"], table["metadata"]);
  EXPECT_EQ(
      Call("DELETE", std::string(kBase) + "/namespaces/b/tables/again?purgeRequested=True").status,
      204);
  ExpectError(Post("/namespaces/b/register", registration), 404, "NotFoundException",
              "Failed to open input stream");
  EXPECT_EQ(Call("DELETE", moved + "?purgeRequested=maybe").status, 400);
}

TEST_F(TableCommitsTest, ViewsLiveLikeTables) {
  const std::string body = fmt::format(
      R"({{"name":"v","schema":{},"properties":{{"comment":"c"}},"location":null,)"
      R"("view-version":{{"version-id":1,"schema-id":0,"timestamp-ms":5,"summary":{{}},)"
      R"("default-namespace":[],"representations":[{{"type":"sql","sql":"SELECT 1",)"
      R"("dialect":"spark"}}]}}}})",
      kColumns);
  const http::Response made = Post("/namespaces/a/views", body);
  ASSERT_EQ(made.status, 200) << made.body;
  const json view = json::parse(made.body);
  EXPECT_EQ(view["metadata"]["current-version-id"], 1);
  EXPECT_EQ(view["metadata"]["schemas"][0]["fields"][0]["id"], 3) << "kept as sent";
  ExpectError(Post("/namespaces/a/views", body), 409, "AlreadyExistsException",
              "View already exists: a.v");
  Create("t");
  ExpectError(Post("/namespaces/a/tables", fmt::format(R"({{"name":"v","schema":{}}})", kColumns)),
              409, "AlreadyExistsException", "View with same name already exists: a.v");
  const std::string target = std::string(kBase) + "/namespaces/a/views/v";
  json version = view["metadata"]["versions"][0];
  version["representations"][0]["sql"] = "SELECT 2";
  version["schema-id"] = 0;
  const auto replace = [&](const std::string& uuid) {
    return Call("POST", target,
                json({{"requirements", {{{"type", "assert-view-uuid"}, {"uuid", uuid}}}},
                      {"updates",
                       {{{"action", "add-view-version"}, {"view-version", version}},
                        {{"action", "set-current-view-version"}, {"view-version-id", -1}}}}})
                    .dump());
  };
  ExpectError(replace("0d2f57c5-0000-0000-0000-000000000000"), 409, "CommitFailedException",
              "Cannot commit");
  const http::Response replaced = replace(view["metadata"]["view-uuid"]);
  ASSERT_EQ(replaced.status, 200) << replaced.body;
  EXPECT_EQ(CallJson("GET", target)["metadata"]["current-version-id"], 2);
  version["representations"][0]["dialect"] = "trino";
  ExpectError(replace(view["metadata"]["view-uuid"]), 400, "BadRequestException", "spark");
  EXPECT_EQ(Post("/views/rename", R"({"source":{"namespace":["a"],"name":"v"},)"
                                  R"("destination":{"namespace":["a"],"name":"w"}})")
                .status,
            204);
  EXPECT_EQ(Call("DELETE", std::string(kBase) + "/namespaces/a/views/w").status, 204);
  EXPECT_EQ(Call("HEAD", std::string(kBase) + "/namespaces/a/views/w").status, 404);
}

TEST_F(TableCommitsTest, RolesOfTheTreeDecide) {
  Create("t");
  const std::string table = std::string(kBase) + "/namespaces/a/tables/t";
  const std::string property = R"({"updates":[{"action":"set-properties","updates":{"k":"v"}}]})";
  Become(access::Role::kViewer);
  EXPECT_EQ(Call("GET", table).status, 200);
  ExpectError(Call("POST", table, property), 403, "ForbiddenException", "Editor is needed");
  ExpectError(Call("DELETE", table), 403, "ForbiddenException", "Editor");
  ExpectError(Post("/namespaces/a/tables", fmt::format(R"({{"name":"u","schema":{}}})", kColumns)),
              403, "ForbiddenException", "Editor");
  ExpectError(Post("/namespaces", R"({"namespace":["a","b"]})"), 403, "ForbiddenException", "");
  EXPECT_EQ(Post("/namespaces", R"({"namespace":["b"]})").status, 404) << "not even its project";
  Become(access::Role::kEditor);
  EXPECT_EQ(Call("POST", table, property).status, 200);
  ExpectError(Call("DELETE", table + "?purgeRequested=true"), 403, "ForbiddenException", "Owner");
  EXPECT_EQ(Call("DELETE", table).status, 204);
  const access::Principal stranger = MakeUser("stranger");
  ASSERT_OK_AND_ASSIGN(token_, MakeToken(stranger.user_id));
  ExpectError(Post("/namespaces/a/tables", fmt::format(R"({{"name":"u","schema":{}}})", kColumns)),
              404, "NoSuchNamespaceException", "Namespace does not exist: a");
}

TEST_F(TableCommitsTest, TablesOfTasksAreReadButNotWritten) {
  ASSERT_OK_AND_ASSIGN(const auto orders, OpenTarget(MakeSpec("orders")));
  const std::string folder = std::string(kBase) + "/namespaces/shop_internal";
  const std::string table = folder + "/tables/orders_internal";
  const std::string property = R"({"updates":[{"action":"set-properties","updates":{"k":"v"}}]})";
  EXPECT_EQ(Call("GET", table).status, 200);
  ExpectError(Call("POST", table, property), 403, "ForbiddenException", "belongs to a task");
  ExpectError(Call("DELETE", table), 403, "ForbiddenException", "belongs to a task");
  ExpectError(Post("/tables/rename",
                   R"({"source":{"namespace":["shop_internal"],"name":"orders_internal"},)"
                   R"("destination":{"namespace":["a"],"name":"mine"}})"),
              403, "ForbiddenException", "belongs to a task");
  ExpectError(Call("DELETE", std::string(kBase) + "/namespaces/shop/views/orders"), 403,
              "ForbiddenException", "belongs to a task");
  EXPECT_EQ(
      Call("POST", folder + "/properties", R"({"updates":{"tarn.foreign-writes":"allow"}})").status,
      200);
  EXPECT_EQ(Call("POST", table, property).status, 200);
}

// Such a view would show the rows of any internal table that its properties name.
TEST_F(TableCommitsTest, ViewsOfTasksAreWrittenByNobodyElse) {
  ASSERT_OK_AND_ASSIGN(const auto orders, OpenTarget(MakeSpec("orders")));
  const std::string folder = std::string(kBase) + "/namespaces/shop";
  ASSERT_EQ(
      Call("POST", folder + "/properties", R"({"updates":{"tarn.foreign-writes":"allow"}})").status,
      200);
  ExpectError(Call("POST", folder + "/views/orders",
                   R"({"updates":[{"action":"set-properties",)"
                   R"("updates":{"tarn.internal-schema":"other_internal"}}]})"),
              403, "ForbiddenException", "belongs to a task");
}

TEST_F(TableCommitsTest, TokensAreGivenForClientCredentials) {
  access::Directory directory(uuids_, clock_);
  access::ClientSecret client;
  ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(
        const access::User user,
        directory.CreateUser(sql, {.username = "robot", .kind = access::UserKind::kService}));
    TARN_ASSIGN_OR_RETURN(client, tokens_.RenewClientSecret(sql, user.id));
    return Status::Ok();
  }));
  const auto ask = [&](const std::string& body, const std::string& authorization = "") {
    http::Request request;
    request.method = "POST";
    request.target = "/iceberg/v1/oauth/tokens";
    request.body = std::make_unique<http::StringBodyReader>(body);
    if (!authorization.empty()) {
      request.headers.Add("Authorization", authorization);
    }
    return router_.Handle(request);
  };
  const http::Response form =
      ask(fmt::format("grant_type=client_credentials&client_id={}&client_secret={}&scope=catalog",
                      client.client_id, client.secret));
  ASSERT_EQ(form.status, 200) << form.body;
  const json token = json::parse(form.body);
  EXPECT_EQ(token["token_type"], "bearer");
  token_ = token["access_token"];
  EXPECT_EQ(Call("GET", "/iceberg/v1/config").status, 200);
  const http::Response basic = ask("grant_type=client_credentials&scope=PRINCIPAL_ROLE%3AALL",
                                   "Basic " + EncodeBase64(client.client_id + ":" + client.secret));
  EXPECT_EQ(basic.status, 200) << basic.body;
  const http::Response exchanged =
      ask("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&subject_token=" +
          token_);
  EXPECT_EQ(exchanged.status, 200) << exchanged.body;
  EXPECT_TRUE(json::parse(exchanged.body).contains("issued_token_type"));
  const http::Response wrong = ask("grant_type=client_credentials&client_id=x&client_secret=y");
  EXPECT_EQ(wrong.status, 401);
  EXPECT_EQ(json::parse(wrong.body)["error"], "invalid_client");
  EXPECT_EQ(ask("grant_type=password").status, 400);
  EXPECT_EQ(ask("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&"
                "subject_token=" +
                admin_token_)
                .status,
            401);
}

}  // namespace

}  // namespace tarn::server::iceberg_rest
