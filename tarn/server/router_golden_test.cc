// Who may call what: every route of every prefix is tried as nobody, as a stranger, with each role
// and with a token that has no scope. The answers stand in route_access.txt, which is to be read
// by people: a changed line is a changed right.
//
// After adding a route run this test with TARN_UPDATE_ROUTE_ACCESS=1 and look at what it wrote.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "tarn/server/control_fixture.h"
#include "tarn/server/foundry/foundry_routes.h"
#include "tarn/server/iceberg_rest/iceberg_routes.h"
#include "tarn/server/native/native_routes.h"

namespace tarn::server {
namespace {

using access::Role;
using nlohmann::json;

/// Callers, in the order of the columns.
const std::vector<std::string> kCallers = {"nobody", "stranger", "Discoverer", "Viewer",
                                           "Editor", "Owner",    "no-scope"};

/// Routes that answer without a token.
bool IsOpen(const std::string& route) {
  return route.ends_with("/healthz") || route.ends_with("/readyz") || route.ends_with("/metrics") ||
         route.ends_with("/openapi.json") || route.find("/oauth2/") != std::string::npos ||
         route.ends_with("/oauth/tokens");
}

/// Bodies by route. "$name" stands for the value of a path parameter; routes without an entry are
/// called with {}.
const std::map<std::string, std::string> kBodies = {
    {"POST /api/v2/datasets", R"({"parentFolderRid":"$folderRid","name":"new"})"},
    {"POST /api/v1/datasets", R"({"parentFolderRid":"$folderRid","name":"new"})"},
    {"POST /api/v2/datasets/getSchemaBatch", R"([{"datasetRid":"$datasetRid"}])"},
    {"POST /api/v2/datasets/{datasetRid}/branches", R"({"name":"new"})"},
    {"POST /api/v1/datasets/{datasetRid}/branches", R"({"branchId":"new"})"},
    {"POST /api/v2/datasets/{datasetRid}/transactions", R"({"transactionType":"APPEND"})"},
    {"POST /api/v1/datasets/{datasetRid}/transactions", R"({"transactionType":"APPEND"})"},
    {"PUT /api/v2/datasets/{datasetRid}/putSchema",
     R"({"schema":{"fieldSchemaList":[{"type":"LONG","name":"id","nullable":true}]}})"},
    {"PUT /api/v1/datasets/{datasetRid}/schema",
     R"({"fieldSchemaList":[{"type":"LONG","name":"id","nullable":true}]})"},
    {"POST /api/v2/datasets/views",
     R"({"parentFolderRid":"$folderRid","viewName":"new","backingDatasets":[]})"},
    {"POST /api/v2/datasets/views/{viewDatasetRid}/addBackingDatasets",
     R"({"backingDatasets":[]})"},
    {"POST /api/v2/datasets/views/{viewDatasetRid}/removeBackingDatasets",
     R"({"backingDatasets":[]})"},
    {"PUT /api/v2/datasets/views/{viewDatasetRid}/replaceBackingDatasets",
     R"({"backingDatasets":[]})"},
    {"POST /api/v2/datasets/views/{viewDatasetRid}/addPrimaryKey",
     R"({"primaryKey":{"columns":["id"],"resolution":{"type":"unique"}}})"},
    {"POST /api/v2/sqlQueries/execute", R"({"query":"SELECT * FROM `$datasetRid`"})"},
    {"POST /api/v2/filesystem/folders", R"({"parentFolderRid":"$folderRid","displayName":"new"})"},
    {"POST /api/v2/filesystem/folders/getBatch", R"([{"folderRid":"$folderRid"}])"},
    {"PUT /api/v2/filesystem/folders/{folderRid}",
     R"({"parentFolderRid":"$projectRid","displayName":"renamed"})"},
    {"POST /api/v2/filesystem/projects/create",
     R"({"spaceRid":"$spaceRid","displayName":"new","defaultRoles":[],"organizationRids":[],)"
     R"("roleGrants":{"compass:manage":[{"principalId":"$userId","principalType":"USER"}]}})"},
    {"POST /api/v2/filesystem/projects/createFromTemplate",
     R"({"templateRid":"ri.t.main.t.t","variableValues":{}})"},
    {"PUT /api/v2/filesystem/projects/{projectRid}", R"({"displayName":"renamed"})"},
    {"POST /api/v2/filesystem/projects/{projectRid}/addOrganizations",
     R"({"organizationRids":["$organizationRid"]})"},
    {"POST /api/v2/filesystem/projects/{projectRid}/removeOrganizations",
     R"({"organizationRids":["$organizationRid"]})"},
    {"POST /api/v2/filesystem/projects/{projectRid}/references/add",
     R"({"resources":[{"type":"external","resourceRid":"ri.a.main.b.c","importName":"n"}]})"},
    {"POST /api/v2/filesystem/projects/{projectRid}/references/remove",
     R"({"resources":["ri.a.main.b.c"]})"},
    {"POST /api/v2/filesystem/resources/getBatch", R"([{"resourceRid":"$resourceRid"}])"},
    {"POST /api/v2/filesystem/resources/getByPathBatch", R"([{"path":"/Default"}])"},
    {"POST /api/v2/filesystem/resources/{resourceRid}/addMarkings", R"({"markingIds":["m"]})"},
    {"POST /api/v2/filesystem/resources/{resourceRid}/removeMarkings", R"({"markingIds":["m"]})"},
    {"POST /api/v2/filesystem/resources/{resourceRid}/roles/add",
     R"({"roles":[{"roleId":"compass:view","resourceRolePrincipal":{"type":"everyone"}}]})"},
    {"POST /api/v2/filesystem/resources/{resourceRid}/roles/remove",
     R"({"roles":[{"roleId":"compass:view","resourceRolePrincipal":{"type":"everyone"}}]})"},
    {"POST /api/v2/filesystem/spaces",
     R"({"enrollmentRid":"$enrollmentRid","displayName":"new","organizations":[],)"
     R"("deletionPolicyOrganizations":[]})"},
    {"PUT /api/v2/filesystem/spaces/{spaceRid}", R"({"displayName":"renamed $spaceRid"})"},
    {"POST /api/v2/admin/users/getBatch", R"([{"userId":"$userId"}])"},
    {"POST /api/v2/admin/users/search", R"({"where":{"type":"queryString","value":"a"}})"},
    {"POST /api/v2/admin/groups", R"({"name":"n","organizations":["$organizationRid"]})"},
    {"PUT /api/v2/admin/groups/{groupId}",
     R"({"name":"renamed $groupId","organizations":["$organizationRid"]})"},
    {"POST /api/v2/admin/groups/getBatch", R"([{"groupId":"$groupId"}])"},
    {"POST /api/v2/admin/groups/search", R"({"where":{"type":"queryString","value":"a"}})"},
    {"POST /api/v2/admin/groups/{groupId}/groupMembers/add", R"({"principalIds":["$userId"]})"},
    {"POST /api/v2/admin/groups/{groupId}/groupMembers/remove", R"({"principalIds":["$userId"]})"},
    {"POST /api/v2/admin/organizations",
     R"({"administrators":["$userId"],"enrollmentRid":"$enrollmentRid","name":"new"})"},
    {"PUT /api/v2/admin/organizations/{organizationRid}", R"({"name":"renamed"})"},
    {"POST /api/v2/admin/roles/getBatch", R"([{"roleId":"compass:view"}])"},
    {"POST /tarn/v1/sql", R"({"query":"SELECT * FROM \"$datasetRid\""})"},
    {"POST /foundry-catalog/api/catalog/datasets", R"({"path":"/Default/default/$groupId"})"},
    {"DELETE /foundry-catalog/api/catalog/datasets", R"({"rid":"$datasetRid"})"},
    {"POST /foundry-catalog/api/catalog/datasets/{datasetRid}/transactions",
     R"({"branchId":"extra"})"},
    {"POST /foundry-catalog/api/catalog/datasets/{datasetRid}/transactions/{transactionRid}",
     R"("UPDATE")"},
    {"POST /foundry-catalog/api/catalog/datasets/{datasetRid}/branchesUpdate2/{branch}",
     R"("master")"},
    {"PUT /foundry-catalog/api/catalog/datasets/{datasetRid}/views/{branch}/files3", "{}"},
    {"POST /foundry-metadata/api/schemas/datasets/{datasetRid}/branches/{branch}",
     R"({"fieldSchemaList":[{"type":"LONG","name":"id","nullable":true}]})"},
    {"POST /foundry-sql-server/api/queries/execute",
     R"({"query":"SELECT * FROM `$datasetRid`","fallbackBranchIds":["master"]})"},
    {"POST /compass/api/batch/paths", R"(["$resourceRid"])"},
    {"POST /compass/api/batch/trash/add", R"(["$resourceRid"])"},
    {"POST /compass/api/batch/trash/restore", R"(["$resourceRid"])"},
    {"POST /compass/api/folders", R"({"name":"new","parentId":"$folderRid"})"},
    {"POST /tarn/v1/users", R"({"name":"new"})"},
    {"POST /iceberg/v1/{prefix}/namespaces", R"({"namespace":["new"]})"},
    {"POST /iceberg/v1/{prefix}/namespaces/{namespace}/properties", R"({"updates":{"a":"b"}})"},
    {"POST /iceberg/v1/{prefix}/namespaces/{namespace}/tables",
     R"({"name":"new","schema":{"type":"struct","fields":[]}})"},
    {"POST /iceberg/v1/{prefix}/namespaces/{namespace}/views",
     R"({"name":"new view","schema":{"type":"struct","fields":[]},"properties":{},)"
     R"("view-version":{"version-id":1,"timestamp-ms":1,"schema-id":0,"summary":{},)"
     R"("default-namespace":[],"representations":[{"type":"sql","sql":"x","dialect":"d"}]}})"},
    {"POST /iceberg/v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics",
     R"({"report-type":"scan-report"})"},
    {"POST /iceberg/v1/{prefix}/namespaces/{namespace}/register",
     R"({"name":"registered","metadata-location":"none"})"},
    {"POST /iceberg/v1/{prefix}/tables/rename",
     R"({"source":{"namespace":["shop"],"name":"t"},)"
     R"("destination":{"namespace":["shop"],"name":"u"}})"},
    {"POST /iceberg/v1/{prefix}/views/rename",
     R"({"source":{"namespace":["shop"],"name":"orders"},)"
     R"("destination":{"namespace":["shop"],"name":"u"}})"},
    {"POST /iceberg/v1/{prefix}/transactions/commit", R"({"table-changes":[]})"},
};

class RouterGoldenTest : public ControlFixture {
 protected:
  void SetUp() override {
    ControlFixture::SetUp();
    ASSERT_OK(AddHealthRoutes(router_, metrics_, [] { return Status::Ok(); }));
    ASSERT_OK(foundry::AddFoundryRoutes(router_, {*database_, authorizer_, *datasets_, *warehouse_,
                                                  uuids_, clock_, *catalog_, *engine_}));
    ASSERT_OK(iceberg_rest::AddIcebergRoutes(router_, {}, {*catalog_, authorizer_}));
    ASSERT_OK(native::AddNativeRoutes(router_, {.query = deps(), .control = *control_}));
    ASSERT_OK_AND_ASSIGN(orders_, OpenTarget(MakeSpec("orders")));
    ASSERT_OK(Append(*orders_, {{.id = 1, .name = "a", .time_ms = 1000}}));
    tokens_of_["Owner of all"] = admin_token_;
    organization_ = CallJson("GET", "/api/v2/admin/users/getCurrent").value("organization", "");
    enrollment_ =
        CallJson("GET", "/api/v2/admin/enrollments/getCurrent?preview=true").value("rid", "");
  }

