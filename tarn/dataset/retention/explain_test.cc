#include "tarn/dataset/retention/explain.h"

#include "tarn/dataset/retention/retention_fixture.h"

namespace tarn::dataset::retention {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ExplainTest : public RetentionFixture {
 protected:
  Result<Explanation> Explain(const TransactionRid& end, const std::string& path) {
    return ExplainFile(Deps(), {.dataset = rid_, .transaction = end, .path = path});
  }
};

TEST_F(ExplainTest, SaysWhatShowsAFile) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid first,
                       CommitUploads(TransactionType::kUpdate, {"a", "b"}));
  ASSERT_OK_AND_ASSIGN(const TransactionRid second, CommitUploads(TransactionType::kUpdate, {"c"}));
  ASSERT_OK_AND_ASSIGN(const TransactionRid third, CommitUploads(TransactionType::kUpdate, {"a"}));
  ASSERT_OK_AND_ASSIGN(const Explanation old, Explain(first, "a"));
  EXPECT_EQ(old.fate, FileFate::kKept);
  EXPECT_THAT(old.branches, IsEmpty());
  EXPECT_EQ(old.views, 2);
  EXPECT_THAT(old.examples, ElementsAre(second, first));
  ASSERT_OK_AND_ASSIGN(const Explanation shown, Explain(first, "b"));
  EXPECT_THAT(shown.branches, ElementsAre("master"));
  EXPECT_EQ(shown.views, 3);
  ASSERT_OK(store_->WriteCheckpoint(rid_, "master"));
  ASSERT_OK_AND_ASSIGN(const Explanation copied, Explain(third, "b"));
  EXPECT_THAT(copied.branches, ElementsAre("master"));
  EXPECT_EQ(copied.views, 3);
  EXPECT_EQ(Explain(third, "none").status().reason(), "FileNotFoundOnTransactionRange");
}

TEST_F(ExplainTest, FollowsAFileToItsEnd) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid first, CommitUploads(TransactionType::kUpdate, {"a"}));
  ASSERT_OK(CommitUploads(TransactionType::kUpdate, {"a"}));
  ASSERT_OK(Put(R"({"name":"p","datasets":{"all":true},"transactions":{"keepNewest":1}})"));
  ASSERT_OK(Mark());
  ASSERT_OK_AND_ASSIGN(const Explanation marked, Explain(first, "a"));
  EXPECT_EQ(marked.fate, FileFate::kMarked);
  ASSERT_THAT(marked.marks, SizeIs(1));
  EXPECT_EQ(marked.marks[0].policy, "p");
  EXPECT_EQ(marked.marks[0].sweep_at, clock_.Now() + std::chrono::hours(168));
  clock_.Advance(std::chrono::hours(200));
  ASSERT_OK(Sweep());
  ASSERT_OK_AND_ASSIGN(const Explanation doomed, Explain(first, "a"));
  EXPECT_EQ(doomed.fate, FileFate::kDoomed);
  EXPECT_FALSE(Exists(doomed.file.location));
}

TEST_F(ExplainTest, ImportsAreForeign) {
  StoredFile imported = MakeFile("i", "s3://elsewhere/x");
  imported.managed = false;
  ASSERT_OK_AND_ASSIGN(const TransactionRid rid, Commit(TransactionType::kUpdate, {imported}));
  ASSERT_OK_AND_ASSIGN(const Explanation explained, Explain(rid, "i"));
  EXPECT_EQ(explained.fate, FileFate::kForeign);
  EXPECT_EQ(FileFateName(explained.fate), "foreign");
}

}  // namespace
}  // namespace tarn::dataset::retention
