#include "tarn/server/foundry/foundry_fixture.h"

namespace tarn::server::foundry {
namespace {

class BranchesTest : public FoundryFixture {};

TEST_F(BranchesTest, NamesOfAnyKindRoundTrip) {
  for (const std::string name : {"my/project/x", "a b", "#?&%2F", "größe", "content", "..a"}) {
    const Answer created = Post(Dataset("/branches"), {{"name", name}});
    ASSERT_EQ(created.document(), json({{"name", name}})) << created.body;
    EXPECT_EQ(Get(Dataset("/branches/" + EncodeUrl(name))).document(), json({{"name", name}}));
    EXPECT_EQ(Call("DELETE", Dataset("/branches/" + EncodeUrl(name))).status, 204);
    const Answer gone = Get(Dataset("/branches/" + EncodeUrl(name)));
    EXPECT_EQ(gone.outcome(), "404 BranchNotFound");
    EXPECT_EQ(gone.parameters()["branchName"], name);
    EXPECT_EQ(gone.parameters()["datasetRid"], rid_);
  }
}

TEST_F(BranchesTest, StartsAtACommittedTransactionOnly) {
  const std::string transaction = Start("APPEND");
  EXPECT_EQ(Post(Dataset("/branches"), {{"name", "b"}, {"transactionRid", transaction}}).outcome(),
            "400 TransactionNotCommitted");
  Upload("f", "1", "?transactionRid=" + transaction);
  ASSERT_EQ(Commit(transaction).status, 200);
  EXPECT_EQ(Post(Dataset("/branches"), {{"name", "b"}, {"transactionRid", transaction}}).document(),
            json({{"name", "b"}, {"transactionRid", transaction}}));
  EXPECT_EQ(Paths("?branchName=b"), std::vector<std::string>{"f"});
  EXPECT_EQ(Post(Dataset("/branches"),
                 {{"name", "c"}, {"transactionRid", "ri.foundry.main.transaction.x"}})
                .outcome(),
            "404 TransactionNotFound");
}

TEST_F(BranchesTest, FailuresOfCreation) {
  EXPECT_EQ(Post(Dataset("/branches"), {{"name", "master"}}).outcome(), "409 BranchAlreadyExists");
  for (const std::string name : {"", " a", "a ", "a\nb", "ri.foundry.main.dataset.x"}) {
    EXPECT_EQ(Post(Dataset("/branches"), {{"name", name}}).outcome(), "400 InvalidBranchName")
        << name;
  }
  EXPECT_EQ(Call("DELETE", Dataset("/branches/none")).outcome(), "404 BranchNotFound");
}

TEST_F(BranchesTest, ListingsArePaged) {
  for (const char* name : {"a", "b", "c"}) {
    Post(Dataset("/branches"), {{"name", name}});
  }
  std::vector<std::string> names;
  std::string token;
  int pages = 0;
  do {
    const json page = Get(Dataset("/branches?pageSize=2" +
                                  (token.empty() ? "" : "&pageToken=" + EncodeUrl(token))))
                          .document();
    for (const json& branch : page["data"]) {
      names.push_back(branch["name"]);
    }
    token = page.value("nextPageToken", "");
    ++pages;
  } while (!token.empty());
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "c", "master"}));
  EXPECT_EQ(pages, 2);
  EXPECT_EQ(Get(Dataset("/branches?pageSize=0")).outcome(), "400 InvalidPageSize");
  EXPECT_EQ(Get(Dataset("/branches?pageSize=-1")).parameters()["pageSize"], -1);
  EXPECT_EQ(Get(Dataset("/branches?pageSize=x")).status, 400);
  EXPECT_EQ(Get(Dataset("/branches?pageSize=99999999")).status, 200);
  EXPECT_EQ(Get(Dataset("/branches?pageToken=nonsense")).outcome(), "400 InvalidPageToken");
}

TEST_F(BranchesTest, HistoryIsNewestFirst) {
  const std::string first = Start("APPEND");
  Commit(first);
  const std::string second = Start("SNAPSHOT");
  Commit(second);
  const std::string target = "/branches/master/transactions";
  EXPECT_EQ(Get(Dataset(target)).outcome(), "400 ApiFeaturePreviewUsageOnly");
  const json data = Get(Dataset(target + "?preview=true")).document()["data"];
  ASSERT_EQ(data.size(), 2U);
  EXPECT_EQ(data[0]["rid"], second);
  EXPECT_EQ(data[1]["rid"], first);
  EXPECT_EQ(Get(Dataset("/branches/none/transactions?preview=true")).outcome(),
            "404 BranchNotFound");
}

TEST_F(BranchesTest, ViewersAreRefusedByName) {
  ActAs(access::Role::kViewer);
  const Answer create = Post(Dataset("/branches"), {{"name", "b"}});
  EXPECT_EQ(create.outcome(), "403 CreateBranchPermissionDenied");
  EXPECT_EQ(create.parameters()["branchName"], "b");
  EXPECT_EQ(Call("DELETE", Dataset("/branches/master")).outcome(),
            "403 DeleteBranchPermissionDenied");
  ActAs(access::Role::kNone);
  EXPECT_EQ(Post(Dataset("/branches"), {{"name", "b"}}).outcome(), "404 DatasetNotFound");
}

}  // namespace
}  // namespace tarn::server::foundry
