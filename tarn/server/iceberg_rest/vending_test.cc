// Keys for clients: who gets which, for what. The operator's own here; those of a token service are
// test/stores' and test/clients' business.
#include <fmt/format.h>

#include "tarn/metastore/migrations.h"
#include "tarn/server/home_fixture.h"
#include "tarn/server/iceberg_rest/iceberg_routes.h"
#include "tarn/server/idempotency_keys.h"

namespace tarn::server::iceberg_rest {

namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kTables = "/iceberg/v1/namespaces/a/tables";
constexpr const char* kSchema =
    R"({"type":"struct","fields":[{"id":1,"name":"id","required":true,"type":"long"}]})";

class VendingTest : public HomeFixture {
 protected:
  void SetUp() override {
    HomeFixture::SetUp();
    storage::s3::S3Options bucket;
    bucket.bucket = "lake";
    bucket.prefix = "wh";
    bucket.endpoint = "http://127.0.0.1:9";
    bucket.vending = {.mode = storage::s3::Vending::kStatic,
                      .read = {"read-key", "read-hush"},
                      .write = {"write-key", "write-hush"}};
    ASSERT_OK_AND_ASSIGN(vendor_, storage::s3::CredentialVendor::Open(bucket, {clock_, sleeper_}));
    ASSERT_OK(database_->Migrate(metastore::Migrations()));
    keys_ = std::make_unique<IdempotencyKeys>(IdempotencyOptions{}, *database_, clock_);
    RouterDependencies dependencies = Dependencies();
    dependencies.idempotency = keys_.get();
    router_with_keys_ =
        std::make_unique<Router>(RouterOptions{.access_log = AccessLog::kOff}, dependencies);
    for (Router* router : {&router_, router_with_keys_.get()}) {
      ASSERT_OK(AddIcebergRoutes(*router, {}, {*catalog_, authorizer_, vendor_.get()}));
    }
    Call("POST", "/iceberg/v1/namespaces", R"({"namespace":["a"]})");
  }

  http::Response Ask(const std::string& method, const std::string& target,
                     const std::string& body = "", Fields headers = {}) {
    headers.emplace_back("X-Iceberg-Access-Delegation", "remote-signing, vended-credentials");
    return Call(method, target, body, headers);
  }
  json AskJson(const std::string& method, const std::string& target, const std::string& body = "") {
    return json::parse(Ask(method, target, body).body, nullptr, false);
  }
  json Create(const std::string& name, const std::string& more = "") {
    return AskJson("POST", kTables,
                   fmt::format(R"({{"name":"{}","schema":{}{}}})", name, kSchema, more));
  }
  /// The URI of the table's folder in the bucket.
  std::string FolderOf(const json& table) {
    const std::string location = table["metadata"]["location"];
    return "s3://lake/wh/" + storage::KeyOf(*warehouse_, location).value() + "/";
  }
  static std::string KeyOf(const json& table) {
    return table["config"].value("s3.access-key-id", "none");
  }
  /// Calls as a new user with this role on a folder.
  access::Principal Become(const std::string& folder, access::Role role,
                           access::ScopeSet scopes = access::ScopeSet::All()) {
    const access::Principal user = MakeUser("user " + std::to_string(++users_));
    EXPECT_OK(Grant(folder, user, role));
    token_ = MakeToken(user.user_id, scopes).value();
    return user;
  }

