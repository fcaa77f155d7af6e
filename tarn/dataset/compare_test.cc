#include "tarn/dataset/dataset_fixture.h"

namespace tarn::dataset {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CompareTest : public DatasetFixture {
 protected:
  // "+path", "-path" or "~path" for each difference.
  Result<std::vector<std::string>> Compare(const ViewSelector& from, const ViewSelector& to,
                                           int page_size = 1) {
    std::vector<std::string> found;
    std::string token;
    do {
      TARN_ASSIGN_OR_RETURN(const ComparePage page,
                            store_->CompareViews(rid_, from, to, page_size, token));
      for (const FileDifference& difference : page.differences) {
        const char kind = !difference.before ? '+' : difference.after ? '~' : '-';
        found.push_back(kind + difference.path());
      }
      token = page.next_page_token.value_or("");
    } while (!token.empty());
    return found;
  }
  static ViewSelector At(const TransactionRid& end) {
    ViewSelector selector;
    selector.end = end;
    return selector;
  }
  static ViewSelector On(const std::string& branch) {
    ViewSelector selector;
    selector.branch = branch;
    return selector;
  }
};

TEST_F(CompareTest, InsideOneViewBothWays) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid from,
                       Commit(TransactionType::kSnapshot, MakeFiles({"a", "b", "c"})));
  ASSERT_OK(Commit(TransactionType::kUpdate, MakeFiles({"b", "d"}, "2")));
  ASSERT_OK_AND_ASSIGN(const TransactionRid to, CommitRemoval({"a"}));
  EXPECT_THAT(Compare(At(from), At(to)), IsOkAndHolds(ElementsAre("~b", "+d", "-a")));
  EXPECT_THAT(Compare(At(to), At(from)), IsOkAndHolds(ElementsAre("~b", "-d", "+a")));
  EXPECT_THAT(Compare(At(to), At(to)), IsOkAndHolds(IsEmpty()));
}

TEST_F(CompareTest, BranchesThatWentApart) {
  ASSERT_OK(Commit(TransactionType::kSnapshot, MakeFiles({"a", "b"})));
  CreateBranchOptions options;
  options.from_branch = "master";
  ASSERT_OK(store_->CreateBranch(rid_, "dev", options));
  ASSERT_OK(Commit(TransactionType::kUpdate, MakeFiles({"a", "x"}, "m")));
  ASSERT_OK(Commit(TransactionType::kUpdate, MakeFiles({"a", "y"}, "d"), "dev"));
  EXPECT_THAT(Compare(On("master"), On("dev")), IsOkAndHolds(ElementsAre("~a", "+y", "-x")));
}

TEST_F(CompareTest, AcrossViewsInPathOrder) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid from,
                       Commit(TransactionType::kSnapshot, MakeFiles({"a", "b", "c"})));
  std::vector<StoredFile> files = MakeFiles({"b", "d"}, "2");
  files.push_back(MakeFile("c"));  // The same object again.
  ASSERT_OK_AND_ASSIGN(const TransactionRid to, Commit(TransactionType::kSnapshot, files));
  EXPECT_THAT(Compare(At(from), At(to)), IsOkAndHolds(ElementsAre("-a", "~b", "+d")));
  ASSERT_OK(store_->CreateBranch(rid_, "empty", {}));
  EXPECT_THAT(Compare(On("empty"), At(to)), IsOkAndHolds(ElementsAre("+b", "+c", "+d")));
}

TEST_F(CompareTest, BadPagesAreRefused) {
  EXPECT_EQ(StatusOf(store_->CompareViews(rid_, {}, {}, 0, "")).reason(), "InvalidPageSize");
  EXPECT_EQ(StatusOf(store_->CompareViews(rid_, {}, {}, 1, "x")).reason(), "InvalidPageToken");
}

}  // namespace
}  // namespace tarn::dataset
