#include "tarn/server/iceberg_rest/iceberg_routes.h"

#include "tarn/metastore/faulty_database.h"
#include "tarn/server/home_fixture.h"

namespace tarn::server::iceberg_rest {

namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class IcebergRoutesTest : public HomeFixture {
 protected:
  void SetUp() override {
    HomeFixture::SetUp();
    ASSERT_OK(AddIcebergRoutes(router_, {}, {*catalog_, authorizer_}));
    lakehouse::TableSpec spec = MakeSpec("orders");
    spec.fold.history = true;
    ASSERT_OK_AND_ASSIGN(orders_, OpenTarget(spec));
    ASSERT_OK(Append(*orders_, {{.id = 1, .name = "a", .time_ms = 1000}}));
    ASSERT_OK(Apply(*orders_));
  }

  static constexpr const char* kShop = "/iceberg/v1/namespaces/shop";
  std::unique_ptr<lakehouse::TargetTable> orders_;
};

TEST_F(IcebergRoutesTest, ConfigListsExactlyWhatIsServed) {
  const json config = CallJson("GET", "/iceberg/v1/config");
  EXPECT_EQ(config["defaults"], json::object());
  EXPECT_EQ(config["overrides"], json::object());
  EXPECT_EQ(CallJson("GET", "/iceberg/v1/config?warehouse=default"), config);
  std::vector<std::string> served;
  for (const std::string& route : router_.ListRoutes()) {
    const size_t at = route.find("/iceberg/v1/{prefix}");
    if (at != std::string::npos) {
      served.push_back(route.substr(0, at) + route.substr(at + std::string("/iceberg").size()));
    }
  }
  std::vector<std::string> listed = config["endpoints"];
  std::sort(listed.begin(), listed.end());
  std::sort(served.begin(), served.end());
  EXPECT_EQ(listed, served);
  const http::Response unknown = Call("GET", "/iceberg/v1/config?warehouse=moon");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(json::parse(unknown.body)["error"]["type"], "NoSuchWarehouseException");
}

TEST_F(IcebergRoutesTest, OtherProjectsHaveAPrefix) {
  Rid other;
  ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const tree::LocatedNode place, tree::LocateNode(sql, project_));
    TARN_ASSIGN_OR_RETURN(const tree::Node node,
                          tree_.Create(sql, {.parent = place.space,
                                             .name = "other",
                                             .type = tree::NodeType::kProject,
                                             .by = "me"}));
    other = node.rid;
    return StatusOf(tree_.EnsureFolder(sql, node.rid, "elsewhere", "me"));
  }));
  const json config = CallJson("GET", "/iceberg/v1/config?warehouse=other");
  EXPECT_EQ(config["overrides"]["prefix"], other.ToString());
  EXPECT_EQ(CallJson("GET", "/iceberg/v1/" + other.ToString() + "/namespaces")["namespaces"],
            json::parse(R"([["elsewhere"]])"));
}

TEST_F(IcebergRoutesTest, NamespacesAreFolders) {
  EXPECT_EQ(CallJson("GET", "/iceberg/v1/namespaces")["namespaces"],
            json::parse(R"([["shop"], ["shop_internal"]])"));
  const json first = CallJson("GET", "/iceberg/v1/namespaces?pageToken=&pageSize=1");
  EXPECT_EQ(first["namespaces"], json::parse(R"([["shop"]])"));
  const json second = CallJson("GET", "/iceberg/v1/namespaces?pageSize=1&pageToken=" +
                                          first["next-page-token"].get<std::string>());
  EXPECT_EQ(second["namespaces"], json::parse(R"([["shop_internal"]])"));
  EXPECT_EQ(second["next-page-token"], json());
  EXPECT_EQ(CallJson("GET", kShop)["namespace"], json({"shop"}));
  EXPECT_EQ(Call("HEAD", kShop).status, 204);
  EXPECT_EQ(CallJson("GET", "/iceberg/v1/namespaces?parent=shop")["namespaces"], json::array());
  const http::Response missing = Call("GET", "/iceberg/v1/namespaces/a%1Fb");
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(json::parse(missing.body)["error"]["type"], "NoSuchNamespaceException");
  EXPECT_EQ(json::parse(missing.body)["error"]["message"], "Namespace does not exist: a.b");
  EXPECT_EQ(Call("HEAD", "/iceberg/v1/namespaces/nope").status, 404);
}

TEST_F(IcebergRoutesTest, TablesAndViewsAreListedApart) {
  const json tables = CallJson("GET", std::string(kShop) + "/tables");
  EXPECT_EQ(tables["identifiers"],
            json::parse(R"([{"namespace": ["shop"], "name": "orders__applied"}])"));
  const json views = CallJson("GET", std::string(kShop) + "/views?pageToken=&pageSize=1");
  EXPECT_EQ(views["identifiers"], json::parse(R"([{"namespace": ["shop"], "name": "orders"}])"));
  const json more = CallJson("GET", std::string(kShop) + "/views?pageSize=1&pageToken=" +
                                        views["next-page-token"].get<std::string>());
  EXPECT_EQ(more["identifiers"],
            json::parse(R"([{"namespace": ["shop"], "name": "orders__history"}])"));
}

