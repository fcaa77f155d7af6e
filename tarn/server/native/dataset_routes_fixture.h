// A home with one dataset behind the native routes. For tests of the dataset handlers.
#pragma once

#include <memory>
#include <string>

#include "tarn/access/schema.h"
#include "tarn/server/control_fixture.h"
#include "tarn/server/native/native_routes.h"
#include "tarn/storage/object_store.h"

namespace tarn::server::native {

class DatasetRoutesFixture : public ControlFixture {
 protected:
  void SetUp() override {
    ControlFixture::SetUp();
    ASSERT_OK(AddNativeRoutes(router_, {.query = deps(), .control = *control_}));
    ASSERT_OK_AND_ASSIGN(rid_, MakeDataset("f", "d"));
  }

  std::string Target(const std::string& rest) {
    return "/tarn/v1/datasets/" + rid_.ToString() + rest;
  }
  nlohmann::json Get(const std::string& rest) { return CallJson("GET", Target(rest)); }
  nlohmann::json Post(const std::string& rest, const nlohmann::json& body) {
    return CallJson("POST", Target(rest), body.dump());
  }
  /// "STATUS name" of a failure, "STATUS" of success.
  std::string Outcome(const std::string& method, const std::string& target,
                      const std::string& body = "", const Fields& headers = {}) {
    const http::Response response = Call(method, target, body, headers);
    const nlohmann::json document = nlohmann::json::parse(response.body, nullptr, false);
    std::string outcome = std::to_string(response.status);
    if (response.status >= 300 && document.is_object()) {
      outcome += " " + document.value("error", nlohmann::json::object()).value("name", "");
    }
    return outcome;
  }

  Result<dataset::TransactionRid> CommitFiles(const std::vector<std::string>& paths,
                                              const std::string& version,
                                              const std::string& branch = "master") {
    dataset::CommitFilesRequest request;
    request.dataset = rid_;
    request.branch = branch;
    request.type = dataset::TransactionType::kUpdate;
    for (const std::string& path : paths) {
      dataset::StoredFile file;
      file.path = path;
      file.location = path + "@" + version;
      file.size_bytes = 1;
      request.files.push_back(file);
    }
    std::optional<dataset::Transaction> committed;
    TARN_RETURN_IF_ERROR(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(committed, datasets_->CommitFiles(sql, request));
      return Status::Ok();
    }));
    return committed->rid;
  }

  /// A caller with `role` on the project; kNone = one who may do nothing.
  void Become(const std::string& name, access::Role role) {
    const access::Principal user = MakeUser(name);
    if (role != access::Role::kNone) {
      ASSERT_OK(Grant("", user, role));
    }
    Result<std::string> token = MakeToken(user.user_id);
    ASSERT_OK(token);
    token_ = *token;
  }

  /// An object of the warehouse that is not the server's; returns its URI.
  std::string PutObject(const std::string& key, const std::string& bytes) {
    EXPECT_OK(storage::WriteObject(*warehouse_, key, bytes, storage::WriteMode::kOverwrite));
    return storage::UriOf(*warehouse_, key);
  }

  dataset::DatasetRid rid_;
};

}  // namespace tarn::server::native
