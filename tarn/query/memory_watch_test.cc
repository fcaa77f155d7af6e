#include "tarn/query/memory_watch.h"

#include <vector>

#include <gtest/gtest.h>

#include "test/support/matchers.h"

namespace tarn::query {

namespace {

// A watch that looks when it is told to, at a process of the size that the test says.
class MemoryWatchTest : public ::testing::Test {
 protected:
  std::atomic<uint64_t> used_{100};
  MemoryWatch watch_{{.limit_bytes = 1000,
                      .growth_bytes = 500,
                      .interval = std::chrono::hours(1),
                      .looks_of_grace = 2,
                      .used_bytes = [this] { return used_.load(); }}};
  int interrupts_ = 0;
  std::function<void()> count_ = [this] { ++interrupts_; };
};

TEST_F(MemoryWatchTest, NobodyIsStoppedBelowTheLimit) {
  const MemoryWatch::Watched statement(watch_, count_);
  used_ = 1000;
  watch_.Look();
  EXPECT_OK(statement.status());
  EXPECT_EQ(interrupts_, 0);
}

TEST_F(MemoryWatchTest, AStatementBeyondTheLimitIsStoppedOnce) {
  const MemoryWatch::Watched statement(watch_, count_);
  used_ = 1001;
  for (int i = 0; i < 10; ++i) {
    watch_.Look();
  }
  EXPECT_EQ(interrupts_, 1);
  EXPECT_THAT(statement.status(), FailsWith(ErrorCode::kResourceExhausted, "engine_memory"));
}

TEST_F(MemoryWatchTest, TheYoungestGoesFirstAndItsMemoryHasTimeToGo) {
  const MemoryWatch::Watched older(watch_, count_);
  const MemoryWatch::Watched younger(watch_, count_);
  used_ = 2000;
  watch_.Look();
  EXPECT_OK(older.status());
  EXPECT_THAT(younger.status(), Fails(ErrorCode::kResourceExhausted));
  watch_.Look();
  watch_.Look();
  EXPECT_OK(older.status());
  watch_.Look();
  EXPECT_THAT(older.status(), Fails(ErrorCode::kResourceExhausted));
}

TEST_F(MemoryWatchTest, AStatementIsNotToBlameForWhatWasThereBefore) {
  used_ = 5000;
  const MemoryWatch::Watched statement(watch_, count_);
  used_ = 5500;
  watch_.Look();
  EXPECT_OK(statement.status());
  used_ = 5501;
  watch_.Look();
  EXPECT_THAT(statement.status(), Fails(ErrorCode::kResourceExhausted));
}

TEST_F(MemoryWatchTest, AnEndedStatementIsForgotten) {
  {
    const MemoryWatch::Watched statement(watch_, count_);
  }
  used_ = 2000;
  watch_.Look();
  EXPECT_EQ(interrupts_, 0);
}

// The thread looks by itself, at this very process.
TEST(MemoryWatchThreadTest, StopsByItself) {
  MemoryWatch watch(
      {.limit_bytes = 1, .growth_bytes = 0, .interval = std::chrono::milliseconds(1)});
  std::atomic<bool> stopped{false};
  const MemoryWatch::Watched statement(watch, [&] {
    stopped = true;
    stopped.notify_one();
  });
  // Touched, so that the process grows after the statement began.
  const std::vector<char> more(64 << 20, 'x');
  stopped.wait(false);
  EXPECT_THAT(statement.status(), Fails(ErrorCode::kResourceExhausted));
  EXPECT_EQ(more.back(), 'x');
}

}  // namespace

}  // namespace tarn::query
