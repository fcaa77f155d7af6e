#include "tarn/engine/deleted_rows.h"

#include <limits>
#include <memory>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace tarn::engine {
namespace {

std::vector<int64_t> Sorted(const std::set<int64_t>& positions) {
  return {positions.begin(), positions.end()};
}

std::vector<int> Live(const DeletedRows& rows, const std::vector<int64_t>& positions) {
  std::unique_ptr<bool[]> live(new bool[positions.size() + 1]);
  live[positions.size()] = false;
  rows.MarkLive(positions, live.get());
  EXPECT_FALSE(live[positions.size()]) << "written past the end";
  return {live.get(), live.get() + positions.size()};
}

TEST(DeletedRowsTest, NoneIsEmpty) {
  const DeletedRows none;
  EXPECT_TRUE(none.empty());
  EXPECT_FALSE(none.Contains(0));
  EXPECT_EQ(none.size_bytes(), 0U);
  EXPECT_EQ(Live(none, {5, 6}), (std::vector<int>{1, 1}));
  EXPECT_TRUE(Live(DeletedRows::Of(std::vector<int64_t>{1}), {}).empty());
}

TEST(DeletedRowsTest, EdgesOfBlocksAndDoublesCount) {
  const std::vector<int64_t> positions = {
      0, 0, 65'535, 65'536, 65'536, 131'072, (1LL << 40) + 7, std::numeric_limits<int64_t>::max()};
  const DeletedRows rows = DeletedRows::Of(positions);
  for (const int64_t position : positions) {
    EXPECT_TRUE(rows.Contains(position)) << position;
    EXPECT_FALSE(rows.Contains(position ^ 2)) << position;
  }
  EXPECT_FALSE(rows.Contains(-1));
  EXPECT_FALSE(rows.Contains(std::numeric_limits<int64_t>::min()));
  // Ascending over the edge of a block, backwards, and the same row twice.
  EXPECT_EQ(Live(rows, {65'534, 65'535, 65'536, 65'537}), (std::vector<int>{1, 0, 0, 1}));
  EXPECT_EQ(Live(rows, {65'536, 65'535, 1, 0, 0}), (std::vector<int>{0, 0, 1, 0, 0}));
}

TEST(DeletedRowsTest, MemoryIsBounded) {
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < 10'000'000; ++i) {
    positions.push_back(i);
  }
  EXPECT_LE(DeletedRows::Of(positions).size_bytes(), 10'000'000U / 8 + 16'384);
  positions.resize(0);
  for (int64_t i = 0; i < 1000; ++i) {
    positions.push_back(i * 1'000'000);
  }
  EXPECT_LE(DeletedRows::Of(positions).size_bytes(), 1000U * 64);
}

// Against a set, for lists and bits and every way to ask.
TEST(DeletedRowsTest, AnswersAsASetDoes) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    const uint64_t range = 1 + random() % 300'000;
    std::set<int64_t> deleted;
    for (uint64_t i = random() % (round % 2 == 0 ? 300 : 200'000); i > 0; --i) {
      deleted.insert(static_cast<int64_t>(random() % range));
    }
    const DeletedRows rows = DeletedRows::Of(Sorted(deleted));
    for (int ask = 0; ask < 20; ++ask) {
      std::vector<int64_t> positions;
      auto at = static_cast<int64_t>(random() % range);
      const auto step_max = static_cast<int64_t>(ask % 3 == 0 ? 1 : 1 + random() % 50);
      for (int i = 0; i < 2048; ++i) {
        positions.push_back(at);
        at = ask % 5 == 4
                 ? static_cast<int64_t>(random() % range)
                 : at + 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(step_max));
      }
      std::vector<int> expected;
      for (const int64_t position : positions) {
        expected.push_back(deleted.contains(position) ? 0 : 1);
      }
      ASSERT_EQ(Live(rows, positions), expected);
    }
  }
}

}  // namespace
}  // namespace tarn::engine
