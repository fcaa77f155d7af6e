#include "tarn/dataset/branching/tag.h"

#include "tarn/dataset/branching/branch_rules.h"
#include "tarn/dataset/branching/history.h"
#include "tarn/dataset/dataset_fixture.h"
#include "tarn/dataset/in_sql.h"

namespace tarn::dataset::branching {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class TagTest : public DatasetFixture {
 protected:
  Result<Tag> Make(const std::string& name, const TransactionRid& rid) {
    return InWrite(
        *database_, metastore::Durability::kDurable, [&](metastore::SqlTransaction& sql) {
          return CreateTag(
              sql,
              {.dataset = rid_, .name = name, .transaction = rid, .now = clock_.Now(), .by = "me"});
        });
  }
  Status Write(const metastore::SqlFunction& function) { return database_->Write(function); }
};

TEST_F(TagTest, ATagStaysWhereItWasPut) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid first,
                       Commit(TransactionType::kUpdate, MakeFiles({"a"})));
  ASSERT_OK_AND_ASSIGN(const Tag tag, Make("v1", first));
  EXPECT_EQ(tag.transaction, first);
  ASSERT_OK_AND_ASSIGN(const TransactionRid second,
                       Commit(TransactionType::kUpdate, MakeFiles({"b"})));
  EXPECT_EQ(Make("v1", second).status().reason(), "TagAlreadyExists");
  ASSERT_OK(Make("v2", second));
  ASSERT_OK_AND_ASSIGN(const TagPage page, InRead(*database_, [&](metastore::SqlTransaction& sql) {
                         return ListTags(sql, rid_, 1, "");
                       }));
  ASSERT_THAT(page.tags, ElementsAre(tag));
  ASSERT_OK_AND_ASSIGN(const TagPage rest, InRead(*database_, [&](metastore::SqlTransaction& sql) {
                         return ListTags(sql, rid_, 1, *page.next_page_token);
                       }));
  EXPECT_THAT(rest.tags, SizeIs(1));
  EXPECT_FALSE(rest.next_page_token.has_value());
  ASSERT_OK(Write([&](metastore::SqlTransaction& sql) { return DeleteTag(sql, rid_, "v1"); }));
  EXPECT_EQ(
      Write([&](metastore::SqlTransaction& sql) { return DeleteTag(sql, rid_, "v1"); }).reason(),
      "TagNotFound");
}

TEST_F(TagTest, ANameIsABranchsOrElseATags) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid first,
                       Commit(TransactionType::kUpdate, MakeFiles({"a"})));
  ASSERT_OK(Make("v1", first));
  ASSERT_OK(Make("master", first));
  ASSERT_OK(Commit(TransactionType::kUpdate, MakeFiles({"b"})));
  const auto selector = [&](const std::string& name) {
    return InRead(*database_,
                  [&](metastore::SqlTransaction& sql) { return SelectorOfName(sql, rid_, name); });
  };
  ASSERT_OK_AND_ASSIGN(const ViewSelector tag, selector("v1"));
  EXPECT_EQ(tag.end, first);
  ASSERT_OK_AND_ASSIGN(const ViewSelector branch, selector("master"));
  EXPECT_EQ(branch.branch, "master");
  EXPECT_FALSE(branch.end.has_value());
  ASSERT_OK_AND_ASSIGN(const ViewSelector transaction, selector(first.ToString()));
  EXPECT_EQ(transaction.end, first);
  EXPECT_EQ(selector("v2").status().reason(), "BranchNotFound");
}

TEST_F(TagTest, OnlyCommittedTransactionsAreTagged) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid open, Start(TransactionType::kUpdate));
  EXPECT_EQ(Make("v1", open).status().reason(), "TransactionNotCommitted");
  EXPECT_EQ(Make(" v1", open).status().reason(), "InvalidBranchName");
}

TEST_F(TagTest, AProtectedBranchIsNeitherResetNorDeleted) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid first,
                       Commit(TransactionType::kUpdate, MakeFiles({"a"})));
  ASSERT_OK(store_->CreateBranch(rid_, "b", {.from_branch = "master"}));
  ASSERT_OK_AND_ASSIGN(const TransactionRid second,
                       Commit(TransactionType::kUpdate, MakeFiles({"b"})));
  const auto protect = [&](Protection protection) {
    return Write(
        [&](metastore::SqlTransaction& sql) { return SetProtection(sql, rid_, "b", protection); });
  };
  const auto reset = [&] {
    return Write([&](metastore::SqlTransaction& sql) {
      return StatusOf(store_->ResetBranch(sql, rid_, "b", first, "me"));
    });
  };
  ASSERT_OK(protect(Protection::kProtected));
  ASSERT_OK(Write([&](metastore::SqlTransaction& sql) {
    return StatusOf(store_->FastForwardBranch(sql, rid_, "b", second, "me"));
  }));
  EXPECT_EQ(reset().reason(), "BranchIsProtected");
  EXPECT_EQ(store_->DeleteBranch(rid_, "b").reason(), "BranchIsProtected");
  ASSERT_OK(Commit(TransactionType::kUpdate, MakeFiles({"c"}), "b"));
  ASSERT_OK(protect(Protection::kNone));
  EXPECT_OK(reset());
  EXPECT_OK(store_->DeleteBranch(rid_, "b"));
}

TEST_F(TagTest, TheFirstBranchThatExistsIsRead) {
  const auto first = [&](const std::vector<std::string>& names) {
    return InRead(*database_,
                  [&](metastore::SqlTransaction& sql) { return FirstExisting(sql, rid_, names); });
  };
  EXPECT_THAT(first({"x", "y", "master"}), IsOkAndHolds(std::string("master")));
  EXPECT_EQ(first({"x", "y"}).status().reason(), "BranchNotFound");
  EXPECT_THAT(first({}), Fails(ErrorCode::kInvalidArgument));
}

TEST_F(TagTest, HistoryNamesWhatStandsOnEachTransaction) {
  ASSERT_OK_AND_ASSIGN(const TransactionRid first,
                       Commit(TransactionType::kUpdate, MakeFiles({"a"})));
  ASSERT_OK(Make("v1", first));
  ASSERT_OK(store_->CreateBranch(rid_, "b", {.from_branch = "master"}));
  ASSERT_OK_AND_ASSIGN(const TransactionRid second,
                       Commit(TransactionType::kUpdate, MakeFiles({"b"})));
  ASSERT_OK_AND_ASSIGN(const HistoryPage page, ListHistory(*database_, *store_, rid_, 10, ""));
  ASSERT_THAT(page.entries, SizeIs(2));
  EXPECT_EQ(page.entries[0].transaction.rid, second);
  EXPECT_EQ(page.entries[0].transaction.parent, first);
  EXPECT_THAT(page.entries[0].branches, ElementsAre("master"));
  EXPECT_THAT(page.entries[0].tags, IsEmpty());
  EXPECT_THAT(page.entries[1].branches, ElementsAre("b"));
  EXPECT_THAT(page.entries[1].tags, ElementsAre("v1"));
}

}  // namespace
}  // namespace tarn::dataset::branching
