#include "tarn/base/bounded_queue.h"

#include <atomic>
#include <memory>
#include <numeric>
#include <thread>

#include "test/support/matchers.h"

namespace tarn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

TEST(BoundedQueueTest, KeepsOrderAndLimit) {
  BoundedQueue<int> queue(2);
  EXPECT_TRUE(queue.Push(1));
  EXPECT_TRUE(queue.TryPush(2));
  EXPECT_FALSE(queue.TryPush(3));
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_THAT(queue.Pop(), Optional(1));
  EXPECT_THAT(queue.TryPop(), Optional(2));
  EXPECT_EQ(queue.TryPop(), std::nullopt);
}

TEST(BoundedQueueTest, ARefusedValueIsNotMovedFrom) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  EXPECT_TRUE(queue.Push(std::make_unique<int>(1)));
  auto value = std::make_unique<int>(2);
  EXPECT_FALSE(queue.TryPush(std::move(value)));
  ASSERT_NE(value, nullptr);
  queue.Close();
  EXPECT_FALSE(queue.TryPush(std::move(value)));
  EXPECT_NE(value, nullptr);
}

TEST(BoundedQueueTest, CloseRefusesProducersButConsumersGetTheRest) {
  BoundedQueue<int> queue(4);
  EXPECT_TRUE(queue.Push(1));
  EXPECT_TRUE(queue.Push(2));
  queue.Close();
  EXPECT_FALSE(queue.Push(3));
  EXPECT_THAT(queue.Pop(), Optional(1));
  EXPECT_THAT(queue.PopAll(), ElementsAre(2));
  EXPECT_THAT(queue.PopAll(), IsEmpty());
  EXPECT_EQ(queue.Pop(), std::nullopt);
}

TEST(BoundedQueueTest, PopAllTakesWhatIsQueuedUpToItsLimit) {
  BoundedQueue<int> queue(8);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(queue.Push(i));
  }
  EXPECT_THAT(queue.PopAll(2), ElementsAre(0, 1));
  EXPECT_THAT(queue.PopAll(), ElementsAre(2, 3, 4));
}

TEST(BoundedQueueTest, PopForGivesUp) {
  BoundedQueue<int> queue(1);
  EXPECT_EQ(queue.PopFor(std::chrono::milliseconds(1)), std::nullopt);
  EXPECT_TRUE(queue.Push(1));
  EXPECT_THAT(queue.PopFor(std::chrono::hours(1)), Optional(1));
}

TEST(BoundedQueueTest, CloseWakesWaitingProducersAndConsumers) {
  BoundedQueue<int> empty(1);
  BoundedQueue<int> full(1);
  EXPECT_TRUE(full.Push(1));
  std::atomic<int> woken{0};
  std::thread consumer([&] { woken += empty.Pop().has_value() ? 0 : 1; });
  std::thread producer([&] { woken += full.Push(2) ? 0 : 1; });
  empty.Close();
  full.Close();
  consumer.join();
  producer.join();
  EXPECT_EQ(woken, 2);
}

TEST(BoundedQueueTest, ManyThreadsPassEachValueOnce) {
  BoundedQueue<int> queue(3);
  constexpr int kPerProducer = 2000;
  std::atomic<int64_t> sum{0};
  std::atomic<int> count{0};
  std::vector<std::thread> consumers;
  for (int i = 0; i < 2; ++i) {
    consumers.emplace_back([&, group = i == 0] {
      for (;;) {
        std::vector<int> values;
        if (group) {
          values = queue.PopAll();
        } else if (const std::optional<int> value = queue.Pop()) {
          values.push_back(*value);
        }
        if (values.empty()) {
          return;
        }
        sum += std::accumulate(values.begin(), values.end(), int64_t{0});
        count += static_cast<int>(values.size());
      }
    });
  }
  std::vector<std::thread> producers;
  for (int i = 0; i < 3; ++i) {
    producers.emplace_back([&] {
      for (int value = 1; value <= kPerProducer; ++value) {
        EXPECT_TRUE(queue.Push(value));
      }
    });
  }
  for (std::thread& producer : producers) {
    producer.join();
  }
  queue.Close();
  for (std::thread& consumer : consumers) {
    consumer.join();
  }
  EXPECT_EQ(count, 3 * kPerProducer);
  EXPECT_EQ(sum, int64_t{3} * kPerProducer * (kPerProducer + 1) / 2);
}

}  // namespace
}  // namespace tarn
