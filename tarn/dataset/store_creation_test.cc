#include "tarn/access/schema.h"
#include "tarn/dataset/dataset_fixture.h"
#include "tarn/tree/tree.h"

namespace tarn::dataset {
namespace {

class StoreCreationTest : public DatasetFixture {
 protected:
  void SetUp() override {
    DatasetFixture::SetUp();
    ASSERT_OK(sqlite_->Migrate(access::Migrations()));
    ASSERT_OK(sqlite_->Migrate(tree::Migrations()));
    tree::Tree tree(uuids_, clock_);
    ASSERT_OK(database_->Write([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(project_, tree.Bootstrap(sql, "me"));
      return Status::Ok();
    }));
  }

  Rid project_;
};

TEST_F(StoreCreationTest, NameAndDatasetAreMadeTogether) {
  ASSERT_OK_AND_ASSIGN(
      const Dataset dataset,
      store_->CreateDataset(
          {.parent_folder = project_, .name = "orders", .base_uri = "", .by = "me"}));
  EXPECT_OK(store_->GetBranch(dataset.rid, "master"));
  ASSERT_OK(database_->Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const tree::Node node, tree::GetNode(sql, dataset.rid.ToRid()));
    EXPECT_EQ(node.name, "orders");
    EXPECT_EQ(node.parent, project_);
    EXPECT_EQ(node.type, tree::NodeType::kDataset);
    return Status::Ok();
  }));
  EXPECT_EQ(StatusOf(store_->CreateDataset(
                         {.parent_folder = project_, .name = "orders", .base_uri = "", .by = "me"}))
                .reason(),
            "ResourceNameAlreadyExists");
}

// Whichever statement fails, there is neither a name nor a dataset.
TEST_F(StoreCreationTest, EveryFailureLeavesNothing) {
  bool passed = false;
  for (int64_t n = 1; !passed && n < 100; ++n) {
    database_->FailAt(n, metastore::Fault::kBefore);
    const Status status = StatusOf(store_->CreateDataset(
        {.parent_folder = project_, .name = "orders", .base_uri = "", .by = "me"}));
    passed = !database_->fired();
    database_->FailAt(0, metastore::Fault::kBefore);
    EXPECT_EQ(status.ok(), passed) << n << " " << status.ToString();
  }
  EXPECT_TRUE(passed);
}

}  // namespace
}  // namespace tarn::dataset
