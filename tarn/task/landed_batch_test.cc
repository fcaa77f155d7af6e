#include "tarn/task/landed_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tarn::task {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// Transactions of one input with these numbers.
std::vector<WaitingTransaction> Waiting(size_t input, const std::vector<int64_t>& orders) {
  std::vector<WaitingTransaction> waiting;
  for (const int64_t order : orders) {
    WaitingTransaction one{.input = input, .order = order};
    one.transaction.size_bytes = static_cast<int64_t>(waiting.size());  // Place in its input.
    waiting.push_back(std::move(one));
  }
  return waiting;
}

// Input and place in it.
std::vector<std::pair<size_t, int64_t>> Merged(std::vector<std::vector<WaitingTransaction>> all) {
  std::vector<std::pair<size_t, int64_t>> merged;
  for (const WaitingTransaction& one : MergeWaiting(std::move(all))) {
    merged.emplace_back(one.input, one.transaction.size_bytes);
  }
  return merged;
}

TEST(LandedBatchTest, TransactionsOfAllInputsAreTakenByTheirNumbers) {
  EXPECT_THAT(Merged({Waiting(0, {1, 5}), Waiting(1, {2, 3, 9}), Waiting(2, {4})}),
              ElementsAre(Pair(0, 0), Pair(1, 0), Pair(1, 1), Pair(2, 0), Pair(0, 1), Pair(1, 2)));
  EXPECT_THAT(Merged({Waiting(0, {}), Waiting(1, {7})}), ElementsAre(Pair(1, 0)));
}

TEST(LandedBatchTest, TransactionsOfOneInputKeepTheirOrder) {
  EXPECT_THAT(Merged({Waiting(0, {6, 2}), Waiting(1, {3, 7})}),
              ElementsAre(Pair(1, 0), Pair(0, 0), Pair(0, 1), Pair(1, 1)));
}

TEST(LandedBatchTest, PartsHaveFilesOfInputsThatAreMappedAlike) {
  LandedBatch batch;
  for (const size_t input : {0, 1, 2, 2, 0}) {
    batch.files.push_back({.location = std::to_string(batch.files.size()),
                           .committed = {},
                           .row_count = 10,
                           .input = input});
  }
  const std::vector<LandedBatch> parts = SplitByGroup(batch, {0, 0, 1});
  std::vector<std::string> names;
  std::vector<int64_t> rows;
  for (const LandedBatch& part : parts) {
    rows.push_back(part.rows);
    names.emplace_back();
    for (const LandedFile& file : part.files) {
      names.back() += file.location;
    }
  }
  EXPECT_THAT(names, ElementsAre("01", "23", "4"));
  EXPECT_THAT(rows, ElementsAre(20, 20, 10));
}

}  // namespace
}  // namespace tarn::task
