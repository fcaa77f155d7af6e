#include "tarn/dataset/lineage.h"

#include <set>

#include "test/support/matchers.h"

namespace tarn::dataset {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(LineageTest, ExtendGrowsTheLastIntervalOfTheSameLine) {
  Lineage lineage = Extend({}, 1, 1, 1);
  lineage = Extend(lineage, 1, 1, 2);
  EXPECT_THAT(lineage, ElementsAre(Interval{1, 1, 0, 2}));
}

TEST(LineageTest, ExtendOverAnUnusedOrdinalKeepsOneInterval) {
  EXPECT_THAT(Extend({{1, 1, 0, 2}}, 1, 1, 5), ElementsAre(Interval{1, 1, 0, 5}));
}

TEST(LineageTest, ExtendOnAnotherLineOpensAnInterval) {
  EXPECT_THAT(Extend({{1, 1, 0, 2}}, 1, 7, 1),
              ElementsAre(Interval{1, 1, 0, 2}, Interval{1, 7, 0, 1}));
}

TEST(LineageTest, ExtendUnderAnotherRootOpensAnInterval) {
  EXPECT_THAT(Extend({{1, 1, 0, 2}}, 9, 1, 3),
              ElementsAre(Interval{1, 1, 0, 2}, Interval{9, 1, 2, 3}));
}

TEST(LineageTest, CutBeforeKeepsTheGivenTransaction) {
  const Lineage lineage = {{1, 1, 0, 4}, {1, 7, 0, 3}};
  EXPECT_EQ(CutBefore(lineage, 1, 3), (Lineage{{1, 1, 2, 4}, {1, 7, 0, 3}}));
  EXPECT_EQ(CutBefore(lineage, 7, 1), (Lineage{{1, 7, 0, 3}}));
  EXPECT_EQ(CutBefore(lineage, 7, 4), std::nullopt);
}

TEST(LineageTest, SubtractOfItselfIsEmpty) {
  const Lineage lineage = {{1, 1, 0, 4}, {1, 7, 0, 3}};
  EXPECT_THAT(Subtract(lineage, lineage), IsEmpty());
}

TEST(LineageTest, SubtractCutsAHoleInTheMiddle) {
  EXPECT_THAT(Subtract({{1, 1, 0, 9}}, {{1, 1, 2, 4}}),
              ElementsAre(Interval{1, 1, 0, 2}, Interval{1, 1, 4, 9}));
}

// Every subtraction agrees with sets of (line, ordinal).
TEST(LineageTest, SubtractAgreesWithSets) {
  const auto covered = [](const Lineage& lineage) {
    std::set<std::pair<LineId, int64_t>> all;
    for (const Interval& interval : lineage) {
      for (int64_t ordinal = interval.after + 1; ordinal <= interval.through; ++ordinal) {
        all.emplace(interval.line, ordinal);
      }
    }
    return all;
  };
  for (int64_t a = 0; a < 5; ++a) {
    for (int64_t b = a + 1; b < 7; ++b) {
      for (int64_t c = b; c < 6; ++c) {
        const Lineage from = {{1, 1, 0, 6}, {1, 2, 1, 5}};
        const Lineage without = {{3, 1, a, b}, {3, 2, a, b}, {3, 1, c, c + 1}};
        std::set<std::pair<LineId, int64_t>> expected = covered(from);
        for (const auto& pair : covered(without)) {
          expected.erase(pair);
        }
        EXPECT_EQ(covered(Subtract(from, without)), expected) << a << " " << b << " " << c;
      }
    }
  }
}

TEST(LineageTest, TextRoundTrips) {
  for (const Lineage& lineage :
       {Lineage{}, Lineage{{1, 1, 0, 4}}, Lineage{{1, 1, 0, 4}, {1, 7, 0, 3}, {9, 9, 0, 1}}}) {
    EXPECT_THAT(DecodeLineage(EncodeLineage(lineage)), IsOkAndHolds(lineage));
  }
}

TEST(LineageTest, DamagedTextIsCorruption) {
  for (const char* text : {"1", "1:1:0", "1:1:0:4,", "1:1:4:4", "1:1:5:4", "-1:1:0:4", "a:1:0:4",
                           "1:1:0:4:5", "1;1:0:4", "1:1:0:99999999999999999999", ","}) {
    EXPECT_THAT(DecodeLineage(text), Fails(ErrorCode::kCorruption)) << text;
  }
}

}  // namespace
}  // namespace tarn::dataset
