#include "tarn/dataset/ancestry.h"

#include "tarn/dataset/dataset_fixture.h"

namespace tarn::dataset {
namespace {

// A chain of 200 transactions with a side branch from each tenth.
class AncestryTest : public DatasetFixture {
 protected:
  void SetUp() override {
    DatasetFixture::SetUp();
    ASSERT_OK(database_->Write(
        [&](metastore::SqlTransaction& sql) -> Status {
          for (int i = 0; i < 200; ++i) {
            clock_.Advance(std::chrono::seconds(1));
            CommitFilesRequest request;
            request.dataset = rid_;
            TARN_ASSIGN_OR_RETURN(const Transaction next, store_->CommitFiles(sql, request));
            chain_.push_back(next.rid);
            if (i % 10 == 0) {
              CreateBranchOptions from;
              from.from_branch = "master";
              request.branch = "b" + std::to_string(i);
              TARN_RETURN_IF_ERROR(store_->CreateBranch(sql, rid_, request.branch, from));
              TARN_ASSIGN_OR_RETURN(const Transaction side, store_->CommitFiles(sql, request));
              sides_.push_back(side.rid);
            }
          }
          return Status::Ok();
        },
        metastore::Durability::kLazy));
  }

  std::vector<TransactionRid> chain_;
  std::vector<TransactionRid> sides_;
};

TEST_F(AncestryTest, EveryAncestorIsFoundAtItsDepth) {
  ASSERT_OK(database_->Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const DatasetRow dataset, LoadDataset(sql, rid_));
    TARN_ASSIGN_OR_RETURN(const TransactionRow end, LoadTransaction(sql, dataset, chain_.back()));
    for (size_t i = 0; i < chain_.size(); ++i) {
      TARN_ASSIGN_OR_RETURN(const TransactionRow found,
                            AncestorAt(sql, end, static_cast<int64_t>(i)));
      EXPECT_EQ(found.rid, chain_[i]);
      TARN_ASSIGN_OR_RETURN(const bool is_ancestor, IsAncestor(sql, found, end));
      EXPECT_TRUE(is_ancestor);
    }
    for (const TransactionRid& side : sides_) {
      TARN_ASSIGN_OR_RETURN(const TransactionRow row, LoadTransaction(sql, dataset, side));
      TARN_ASSIGN_OR_RETURN(const bool is_ancestor, IsAncestor(sql, row, end));
      EXPECT_FALSE(is_ancestor);
    }
    return Status::Ok();
  }));
}

TEST_F(AncestryTest, TheNewestAtOrBeforeATimeIsFound) {
  ASSERT_OK(database_->Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const DatasetRow dataset, LoadDataset(sql, rid_));
    TARN_ASSIGN_OR_RETURN(const TransactionRow end, LoadTransaction(sql, dataset, chain_.back()));
    for (const TransactionRid& rid : chain_) {
      TARN_ASSIGN_OR_RETURN(const TransactionRow row, LoadTransaction(sql, dataset, rid));
      for (const int offset : {0, 1}) {
        TARN_ASSIGN_OR_RETURN(
            const std::optional<TransactionRow> found,
            NewestAtOrBefore(sql, end, *row.closed_at + std::chrono::microseconds(offset)));
        EXPECT_EQ(found ? found->id : 0, row.id);
      }
      TARN_ASSIGN_OR_RETURN(
          const std::optional<TransactionRow> before,
          NewestAtOrBefore(sql, end, *row.closed_at - std::chrono::microseconds(1)));
      EXPECT_EQ(before ? before->id : 0, row.parent_id.value_or(0));
    }
    return Status::Ok();
  }));
}

}  // namespace
}  // namespace tarn::dataset
