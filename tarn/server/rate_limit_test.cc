#include "tarn/server/rate_limit.h"

#include <gtest/gtest.h>

#include "test/support/matchers.h"

namespace tarn::server {
namespace {

using std::chrono::seconds;

class RateLimitTest : public ::testing::Test {
 protected:
  int Admitted(RateLimit& limit, const std::string& caller, int tries) {
    int admitted = 0;
    for (int i = 0; i < tries; ++i) {
      admitted += limit.Admit(caller, now_).ok() ? 1 : 0;
    }
    return admitted;
  }
  RateLimit::Time now_{};
};

TEST_F(RateLimitTest, NothingIsLimitedByDefault) {
  RateLimit limit({});
  EXPECT_EQ(Admitted(limit, "a", 1000), 1000);
}

TEST_F(RateLimitTest, ABucketIsEmptiedAndFills) {
  RateLimit limit({.requests_per_minute = 60});
  EXPECT_EQ(Admitted(limit, "a", 100), 60);
  EXPECT_THAT(limit.Admit("a", now_), Fails(ErrorCode::kResourceExhausted));
  now_ += seconds(10);
  EXPECT_EQ(Admitted(limit, "a", 100), 10);
  now_ += std::chrono::hours(1);
  EXPECT_EQ(Admitted(limit, "a", 100), 60);
}

TEST_F(RateLimitTest, CallersDoNotDisturbEachOther) {
  RateLimit limit({.requests_per_minute = 5});
  EXPECT_EQ(Admitted(limit, "a", 10), 5);
  EXPECT_EQ(Admitted(limit, "b", 10), 5);
}

TEST_F(RateLimitTest, AClockThatStepsBackGivesNothing) {
  RateLimit limit({.requests_per_minute = 5});
  now_ += std::chrono::hours(1);
  EXPECT_EQ(Admitted(limit, "a", 10), 5);
  now_ -= std::chrono::minutes(30);
  EXPECT_EQ(Admitted(limit, "a", 10), 0);
}

TEST_F(RateLimitTest, OnlySoManyCallersAreRemembered) {
  RateLimit limit({.requests_per_minute = 1, .callers_max = 2});
  EXPECT_EQ(Admitted(limit, "a", 2), 1);
  now_ += std::chrono::milliseconds(1);
  EXPECT_EQ(Admitted(limit, "b", 2), 1);
  now_ += std::chrono::milliseconds(1);
  EXPECT_EQ(Admitted(limit, "c", 2), 1);
  EXPECT_EQ(Admitted(limit, "b", 1), 0);
  EXPECT_EQ(Admitted(limit, "a", 1), 1) << "the one that was idle longest was forgotten";
}

}  // namespace
}  // namespace tarn::server
