#include "tarn/server/native/dataset_routes_fixture.h"

namespace tarn::server::native {
namespace {

using nlohmann::json;

class DatasetBranchesTest : public DatasetRoutesFixture {};

TEST_F(DatasetBranchesTest, ABranchStartsAtABranchOrATransaction) {
  ASSERT_OK_AND_ASSIGN(const auto first, CommitFiles({"a"}, "0"));
  EXPECT_EQ(Post("/branches", {{"name", "dev"}, {"fromBranch", "master"}})["parent"], "master");
  EXPECT_EQ(Post("/branches", {{"name", "at"}, {"transactionRid", first.ToString()}})["name"],
            "at");
  EXPECT_EQ(Outcome("POST", Target("/branches"), R"({"name":"dev"})"), "409 BranchAlreadyExists");
  EXPECT_EQ(Outcome("POST", Target("/branches"), R"({"name":"x","fromBranch":"none"})"),
            "404 BranchNotFound");
  Become("vera", access::Role::kViewer);
  EXPECT_TRUE(Outcome("POST", Target("/branches"), R"({"name":"x"})").starts_with("403"));
  Become("eve", access::Role::kNone);
  EXPECT_EQ(Outcome("POST", Target("/branches"), R"({"name":"x"})"), "404 DatasetNotFound");
}

TEST_F(DatasetBranchesTest, MergesSayWhatTheyDidAndWhatClashes) {
  ASSERT_OK(CommitFiles({"a", "b"}, "0"));
  Post("/branches", {{"name", "dev"}, {"fromBranch", "master"}});
  ASSERT_OK(CommitFiles({"a", "c"}, "1", "dev"));
  ASSERT_OK(CommitFiles({"a"}, "2"));
  const json clash = Post("/branches/master:merge", {{"source", "dev"}});
  EXPECT_EQ(clash["error"]["name"], "MergeConflicts") << clash;
  EXPECT_EQ(clash["error"]["paths"], json({"a"}));
  const json planned = Post("/branches/master:merge", {{"source", "dev"}, {"dryRun", true}});
  EXPECT_EQ(planned["outcome"], "conflicts");
  const json merged =
      Post("/branches/master:merge", {{"source", "dev"}, {"choices", {{"a", "source"}}}});
  EXPECT_EQ(merged["outcome"], "merged") << merged;
  EXPECT_EQ(merged["put"], 2);
  EXPECT_EQ(Outcome("POST", Target("/branches/master:merge"),
                    R"({"source":"dev","choices":{"a":"mine"}})"),
            "400 InvalidArgument");
  const json history = Get("/history");
  EXPECT_EQ(history["data"][0]["rid"], merged["transactionRid"]);
  EXPECT_TRUE(history["data"][0]["mergedRid"].is_string());
}

TEST_F(DatasetBranchesTest, ProtectionIsTheOwners) {
  ASSERT_OK_AND_ASSIGN(const auto first, CommitFiles({"a"}, "0"));
  ASSERT_OK(CommitFiles({"a"}, "1"));
  const std::string reset = json{{"transactionRid", first.ToString()}}.dump();
  EXPECT_EQ(Outcome("POST", Target("/branches/master:protect")), "200");
  EXPECT_EQ(Outcome("POST", Target("/branches/master:reset"), reset), "409 BranchIsProtected");
  EXPECT_EQ(Outcome("POST", Target("/branches/master:protect"), R"({"protected":false})"), "200");
  EXPECT_EQ(Outcome("POST", Target("/branches/master:reset"), reset), "200");
  Become("ed", access::Role::kEditor);
  EXPECT_TRUE(Outcome("POST", Target("/branches/master:protect")).starts_with("403"));
}

TEST_F(DatasetBranchesTest, AFastForwardGoesToABranchToo) {
  ASSERT_OK(CommitFiles({"a"}, "0"));
  Post("/branches", {{"name", "dev"}, {"fromBranch", "master"}});
  ASSERT_OK_AND_ASSIGN(const auto second, CommitFiles({"a"}, "1", "dev"));
  EXPECT_EQ(Post("/branches/master:fastForward", {{"to", "dev"}})["transactionRid"],
            second.ToString());
}

TEST_F(DatasetBranchesTest, TagsAreMadeListedAndRemoved) {
  ASSERT_OK_AND_ASSIGN(const auto first, CommitFiles({"a"}, "0"));
  const json body = {{"name", "v1"}, {"transactionRid", first.ToString()}};
  EXPECT_EQ(Post("/tags", body)["name"], "v1");
  EXPECT_EQ(Outcome("POST", Target("/tags"), body.dump()), "409 TagAlreadyExists");
  EXPECT_EQ(Get("/tags")["data"].size(), 1U);
  EXPECT_EQ(Get("/history")["data"][0]["tags"], json({"v1"}));
  EXPECT_EQ(Outcome("DELETE", Target("/tags/v1")), "204");
  EXPECT_EQ(Outcome("DELETE", Target("/tags/v1")), "404 TagNotFound");
}

TEST_F(DatasetBranchesTest, ATagStandsWhereABranchOrATransactionDoes) {
  ASSERT_OK_AND_ASSIGN(const auto first, CommitFiles({"a"}, "0"));
  Post("/tags", {{"name", "v1"}, {"transactionRid", first.ToString()}});
  ASSERT_OK(CommitFiles({"b"}, "1"));
  const json at = Get("/transactions:at?at=v1");
  EXPECT_EQ(at["transactionRid"], first.ToString()) << at;
  EXPECT_EQ(at["kind"], "tag");
  EXPECT_EQ(Get("/transactions:at?at=master")["kind"], "branch");
  EXPECT_EQ(Outcome("GET", Target("/transactions:at?at=v2")), "404 BranchNotFound");
  EXPECT_EQ(Get("/compare?from=v1&to=master")["added"].size(), 1U);
  EXPECT_EQ(Outcome("GET", Target("/view?at=v1")), "200");
  EXPECT_EQ(Outcome("GET", Target("/view?branch=v1")), "200");
  EXPECT_EQ(Outcome("GET", Target("/view?at=v2")), "404 BranchNotFound");
}

TEST_F(DatasetBranchesTest, ReadsFallBackToTheFirstBranchThatExists) {
  ASSERT_OK(CommitFiles({"a"}, "0"));
  EXPECT_EQ(Outcome("GET", Target("/increment?branch=dev")), "404 BranchNotFound");
  const json increment = Get("/increment?branch=dev&fallback=x&fallback=master");
  EXPECT_EQ(increment["added"].size(), 1U) << increment;
}

}  // namespace
}  // namespace tarn::server::native
