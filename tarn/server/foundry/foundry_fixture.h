// A metastore, a store and the v2 routes, for tests of this folder.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tarn/access/audit.h"
#include "tarn/access/bootstrap.h"
#include "tarn/access/directory.h"
#include "tarn/access/grant.h"
#include "tarn/access/schema.h"
#include "tarn/metastore/sqlite_database.h"
#include "tarn/query/union_view.h"
#include "tarn/server/foundry/foundry_routes.h"
#include "tarn/storage/faulty_store.h"
#include "tarn/storage/memory_store.h"
#include "tarn/tree/tree.h"
#include "test/support/matchers.h"
#include "test/support/temporary_directory.h"

namespace tarn::server::foundry {

class FoundryFixture : public ::testing::Test {
 protected:
  using json = nlohmann::json;

  /// An answer with its body in memory.
  struct Answer {
    int status = 0;
    http::Headers headers;
    std::string body;
    [[nodiscard]] json document() const { return json::parse(body, nullptr, false); }
    /// "409 OpenTransactionAlreadyExists", or "200 ".
    [[nodiscard]] std::string outcome() const {
      const json parsed = document();
      return std::to_string(status) + " " +
             (parsed.is_object() ? parsed.value("errorName", "") : std::string());
    }
    [[nodiscard]] json parameters() const { return document().value("parameters", json::object()); }
  };

  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(
        database_, metastore::SqliteDatabase::Open({.path = directory_.path() / "metastore.db"}));
    for (const auto& migrations : {access::Migrations(), tree::Migrations(), dataset::Migrations(),
                                   catalog::Migrations(), query::Migrations()}) {
      ASSERT_OK(database_->Migrate(migrations));
    }
    datasets_ = std::make_unique<dataset::DatasetStore>(*database_, clock_, uuids_);
    ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(const std::optional<access::Bootstrapped> made,
                            access::Bootstrap(sql, tree::RootRid(), uuids_, clock_));
      admin_ = {.user_id = made->admin.id,
                .username = made->admin.username,
                .scopes = access::ScopeSet::All()};
      TARN_ASSIGN_OR_RETURN(project_, tree_.Bootstrap(sql, admin_.user_id));
      return Status::Ok();
    }));
    router_ = std::make_unique<Router>(
        RouterOptions{.access_log = AccessLog::kOff},
        RouterDependencies{.authenticate = [this](std::string_view) -> Result<access::Principal> {
                             return caller_.user_id.empty() ? admin_ : caller_;
                           },
                           .uuids = uuids_,
                           .metrics = metrics_});
    catalog_ = std::make_unique<catalog::Catalog>(
        catalog::CatalogOptions{}, catalog::CatalogDeps{*database_, store_, tree_, uuids_, clock_});
    ASSERT_OK(AddFoundryRoutes(*router_, {*database_, authorizer_, *datasets_, store_, uuids_,
                                          clock_, *catalog_, SharedEngine()}));
    rid_ = Post("/datasets", {{"parentFolderRid", project_.ToString()}, {"name", "d"}})
               .document()
               .value("rid", "");
    ASSERT_NE(rid_, "");
  }

  /// Opening one costs more than a test; none of these tests keeps anything in it. Never closed: an
  /// engine must not outlive main.
  static engine::Engine& SharedEngine() {
    static engine::Engine* const kEngine = [] {
      Result<std::unique_ptr<engine::Engine>> opened = engine::Engine::Open({});
      TARN_CHECK(opened.ok());
      return std::move(opened).value().release();
    }();
    return *kEngine;
  }

  Answer Call(const std::string& method, const std::string& target, std::string body = {},
              const http::Headers& fields = {}) {
    http::Request request;
    request.method = method;
    request.target = "/api/v2" + target;
    request.headers = fields;
    request.headers.Set("Authorization", "Bearer x");
    request.body = std::make_unique<http::StringBodyReader>(std::move(body));
    http::Response response = router_->Handle(request);
    if (response.producer) {
      StringSink sink;
      const Status produced = response.producer(sink);
      if (!produced.ok()) {
        response = router_->RenderServerError(produced, request.target);
      } else {
        EXPECT_EQ(response.content_length.value_or(sink.text.size()), sink.text.size());
        response.body = std::move(sink.text);
      }
    }
    return {response.status, response.headers, response.body};
  }
  Answer Get(const std::string& target, const http::Headers& fields = {}) {
    return Call("GET", target, {}, fields);
  }
  Answer Post(const std::string& target, const json& body) {
    return Call("POST", target, body.is_null() ? "" : body.dump());
  }

  [[nodiscard]] std::string Dataset(const std::string& rest = "") const {
    return "/datasets/" + rid_ + rest;
  }
  std::string Start(const std::string& type, const std::string& branch = "master") {
    return Post(Dataset("/transactions?branchName=" + EncodeUrl(branch)),
                {{"transactionType", type}})
        .document()
        .value("rid", "");
  }
  Answer Upload(const std::string& path, const std::string& body, const std::string& query = "") {
    return Call("POST", Dataset("/files/" + EncodeUrl(path) + "/upload" + query), body);
  }
  Answer Commit(const std::string& transaction) {
    return Post(Dataset("/transactions/" + transaction + "/commit"), nullptr);
  }
  std::vector<std::string> Paths(const std::string& query = "") {
    std::vector<std::string> paths;
    for (const json& file :
         Get(Dataset("/files" + query)).document().value("data", json::array())) {
      paths.push_back(file.value("path", ""));
    }
    return paths;
  }

  /// Makes a user with a role on the project the caller; kNone for a stranger.
  void ActAs(access::Role role) {
    access::Directory directory(uuids_, clock_);
    ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(
          const access::User user,
          directory.CreateUser(sql, {.username = "user" + uuids_.NextV4().ToString()}));
      caller_ = {.user_id = user.id, .username = user.username, .scopes = access::ScopeSet::All()};
      if (role == access::Role::kNone) {
        return Status::Ok();
      }
      return access::AddGrant(sql, {.resource = project_, .principal_id = user.id, .role = role},
                              admin_.user_id, clock_.Now());
    }));
  }
  void ActAsAdmin() { caller_ = {}; }

  struct StringSink final : http::BodySink {
    Status Write(std::string_view bytes) override {
      text += bytes;
      return Status::Ok();
    }
    std::string text;
  };

  TemporaryDirectory directory_;
  ManualClock clock_{FromMillis(1'800'000'000'000)};
  UuidGenerator uuids_{clock_};
  std::unique_ptr<metastore::SqliteDatabase> database_;
  storage::MemoryStore memory_{clock_};
  storage::FaultyStore store_{memory_, {}};
  access::Authorizer authorizer_{clock_};
  tree::Tree tree_{uuids_, clock_};
  std::unique_ptr<dataset::DatasetStore> datasets_;
  std::unique_ptr<catalog::Catalog> catalog_;
  MetricRegistry metrics_;
  std::unique_ptr<Router> router_;
  access::Principal admin_;
  access::Principal caller_;  // Empty: the administrator calls.
  Rid project_;
  std::string rid_;
};

}  // namespace tarn::server::foundry
