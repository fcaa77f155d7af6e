#include "tarn/server/foundry/internal/internal_api.h"

#include "tarn/server/foundry/foundry_fixture.h"

namespace tarn::server::foundry::internal {
namespace {

class InternalApiTest : public FoundryFixture {
 protected:
  /// A call below the root instead of /api/v2.
  http::Response Raw(const std::string& method, const std::string& target, const json& body) {
    http::Request request;
    request.method = method;
    request.target = target;
    request.headers.Set("Authorization", "Bearer x");
    request.body = std::make_unique<http::StringBodyReader>(body.is_null() ? "" : body.dump());
    http::Response response = router_->Handle(request);
    if (response.producer) {
      StringSink sink;
      EXPECT_OK(response.producer(sink));
      response.body = std::move(sink.text);
    }
    return response;
  }
  [[nodiscard]] std::string Catalog(const std::string& rest) const {
    return "/foundry-catalog/api/catalog/datasets/" + rid_ + rest;
  }
};

TEST_F(InternalApiTest, ReferencesAreBranchesOrTransactions) {
  ASSERT_OK_AND_ASSIGN(const Reference branch, ParseReference("a b"));
  EXPECT_EQ(branch.Select().branch, "a b");
  const std::string text = Upload("a", "1").document().value("transactionRid", "");
  ASSERT_OK_AND_ASSIGN(const Reference transaction, ParseReference(text));
  EXPECT_EQ(transaction.Select().end->ToString(), text);
  EXPECT_THAT(ParseReference(" a"), Fails(ErrorCode::kInvalidArgument));
}

TEST_F(InternalApiTest, SchemasAreCompleted) {
  ASSERT_OK_AND_ASSIGN(const dataset::DatasetSchema schema,
                       dataset::ParseDatasetSchema(
                           R"({"fieldSchemaList":[{"type":"ARRAY","name":"a","nullable":true,
              "arraySubtype":{"type":"STRING","nullable":true}}],"unknown":1})"));
  const json full = json::parse(FullSchema(schema));
  EXPECT_EQ(full["unknown"], 1);
  EXPECT_TRUE(full["primaryKey"].is_null());
  EXPECT_EQ(full["customMetadata"], json({{"format", "parquet"}}));
  EXPECT_EQ(full["fieldSchemaList"][0]["arraySubtype"]["customMetadata"], json::object());
  EXPECT_TRUE(full["fieldSchemaList"][0]["precision"].is_null());
}

TEST_F(InternalApiTest, FailuresHaveTheNameOfTheirService) {
  EXPECT_EQ(NamedBy("Catalog", Status::NotFound("x").WithReason("BranchNotFound")).reason(),
            "Catalog:BranchesNotFound");
  EXPECT_EQ(NamedBy("DataProxy", Status::NotFound("x").WithReason("DatasetNotFound")).reason(),
            "DataProxy:DatasetNotFound");
  EXPECT_OK(NamedBy("Catalog", Status::Ok()));
  const json envelope = json::parse(
      Raw("POST", "/foundry-catalog/api/catalog/datasets/ri.foundry.main.dataset.x/transactions",
          {{"branchId", "master"}})
          .body);
  EXPECT_EQ(envelope["errorName"], "Catalog:DatasetsNotFound");
  EXPECT_EQ(envelope["errorCode"], "NOT_FOUND");
}

TEST_F(InternalApiTest, APlusInABranchIsABlank) {
  EXPECT_EQ(Raw("POST", Catalog("/branchesUnrestricted2/a%2Bb+c%2Fd"), json::object()).status, 200);
  EXPECT_EQ(Raw("GET", Catalog("/branches2/a%2Bb+c%2Fd"), nullptr).status, 200);
  EXPECT_EQ(Raw("GET", Catalog("/branches2/a%2Bb%2Bc%2Fd"), nullptr).status, 204);
  EXPECT_EQ(json::parse(Raw("GET", Catalog("/branches"), nullptr).body),
            json({"a+b c/d", "master"}));
}

TEST_F(InternalApiTest, FilesHaveRawSlashes) {
  Upload("a/b c/%", "bytes");
  EXPECT_EQ(
      Raw("GET", "/foundry-data-proxy/api/dataproxy/datasets/" + rid_ + "/views/master/a/b%20c/%25",
          nullptr)
          .body,
      "bytes");
}

TEST_F(InternalApiTest, FlagsAreThoseOfPython) {
  const std::string target = Catalog("/reverse-transactions2/master");
  EXPECT_EQ(Raw("GET", target + "?includeOpenExclusiveTransaction=True", nullptr).status, 200);
  EXPECT_EQ(Raw("GET", target + "?includeOpenExclusiveTransaction=yes", nullptr).status, 400);
}

}  // namespace
}  // namespace tarn::server::foundry::internal
