#include "tarn/server/foundry/foundry_fixture.h"

namespace tarn::server::foundry {
namespace {

class SchemasTest : public FoundryFixture {
 protected:
  Answer Put(const json& schema, const json& more = json::object()) {
    json body = more;
    body["schema"] = schema;
    return Call("PUT", Dataset("/putSchema"), body.dump());
  }
  static json OneColumn(const std::string& type) {
    return {{"fieldSchemaList", {{{"name", "a"}, {"type", type}, {"nullable", true}}}}};
  }
};

TEST_F(SchemasTest, PutOnesAreReadBackWithUnknownKeys) {
  EXPECT_EQ(Put(OneColumn("LONG")).outcome(), "404 DatasetViewNotFound");
  Upload("f", "1");
  EXPECT_EQ(Get(Dataset("/getSchema")).outcome(), "404 SchemaNotFound");
  json schema = OneColumn("LONG");
  schema["customMetadata"] = {{"textParserParams", {{"skipLines", 1}}}};
  const Answer put = Put(schema, {{"dataframeReader", "CSV"}});
  ASSERT_EQ(put.status, 200) << put.body;
  const json answer = Get(Dataset("/getSchema")).document();
  EXPECT_EQ(answer, put.document());
  EXPECT_EQ(answer["branchName"], "master");
  EXPECT_EQ(answer["schema"]["customMetadata"]["textParserParams"]["skipLines"], 1);
  EXPECT_EQ(answer["schema"]["fieldSchemaList"][0]["type"], "LONG");
  const std::string version = answer["versionId"];
  Put(OneColumn("STRING"));
  EXPECT_EQ(Get(Dataset("/getSchema?versionId=" + version)).document(), answer);
  EXPECT_EQ(Get(Dataset("/getSchema")).document()["schema"]["fieldSchemaList"][0]["type"],
            "STRING");
}

TEST_F(SchemasTest, BadOnesAreRefused) {
  Upload("f", "1");
  EXPECT_EQ(Put(OneColumn("NUMBER")).outcome(), "400 InvalidSchema");
  EXPECT_EQ(Put(OneColumn("DECIMAL")).outcome(), "400 InvalidSchema");
  EXPECT_EQ(Put("text").outcome(), "400 InvalidBody");
  EXPECT_EQ(Put(OneColumn("LONG"), {{"dataframeReader", "XLS"}}).outcome(), "400 InvalidBody");
  EXPECT_EQ(Put(OneColumn("LONG"), {{"branchName", "none"}}).outcome(), "404 BranchNotFound");
  EXPECT_EQ(Get(Dataset("/getSchema?versionId=x")).status, 400);
}

TEST_F(SchemasTest, BatchesLeaveOutWhatIsMissing) {
  Upload("f", "1");
  Put(OneColumn("LONG"));
  const json batch = {{{"datasetRid", rid_}},
                      {{"datasetRid", "ri.foundry.main.dataset.nonsense"}},
                      {{"datasetRid", rid_}, {"branchName", "none"}}};
  const json data = Post("/datasets/getSchemaBatch", batch).document()["data"];
  EXPECT_EQ(data.size(), 1U);
  EXPECT_TRUE(data.contains(rid_));
  EXPECT_EQ(Post("/datasets/getSchemaBatch", json::array()).outcome(), "400 MissingBatchRequest");
  const Answer large =
      Post("/datasets/getSchemaBatch", std::vector<json>(1001, {{"datasetRid", rid_}}));
  EXPECT_EQ(large.outcome(), "400 BatchRequestSizeExceededLimit");
  EXPECT_EQ(large.parameters()["providedBatchSize"], 1001);
  ActAs(access::Role::kNone);
  EXPECT_EQ(Post("/datasets/getSchemaBatch", {{{"datasetRid", rid_}}}).document()["data"],
            json::object());
}

TEST_F(SchemasTest, ViewersReadButDoNotPut) {
  Upload("f", "1");
  Put(OneColumn("LONG"));
  ActAs(access::Role::kViewer);
  EXPECT_EQ(Get(Dataset("/getSchema")).status, 200);
  EXPECT_EQ(Put(OneColumn("LONG")).outcome(), "403 PutDatasetSchemaPermissionDenied");
}

}  // namespace
}  // namespace tarn::server::foundry
