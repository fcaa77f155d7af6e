#include "tarn/metastore/lease.h"

#include <atomic>
#include <thread>

#include "tarn/metastore/migrations.h"
#include "test/support/matchers.h"
#include "test/support/metastore_fixture.h"

namespace tarn::metastore {
namespace {

using std::chrono::seconds;

class LeaseTest : public MetastoreFixture {
 protected:
  void SetUp() override { OpenWith({Migrations()}); }

  Result<std::optional<Lease>> Acquire(const std::string& owner) {
    std::optional<Lease> lease;
    TARN_RETURN_IF_ERROR(database_->Write([&](SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(lease, TryAcquireLease(sql, {.name = "table/1",
                                                         .owner = owner,
                                                         .now = clock_.Now(),
                                                         .duration = seconds(10)}));
      return {};
    }));
    return lease;
  }
  Status Check(int64_t epoch) {
    return database_->Read([&](SqlTransaction& sql) { return CheckEpoch(sql, "table/1", epoch); });
  }
  Status Release(const Lease& lease) {
    return database_->Write([&](SqlTransaction& sql) { return ReleaseLease(sql, lease); });
  }
  Status Renew(const Lease& lease) {
    return database_->Write([&](SqlTransaction& sql) {
      return RenewLease(sql, lease, clock_.Now(), seconds(10)).status();
    });
  }
};

TEST_F(LeaseTest, IsHeldByOneOwnerUntilItExpires) {
  ASSERT_OK_AND_ASSIGN(const std::optional<Lease> first, Acquire("a"));
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(
      *first,
      (Lease{.name = "table/1", .owner = "a", .epoch = 1, .expires = clock_.Now() + seconds(10)}));
  EXPECT_THAT(Acquire("b"), IsOkAndHolds(std::optional<Lease>()));
  clock_.Advance(seconds(10));
  ASSERT_OK_AND_ASSIGN(const std::optional<Lease> second, Acquire("b"));
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->epoch, 2);
  EXPECT_THAT(Check(1), FailsWith(ErrorCode::kFailedPrecondition, "held by b"));
  EXPECT_EQ(Check(1).reason(), "LeaseLost");
  EXPECT_OK(Check(2));
  EXPECT_THAT(Renew(*first), Fails(ErrorCode::kFailedPrecondition));
}

TEST_F(LeaseTest, ARestartOfTheSameOwnerFencesItsOldSelf) {
  ASSERT_OK(Acquire("a"));
  ASSERT_OK_AND_ASSIGN(const std::optional<Lease> again, Acquire("a"));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->epoch, 2);
  EXPECT_THAT(Check(1), Fails(ErrorCode::kFailedPrecondition));
}

TEST_F(LeaseTest, RenewingExtendsAlsoAfterExpiryWhenNobodyTookIt) {
  ASSERT_OK_AND_ASSIGN(const std::optional<Lease> lease, Acquire("a"));
  clock_.Advance(seconds(30));
  ASSERT_OK(Renew(*lease));
  EXPECT_THAT(Acquire("b"), IsOkAndHolds(std::optional<Lease>()));
  EXPECT_OK(Check(lease->epoch));
}

TEST_F(LeaseTest, ReleasingFreesItAndFencesWhatIsStillOnItsWay) {
  ASSERT_OK_AND_ASSIGN(const std::optional<Lease> lease, Acquire("a"));
  ASSERT_OK(Release(*lease));
  EXPECT_THAT(Check(lease->epoch), FailsWith(ErrorCode::kFailedPrecondition, "released"));
  ASSERT_OK_AND_ASSIGN(const std::optional<Lease> next, Acquire("b"));
  ASSERT_TRUE(next.has_value());
  EXPECT_GT(next->epoch, lease->epoch);
  ASSERT_OK(Release(*lease));
  EXPECT_OK(Check(next->epoch)) << "releasing a lost lease must leave its new holder alone";
}

TEST_F(LeaseTest, FindNamesTheHolder) {
  const auto find = [&] {
    std::optional<Lease> found;
    EXPECT_OK(database_->Read([&](SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(found, FindLease(sql, "table/1", clock_.Now()));
      return {};
    }));
    return found;
  };
  EXPECT_EQ(find(), std::nullopt);
  ASSERT_OK_AND_ASSIGN(const std::optional<Lease> lease, Acquire("a"));
  EXPECT_EQ(find(), lease);
  clock_.Advance(seconds(10));
  EXPECT_EQ(find(), std::nullopt);
}

TEST_F(LeaseTest, BadRequestsAndUnknownNamesFail) {
  EXPECT_THAT(Acquire(""), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(Check(1), FailsWith(ErrorCode::kFailedPrecondition, "no such lease"));
}

TEST_F(LeaseTest, OfManyOwnersOneWins) {
  std::atomic<int> won{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 20; ++i) {
    threads.emplace_back([&, i] {
      const Result<std::optional<Lease>> lease = Acquire("owner " + std::to_string(i));
      EXPECT_THAT(lease, IsOk());
      won += lease.ok() && lease->has_value() ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(won, 1);
}

}  // namespace
}  // namespace tarn::metastore
