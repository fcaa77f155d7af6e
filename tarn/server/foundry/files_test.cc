#include "tarn/server/foundry/foundry_fixture.h"

namespace tarn::server::foundry {
namespace {

class FilesTest : public FoundryFixture {};

TEST_F(FilesTest, NamesRoundTripByteForByte) {
  const std::vector<std::string> names = {"plain",       "nested/a/b",
                                          "with space",  "%20",
                                          "a%2Fb",       "+",
                                          "&",           "#",
                                          "ü",           "a[1].csv",
                                          "*.csv",       "?",
                                          "{x}",         "weird\\nfile",
                                          "a\"b",        "new\nline",
                                          "tab\t",       "content",
                                          "upload",      "x/content",
                                          "a\u0308.csv", "\u00e4.csv",
                                          "a:merge",     std::string(700, 'k')};
  const std::string transaction = Start("APPEND");
  for (const std::string& name : names) {
    const Answer uploaded = Upload(name, "of " + name, "?transactionRid=" + transaction);
    ASSERT_EQ(uploaded.status, 200) << uploaded.body;
    EXPECT_EQ(uploaded.document()["path"], name);
    EXPECT_EQ(uploaded.document()["transactionRid"], transaction);
    EXPECT_EQ(uploaded.document()["sizeBytes"], std::to_string(name.size() + 3));
  }
  EXPECT_EQ(Paths(), std::vector<std::string>{});  // Not committed yet.
  ASSERT_EQ(Commit(transaction).status, 200);
  std::vector<std::string> sorted = names;
  std::ranges::sort(sorted);
  EXPECT_EQ(Paths(), sorted);
  for (const std::string& name : names) {
    const std::string target = Dataset("/files/" + EncodeUrl(name));
    EXPECT_EQ(Get(target).document()["path"], name);
    EXPECT_EQ(Get(target + "/content").body, "of " + name);
    EXPECT_EQ(Call("DELETE", target).status, 204) << name;
    const Answer gone = Get(target);
    EXPECT_EQ(gone.outcome(), "404 FileNotFoundOnBranch") << name;
    EXPECT_EQ(gone.parameters()["path"], name);
  }
}

TEST_F(FilesTest, BadNamesAreRefused) {
  for (const std::string name : {"", "/a", "a/", "a//b", "a/../b", "./a", "\xff"}) {
    EXPECT_EQ(Upload(name, "x").outcome(), "400 InvalidFilePath") << name;
  }
  EXPECT_EQ(Upload(std::string("a\0b", 3), "x").outcome(), "400 InvalidFilePath");
  EXPECT_EQ(Upload(std::string(4097, 'a'), "x").outcome(), "400 InvalidFilePath");
  EXPECT_EQ(Get(Dataset("/files//content")).outcome(), "400 InvalidFilePath");
  EXPECT_EQ(Get(Dataset("/files?pathPrefix=%2Fa")).outcome(), "400 InvalidFilePath");
  EXPECT_EQ(memory_.object_count(), 0U);
}

TEST_F(FilesTest, OneCallUploadCommitsByItself) {
  const Answer uploaded = Upload("a", "1", "?transactionType=APPEND");
  ASSERT_EQ(uploaded.status, 200);
  EXPECT_EQ(
      Get(Dataset("/transactions/" + uploaded.document()["transactionRid"].get<std::string>()))
          .document()["status"],
      "COMMITTED");
  const Answer clash = Upload("a", "2", "?transactionType=APPEND");
  EXPECT_EQ(clash.outcome(), "409 AppendOverwritesExistingFiles");
  EXPECT_EQ(memory_.object_count(), 1U);    // The refused bytes are gone.
  EXPECT_EQ(Upload("a", "3").status, 200);  // UPDATE, and nothing was left open.
  EXPECT_EQ(Get(Dataset("/files/a/content")).body, "3");
  EXPECT_EQ(Upload("b", "4", "?transactionType=SNAPSHOT").status, 200);
  EXPECT_EQ(Paths(), std::vector<std::string>{"b"});
  EXPECT_EQ(Upload("b", "5", "?transactionType=DELETE").outcome(), "400 InvalidTransactionType");
  EXPECT_EQ(Upload("b", "5", "?transactionType=MERGE").status, 400);
  EXPECT_EQ(Upload("b", "5", "?branchName=none").outcome(), "404 BranchNotFound");
}

TEST_F(FilesTest, UploadsIntoTransactions) {
  const std::string open = Start("UPDATE");
  EXPECT_EQ(Upload("a", "1").outcome(), "409 OpenTransactionAlreadyExists");
  EXPECT_EQ(Upload("a", "1", "?transactionRid=" + open).status, 200);
  EXPECT_EQ(Upload("a", "2", "?transactionRid=" + open).status, 200);  // The newest wins.
  for (const std::string more : {"&branchName=master", "&transactionType=UPDATE"}) {
    const Answer refused = Upload("a", "3", "?transactionRid=" + open + more);
    EXPECT_EQ(refused.outcome(), "400 InvalidParameterCombination");
    EXPECT_TRUE(refused.parameters()["validCombinations"].is_array());
    EXPECT_EQ(refused.parameters()["providedParameters"].size(), 2U);
  }
  Commit(open);
  EXPECT_EQ(Get(Dataset("/files/a/content")).body, "2");
  EXPECT_EQ(Upload("b", "1", "?transactionRid=" + open).outcome(), "400 TransactionNotOpen");
  const std::string removing = Start("DELETE");
  EXPECT_EQ(Upload("b", "1", "?transactionRid=" + removing).outcome(),
            "400 InvalidTransactionType");
  EXPECT_EQ(
      Upload("b", "1",
             "?transactionRid=ri.foundry.main.transaction.00000000-0000-0000-0000-000000000000")
          .outcome(),
      "404 TransactionNotFound");
}

TEST_F(FilesTest, ZeroBytesAreAFile) {
  EXPECT_EQ(Upload("empty", "").document()["sizeBytes"], "0");
  const Answer content = Get(Dataset("/files/empty/content"));
  EXPECT_EQ(content.status, 200);
  EXPECT_EQ(content.body, "");
  EXPECT_EQ(Paths(), std::vector<std::string>{"empty"});
  EXPECT_EQ(Get(Dataset("/files/empty/content"), {{"Range", "bytes=0-"}}).outcome(),
            "416 RangeNotSatisfiable");
}

TEST_F(FilesTest, RangesAndTags) {
  std::string content(1'000'000, '\0');
  for (size_t i = 0; i < content.size(); ++i) {
    content[i] = static_cast<char>(i * 7 % 251);
  }
  ASSERT_EQ(Upload("big", content).status, 200);
  const std::string target = Dataset("/files/big/content");
  const Answer whole = Get(target);
  EXPECT_EQ(whole.status, 200);
  EXPECT_TRUE(whole.body == content);
  EXPECT_EQ(whole.headers.Find("X-Content-Type-Options"), "nosniff");
  const Answer part = Get(target, {{"Range", "bytes=300000-699999"}});
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.headers.Find("Content-Range"), "bytes 300000-699999/1000000");
  EXPECT_TRUE(part.body == content.substr(300'000, 400'000));
  const std::string etag(*whole.headers.Find("ETag"));
  EXPECT_EQ(Get(target, {{"If-None-Match", etag}}).status, 304);
  EXPECT_EQ(Get(target, {{"Range", "bytes=0-0"}, {"If-Range", etag}}).status, 206);
  EXPECT_EQ(Get(target, {{"Range", "bytes=0-0"}, {"If-Range", "\"other\""}}).status, 200);
}

TEST_F(FilesTest, ViewsBySelectors) {
  const auto transaction_of = [](const Answer& answer) {
    return answer.document().value("transactionRid", "");
  };
  const std::string first = transaction_of(Upload("a", "1"));
  const std::string second = transaction_of(Upload("b", "2"));
  EXPECT_EQ(Paths("?endTransactionRid=" + first), std::vector<std::string>{"a"});
  EXPECT_EQ(Paths("?startTransactionRid=" + second + "&endTransactionRid=" + second),
            std::vector<std::string>{"b"});
  EXPECT_EQ(Get(Dataset("/files/b?endTransactionRid=" + first)).outcome(),
            "404 FileNotFoundOnTransactionRange");
  for (const std::string& query :
       {"?startTransactionRid=" + first, "?branchName=master&endTransactionRid=" + first}) {
    EXPECT_EQ(Get(Dataset("/files" + query)).outcome(), "400 InvalidParameterCombination");
  }
  EXPECT_EQ(
      Get(Dataset("/files?startTransactionRid=" + second + "&endTransactionRid=" + first)).status,
      400);
  EXPECT_EQ(Get(Dataset("/files?branchName=none")).outcome(), "404 BranchNotFound");
  EXPECT_EQ(Get(Dataset("/files?endTransactionRid=x")).outcome(), "404 TransactionNotFound");
}

TEST_F(FilesTest, FilesOfAnOpenTransactionAreForEditors) {
  const std::string open = Start("APPEND");
  Upload("a", "1", "?transactionRid=" + open);
  EXPECT_EQ(Paths("?endTransactionRid=" + open), std::vector<std::string>{"a"});
  ActAs(access::Role::kViewer);
  EXPECT_EQ(Get(Dataset("/files?endTransactionRid=" + open)).status, 403);
  EXPECT_EQ(Get(Dataset("/files/a/content?endTransactionRid=" + open)).outcome(),
            "403 GetFileContentPermissionDenied");
}

TEST_F(FilesTest, PagesStayStableWhileTheBranchMoves) {
  const std::string transaction = Start("APPEND");
  for (const char* name : {"a", "b", "c"}) {
    Upload(name, "x", "?transactionRid=" + transaction);
  }
  Commit(transaction);
  const json first = Get(Dataset("/files?pageSize=2")).document();
  ASSERT_EQ(first["data"].size(), 2U);
  Upload("bb", "x");
  const json second = Get(Dataset("/files?pageSize=2&pageToken=" +
                                  EncodeUrl(first["nextPageToken"].get<std::string>())))
                          .document();
  ASSERT_EQ(second["data"].size(), 1U);
  EXPECT_EQ(second["data"][0]["path"], "c");
  EXPECT_FALSE(second.contains("nextPageToken"));
  EXPECT_EQ(Get(Dataset("/files?pageSize=0")).outcome(), "400 InvalidPageSize");
  EXPECT_EQ(Get(Dataset("/files?pageToken=x")).outcome(), "400 InvalidPageToken");
}

TEST_F(FilesTest, DeletionsByTransactionAndAlone) {
  Upload("a", "1");
  Upload("b", "1");
  EXPECT_EQ(Call("DELETE", Dataset("/files/none")).outcome(), "404 FileNotFoundOnBranch");
  EXPECT_NE(Start("DELETE"), "");  // Nothing was left open by the refusal.
  const std::string open =
      Get(Dataset("/branches/master")).document()["transactionRid"].get<std::string>();
  EXPECT_EQ(Call("DELETE", Dataset("/files/a")).outcome(), "409 OpenTransactionAlreadyExists");
  EXPECT_EQ(Call("DELETE", Dataset("/files/a?transactionRid=" + open)).status, 204);
  EXPECT_EQ(
      Call("DELETE", Dataset("/files/a?transactionRid=" + open + "&branchName=master")).outcome(),
      "400 InvalidParameterCombination");
  EXPECT_EQ(Paths().size(), 2U);
  Commit(open);
  EXPECT_EQ(Paths(), std::vector<std::string>{"b"});
  const std::string append = Start("APPEND");
  EXPECT_EQ(Call("DELETE", Dataset("/files/b?transactionRid=" + append)).outcome(),
            "400 InvalidTransactionType");
}

TEST_F(FilesTest, RefusalsCarryAllParameters) {
  Upload("a", "1");
  ActAs(access::Role::kViewer);
  const Answer upload = Upload("b", "1");
  EXPECT_EQ(upload.outcome(), "403 UploadFilePermissionDenied");
  for (const char* name : {"datasetRid", "transactionRid", "path"}) {
    EXPECT_TRUE(upload.parameters().contains(name)) << name;
  }
  EXPECT_TRUE(IsRid(upload.parameters()["transactionRid"].get<std::string>()));
  const Answer removal = Call("DELETE", Dataset("/files/a"));
  EXPECT_EQ(removal.outcome(), "403 DeleteFilePermissionDenied");
  EXPECT_EQ(removal.parameters()["filePath"], "a");
  ActAs(access::Role::kDiscoverer);
  EXPECT_EQ(Get(Dataset("/files/a/content")).outcome(), "403 GetFileContentPermissionDenied");
  ActAs(access::Role::kNone);
  EXPECT_EQ(Upload("b", "1").outcome(), "404 DatasetNotFound");
  EXPECT_EQ(Get(Dataset("/files/a/content")).outcome(), "404 DatasetNotFound");
}

/// A body that breaks off.
class BrokenBody final : public http::BodyReader {
 public:
  Result<size_t> Read(char* out, size_t size) override {
    if (sent_) {
      return Status::InvalidArgument("broken off").WithReason("RequestBodyIncomplete");
    }
    sent_ = true;
    std::fill_n(out, std::min<size_t>(size, 1000), 'a');
    return std::min<size_t>(size, 1000);
  }
  [[nodiscard]] std::optional<uint64_t> content_length() const override { return 2000; }

