#include "tarn/source/files/path_pattern.h"

#include "test/support/matchers.h"

namespace tarn::source::files {
namespace {

using ::testing::Eq;
using ::testing::Optional;

PathPattern Pattern(std::string_view text) { return PathPattern::Parse(text).value(); }
Timestamp Time(std::string_view text) { return ParseTimestamp(text).value(); }
bool Matches(std::string_view pattern, std::string_view key) {
  return Pattern(pattern).Match(key).has_value();
}

TEST(PathPatternTest, AStarIsAnythingButASlash) {
  EXPECT_TRUE(Matches("*", "a.json"));
  EXPECT_FALSE(Matches("*", "in/a.json"));
  EXPECT_TRUE(Matches("in/*.json", "in/.json"));
  EXPECT_TRUE(Matches("in/*.json", "in/a.json.json"));
  EXPECT_FALSE(Matches("in/*.json", "in/a.json.gz"));
  EXPECT_FALSE(Matches("in/*.json", "in/x/a.json"));
  EXPECT_TRUE(Matches("*/*", "a/b"));
  EXPECT_FALSE(Matches("*/*", "a/b/c"));
  EXPECT_TRUE(Matches("a*b*c", "a-b-b-c"));
  EXPECT_FALSE(Matches("a*b*c", "a-b-b-"));
  EXPECT_TRUE(Matches("*-*.csv", "\xE4\xB8\xAD-\xC3\xA9.csv"));
  EXPECT_FALSE(Matches("a", "ab"));
  EXPECT_FALSE(Matches("ab", "a"));
}

TEST(PathPatternTest, EverythingElseStandsForItself) {
  for (const char* name :
       {"a[1].csv", "a?.csv", "{x}.csv", "a\\b", "^a$", "a<b", "<1>", "<>", "a>b", "(a|b)+"}) {
    EXPECT_TRUE(Matches(name, name)) << name;
  }
  EXPECT_FALSE(Matches("a[1].csv", "a1.csv"));
  EXPECT_FALSE(Matches("a?.csv", "ab.csv"));
  EXPECT_FALSE(Matches("{x,y}", "x"));
}

TEST(PathPatternTest, ADateNamesItsPeriod) {
  const PathPattern days = Pattern("in/<yyyy>/<MM>/<dd>/*.csv");
  EXPECT_THAT(days.Match("in/2026/01/31/a.csv"),
              Optional(PathMatch{DatePeriod{Time("2026-01-31"), Time("2026-02-01")}}));
  EXPECT_THAT(Pattern("<yyyy>-<MM>.csv").Match("2026-12.csv"),
              Optional(PathMatch{DatePeriod{Time("2026-12-01"), Time("2027-01-01")}}));
  EXPECT_THAT(Pattern("y=<yyyy>/*").Match("y=2024/x"),
              Optional(PathMatch{DatePeriod{Time("2024-01-01"), Time("2025-01-01")}}));
  EXPECT_THAT(
      Pattern("<yyyy><MM><dd>T<HH><mm>_*").Match("20240229T2359_x"),
      Optional(PathMatch{DatePeriod{Time("2024-02-29T23:59Z"), Time("2024-03-01T00:00Z")}}));
  EXPECT_THAT(
      Pattern("<dd>.<MM>.<yyyy>_<HH>h").Match("01.02.2026_03h"),
      Optional(PathMatch{DatePeriod{Time("2026-02-01T03:00Z"), Time("2026-02-01T04:00Z")}}));
}

TEST(PathPatternTest, WhatIsNoDateDoesNotMatch) {
  const PathPattern pattern = Pattern("<yyyy>/<MM>/<dd>/<HH>/*");
  for (const char* key : {"2026/13/01/00/a", "2026/02/29/00/a", "2026/00/10/00/a",
                          "2026/01/31/24/a", "2026/1/31/00/a", "26/01/31/00/a", "2026/01/3a/00/a",
                          "2026/01/31/00", "2026/01/31/00/a/b"}) {
    EXPECT_EQ(pattern.Match(key), std::nullopt) << key;
  }
  EXPECT_THAT(Pattern("<yyyy>/<MM>/<yyyy><MM>-*").Match("2026/01/202601-a"),
              Optional(::testing::_));
  EXPECT_EQ(Pattern("<yyyy>/<MM>/<yyyy><MM>-*").Match("2026/01/202602-a"), std::nullopt);
}

TEST(PathPatternTest, ADateAfterAStarIsFoundWhereverItStands) {
  const PathPattern pattern = Pattern("*_<yyyy>-<MM>-<dd>.csv");
  EXPECT_THAT(pattern.Match("orders_2026-99-99_2026-01-31.csv"),
              Optional(PathMatch{DatePeriod{Time("2026-01-31"), Time("2026-02-01")}}));
  EXPECT_EQ(pattern.Match("orders_2026-01-32.csv"), std::nullopt);
}

TEST(PathPatternTest, HostileNamesDoNotTakeForEver) {
  const PathPattern pattern = Pattern("*a*a*a*a*a*a*a*a*a*a*b");
  EXPECT_EQ(pattern.Match(std::string(1000, 'a')), std::nullopt);
  EXPECT_TRUE(Matches("*a*a*a*b", std::string(1000, 'a') + "b"));
  EXPECT_TRUE(Matches("*-*-*-*", std::string(900, '-')));
}

TEST(PathPatternTest, BadPatternsSayWhy) {
  const auto fails = [](std::string_view text, const char* why) {
    EXPECT_THAT(PathPattern::Parse(text), FailsWith(ErrorCode::kInvalidArgument, why)) << text;
  };
  fails("", "it is empty");
  fails("/in/*", "empty segment");
  fails("in/", "empty segment");
  fails("../*", "segment");
  fails("in/**/a", "name each folder level");
  fails("<yyy>/*", "unknown placeholder <yyy> (there are <yyyy>");
  fails("<DD>/*", "unknown placeholder <DD>");
  fails("<yyyy>/<dd>/*", "<dd> needs <MM> too");
  fails("<HH>.csv", "<HH> needs <yyyy> too");
}

TEST(PathPatternTest, PrefixesGoAsFarAsTheyAreKnown) {
  const PathPattern pattern = Pattern("in/<yyyy>/<MM>/orders/<dd>/*/<HH>.csv");
  const Timestamp time = Time("2026-01-05T07:08Z");
  EXPECT_EQ(pattern.LiteralPrefix(), "in/");
  EXPECT_EQ(pattern.PrefixFor(time, DateUnit::kYear), "in/2026/");
  EXPECT_EQ(pattern.PrefixFor(time, DateUnit::kMonth), "in/2026/01/orders/");
  EXPECT_EQ(pattern.PrefixFor(time, DateUnit::kHour), "in/2026/01/orders/05/");
  EXPECT_EQ(Pattern("*").LiteralPrefix(), "");
  EXPECT_EQ(Pattern("a/b.csv").LiteralPrefix(), "a/b.csv");
  EXPECT_THAT(pattern.unit(), Optional(Eq(DateUnit::kHour)));
  EXPECT_EQ(Pattern("*").unit(), std::nullopt);
}

TEST(PathPatternTest, ByteOrderIsDateOrderOnlyFromCoarseToFineBeforeAnyStar) {
  EXPECT_TRUE(Pattern("in/<yyyy>/<MM>/<dd>/*").dates_in_byte_order());
  EXPECT_TRUE(Pattern("<yyyy>-<yyyy><MM>").dates_in_byte_order());
  EXPECT_FALSE(Pattern("<dd>-<MM>-<yyyy>/*").dates_in_byte_order());
  EXPECT_FALSE(Pattern("*/<yyyy>").dates_in_byte_order());
  EXPECT_FALSE(Pattern("*").dates_in_byte_order());
}

TEST(PathPatternTest, PeriodsOfEachUnit) {
  const Timestamp time = Time("2024-12-31T23:59:59.999999Z");
  const Timestamp next_year = Time("2025-01-01");
  EXPECT_EQ(PeriodOf(time, DateUnit::kYear), (DatePeriod{Time("2024-01-01"), next_year}));
  EXPECT_EQ(PeriodOf(time, DateUnit::kMonth), (DatePeriod{Time("2024-12-01"), next_year}));
  EXPECT_EQ(PeriodOf(time, DateUnit::kDay), (DatePeriod{Time("2024-12-31"), next_year}));
  EXPECT_EQ(PeriodOf(time, DateUnit::kHour), (DatePeriod{Time("2024-12-31T23:00Z"), next_year}));
  EXPECT_EQ(PeriodOf(time, DateUnit::kMinute), (DatePeriod{Time("2024-12-31T23:59Z"), next_year}));
  EXPECT_EQ(PeriodOf(Time("1969-12-31T12:00Z"), DateUnit::kDay),
            (DatePeriod{Time("1969-12-31"), Time("1970-01-01")}));
}

}  // namespace
}  // namespace tarn::source::files
