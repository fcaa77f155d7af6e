#include "tarn/metastore/idempotency.h"

#include "tarn/metastore/migrations.h"
#include "test/support/matchers.h"
#include "test/support/metastore_fixture.h"

namespace tarn::metastore {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

class IdempotencyTest : public MetastoreFixture {
 protected:
  void SetUp() override { OpenWith({Migrations()}); }

  Result<std::optional<StoredResponse>> Find(const IdempotentRequest& request) {
    std::optional<StoredResponse> found;
    TARN_RETURN_IF_ERROR(database_->Read([&](SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(found, FindResponse(sql, request, now_));
      return {};
    }));
    return found;
  }
  Status Store(const IdempotentRequest& request, const StoredResponse& response) {
    return database_->Write([&](SqlTransaction& sql) {
      return StoreResponse(sql, request, response, now_, now_ + hours(24));
    });
  }
  Status Claim(const IdempotentRequest& request) {
    return database_->Write(
        [&](SqlTransaction& sql) { return ClaimKey(sql, request, now_, now_ + minutes(5)); });
  }
  Result<int64_t> Purge(int64_t limit) {
    int64_t removed = 0;
    TARN_RETURN_IF_ERROR(database_->Write([&](SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(removed, PurgeExpired(sql, now_, limit));
      return {};
    }));
    return removed;
  }

  const IdempotentRequest request_{.principal = "alice", .key = "k1", .fingerprint = "f1"};
  const StoredResponse response_{
      .status = 201, .content_type = "application/json", .body = std::string("{\0}", 3)};
  Timestamp now_ = FromMicros(1'000'000'000);
};

TEST_F(IdempotencyTest, ARepeatGetsTheFirstAnswerUntilItsLifetimeEnds) {
  EXPECT_THAT(Find(request_), IsOkAndHolds(std::optional<StoredResponse>()));
  ASSERT_OK(Store(request_, response_));
  EXPECT_THAT(Find(request_), IsOkAndHolds(std::optional<StoredResponse>(response_)));
  now_ += hours(24);
  EXPECT_THAT(Find(request_), IsOkAndHolds(std::optional<StoredResponse>()));
  EXPECT_OK(Store(request_, response_));
}

TEST_F(IdempotencyTest, TheKeyOfAnotherRequestIsRefused) {
  ASSERT_OK(Store(request_, response_));
  IdempotentRequest other = request_;
  other.fingerprint = "f2";
  EXPECT_THAT(Find(other), Fails(ErrorCode::kInvalidArgument));
  EXPECT_EQ(Find(other).status().reason(), "IdempotencyKeyReused");
  EXPECT_THAT(Store(other, response_), Fails(ErrorCode::kAlreadyExists));
}

TEST_F(IdempotencyTest, PrincipalsDoNotMeet) {
  ASSERT_OK(Store(request_, response_));
  IdempotentRequest other = request_;
  other.principal = "bob";
  other.fingerprint = "f2";
  EXPECT_THAT(Find(other), IsOkAndHolds(std::optional<StoredResponse>()));
}

TEST_F(IdempotencyTest, ACopyOfARunningRequestWaits) {
  ASSERT_OK(Claim(request_));
  EXPECT_THAT(Find(request_), Fails(ErrorCode::kUnavailable));
  EXPECT_EQ(Find(request_).status().reason(), "IdempotentRequestInProgress");
  EXPECT_THAT(Claim(request_), Fails(ErrorCode::kUnavailable));
  ASSERT_OK(Store(request_, response_));
  EXPECT_THAT(Find(request_), IsOkAndHolds(std::optional<StoredResponse>(response_)));
}

TEST_F(IdempotencyTest, AClaimEndsByItsDeadlineOrByRelease) {
  ASSERT_OK(Claim(request_));
  now_ += minutes(5);
  EXPECT_THAT(Find(request_), IsOkAndHolds(std::optional<StoredResponse>()));
  ASSERT_OK(Claim(request_));
  ASSERT_OK(database_->Write([&](SqlTransaction& sql) { return ReleaseClaim(sql, request_); }));
  EXPECT_THAT(Find(request_), IsOkAndHolds(std::optional<StoredResponse>()));
  ASSERT_OK(Store(request_, response_));
  ASSERT_OK(database_->Write([&](SqlTransaction& sql) { return ReleaseClaim(sql, request_); }));
  EXPECT_THAT(Find(request_), IsOkAndHolds(std::optional<StoredResponse>(response_)));
}

TEST_F(IdempotencyTest, KeysHaveALength) {
  for (const size_t length : {size_t{0}, size_t{256}}) {
    IdempotentRequest request = request_;
    request.key = std::string(length, 'k');
    EXPECT_THAT(Claim(request), Fails(ErrorCode::kInvalidArgument));
    EXPECT_THAT(Store(request, response_), Fails(ErrorCode::kInvalidArgument));
  }
}

TEST_F(IdempotencyTest, PurgeRemovesExpiredOnesOnlyAndInSlices) {
  for (int i = 0; i < 5; ++i) {
    IdempotentRequest request = request_;
    request.key = "old " + std::to_string(i);
    ASSERT_OK(Store(request, response_));
  }
  now_ += hours(24);
  ASSERT_OK(Store(request_, response_));
  EXPECT_THAT(Purge(3), IsOkAndHolds(3));
  EXPECT_THAT(Purge(100), IsOkAndHolds(2));
  EXPECT_THAT(Find(request_), IsOkAndHolds(std::optional<StoredResponse>(response_)));
}

}  // namespace
}  // namespace tarn::metastore