 private:
  bool sent_ = false;
};

TEST_F(FilesTest, ABrokenUploadLeavesNothing) {
  const std::string open = Start("APPEND");
  http::Request request;
  request.method = "POST";
  request.target = "/api/v2" + Dataset("/files/a/upload?transactionRid=" + open);
  request.headers = {{"Authorization", "Bearer x"}};
  request.body = std::make_unique<BrokenBody>();
  EXPECT_EQ(router_->Handle(request).status, 400);
  EXPECT_EQ(memory_.object_count(), 0U);
  EXPECT_EQ(Paths("?endTransactionRid=" + open), std::vector<std::string>{});
  EXPECT_EQ(Upload("a", "whole", "?transactionRid=" + open).status, 200);
  EXPECT_EQ(Commit(open).status, 200);
}

TEST_F(FilesTest, AStoreThatFailsAnywhereLeavesTheOldView) {
  Upload("a", "old");
  for (int64_t n = 1;; ++n) {
    ASSERT_LT(n, 100);
    store_.Rearm({.fail_at = n});
    const Answer answer = Upload("a", "new");
    const bool failed = store_.failed();
    store_.Rearm({});
    ASSERT_EQ(answer.status == 200, !failed) << answer.body;
    EXPECT_EQ(Get(Dataset("/files/a/content")).body, failed ? "old" : "new");
    if (!failed) {
      break;
    }
  }
}

TEST_F(FilesTest, ContentThatIsGoneIsSaidToBeGone) {
  Upload("a", "1");
  ASSERT_OK_AND_ASSIGN(const storage::ListPage page, memory_.List({.prefix = ""}));
  ASSERT_OK(memory_.Delete(page.objects.at(0).key));
  EXPECT_EQ(Get(Dataset("/files/a/content")).outcome(), "410 FileContentGone");
  EXPECT_EQ(Paths(), std::vector<std::string>{"a"});
}

}  // namespace
}  // namespace tarn::server::foundry