  /// New users for one call, with their roles on the space that holds everything new.
  void MakeCallers(const std::string& space) {
    tokens_of_.clear();
    for (const auto& [name, role] :
         {std::pair{"stranger", Role::kNone}, std::pair{"Discoverer", Role::kDiscoverer},
          std::pair{"Viewer", Role::kViewer}, std::pair{"Editor", Role::kEditor},
          std::pair{"Owner", Role::kOwner}}) {
      users_[name] = MakeUser(fmt::format("{} {}", name, ++count_)).user_id;
      ASSERT_OK_AND_ASSIGN(tokens_of_[name], MakeToken(users_[name]));
      if (role == Role::kNone) {
        continue;
      }
      for (const Rid& place : {Rid::Parse(space).value(), project_}) {
        ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) {
          return access::AddGrant(sql,
                                  {.resource = place, .principal_id = users_[name], .role = role},
                                  "me", clock_.Now());
        }));
      }
    }
    ASSERT_OK_AND_ASSIGN(tokens_of_["no-scope"], MakeToken(users_["Owner"], access::ScopeSet()));
  }

  json Admin(const std::string& method, const std::string& target, const json& body) {
    token_.clear();
    const http::Response response =
        Call(method, "/api/v2" + target, body.is_string() ? body.get<std::string>() : body.dump());
    EXPECT_LT(response.status, 300) << method << " " << target << " " << response.body;
    return json::parse(response.body, nullptr, false);
  }

  /// Everything that path parameters name, made anew for each route.
  void MakePlaces() {
    const std::string name = fmt::format("n{}", ++count_);
    values_ = {{"organizationRid", organization_},
               {"enrollmentRid", enrollment_},
               {"roleId", "compass:view"},
               {"branchName", "extra"},
               {"branchId", "extra"},
               {"branch", "extra"},
               {"filePath", "a"},
               {"filePath...", "a"},
               {"namespace", "shop"},
               {"table", "orders"},
               {"view", "orders"},
               {"name", "shop.orders"},
               {"prefix", project_.ToString()}};
    for (const char* missing :
         {"task", "pipeline", "run", "id", "tag", "sqlQueryId", "requestId"}) {
      values_[missing] = "none";
    }
    values_["spaceRid"] = Admin("POST", "/filesystem/spaces?preview=true",
                                {{"enrollmentRid", enrollment_},
                                 {"displayName", name},
                                 {"organizations", json::array()},
                                 {"deletionPolicyOrganizations", json::array()}})["rid"];
    MakeCallers(values_["spaceRid"]);
    values_["userId"] = users_["stranger"];
    values_["projectRid"] =
        Admin("POST", "/filesystem/projects/create",
              {{"spaceRid", values_["spaceRid"]},
               {"displayName", name},
               {"defaultRoles", json::array()},
               {"organizationRids", json::array()},
               {"roleGrants",
                {{"compass:manage", json::array({{{"principalId", admin_.user_id}}})}}}})["rid"];
    values_["folderRid"] =
        Admin("POST", "/filesystem/folders",
              {{"parentFolderRid", values_["projectRid"]}, {"displayName", name}})["rid"];
    values_["resourceRid"] = Admin(
        "POST", "/filesystem/folders",
        {{"parentFolderRid", values_["folderRid"]}, {"displayName", name + " folder"}})["rid"];
    values_["groupId"] =
        Admin("POST", "/admin/groups", {{"name", name}, {"organizations", {organization_}}})["id"];
    MakeDatasets(name);
  }

  void MakeDatasets(const std::string& name) {
    const std::string rid = Admin(
        "POST", "/datasets", {{"parentFolderRid", values_["folderRid"]}, {"name", name}})["rid"];
    values_["datasetRid"] = rid;
    values_["rid"] = rid;
    const std::string dataset = "/datasets/" + rid;
    values_["transactionRid"] =
        Admin("POST", dataset + "/files/a/upload", "bytes")["transactionRid"];
    Admin("POST", dataset + "/branches",
          {{"name", "extra"}, {"transactionRid", values_["transactionRid"]}});
    Admin("POST", dataset + "/branches", {{"name", "open"}});
    values_["open"] = Admin("POST", dataset + "/transactions?branchName=open",
                            {{"transactionType", "APPEND"}})["rid"];
    values_["transaction"] = values_["open"];
    values_["viewDatasetRid"] =
        Admin("POST", "/datasets/views",
              {{"parentFolderRid", values_["folderRid"]},
               {"viewName", name + " view"},
               {"backingDatasets", json::array({{{"datasetRid", rid}}})}})["datasetRid"];
  }

  /// `text` with the values of "{name}" or "$name".
  std::string Fill(std::string text, const std::string& before, const std::string& after) {
    for (const auto& [name, value] : values_) {
      const std::string place = before + name + after;
      for (size_t at = text.find(place); at != std::string::npos; at = text.find(place)) {
        text.replace(at, place.size(), value);
      }
    }
    return text;
  }

  /// The state that an operation needs to have something to do.
  void Prepare(const std::string& pattern) {
    if (pattern.ends_with("/permanentlyDelete") || pattern.ends_with("/restore")) {
      Admin("DELETE", "/filesystem/resources/" + values_["resourceRid"], "");
    }
    if (pattern.ends_with("/commit") || pattern.find("/abort") != std::string::npos ||
        pattern.find("/transactions/{transactionRid}/putFile") != std::string::npos) {
      values_["transactionRid"] = values_["open"];
    }
  }

  /// The status of `route` for each caller. Calls that may have changed something get new places.
  std::vector<int> Try(const std::string& route) {
    const size_t blank = route.find(' ');
    const std::string method = route.substr(0, blank);
    const std::string pattern = route.substr(blank + 1);
    const bool writes = method != "GET" && method != "HEAD";
    std::vector<int> statuses;
    for (const std::string& caller : kCallers) {
      if (values_.empty() ||
          (writes && (caller == "nobody" || caller == "Editor" || caller == "Owner"))) {
        MakePlaces();
        Prepare(pattern);
      }
      const std::string target = Fill(pattern, "{", "}");
      EXPECT_EQ(target.find('{'), std::string::npos)
          << "give a value for the path parameter of " << route;
      const auto body = kBodies.find(route);
      statuses.push_back(CallAs(caller, method, target + "?preview=true&path=%2FDefault&format=CSV",
                                body != kBodies.end() ? Fill(body->second, "$", "")
                                : writes              ? "{}"
                                                      : ""));
    }
    if (writes) {
      values_.clear();
    }
    return statuses;
  }

  int CallAs(const std::string& caller, const std::string& method, const std::string& target,
             const std::string& body) {
    http::Request request;
    request.method = method;
    request.target = target;
    request.body = std::make_unique<http::StringBodyReader>(body);
    if (caller != "nobody") {
      request.headers.Add("Authorization", "Bearer " + tokens_of_[caller]);
    }
    return router_.Handle(request).status;
  }

  static std::string TablePath() {
    return (std::filesystem::path(__FILE__).parent_path() / "route_access.txt").string();
  }

  std::unique_ptr<lakehouse::TargetTable> orders_;
  std::map<std::string, std::string> tokens_of_;
  std::map<std::string, std::string> users_;
  std::map<std::string, std::string> values_;
  std::string organization_;
  std::string enrollment_;
  int count_ = 0;
};

