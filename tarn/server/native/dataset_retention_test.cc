#include "tarn/server/native/dataset_routes_fixture.h"

namespace tarn::server::native {
namespace {

using nlohmann::json;

class DatasetRetentionTest : public DatasetRoutesFixture {
 protected:
  const json policy_ = {{"datasets", {{"rids", {}}}}, {"transactions", {{"keepNewest", 1}}}};

  json PolicyForDataset() {
    json policy = policy_;
    policy["datasets"]["rids"] = {rid_.ToString()};
    return policy;
  }
};

TEST_F(DatasetRetentionTest, PoliciesArePutListedAndRemoved) {
  const std::string target = "/tarn/v1/retention/policies/mine";
  EXPECT_EQ(CallJson("PUT", target, PolicyForDataset().dump())["grace"], "7d");
  EXPECT_EQ(CallJson("GET", "/tarn/v1/retention/policies")["data"].size(), 1U);
  EXPECT_EQ(Get("/retention")["data"][0]["name"], "mine");
  EXPECT_EQ(Outcome("PUT", target, "{}"), "400 InvalidRetentionPolicy");
  EXPECT_EQ(Outcome("PUT", target, R"({"name":"other"})"), "400 InvalidRetentionPolicy");
  EXPECT_EQ(Outcome("DELETE", target), "204");
  EXPECT_EQ(Outcome("DELETE", target), "404 RetentionPolicyNotFound");
  Become("ed", access::Role::kEditor);
  EXPECT_TRUE(Outcome("PUT", target, PolicyForDataset().dump()).starts_with("403"));
  EXPECT_TRUE(Outcome("POST", "/tarn/v1/retention:run").starts_with("403"));
  EXPECT_TRUE(Outcome("POST", "/tarn/v1/sweep:run").starts_with("403"));
}

TEST_F(DatasetRetentionTest, RunsReportExplainAndUnmark) {
  ASSERT_OK_AND_ASSIGN(const auto first, CommitFiles({"a"}, "0"));
  ASSERT_OK(CommitFiles({"a"}, "1"));
  CallJson("PUT", "/tarn/v1/retention/policies/mine", PolicyForDataset().dump());
  const json planned = CallJson("POST", "/tarn/v1/retention:run", R"({"dryRun":true})");
  EXPECT_EQ(planned["marked"], 1) << planned;
  const json run = CallJson("POST", "/tarn/v1/retention:run");
  EXPECT_EQ(run["marks"][0]["transactionRid"], first.ToString()) << run;
  const std::string explain = "/retention:explain?path=a&transactionRid=" + first.ToString();
  EXPECT_EQ(Get(explain)["fate"], "marked");
  EXPECT_EQ(Get("/retention:explain?path=a")["branches"], json({"master"}));
  EXPECT_EQ(Outcome("GET", Target("/retention:explain?path=none")),
            "404 FileNotFoundOnTransactionRange");
  EXPECT_EQ(Post("/retention:unmark", {{"transactionRid", first.ToString()}})["kept"], true);
  EXPECT_EQ(Get(explain)["fate"], "kept");
  const json sweep = CallJson("POST", "/tarn/v1/sweep:run", R"({"dryRun":true})");
  EXPECT_EQ(sweep["condemned"], 0) << sweep;
  EXPECT_EQ(Outcome("POST", "/tarn/v1/sweep:run", R"({"dryRun":"yes"})"), "400 InvalidArgument");
}

}  // namespace
}  // namespace tarn::server::native
