#include "tarn/source/files/listing_plan.h"

#include "test/support/matchers.h"

namespace tarn::source::files {
namespace {

using std::chrono::hours;
using ::testing::ElementsAre;

PathPattern Pattern(std::string_view text) { return PathPattern::Parse(text).value(); }
Timestamp Time(std::string_view text) { return ParseTimestamp(text).value(); }

std::vector<std::string> PrefixesOf(const ListingPlan& plan) {
  std::vector<std::string> prefixes;
  for (const ListingStep& step : plan.steps) {
    prefixes.push_back(step.prefix);
  }
  return prefixes;
}

const Timestamp kNow = Time("2026-02-01T10:30Z");

TEST(ListingPlanTest, WithoutADateEverythingIsListed) {
  const ListingPlan plan = PlanListing(Pattern("in/*.csv"), {}, kNow, kNow, kNow);
  EXPECT_TRUE(plan.whole);
  EXPECT_THAT(PrefixesOf(plan), ElementsAre("in/"));
}

TEST(ListingPlanTest, TheFirstPollOfEarliestListsEverything) {
  const ListingPlan plan =
      PlanListing(Pattern("in/<yyyy>/<MM>/<dd>/*"), {}, std::nullopt, std::nullopt, kNow);
  EXPECT_TRUE(plan.whole);
  EXPECT_THAT(PrefixesOf(plan), ElementsAre("in/"));
}

TEST(ListingPlanTest, LaterPollsListTheWindowOnly) {
  const PathPattern pattern = Pattern("in/<yyyy>/<MM>/<dd>/*");
  const ListingPlan plan = PlanListing(pattern, {}, kNow, std::nullopt, kNow);
  EXPECT_FALSE(plan.whole);
  EXPECT_THAT(PrefixesOf(plan), ElementsAre("in/2026/01/31/", "in/2026/02/01/"));
  EXPECT_EQ(plan.window_begin, kNow - hours(24));
  // Off for three days: the window reaches back over them.
  EXPECT_THAT(PrefixesOf(PlanListing(pattern, {.look_back = hours(0)}, kNow - hours(72),
                                     std::nullopt, kNow)),
              ElementsAre("in/2026/01/29/", "in/2026/01/30/", "in/2026/01/31/", "in/2026/02/01/"));
}

TEST(ListingPlanTest, AStartLimitsTheWindow) {
  const PathPattern pattern = Pattern("<yyyy>/<MM>/<dd>/*");
  EXPECT_THAT(PrefixesOf(PlanListing(pattern, {}, std::nullopt, kNow - hours(48), kNow)),
              ElementsAre("2026/01/30/", "2026/01/31/", "2026/02/01/"));
  EXPECT_THAT(
      PrefixesOf(PlanListing(pattern, {.look_back = hours(1000)}, kNow, kNow - hours(1), kNow)),
      ElementsAre("2026/02/01/"));
}

TEST(ListingPlanTest, TheNextPeriodIsThereWhenItBegins) {
  const PathPattern pattern = Pattern("<yyyy><MM><dd><HH>/*");
  const ListingOptions options{.look_back = hours(1)};
  const Timestamp midnight = Time("2026-02-02");
  const Timestamp before = midnight - std::chrono::microseconds(1);
  EXPECT_THAT(PrefixesOf(PlanListing(pattern, options, before, {}, before)),
              ElementsAre("2026020122/", "2026020123/"));
  EXPECT_THAT(PrefixesOf(PlanListing(pattern, options, before, {}, midnight)),
              ElementsAre("2026020122/", "2026020123/", "2026020200/"));
}

TEST(ListingPlanTest, WideWindowsListCoarserPrefixes) {
  const PathPattern pattern = Pattern("<yyyy>/<MM>/<dd>/<HH>/<mm>/*");
  const ListingPlan day = PlanListing(pattern, {}, kNow, {}, kNow);
  EXPECT_EQ(day.steps.size(), 25u);
  EXPECT_EQ(day.steps.front().prefix, "2026/01/31/10/");
  const ListingPlan month = PlanListing(pattern, {.look_back = hours(24 * 30)}, kNow, {}, kNow);
  EXPECT_EQ(month.steps.size(), 31u);
  EXPECT_EQ(month.steps.front().prefix, "2026/01/02/");
  const ListingPlan century =
      PlanListing(pattern, {.look_back = hours(24 * 36'525)}, kNow, {}, kNow);
  EXPECT_THAT(PrefixesOf(century), ElementsAre(""));
  EXPECT_TRUE(century.whole);
  EXPECT_EQ(century.window_begin, kNow - hours(24 * 36'525));
}

TEST(ListingPlanTest, ThePlanNeverExceedsItsPrefixes) {
  const PathPattern pattern = Pattern("<yyyy>/<MM>/<dd>/<HH>/<mm>/*");
  for (int64_t hours_back = 0; hours_back < 20'000; hours_back += 97) {
    const ListingPlan plan =
        PlanListing(pattern, {.look_back = hours(hours_back), .prefixes_max = 10}, kNow, {}, kNow);
    EXPECT_LE(plan.steps.size(), 10u);
    EXPECT_GE(plan.steps.size(), 1u);
  }
}

TEST(ListingPlanTest, AStarBeforeTheDateKeepsTheLiteralPrefix) {
  const ListingPlan plan = PlanListing(Pattern("in/*/<yyyy>-<MM>-<dd>.csv"), {}, kNow, {}, kNow);
  EXPECT_THAT(PrefixesOf(plan), ElementsAre("in/"));
  EXPECT_EQ(plan.window_begin, kNow - hours(24));
}

TEST(ListingPlanTest, FutureFilesAreLookedForBehindTheWindow) {
  const ListingOptions options{.look_back = hours(24), .future = FuturePolicy::kRead};
  const ListingPlan plan = PlanListing(Pattern("in/<yyyy>/<MM>/<dd>/*"), options, kNow, {}, kNow);
  EXPECT_THAT(plan.steps,
              ElementsAre(ListingStep{"in/2026/01/31/", ""}, ListingStep{"in/2026/02/01/", ""},
                          ListingStep{"in/", "in/2026/02/01/\xF4\x8F\xBF\xBF"}));
  const ListingPlan unordered =
      PlanListing(Pattern("in/<dd>-<MM>-<yyyy>/*"), options, kNow, {}, kNow);
  EXPECT_THAT(PrefixesOf(unordered), ElementsAre("in/"));
  EXPECT_EQ(unordered.window_begin, kNow - hours(24));
}

TEST(ListingPlanTest, AClockThatWentBackDoesNotSkipAnything) {
  const ListingPlan plan = PlanListing(Pattern("<yyyy>/<MM>/<dd>/*"), {.look_back = hours(0)},
                                       kNow + hours(1000), {}, kNow);
  EXPECT_THAT(PrefixesOf(plan), ElementsAre("2026/02/01/"));
  EXPECT_EQ(plan.window_begin, kNow);
}

}  // namespace
}  // namespace tarn::source::files
