#include "tarn/dataset/changes/start_order.h"

#include "tarn/dataset/dataset_fixture.h"

namespace tarn::dataset::changes {
namespace {

class StartOrderTest : public DatasetFixture {
 protected:
  Result<int64_t> OrderOf(const TransactionRid& rid) {
    int64_t order = 0;
    TARN_RETURN_IF_ERROR(database_->Read([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(order, StartOrder(sql, rid));
      return Status::Ok();
    }));
    return order;
  }
};

TEST_F(StartOrderTest, GrowsOverAllDatasetsAlsoWhenTheClockGoesBack) {
  const DatasetRid other = MakeDataset();
  ASSERT_OK_AND_ASSIGN(const TransactionRid first,
                       Commit(TransactionType::kAppend, MakeFiles({"a"})));
  clock_.Advance(-std::chrono::hours(1));
  Transaction second;
  ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
    CommitFilesRequest request;
    request.dataset = other;
    request.files = MakeFiles({"b"});
    TARN_ASSIGN_OR_RETURN(second, store_->CommitFiles(sql, request));
    return Status::Ok();
  }));
  ASSERT_OK_AND_ASSIGN(const TransactionRid third,
                       Commit(TransactionType::kAppend, MakeFiles({"c"})));
  ASSERT_OK_AND_ASSIGN(const int64_t a, OrderOf(first));
  ASSERT_OK_AND_ASSIGN(const int64_t b, OrderOf(second.rid));
  ASSERT_OK_AND_ASSIGN(const int64_t c, OrderOf(third));
  EXPECT_LT(a, b);
  EXPECT_LT(b, c);
}

TEST_F(StartOrderTest, UnknownTransactionIsNamed) {
  const TransactionRid none{.uuid = uuids_.NextV4()};
  EXPECT_THAT(OrderOf(none), FailsWith(ErrorCode::kNotFound, none.ToString()));
}

}  // namespace
}  // namespace tarn::dataset::changes