  SystemSleeper sleeper_;
  std::unique_ptr<storage::s3::CredentialVendor> vendor_;
  std::unique_ptr<IdempotencyKeys> keys_;
  std::unique_ptr<Router> router_with_keys_;
  int users_ = 0;
};

TEST_F(VendingTest, KeysComeWithALoadThatAsksForThem) {
  const json made = Create("t");
  const json keys = {{"s3.access-key-id", "write-key"},
                     {"s3.secret-access-key", "write-hush"},
                     {"s3.endpoint", "http://127.0.0.1:9"},
                     {"s3.path-style-access", "true"},
                     {"s3.region", "us-east-1"},
                     {"client.region", "us-east-1"}};
  const json list = {{{"prefix", FolderOf(made)}, {"config", keys}}};
  EXPECT_EQ(made["config"], keys);
  EXPECT_EQ(made["storage-credentials"], list);
  const http::Response loaded = Ask("GET", std::string(kTables) + "/t");
  EXPECT_EQ(loaded.headers.Find("Cache-Control"), "no-store");
  EXPECT_EQ(json::parse(loaded.body)["config"], keys);
  EXPECT_EQ(json::parse(loaded.body)["storage-credentials"], list);
  const http::Response asked = Call("GET", std::string(kTables) + "/t/credentials");
  EXPECT_EQ(json::parse(asked.body)["storage-credentials"], list);
  const http::Response plain = Call("GET", std::string(kTables) + "/t");
  EXPECT_EQ(json::parse(plain.body)["config"], json::object());
  EXPECT_FALSE(json::parse(plain.body).contains("storage-credentials"));
  const json staged = Create("s", R"(,"stage-create":true)");
  EXPECT_EQ(KeyOf(staged), "write-key");
  EXPECT_EQ(staged["storage-credentials"][0]["prefix"], FolderOf(staged));
}

TEST_F(VendingTest, RegisteredTablesComeWithThemToo) {
  const json made = Create("t");
  Call("DELETE", std::string(kTables) + "/t");
  const json again =
      AskJson("POST", "/iceberg/v1/namespaces/a/register",
              json({{"name", "u"}, {"metadata-location", made["metadata-location"]}}).dump());
  EXPECT_EQ(KeyOf(again), "write-key") << again;
  EXPECT_EQ(again["storage-credentials"][0]["prefix"], FolderOf(made));
}

TEST_F(VendingTest, WhoMayOnlyReadGetsKeysToRead) {
  Create("t");
  const std::string table = std::string(kTables) + "/t";
  Become("a", access::Role::kEditor);
  EXPECT_EQ(KeyOf(AskJson("GET", table)), "write-key");
  Become("a", access::Role::kEditor, access::ScopeSet::Of({access::Scope::kIcebergRead}));
  EXPECT_EQ(KeyOf(AskJson("GET", table)), "read-key");
  Become("a", access::Role::kViewer);
  EXPECT_EQ(KeyOf(AskJson("GET", table)), "read-key");
  EXPECT_THAT(Call("GET", table + "/credentials").body, HasSubstr("read-hush"));
  EXPECT_THAT(Call("GET", table + "/credentials").body, Not(HasSubstr("write-hush")));
  Become("a", access::Role::kDiscoverer);
  EXPECT_EQ(Ask("GET", table).status, 403);
  EXPECT_EQ(Call("GET", table + "/credentials").status, 403);
  token_ = MakeToken(MakeUser("eve").user_id).value();
  EXPECT_EQ(Call("GET", table + "/credentials").status, 404);
}

TEST_F(VendingTest, TheTagFollowsTheKeys) {
  Create("t");
  const std::string table = std::string(kTables) + "/t";
  const auto tag = [&](const http::Response& response) {
    return std::string(response.headers.Find("ETag").value_or(""));
  };
  const std::string writes = tag(Ask("GET", table));
  EXPECT_EQ(Ask("GET", table, "", {{"If-None-Match", writes}}).status, 304);
  EXPECT_EQ(Call("GET", table, "", {{"If-None-Match", writes}}).status, 200);
  Become("a", access::Role::kViewer);
  EXPECT_EQ(Ask("GET", table, "", {{"If-None-Match", writes}}).status, 200);
}

TEST_F(VendingTest, PublishedTablesNeedARoleOnTheInternalOne) {
  lakehouse::TableSpec spec = MakeSpec("orders");
  ASSERT_OK_AND_ASSIGN(const auto orders, OpenTarget(spec));
  const std::string target = "/iceberg/v1/namespaces/shop/tables/orders__applied";
  const std::string internal = "/iceberg/v1/namespaces/shop_internal/tables/orders_internal";
  const json own = AskJson("GET", internal);
  // Only its task writes it, whatever the role.
  EXPECT_EQ(KeyOf(own), "read-key");
  const json all = AskJson("GET", target);
  ASSERT_EQ(all["storage-credentials"].size(), 2u) << all;
  EXPECT_EQ(all["storage-credentials"][0]["prefix"], FolderOf(all));
  EXPECT_EQ(all["storage-credentials"][1]["prefix"], FolderOf(own));
  const access::Principal user = Become("shop", access::Role::kViewer);
  EXPECT_EQ(AskJson("GET", target)["storage-credentials"].size(), 1u);
  ASSERT_OK(Grant("shop_internal", user, access::Role::kViewer));
  EXPECT_EQ(AskJson("GET", target)["storage-credentials"].size(), 2u);
}

TEST_F(VendingTest, FoldersThatTheTableNamesCountWhileNobodyElseHasThem) {
  const json other = Create("other");
  const std::string base = warehouse_->base_uri();
  const json table =
      Create("t", fmt::format(R"(,"properties":{{"write.data.path":"{}/files/t"}})", base));
  const auto prefixes = [&] {
    std::vector<std::string> found;
    const json answer = AskJson("GET", std::string(kTables) + "/t");
    for (const json& one : answer["storage-credentials"]) {
      found.push_back(one["prefix"]);
    }
    return found;
  };
  const std::vector<std::string> both = {FolderOf(table), "s3://lake/wh/files/t/"};
  EXPECT_EQ(prefixes(), both);
  // Another table makes its home there: the property gives nothing any more.
  Create("late", fmt::format(R"(,"location":"{}/files/t/x")", base));
  EXPECT_EQ(prefixes(), std::vector<std::string>{FolderOf(table)});
}

TEST_F(VendingTest, ReplaysAreKeptWithoutKeys) {
  const auto create = [&] {
    http::Request request;
    request.method = "POST";
    request.target = kTables;
    request.body = std::make_unique<http::StringBodyReader>(
        fmt::format(R"({{"name":"t","schema":{}}})", kSchema));
    request.headers.Add("Authorization", "Bearer " + admin_token_);
    request.headers.Add("X-Iceberg-Access-Delegation", "vended-credentials");
    request.headers.Add("Idempotency-Key", "0190a1b2-0000-7000-8000-000000000001");
    return router_with_keys_->Handle(request);
  };
  const http::Response first = create();
  EXPECT_EQ(KeyOf(json::parse(first.body)), "write-key");
  const http::Response again = create();
  ASSERT_EQ(again.status, 200) << again.body;
  EXPECT_EQ(again.headers.Find("Idempotency-Replayed"), "true");
  EXPECT_THAT(again.body, Not(HasSubstr("write-hush")));
  EXPECT_EQ(json::parse(again.body)["metadata"], json::parse(first.body)["metadata"]);
  EXPECT_EQ(json::parse(again.body)["config"], json::object());
}

}  // namespace

}  // namespace tarn::server::iceberg_rest
