#include "tarn/base/uuid.h"

#include <algorithm>
#include <set>
#include <thread>
#include <unordered_set>
#include <vector>

#include "test/support/matchers.h"

namespace tarn {
namespace {

TEST(UuidTest, RoundTripsItsText) {
  const std::string text = "0190a0b1-c2d3-7e4f-8a5b-0123456789ab";
  ASSERT_OK_AND_ASSIGN(const Uuid uuid, Uuid::Parse(text));
  EXPECT_EQ(uuid.ToString(), text);
  EXPECT_THAT(Uuid::Parse("0190A0B1-C2D3-7E4F-8A5B-0123456789AB"), IsOkAndHolds(uuid));
}

TEST(UuidTest, RefusesOtherText) {
  for (const char* text :
       {"", "0190a0b1-c2d3-7e4f-8a5b-0123456789a", "0190a0b1-c2d3-7e4f-8a5b-0123456789abc",
        "0190a0b1c2d37e4f8a5b0123456789ab", "0190a0b1-c2d3-7e4f-8a5b-0123456789ag",
        "0190a0b1-c2d3-7e4f-8a5b00123456789ab", "0190a0b-1c2d3-7e4f-8a5b-0123456789ab",
        "{190a0b1-c2d3-7e4f-8a5b-0123456789a}"}) {
    EXPECT_THAT(Uuid::Parse(text), Fails(ErrorCode::kInvalidArgument)) << text;
  }
}

TEST(UuidTest, V7CarriesTimeVersionAndVariant) {
  const ManualClock clock(FromMillis(0x0190'A0B1'C2D3));
  UuidGenerator generator(clock);
  const std::string text = generator.NextV7().ToString();
  EXPECT_EQ(text.substr(0, 13), "0190a0b1-c2d3");
  EXPECT_EQ(text[14], '7');
  EXPECT_NE(std::string("89ab").find(text[19]), std::string::npos) << text;
}

TEST(UuidTest, V4CarriesVersionAndVariant) {
  const ManualClock clock(Timestamp{});
  UuidGenerator generator(clock);
  const std::string text = generator.NextV4().ToString();
  EXPECT_EQ(text[14], '4');
  EXPECT_NE(std::string("89ab").find(text[19]), std::string::npos) << text;
}

TEST(UuidTest, V7IncreasesWithinAMillisecondBeyondItsCounter) {
  const ManualClock clock(FromMillis(1'000'000));
  UuidGenerator generator(clock);
  Uuid last = generator.NextV7();
  // More than the 2^18 that the counter holds: the time must carry over.
  for (int i = 0; i < (1 << 18) + 10; ++i) {
    const Uuid next = generator.NextV7();
    ASSERT_LT(last, next) << i;
    last = next;
  }
}

TEST(UuidTest, V7IncreasesWhenTheClockStepsBack) {
  ManualClock clock(FromMillis(1'000'000));
  UuidGenerator generator(clock);
  const Uuid first = generator.NextV7();
  clock.Set(FromMillis(10));
  const Uuid second = generator.NextV7();
  EXPECT_LT(first, second);
  clock.Set(FromMillis(1'000'001));
  EXPECT_LT(second, generator.NextV7());
}

TEST(UuidTest, V7IncreasesPerThreadAndNeverRepeatsUnderManyThreads) {
  const SystemClock clock;
  UuidGenerator generator(clock);
  std::vector<std::vector<Uuid>> made(4);
  std::vector<std::thread> threads;
  for (std::vector<Uuid>& own : made) {
    threads.emplace_back([&own, &generator] {
      for (int i = 0; i < 5'000; ++i) {
        own.push_back(generator.NextV7());
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::unordered_set<Uuid> all;
  for (const std::vector<Uuid>& own : made) {
    EXPECT_TRUE(std::is_sorted(own.begin(), own.end()));
    all.insert(own.begin(), own.end());
  }
  EXPECT_EQ(all.size(), 20'000u);
}

TEST(UuidTest, RandomBytesDiffer) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    std::string bytes(16, '\0');
    FillSecureRandom(reinterpret_cast<uint8_t*>(bytes.data()), bytes.size());
    seen.insert(bytes);
  }
  EXPECT_EQ(seen.size(), 100u);
}

}  // namespace
}  // namespace tarn