/// Comment lines are for people.
std::map<std::string, std::string> ReadTable(const std::string& path) {
  std::map<std::string, std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.starts_with('#')) {
      continue;
    }
    std::istringstream words(line);
    std::string method;
    std::string pattern;
    words >> method >> pattern;
    std::string rest;
    std::getline(words >> std::ws, rest);
    lines[method + " " + pattern] = rest;
  }
  return lines;
}

void WriteTable(const std::string& path, const std::map<std::string, std::string>& lines) {
  std::ofstream file(path);
  file
      << "# The status of every route for each caller. Roles are on the space that holds what is\n"
         "# named; requests are well-formed where router_golden_test.cc has a body for them, else\n"
         "# \"{}\", so 400 can also mean that the right to call was there.\n"
         "#\n"
      << fmt::format("# {:<125}{}\n", "", fmt::join(kCallers, " "));
  for (const auto& [route, statuses] : lines) {
    const size_t blank = route.find(' ');
    file << fmt::format("{:<7}{:<120}{}\n", route.substr(0, blank), route.substr(blank + 1),
                        statuses);
  }
}

TEST_F(RouterGoldenTest, EveryRouteAnswersAsTheTableSays) {
  std::map<std::string, std::string> found;
  for (const std::string& route : router_.ListRoutes()) {
    SCOPED_TRACE(route);
    const std::vector<int> statuses = Try(route);
    found[route] = fmt::format("{}", fmt::join(statuses, " "));
    if (IsOpen(route)) {
      continue;
    }
    EXPECT_EQ(statuses.front(), 401) << route << " answers without a token";
    EXPECT_NE(statuses[1], 500) << route;
    const bool names_a_place = route.find("Rid}") != std::string::npos &&
                               route.find("{organizationRid}") == std::string::npos &&
                               route.find("{enrollmentRid}") == std::string::npos;
    // Some older routes say with 204 that there is nothing.
    const bool is_hidden = statuses[1] == 404 || (route.starts_with("GET ") && statuses[1] == 204);
    EXPECT_TRUE(!names_a_place || is_hidden) << route << " shows a stranger " << statuses[1];
  }
  if (std::getenv("TARN_UPDATE_ROUTE_ACCESS") != nullptr) {
    WriteTable(TablePath(), found);
  }
  const std::map<std::string, std::string> expected = ReadTable(TablePath());
  for (const auto& [route, statuses] : found) {
    const auto line = expected.find(route);
    if (line == expected.end()) {
      ADD_FAILURE() << route << " has no line in " << TablePath()
                    << "; write it with TARN_UPDATE_ROUTE_ACCESS=1 and look at it";
    } else {
      EXPECT_EQ(statuses, line->second) << route;
    }
  }
  for (const auto& [route, statuses] : expected) {
    EXPECT_TRUE(found.contains(route)) << route << " is in the table, but is no route any more";
  }
}

}  // namespace
}  // namespace tarn::server
