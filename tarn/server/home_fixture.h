// A whole home behind a router, for tests of route handlers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tarn/access/grant.h"
#include "tarn/access/token.h"
#include "tarn/query/query_fixture.h"
#include "tarn/server/router.h"

namespace tarn::server {

class HomeFixture : public query::QueryFixture {
 protected:
  using Fields = std::vector<std::pair<std::string, std::string>>;

  HomeFixture() : router_({.access_log = AccessLog::kOff}, Dependencies()) {}

  void SetUp() override {
    QueryFixture::SetUp();
    ASSERT_OK_AND_ASSIGN(admin_token_, MakeToken(admin_.user_id));
  }

  RouterDependencies Dependencies() {
    return {.authenticate = [this](std::string_view text) -> Result<access::Principal> {
              std::optional<Result<access::Principal>> principal;
              TARN_RETURN_IF_ERROR(database_->Read([&](metastore::SqlTransaction& sql) {
                principal = tokens_.Authenticate(sql, text);
                return Status::Ok();
              }));
              return *principal;
            },
            .uuids = uuids_,
            .metrics = metrics_};
  }

  Result<std::string> MakeToken(const std::string& user_id,
                                access::ScopeSet scopes = access::ScopeSet::All()) {
    std::string text;
    TARN_RETURN_IF_ERROR(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(
          const access::IssuedToken issued,
          tokens_.Create(sql, {.user_id = user_id, .name = "test", .scopes = scopes}));
      text = issued.text;
      return Status::Ok();
    }));
    return text;
  }

  Status Grant(const std::string& folder, const access::Principal& principal, access::Role role) {
    return database_->Write([&](metastore::SqlTransaction& sql) -> Status {
      Rid resource = project_;
      if (!folder.empty()) {
        TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> node,
                              tree::FindChild(sql, project_, folder));
        resource = node->rid;
      }
      return access::AddGrant(
          sql, {.resource = resource, .principal_id = principal.user_id, .role = role}, "me",
          clock_.Now());
    });
  }

  /// An answer with its body pulled out of the producer.
  http::Response Call(const std::string& method, const std::string& target,
                      const std::string& body = "", const Fields& headers = {}) {
    http::Request request;
    request.method = method;
    request.target = target;
    request.body = std::make_unique<http::StringBodyReader>(body);
    request.headers.Add("Authorization", "Bearer " + (token_.empty() ? admin_token_ : token_));
    for (const auto& [name, value] : headers) {
      request.headers.Set(name, value);
    }
    http::Response response = router_.Handle(request);
    if (response.producer) {
      StringSink sink;
      const Status produced = response.producer(sink);
      if (!produced.ok()) {
        return router_.RenderServerError(produced, target);
      }
      response.body = std::move(sink.text);
    }
    return response;
  }
  nlohmann::json CallJson(const std::string& method, const std::string& target,
                          const std::string& body = "") {
    return nlohmann::json::parse(Call(method, target, body).body, nullptr, false);
  }

  std::string token_;  // Of the caller; empty = the administrator.
  std::string admin_token_;
  access::Tokens tokens_{uuids_, clock_};
  MetricRegistry metrics_;
  Router router_;

 private:
  struct StringSink final : http::BodySink {
    Status Write(std::string_view bytes) override {
      text += bytes;
      return Status::Ok();
    }
    std::string text;
  };
};

}  // namespace tarn::server
