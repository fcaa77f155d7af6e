#include "tarn/source/kafka/offset_plan.h"

#include "test/support/matchers.h"

namespace tarn::source::kafka {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const TopicPartition kWhere{.topic = "orders", .partition = 3};

struct Case {
  const char* what;
  StartPolicy::Kind start = StartPolicy::Kind::kEarliest;
  bool first_start = false;
  std::optional<int64_t> stored;
  int64_t first = 0;
  int64_t end = 0;
  std::optional<int64_t> at_time;
  bool remade = false;
  int64_t expected = 0;
  std::optional<LostRange> lost;
};

class OffsetPlanTest : public ::testing::TestWithParam<Case> {};

TEST_P(OffsetPlanTest, Plans) {
  const Case& one = GetParam();
  Offsets stored;
  if (one.stored) {
    stored[kWhere] = *one.stored;
  }
  const OffsetPlan plan = PlanOffsets(
      {{.where = kWhere,
        .first = one.first,
        .end = one.end,
        .at_time = one.at_time,
        .remade = one.remade}},
      {.start = {.kind = one.start}, .first_start = one.first_start, .stored = &stored});
  EXPECT_THAT(plan.starts, ElementsAre(PlannedStart{.where = kWhere,
                                                    .offset = one.expected,
                                                    .end = one.end,
                                                    .fresh = !one.stored.has_value(),
                                                    .first = one.first}))
      << one.what;
  if (one.lost) {
    EXPECT_THAT(plan.lost, ElementsAre(*one.lost)) << one.what;
  } else {
    EXPECT_THAT(plan.lost, IsEmpty()) << one.what;
  }
}

using Kind = StartPolicy::Kind;

INSTANTIATE_TEST_SUITE_P(
    All, OffsetPlanTest,
    ::testing::Values(
        Case{.what = "made again and longer than it was",
             .stored = 7,
             .first = 2,
             .end = 9,
             .remade = true,
             .expected = 2,
             .lost = LostRange{kWhere, 7, 2, LossCause::kRemade}},
        Case{.what = "earliest", .first_start = true, .first = 5, .end = 9, .expected = 5},
        Case{.what = "now",
             .start = Kind::kNow,
             .first_start = true,
             .first = 5,
             .end = 9,
             .expected = 9},
        Case{.what = "now, a partition that came later",
             .start = Kind::kNow,
             .first = 5,
             .end = 9,
             .expected = 5},
        Case{.what = "time",
             .start = Kind::kTime,
             .first_start = true,
             .first = 5,
             .end = 9,
             .at_time = 7,
             .expected = 7},
        Case{.what = "time after the last message",
             .start = Kind::kTime,
             .first_start = true,
             .first = 5,
             .end = 9,
             .expected = 9},
        Case{.what = "the answer about the time is older than the one about the beginning",
             .start = Kind::kTime,
             .first_start = true,
             .first = 8,
             .end = 9,
             .at_time = 7,
             .expected = 8},
        Case{.what = "stored", .stored = 6, .first = 5, .end = 9, .expected = 6},
        Case{.what = "stored, the start policy does not count",
             .start = Kind::kNow,
             .first_start = true,
             .stored = 6,
             .first = 5,
             .end = 9,
             .expected = 6},
        Case{.what = "stored at the first message",
             .stored = 5,
             .first = 5,
             .end = 9,
             .expected = 5},
        Case{.what = "stored at the end", .stored = 9, .first = 5, .end = 9, .expected = 9},
        Case{.what = "all is gone, but all was read",
             .stored = 9,
             .first = 9,
             .end = 9,
             .expected = 9},
        Case{.what = "retention overtook",
             .stored = 3,
             .first = 5,
             .end = 9,
             .expected = 5,
             .lost = LostRange{kWhere, 3, 5, LossCause::kRetention}},
        Case{.what = "made again",
             .stored = 20,
             .first = 0,
             .end = 9,
             .expected = 0,
             .lost = LostRange{kWhere, 20, 0, LossCause::kRemade}},
        Case{.what = "made again, empty",
             .stored = 1,
             .first = 0,
             .end = 0,
             .expected = 0,
             .lost = LostRange{kWhere, 1, 0, LossCause::kRemade}}));

TEST(ParseStartTest, ReadsPoliciesAndTimes) {
  EXPECT_EQ(*ParseStart("earliest"), StartPolicy{});
  EXPECT_EQ(*ParseStart("now"), StartPolicy{.kind = Kind::kNow});
  ASSERT_OK_AND_ASSIGN(const StartPolicy time, ParseStart("2026-01-31T00:00:00Z"));
  EXPECT_EQ(time.kind, Kind::kTime);
  EXPECT_EQ(FormatTimestamp(time.time).substr(0, 10), "2026-01-31");
  EXPECT_THAT(ParseStart("latest"), Fails(ErrorCode::kInvalidArgument));
}

TEST(LostRangeTest, SaysWhatIsGone) {
  EXPECT_EQ(Describe({kWhere, 3, 5, LossCause::kRetention}),
            "orders[3]: offsets 3 to 4 were removed by the broker before they were read; it begins "
            "at 5 now");
  EXPECT_THAT(Describe({kWhere, 20, 0, LossCause::kRemade}), ::testing::HasSubstr("made again"));
}

}  // namespace
}  // namespace tarn::source::kafka