TEST_F(IcebergRoutesTest, TableLoadsWithATagThatHoldsUntilItChanges) {
  const std::string target = std::string(kShop) + "/tables/orders__applied";
  const http::Response loaded = Call("GET", target);
  ASSERT_EQ(loaded.status, 200) << loaded.body;
  const json table = json::parse(loaded.body);
  EXPECT_THAT(table["metadata-location"].get<std::string>(), StartsWith("file:///"));
  EXPECT_EQ(table["metadata"]["format-version"], 2);
  EXPECT_EQ(table["config"], json::object());
  const std::string tag(loaded.headers.Find("ETag").value_or(""));
  EXPECT_FALSE(tag.empty());
  EXPECT_EQ(Call("GET", target, "", {{"If-None-Match", tag}}).status, 304);
  EXPECT_EQ(Call("GET", target, "", {{"If-None-Match", "\"x\", W/" + tag}}).status, 304);
  EXPECT_EQ(Call("GET", target + "?snapshots=refs", "", {{"If-None-Match", tag}}).status, 200);
  EXPECT_EQ(Call("GET", target + "?snapshots=some").status, 400);
  ASSERT_OK(Append(*orders_, {{.id = 2, .name = "b", .time_ms = 2000}}));
  EXPECT_EQ(Call("GET", target, "", {{"If-None-Match", tag}}).status, 304);
  ASSERT_OK(Apply(*orders_));
  EXPECT_EQ(Call("GET", target, "", {{"If-None-Match", tag}}).status, 200);
  EXPECT_EQ(Call("HEAD", target).status, 204);
}

TEST_F(IcebergRoutesTest, AnUnchangedTableCostsFiveStatements) {
  metastore::FaultyDatabase counted(*database_);
  catalog::Catalog catalog(catalog::CatalogOptions{},
                           catalog::CatalogDeps{counted, *warehouse_, tree_, uuids_, clock_});
  Router fresh({.access_log = AccessLog::kOff}, Dependencies());
  ASSERT_OK(AddIcebergRoutes(fresh, {}, {catalog, authorizer_}));
  const std::string target = std::string(kShop) + "/tables/orders__applied";
  const std::string tag(Call("GET", target).headers.Find("ETag").value_or(""));
  int64_t before = 0;
  for (int i = 0; i < 2; ++i) {
    before = counted.operation_count();
    http::Request request;
    request.method = "GET";
    request.target = target;
    request.headers.Add("Authorization", "Bearer " + admin_token_);
    request.headers.Add("If-None-Match", tag);
    request.body = std::make_unique<http::StringBodyReader>("");
    EXPECT_EQ(fresh.Handle(request).status, 304);
  }
  // Its start, the project, the namespace, the name, the pointer, the stamp of rights.
  EXPECT_EQ(counted.operation_count() - before, 6);
}

