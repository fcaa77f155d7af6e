#include "tarn/task/task_lease.h"

#include "tarn/metastore/migrations.h"
#include "test/support/matchers.h"
#include "test/support/metastore_fixture.h"

namespace tarn::task {
namespace {

class TaskLeaseTest : public MetastoreFixture {
 protected:
  void SetUp() override { OpenWith({metastore::Migrations()}); }
};

TEST_F(TaskLeaseTest, WhoeverTookItLastMayCommit) {
  const Timestamp now = FromMillis(1'800'000'000'000);
  ASSERT_OK_AND_ASSIGN(const metastore::SqlFunction first,
                       TakeTaskLease(*database_, "p.t", now, {}));
  ASSERT_OK_AND_ASSIGN(const metastore::SqlFunction other,
                       TakeTaskLease(*database_, "p.u", now, {}));
  EXPECT_OK(database_->Write(first));
  ASSERT_OK_AND_ASSIGN(const metastore::SqlFunction second,
                       TakeTaskLease(*database_, "p.t", now, {}));
  EXPECT_THAT(database_->Write(first), Fails(ErrorCode::kFailedPrecondition));
  EXPECT_OK(database_->Write(second));
  EXPECT_OK(database_->Write(other));
}

TEST_F(TaskLeaseTest, WhoeverMayNotRunTakesNothing) {
  const Timestamp now = FromMillis(1'800'000'000'000);
  ASSERT_OK_AND_ASSIGN(const metastore::SqlFunction held,
                       TakeTaskLease(*database_, "p.t", now, {}));
  const metastore::SqlFunction elsewhere = [](metastore::SqlTransaction&) {
    return Status::FailedPrecondition("another server runs them").WithReason("LeaseLost");
  };
  EXPECT_THAT(TakeTaskLease(*database_, "p.t", now, elsewhere),
              FailsWith(ErrorCode::kFailedPrecondition, "another server"));
  EXPECT_OK(database_->Write(held));
}

}  // namespace
}  // namespace tarn::task
