#include "tarn/dataset/retention/reachability.h"

#include <random>

#include "test/support/matchers.h"

namespace tarn::dataset::retention {
namespace {

using ::testing::ElementsAre;

constexpr RowPlace At(int64_t ordinal) { return {.line = 1, .ordinal = ordinal}; }

Member MakeMember(int64_t ordinal, std::optional<size_t> parent, bool kept) {
  return {.line = 1, .ordinal = ordinal, .parent = parent, .kept = kept};
}

TEST(ReachabilityTest, AnOverwrittenRowIsSeenByWhatIsBetween) {
  for (const bool middle_kept : {false, true}) {
    const std::vector<Member> members = {MakeMember(1, std::nullopt, false),
                                         MakeMember(2, 0, middle_kept), MakeMember(3, 1, true)};
    const std::vector<RowPlace> rows = {At(1), At(3)};
    EXPECT_THAT(Reachability(members).Shown(rows), ElementsAre(middle_kept ? 1 : 0, 1));
  }
}

TEST(ReachabilityTest, ABranchKeepsWhatTheOtherOverwrote) {
  const std::vector<Member> members = {MakeMember(1, std::nullopt, false), MakeMember(2, 0, true),
                                       MakeMember(3, 0, true)};
  EXPECT_THAT(Reachability(members).Shown(std::vector<RowPlace>{At(1), At(2)}), ElementsAre(1, 1));
  EXPECT_THAT(Reachability(members).Shown(std::vector<RowPlace>{At(1), At(2), At(3)}),
              ElementsAre(0, 1, 1));
}

TEST(ReachabilityTest, RowsOfStrangersStayAndHideNothing) {
  const std::vector<Member> members = {MakeMember(1, std::nullopt, true)};
  EXPECT_THAT(Reachability(members).Shown(std::vector<RowPlace>{At(7), At(1)}), ElementsAre(1, 1));
  EXPECT_THAT(Reachability({}).Shown(std::vector<RowPlace>{At(7)}), ElementsAre(1));
}

// Against a walk from every kept member up to the nearest row.
TEST(ReachabilityTest, AgreesWithWalkingUpFromEveryKeptMember) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 500; ++round) {
    std::vector<Member> members;
    const size_t count = 1 + random() % 12;
    for (size_t i = 0; i < count; ++i) {
      std::optional<size_t> parent;
      if (i > 0 && random() % 8 != 0) {
        parent = random() % i;
      }
      members.push_back(MakeMember(static_cast<int64_t>(i), parent, random() % 3 == 0));
    }
    std::vector<RowPlace> rows;
    std::vector<int> row_of(count, -1);
    for (size_t i = 0; i < count; ++i) {
      if (random() % 2 == 0) {
        row_of[i] = static_cast<int>(rows.size());
        rows.push_back(At(static_cast<int64_t>(i)));
      }
    }
    std::shuffle(rows.begin(), rows.end(), random);
    for (size_t i = 0; i < rows.size(); ++i) {
      row_of[static_cast<size_t>(rows[i].ordinal)] = static_cast<int>(i);
    }
    std::vector<uint8_t> expected(rows.size(), 0);
    for (size_t i = 0; i < count; ++i) {
      std::optional<size_t> at = i;
      while (members[i].kept && at) {
        if (row_of[*at] >= 0) {
          expected[static_cast<size_t>(row_of[*at])] = 1;
          break;
        }
        at = members[*at].parent;
      }
    }
    ASSERT_EQ(Reachability(members).Shown(rows), expected) << round;
  }
}

}  // namespace
}  // namespace tarn::dataset::retention