TEST_F(IcebergRoutesTest, NamespacesHaveALocation) {
  const json plain = CallJson("GET", kShop)["properties"];
  EXPECT_THAT(plain["location"].get<std::string>(),
              StartsWith(warehouse_->base_uri() + "/tables/"));
  EXPECT_EQ(CallJson("GET", kShop)["properties"], plain);
  EXPECT_NE(CallJson("GET", "/iceberg/v1/namespaces/shop_internal")["properties"], plain);
  Call("POST", std::string(kShop) + "/properties", R"({"updates":{"location":"file:///own"}})");
  EXPECT_EQ(CallJson("GET", kShop)["properties"]["location"], "file:///own");
}

TEST_F(IcebergRoutesTest, ViewsNameTheCatalogWhereItHasAName) {
  Router named({.access_log = AccessLog::kOff}, Dependencies());
  ASSERT_OK(AddIcebergRoutes(named, {.catalog_name = "lake"}, {*catalog_, authorizer_}));
  http::Request request;
  request.method = "GET";
  request.target = std::string(kShop) + "/views/orders";
  request.headers.Add("Authorization", "Bearer " + admin_token_);
  request.body = std::make_unique<http::StringBodyReader>("");
  const json there = json::parse(named.Handle(request).body)["metadata"]["versions"][0];
  EXPECT_EQ(there["default-catalog"], "lake");
  EXPECT_EQ(there["default-namespace"], json({"shop"}));
  const json plain = CallJson("GET", std::string(kShop) + "/views/orders");
  EXPECT_FALSE(plain["metadata"]["versions"][0].contains("default-catalog"));
}

TEST_F(IcebergRoutesTest, RefsLeaveOldSnapshotsOut) {
  ASSERT_OK(Append(*orders_, {{.id = 2, .name = "b", .time_ms = 2000}}));
  const std::string target = "/iceberg/v1/namespaces/shop_internal/tables/orders_internal";
  EXPECT_EQ(CallJson("GET", target)["metadata"]["snapshots"].size(), 3U);
  EXPECT_EQ(CallJson("GET", target + "?snapshots=refs")["metadata"]["snapshots"].size(), 1U);
}

TEST_F(IcebergRoutesTest, ViewLoadsItsTexts) {
  const json view = CallJson("GET", std::string(kShop) + "/views/orders");
  ASSERT_TRUE(view.contains("metadata")) << view;
  const json& texts = view["metadata"]["versions"][0]["representations"];
  ASSERT_EQ(texts.size(), 3U);
  EXPECT_THAT(texts[0]["sql"].get<std::string>(), HasSubstr("orders_internal"));
  EXPECT_EQ(Call("HEAD", std::string(kShop) + "/views/orders").status, 204);
}

TEST_F(IcebergRoutesTest, MissingObjectsAreNamedAsClientsExpect) {
  const auto expect = [&](const std::string& target, const std::string& type,
                          const std::string& message) {
    const http::Response response = Call("GET", target);
    EXPECT_EQ(response.status, 404) << target;
    const json error = json::parse(response.body)["error"];
    EXPECT_EQ(error["type"], type);
    EXPECT_EQ(error["message"], message);
    EXPECT_EQ(error["code"], 404);
    EXPECT_EQ(Call("HEAD", target).status, 404);
  };
  expect(std::string(kShop) + "/tables/none", "NoSuchTableException",
         "Table does not exist: shop.none");
  expect(std::string(kShop) + "/tables/orders", "NoSuchTableException",
         "Table does not exist: shop.orders");
  expect(std::string(kShop) + "/views/orders__applied", "NoSuchViewException",
         "View does not exist: shop.orders__applied");
  expect("/iceberg/v1/namespaces/a%1Fb/tables/t", "NoSuchTableException",
         "Table does not exist: a.b.t");
  EXPECT_EQ(Call("GET", "/iceberg/v1/namespaces/a/tables").status, 404);
}

TEST_F(IcebergRoutesTest, LostMetadataFileIsSaid) {
  const std::string target = std::string(kShop) + "/tables/orders__applied";
  const std::string location = CallJson("GET", target)["metadata-location"];
  ASSERT_OK_AND_ASSIGN(const std::string key, storage::KeyOf(*warehouse_, location));
  ASSERT_OK(warehouse_->Delete(key));
  catalog_ = std::make_unique<catalog::Catalog>(
      catalog::CatalogOptions{},
      catalog::CatalogDeps{*database_, *warehouse_, tree_, uuids_, clock_});
  Router fresh({.access_log = AccessLog::kOff}, Dependencies());
  ASSERT_OK(AddIcebergRoutes(fresh, {}, {*catalog_, authorizer_}));
  http::Request request;
  request.method = "GET";
  request.target = target;
  request.headers.Add("Authorization", "Bearer " + admin_token_);
  request.body = std::make_unique<http::StringBodyReader>("");
  const http::Response response = fresh.Handle(request);
  EXPECT_EQ(response.status, 404);
  const json error = json::parse(response.body)["error"];
  EXPECT_EQ(error["type"], "NotFoundException");
  EXPECT_EQ(error["message"], "Failed to open input stream for file: " + location);
}

TEST_F(IcebergRoutesTest, WhatACallerMayNotViewDoesNotExist) {
  const access::Principal user = MakeUser("eve");
  ASSERT_OK_AND_ASSIGN(token_, MakeToken(user.user_id));
  const std::string target = std::string(kShop) + "/tables/orders__applied";
  EXPECT_EQ(CallJson("GET", "/iceberg/v1/namespaces")["namespaces"], json::array());
  EXPECT_EQ(Call("GET", kShop).status, 404);
  EXPECT_EQ(Call("GET", target).status, 404);
  ASSERT_OK(Grant("shop", user, access::Role::kDiscoverer));
  EXPECT_EQ(Call("GET", target).status, 403);
  ASSERT_OK(Grant("shop", user, access::Role::kViewer));
  EXPECT_EQ(CallJson("GET", "/iceberg/v1/namespaces")["namespaces"], json::parse(R"([["shop"]])"));
  EXPECT_EQ(Call("GET", target).status, 200);
  EXPECT_EQ(Call("GET", "/iceberg/v1/namespaces/shop_internal/tables/orders_internal").status, 404);
  ASSERT_OK_AND_ASSIGN(
      token_, MakeToken(user.user_id, access::ScopeSet::Of({access::Scope::kDatasetsRead})));
  EXPECT_EQ(Call("GET", target).status, 403);
  token_ = "nonsense";
  const http::Response refused = Call("GET", target);
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(json::parse(refused.body)["error"]["type"], "NotAuthorizedException");
}

}  // namespace

}  // namespace tarn::server::iceberg_rest
