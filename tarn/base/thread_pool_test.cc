#include "tarn/base/thread_pool.h"

#include <atomic>
#include <future>
#include <stdexcept>

#include "test/support/matchers.h"

namespace tarn {
namespace {

TEST(ThreadPoolTest, ShutdownRunsWhatIsQueuedAndRefusesMore) {
  std::atomic<int> done{0};
  ThreadPool pool({.threads = 3});
  for (int i = 0; i < 100; ++i) {
    EXPECT_OK(pool.Submit([&] { ++done; }));
  }
  pool.Shutdown();
  EXPECT_EQ(done, 100);
  EXPECT_THAT(pool.Submit([] {}), Fails(ErrorCode::kCancelled));
  EXPECT_THAT(pool.TrySubmit([] {}), Fails(ErrorCode::kCancelled));
  pool.Shutdown();
}

TEST(ThreadPoolTest, AFullQueueIsToldApartFromAClosedOne) {
  std::promise<void> release;
  std::promise<void> started;
  ThreadPool pool({.name = "small", .threads = 1, .queued_max = 1});
  EXPECT_OK(pool.Submit([&] {
    started.set_value();
    release.get_future().wait();
  }));
  started.get_future().wait();
  EXPECT_OK(pool.TrySubmit([] {}));
  EXPECT_THAT(pool.TrySubmit([] {}), FailsWith(ErrorCode::kResourceExhausted, "pool small has 1"));
  release.set_value();
}

TEST(ThreadPoolTest, AnEscapedExceptionDoesNotEndTheThread) {
  std::atomic<int> done{0};
  {
    ThreadPool pool({.threads = 1});
    EXPECT_OK(pool.Submit([]() -> void { static_cast<void>(std::string().at(1)); }));
    EXPECT_OK(pool.Submit([&] { ++done; }));
  }
  EXPECT_EQ(done, 1);
}

TEST(ParallelForTest, CallsEachIndexOnce) {
  ThreadPool pool({.threads = 3});
  std::vector<std::atomic<int>> calls(500);
  EXPECT_OK(ParallelFor(pool, calls.size(), 8, [&](size_t index) {
    ++calls[index];
    return Status::Ok();
  }));
  for (const std::atomic<int>& count : calls) {
    EXPECT_EQ(count, 1);
  }
  EXPECT_OK(ParallelFor(pool, 0, 8, [](size_t) { return Status::Internal("never called"); }));
}

TEST(ParallelForTest, KeepsToItsWidth) {
  ThreadPool pool({.threads = 4});
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  EXPECT_OK(ParallelFor(pool, 200, 2, [&](size_t) {
    const int now = ++running;
    int seen = most.load();
    while (now > seen && !most.compare_exchange_weak(seen, now)) {
    }
    std::this_thread::yield();
    --running;
    return Status::Ok();
  }));
  EXPECT_LE(most, 2);
}

TEST(ParallelForTest, TheFirstFailureStopsTheRestAndIsReturned) {
  ThreadPool pool({.threads = 2});
  std::atomic<int> calls{0};
  const Status status = ParallelFor(pool, 100'000, 3, [&](size_t index) {
    ++calls;
    return index == 5 ? Status::NotFound("five") : Status::Ok();
  });
  EXPECT_THAT(status, FailsWith(ErrorCode::kNotFound, "five"));
  EXPECT_LT(calls, 100'000);
}

TEST(ParallelForTest, ExceptionsAreFailures) {
  ThreadPool pool({.threads = 1});
  EXPECT_THAT(ParallelFor(pool, 3, 2,
                          [](size_t) -> Status {
                            static_cast<void>(std::string().at(1));
                            return Status::Ok();
                          }),
              Fails(ErrorCode::kInternal));
}

TEST(ParallelForTest, MayBeNestedInATaskOfTheSamePool) {
  ThreadPool pool({.threads = 1, .queued_max = 1});
  std::promise<Status> outcome;
  EXPECT_OK(pool.Submit([&] {
    outcome.set_value(ParallelFor(pool, 10, 4, [&](size_t) {
      return ParallelFor(pool, 3, 4, [](size_t) { return Status::Ok(); });
    }));
  }));
  EXPECT_OK(outcome.get_future().get());
}

TEST(ParallelForTest, WorksAfterShutdownOnTheCallingThread) {
  ThreadPool pool({.threads = 2});
  pool.Shutdown();
  std::atomic<int> calls{0};
  EXPECT_OK(ParallelFor(pool, 10, 4, [&](size_t) {
    ++calls;
    return Status::Ok();
  }));
  EXPECT_EQ(calls, 10);
}

}  // namespace
}  // namespace tarn
