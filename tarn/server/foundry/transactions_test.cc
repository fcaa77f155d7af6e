#include "tarn/server/foundry/foundry_fixture.h"

namespace tarn::server::foundry {
namespace {

class TransactionsTest : public FoundryFixture {};

TEST_F(TransactionsTest, OpenCommittedAborted) {
  const json started = Post(Dataset("/transactions"), {{"transactionType", "APPEND"}}).document();
  EXPECT_EQ(started["status"], "OPEN");
  EXPECT_EQ(started["transactionType"], "APPEND");
  EXPECT_FALSE(started.contains("closedTime"));
  EXPECT_TRUE(started["createdTime"].get<std::string>().ends_with("Z"));
  const std::string rid = started["rid"];
  EXPECT_EQ(Get(Dataset("/transactions/" + rid)).document(), started);
  const json committed = Commit(rid).document();
  EXPECT_EQ(committed["status"], "COMMITTED");
  EXPECT_TRUE(committed.contains("closedTime"));
  const Answer again = Commit(rid);
  EXPECT_EQ(again.outcome(), "400 TransactionNotOpen");
  EXPECT_EQ(again.parameters()["transactionStatus"], "COMMITTED");
  const std::string other = Start("SNAPSHOT");
  EXPECT_EQ(Post(Dataset("/transactions/" + other + "/abort"), nullptr).document()["status"],
            "ABORTED");
  EXPECT_EQ(Commit(other).parameters()["transactionStatus"], "ABORTED");
  EXPECT_EQ(Get(Dataset("/branches/master")).document()["transactionRid"], rid);
}

TEST_F(TransactionsTest, OneOpenPerBranch) {
  Start("APPEND");
  const Answer second = Post(Dataset("/transactions"), {{"transactionType", "UPDATE"}});
  EXPECT_EQ(second.outcome(), "409 OpenTransactionAlreadyExists");
  EXPECT_EQ(second.parameters()["branchName"], "master");
  Post(Dataset("/branches"), {{"name", "b"}});
  EXPECT_NE(Start("APPEND", "b"), "");
}

TEST_F(TransactionsTest, BadRequests) {
  EXPECT_EQ(Post(Dataset("/transactions"), {{"transactionType", "MERGE"}}).status, 400);
  EXPECT_EQ(Post(Dataset("/transactions"), json::object()).outcome(), "400 InvalidBody");
  EXPECT_EQ(
      Post(Dataset("/transactions?branchName=none"), {{"transactionType", "APPEND"}}).outcome(),
      "404 BranchNotFound");
  EXPECT_EQ(Post(Dataset("/transactions?branchName="), {{"transactionType", "APPEND"}}).outcome(),
            "400 InvalidBranchName");
  const Answer unknown = Get(Dataset("/transactions/ri.foundry.main.transaction.nonsense"));
  EXPECT_EQ(unknown.outcome(), "404 TransactionNotFound");
  EXPECT_EQ(unknown.parameters()["transactionRid"], "ri.foundry.main.transaction.nonsense");
}

TEST_F(TransactionsTest, ClashingAppendStaysOpenAndNamesThePaths) {
  ASSERT_EQ(Upload("a", "1").status, 200);
  const std::string rid = Start("APPEND");
  ASSERT_EQ(Upload("a", "2", "?transactionRid=" + rid).status, 200);
  const Answer refused = Commit(rid);
  EXPECT_EQ(refused.outcome(), "409 AppendOverwritesExistingFiles");
  EXPECT_THAT(refused.body, testing::HasSubstr("\"a\""));
  EXPECT_EQ(Get(Dataset("/transactions/" + rid)).document()["status"], "OPEN");
  EXPECT_EQ(Post(Dataset("/transactions/" + rid + "/abort"), nullptr).status, 200);
  EXPECT_EQ(Get(Dataset("/files/a/content")).body, "1");
}

TEST_F(TransactionsTest, NoBuildAndNoJob) {
  const std::string rid = Start("APPEND");
  for (const std::string part : {"/build", "/job"}) {
    EXPECT_EQ(Get(Dataset("/transactions/" + rid + part + "?preview=true")).status, 204);
    EXPECT_EQ(Get(Dataset("/transactions/" + rid + part)).outcome(),
              "400 ApiFeaturePreviewUsageOnly");
  }
}

TEST_F(TransactionsTest, ViewersAreRefusedByName) {
  const std::string rid = Start("APPEND");
  ActAs(access::Role::kViewer);
  EXPECT_EQ(Get(Dataset("/transactions/" + rid)).status, 200);
  const Answer commit = Commit(rid);
  EXPECT_EQ(commit.outcome(), "403 CommitTransactionPermissionDenied");
  EXPECT_EQ(commit.parameters()["transactionRid"], rid);
  EXPECT_EQ(Post(Dataset("/transactions/" + rid + "/abort"), nullptr).outcome(),
            "403 AbortTransactionPermissionDenied");
  EXPECT_EQ(Post(Dataset("/transactions"), {{"transactionType", "APPEND"}}).outcome(),
            "403 CreateTransactionPermissionDenied");
  ActAs(access::Role::kNone);
  EXPECT_EQ(Commit(rid).outcome(), "404 DatasetNotFound");
}

}  // namespace
}  // namespace tarn::server::foundry
