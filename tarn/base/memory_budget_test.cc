#include "tarn/base/memory_budget.h"

#include <atomic>
#include <thread>
#include <vector>

#include "test/support/matchers.h"

namespace tarn {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(MemoryBudgetTest, GivesBackWhenAReservationDies) {
  MemoryBudget budget(100);
  {
    ASSERT_OK_AND_ASSIGN(const Reservation first, budget.TryReserve(60, "a buffer"));
    EXPECT_EQ(budget.used_bytes(), 60u);
    EXPECT_THAT(budget.TryReserve(41, "landing of orders"),
                FailsWith(ErrorCode::kResourceExhausted,
                          "landing of orders needs 41, memory budget has 40 of 100 free"));
    EXPECT_OK(budget.TryReserve(40, "another"));
  }
  EXPECT_EQ(budget.used_bytes(), 0u);
  EXPECT_EQ(budget.peak_bytes(), 100u);
}

TEST(MemoryBudgetTest, MoreThanTheWholeBudgetIsABadRequest) {
  MemoryBudget budget(100);
  EXPECT_THAT(budget.TryReserve(101, "x"), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(budget.Reserve(UINT64_MAX, "x", hours(1)), Fails(ErrorCode::kInvalidArgument));
}

TEST(MemoryBudgetTest, MovingPassesTheShareOn) {
  MemoryBudget budget(100);
  ASSERT_OK_AND_ASSIGN(Reservation first, budget.TryReserve(30, "x"));
  Reservation second = std::move(first);
  EXPECT_EQ(second.bytes(), 30u);
  ASSERT_OK_AND_ASSIGN(Reservation third, budget.TryReserve(20, "x"));
  third = std::move(second);
  EXPECT_EQ(budget.used_bytes(), 30u);
  third.Release();
  third.Release();
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(MemoryBudgetTest, GrowsShrinksAndMerges) {
  MemoryBudget budget(100);
  ASSERT_OK_AND_ASSIGN(Reservation buffer, budget.TryReserve(10, "x"));
  EXPECT_OK(buffer.Grow(50));
  EXPECT_THAT(buffer.Grow(41), Fails(ErrorCode::kResourceExhausted));
  EXPECT_EQ(buffer.bytes(), 60u);
  buffer.ShrinkTo(70);
  EXPECT_EQ(buffer.bytes(), 60u);
  buffer.ShrinkTo(5);
  EXPECT_EQ(budget.used_bytes(), 5u);
  ASSERT_OK_AND_ASSIGN(Reservation other, budget.TryReserve(7, "x"));
  buffer.Merge(std::move(other));
  EXPECT_EQ(buffer.bytes(), 12u);
  Reservation empty;
  empty.Merge(std::move(buffer));
  EXPECT_EQ(empty.bytes(), 12u);
  EXPECT_EQ(budget.used_bytes(), 12u);
}

TEST(MemoryBudgetTest, ReserveWaitsUntilSomethingIsFree) {
  MemoryBudget budget(100);
  ASSERT_OK_AND_ASSIGN(Reservation held, budget.TryReserve(100, "x"));
  std::thread waiting([&] { EXPECT_OK(budget.Reserve(80, "y", hours(1))); });
  held.Release();
  waiting.join();
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(MemoryBudgetTest, ReserveGivesUpAndLetsTheNextOnePass) {
  MemoryBudget budget(100);
  ASSERT_OK_AND_ASSIGN(const Reservation held, budget.TryReserve(50, "x"));
  EXPECT_THAT(budget.Reserve(80, "y", milliseconds(1)), Fails(ErrorCode::kResourceExhausted));
  EXPECT_OK(budget.Reserve(50, "z", milliseconds(0)));
}

TEST(MemoryBudgetTest, WaitingReservationsAreServedInOrder) {
  MemoryBudget budget(100);
  ASSERT_OK_AND_ASSIGN(Reservation held, budget.TryReserve(60, "x"));
  std::atomic<bool> large_served{false};
  std::thread large([&] {
    ASSERT_OK_AND_ASSIGN(const Reservation all, budget.Reserve(100, "large", hours(1)));
    large_served = true;
  });
  // The small one would fit now, but stands behind the large one once that has its ticket.
  while (budget.Reserve(10, "small", milliseconds(1)).ok()) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(large_served);
  held.Release();
  large.join();
  EXPECT_TRUE(large_served);
  EXPECT_OK(budget.Reserve(10, "small", milliseconds(0)));
}

TEST(MemoryBudgetTest, ManyThreadsNeverExceedTheLimit) {
  MemoryBudget budget(1000);
  std::vector<std::thread> threads;
  for (uint64_t i = 1; i <= 4; ++i) {
    threads.emplace_back([&budget, i] {
      for (uint64_t round = 0; round < 200; ++round) {
        ASSERT_OK_AND_ASSIGN(Reservation buffer,
                             budget.Reserve(100 * i + round % 50, "x", hours(1)));
        static_cast<void>(buffer.Grow(round));
        EXPECT_LE(budget.used_bytes(), 1000u);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(budget.used_bytes(), 0u);
  EXPECT_LE(budget.peak_bytes(), 1000u);
}

}  // namespace
}  // namespace tarn
