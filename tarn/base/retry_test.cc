#include "tarn/base/retry.h"

#include <thread>

#include "test/support/matchers.h"

namespace tarn {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

class RetryTest : public ::testing::Test {
 protected:
  // Fails with `code` the first `failures` times.
  Result<int> Attempt(int failures, ErrorCode code) {
    ++calls_;
    if (calls_ <= failures) {
      return Status(code, "call " + std::to_string(calls_));
    }
    return calls_;
  }

  Result<int> RetryFailing(const RetryOptions& options, int failures, ErrorCode code) {
    return Retry(options, {clock_, sleeper_}, [&] { return Attempt(failures, code); });
  }

  ManualClock clock_{Timestamp{}};
  ManualSleeper sleeper_{clock_};
  int calls_ = 0;
};

TEST_F(RetryTest, WaitsLongerEachTimeUntilItSucceeds) {
  EXPECT_THAT(RetryFailing({.jitter = 0}, 3, ErrorCode::kUnavailable), IsOkAndHolds(4));
  EXPECT_EQ(ToMillis(clock_.Now()), 50 + 100 + 200);
}

TEST_F(RetryTest, GivesUpAfterTheLastAttemptAndSaysHowMany) {
  EXPECT_THAT(RetryFailing({.attempts_max = 3}, 9, ErrorCode::kUnavailable),
              FailsWith(ErrorCode::kUnavailable, "after 3 attempts: call 3"));
}

TEST_F(RetryTest, OneAttemptMeansNoRetry) {
  EXPECT_THAT(RetryFailing({.attempts_max = 1}, 9, ErrorCode::kUnavailable),
              FailsWith(ErrorCode::kUnavailable, "Unavailable: call 1"));
  EXPECT_EQ(calls_, 1);
}

TEST_F(RetryTest, CodesThatRetryingCannotHelpAreFinal) {
  for (const ErrorCode code :
       {ErrorCode::kInvalidArgument, ErrorCode::kNotFound, ErrorCode::kConflict,
        ErrorCode::kCommitStateUnknown, ErrorCode::kCorruption, ErrorCode::kCancelled}) {
    calls_ = 0;
    EXPECT_THAT(RetryFailing({}, 9, code), Fails(code));
    EXPECT_EQ(calls_, 1) << ErrorCodeName(code);
  }
}

TEST_F(RetryTest, ConflictsAreRetriedWhenAskedFor) {
  EXPECT_THAT(RetryFailing({.retry_conflicts = true}, 2, ErrorCode::kConflict), IsOkAndHolds(3));
  calls_ = 0;
  EXPECT_THAT(RetryFailing({.retry_conflicts = true}, 2, ErrorCode::kCommitStateUnknown),
              Fails(ErrorCode::kCommitStateUnknown));
  EXPECT_EQ(calls_, 1);
}

TEST_F(RetryTest, NoAttemptStartsAfterTheTimeIsUp) {
  const RetryOptions options{.attempts_max = 1000,
                             .wait_first = milliseconds(400),
                             .wait_max = milliseconds(400),
                             .elapsed_max = seconds(1),
                             .jitter = 0};
  EXPECT_THAT(RetryFailing(options, 1000, ErrorCode::kUnavailable), Fails(ErrorCode::kUnavailable));
  EXPECT_EQ(calls_, 3);
}

TEST_F(RetryTest, JitterShortensWaitsWithinBoundsAndRepeatsForASeed) {
  const auto waits = [](uint64_t seed) {
    RetrySchedule schedule({.attempts_max = 50, .jitter = 0.5, .jitter_seed = seed}, Timestamp{});
    std::vector<int64_t> micros;
    for (int i = 0; i < 10; ++i) {
      micros.push_back(schedule.Next(ErrorCode::kUnavailable, Timestamp{}).value().count());
    }
    return micros;
  };
  EXPECT_EQ(waits(7), waits(7));
  EXPECT_NE(waits(7), waits(8));
  int64_t full = 50'000;
  for (const int64_t wait : waits(7)) {
    EXPECT_LE(wait, full);
    EXPECT_GE(wait, full / 2);
    full = std::min<int64_t>(full * 2, 5'000'000);
  }
}

TEST_F(RetryTest, StatusFunctionsWorkToo) {
  int calls = 0;
  EXPECT_OK(Retry({}, {clock_, sleeper_}, [&]() -> Status {
    return ++calls < 3 ? Status::Unavailable("busy") : Status::Ok();
  }));
  EXPECT_EQ(calls, 3);
}

TEST(SystemSleeperTest, StopWakesSleepersNowAndLater) {
  SystemSleeper sleeper;
  Status slept;
  std::thread waiting([&] { slept = sleeper.Sleep(std::chrono::hours(1)); });
  sleeper.Stop();
  waiting.join();
  EXPECT_THAT(slept, Fails(ErrorCode::kCancelled));
  const SystemClock clock;
  const auto result =
      Retry({}, {clock, sleeper}, [&]() -> Result<int> { return Status::Unavailable("busy"); });
  EXPECT_THAT(result, FailsWith(ErrorCode::kCancelled, "busy"));
}

TEST(SystemSleeperTest, SleepsAtLeastAsLongAsAsked) {
  SystemSleeper sleeper;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_OK(sleeper.Sleep(milliseconds(5)));
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(5));
}

}  // namespace
}  // namespace tarn
