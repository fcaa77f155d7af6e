#include "tarn/dataset/increment.h"

#include "tarn/dataset/dataset_fixture.h"

namespace tarn::dataset {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class IncrementTest : public DatasetFixture {
 protected:
  Result<IncrementPage> Read(const std::optional<TransactionRid>& since) {
    return store_->ReadIncrement(rid_, "master", since, {});
  }
  static std::vector<std::string> PathsIn(const std::vector<File>& files) {
    std::vector<std::string> paths;
    for (const File& file : files) {
      paths.push_back(file.path);
    }
    return paths;
  }
};

TEST_F(IncrementTest, AddedFilesComeInCommitOrder) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid since,
                       Commit(TransactionType::kSnapshot, MakeFiles({"a"})));
  ASSERT_OK(Commit(TransactionType::kAppend, MakeFiles({"z"})));
  ASSERT_OK_AND_ASSIGN(const TransactionRid head,
                       Commit(TransactionType::kUpdate, MakeFiles({"b"})));
  ASSERT_OK_AND_ASSIGN(const IncrementPage page, Read(since));
  EXPECT_TRUE(page.incremental);
  EXPECT_EQ(page.reason, IncrementReason::kNone);
  EXPECT_EQ(page.head, head);
  EXPECT_THAT(PathsIn(page.added), ElementsAre("z", "b"));
  EXPECT_EQ(page.next_page_token, std::nullopt);
  ASSERT_OK_AND_ASSIGN(const IncrementPage nothing, Read(head));
  EXPECT_TRUE(nothing.incremental);
  EXPECT_THAT(nothing.added, IsEmpty());
}

TEST_F(IncrementTest, WithoutSinceEveryFileIsNew) {
  ASSERT_OK_AND_ASSIGN(const IncrementPage empty, Read(std::nullopt));
  EXPECT_TRUE(empty.incremental);
  EXPECT_EQ(empty.head, std::nullopt);
  ASSERT_OK(Commit(TransactionType::kSnapshot, MakeFiles({"b", "a", "c"})));
  IncrementOptions options;
  options.page_size = 2;
  ASSERT_OK_AND_ASSIGN(const IncrementPage first,
                       store_->ReadIncrement(rid_, "master", std::nullopt, options));
  EXPECT_THAT(PathsIn(first.added), ElementsAre("a", "b"));
  ASSERT_OK(Commit(TransactionType::kSnapshot, MakeFiles({"z"})));
  options.page_token = *first.next_page_token;
  ASSERT_OK_AND_ASSIGN(const IncrementPage second,
                       store_->ReadIncrement(rid_, "master", std::nullopt, options));
  EXPECT_THAT(PathsIn(second.added), ElementsAre("c"));
  EXPECT_EQ(second.head, first.head);
}

TEST_F(IncrementTest, AnOverwriteBreaksIt) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid since,
                       Commit(TransactionType::kSnapshot, MakeFiles({"a"})));
  ASSERT_OK(Commit(TransactionType::kUpdate, MakeFiles({"a", "b"}, "2")));
  ASSERT_OK_AND_ASSIGN(const IncrementPage page, Read(since));
  EXPECT_FALSE(page.incremental);
  EXPECT_EQ(page.reason, IncrementReason::kOverwrite);
  EXPECT_THAT(PathsIn(page.added), ElementsAre("b"));
  EXPECT_THAT(PathsIn(page.changed), ElementsAre("a"));
}

// What was added and overwritten after `since` is, to the consumer, only added.
TEST_F(IncrementTest, TheNetEffectCounts) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid since,
                       Commit(TransactionType::kSnapshot, MakeFiles({"a"})));
  ASSERT_OK(Commit(TransactionType::kUpdate, MakeFiles({"b", "c"}, "1")));
  ASSERT_OK(Commit(TransactionType::kUpdate, MakeFiles({"b"}, "2")));
  ASSERT_OK(CommitRemoval({"c"}));
  ASSERT_OK_AND_ASSIGN(const IncrementPage page, Read(since));
  EXPECT_TRUE(page.incremental);
  ASSERT_THAT(PathsIn(page.added), ElementsAre("b"));
  EXPECT_EQ(page.added[0].location, "b@2");
  EXPECT_THAT(page.removed, IsEmpty());
}

TEST_F(IncrementTest, RetentionDoesNotBreakItButADeleteDoes) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid since,
                       Commit(TransactionType::kSnapshot, MakeFiles({"a", "b", "c"})));
  ASSERT_OK(CommitRemoval({"a"}, /*by_retention=*/true));
  ASSERT_OK_AND_ASSIGN(IncrementPage page, Read(since));
  EXPECT_TRUE(page.incremental);
  EXPECT_THAT(PathsIn(page.removed_by_retention), ElementsAre("a"));
  ASSERT_OK(CommitRemoval({"b"}));
  ASSERT_OK_AND_ASSIGN(page, Read(since));
  EXPECT_EQ(page.reason, IncrementReason::kDelete);
  EXPECT_THAT(PathsIn(page.removed), ElementsAre("b"));
  EXPECT_THAT(PathsIn(page.removed_by_retention), ElementsAre("a"));
}

TEST_F(IncrementTest, ASnapshotAndADivergedSinceGiveNoLists) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid since,
                       Commit(TransactionType::kSnapshot, MakeFiles({"a"})));
  CreateBranchOptions from;
  from.from_branch = "master";
  ASSERT_OK(store_->CreateBranch(rid_, "dev", from));
  ASSERT_OK_AND_ASSIGN(const TransactionRid aside,
                       Commit(TransactionType::kAppend, MakeFiles({"x"}), "dev"));
  ASSERT_OK(Commit(TransactionType::kSnapshot, MakeFiles({"b"})));
  ASSERT_OK_AND_ASSIGN(IncrementPage page, Read(since));
  EXPECT_EQ(page.reason, IncrementReason::kSnapshot);
  EXPECT_THAT(page.added, IsEmpty());
  ASSERT_OK_AND_ASSIGN(page, Read(aside));
  EXPECT_EQ(page.reason, IncrementReason::kDiverged);
  EXPECT_FALSE(page.incremental);
}

TEST_F(IncrementTest, TokensAreOfOneQuestion) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid since,
                       Commit(TransactionType::kSnapshot, MakeFiles({"a"})));
  ASSERT_OK_AND_ASSIGN(const TransactionRid later,
                       Commit(TransactionType::kAppend, MakeFiles({"b", "c", "d"})));
  IncrementOptions options;
  options.page_size = 1;
  ASSERT_OK_AND_ASSIGN(const IncrementPage page,
                       store_->ReadIncrement(rid_, "master", since, options));
  options.page_token = *page.next_page_token;
  EXPECT_EQ(StatusOf(store_->ReadIncrement(rid_, "master", later, options)).reason(),
            "InvalidPageToken");
  options.page_token = "zzzz";
  EXPECT_EQ(StatusOf(store_->ReadIncrement(rid_, "master", since, options)).reason(),
            "InvalidPageToken");
  ASSERT_OK_AND_ASSIGN(const TransactionRid open, Start(TransactionType::kAppend));
  EXPECT_EQ(StatusOf(Read(open)).reason(), "TransactionNotCommitted");
}

}  // namespace
}  // namespace tarn::dataset
