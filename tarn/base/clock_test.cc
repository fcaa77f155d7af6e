#include "tarn/base/clock.h"

#include "test/support/matchers.h"

namespace tarn {
namespace {

TEST(ClockTest, FormatsSixDigitsInUtc) {
  EXPECT_EQ(FormatTimestamp(FromMicros(0)), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(FormatTimestamp(FromMicros(-1)), "1969-12-31T23:59:59.999999Z");
  EXPECT_EQ(FormatTimestamp(FromMicros(951'782'400'000'001)), "2000-02-29T00:00:00.000001Z");
  EXPECT_EQ(FormatTimestamp(FromMicros(253'402'300'799'999'999)), "9999-12-31T23:59:59.999999Z");
}

TEST(ClockTest, FormatsTheEndsOfTheRange) {
  EXPECT_EQ(FormatTimestamp(FromMicros(253'402'300'800'000'000)), "+10000-01-01T00:00:00.000000Z");
  EXPECT_EQ(FormatTimestamp(FromMicros(INT64_MAX)), "+294247-01-10T04:00:54.775807Z");
  EXPECT_EQ(FormatTimestamp(FromMicros(INT64_MIN)), "-290308-12-21T19:59:05.224192Z");
  EXPECT_EQ(FormatTimestamp(FromMicros(-62'167'219'200'000'000)), "0000-01-01T00:00:00.000000Z");
  EXPECT_EQ(FormatTimestamp(FromMicros(-62'167'219'200'000'001)), "-0001-12-31T23:59:59.999999Z");
}

TEST(ClockTest, ParsesFractionsAndZones) {
  const Timestamp noon = FromMicros(1'769'860'800'000'000);
  for (const char* text :
       {"2026-01-31T12:00:00Z", "2026-01-31 12:00:00z", "2026-01-31t12:00Z",
        "2026-01-31T12:00:00.000000000Z", "2026-01-31T14:00:00+02:00", "2026-01-31T17:30:00+0530",
        "2026-01-31T04:00:00-08", "2026-02-01T06:00:00+18:00", "2026-01-31T12:00:00,0Z"}) {
    EXPECT_THAT(ParseTimestamp(text), IsOkAndHolds(noon)) << text;
  }
  EXPECT_THAT(ParseTimestamp("2026-01-31"), IsOkAndHolds(noon - std::chrono::hours(12)));
  EXPECT_THAT(ParseTimestamp("1970-01-01T00:00:00.123456789Z"), IsOkAndHolds(FromMicros(123'456)));
  EXPECT_THAT(ParseTimestamp("1970-01-01T00:00:00.5Z"), IsOkAndHolds(FromMicros(500'000)));
}

TEST(ClockTest, RefusesWhatIsNotATimeWithAZone) {
  for (const char* text : {"",
                           "2026",
                           "2026-01",
                           "2026-1-31",
                           "2026-02-29",
                           "2026-13-01",
                           "2026-00-10",
                           "2026-01-00",
                           "2026-01-32",
                           "20260131",
                           "2026-01-31T",
                           "2026-01-31T12",
                           "2026-01-31T12:00:00",
                           "2026-01-31T24:00:00Z",
                           "2026-01-31T12:60:00Z",
                           "2026-01-31T12:00:60Z",
                           "2026-01-31T12:00:00.Z",
                           "2026-01-31T12:00:00.1234567890Z",
                           "2026-01-31T12:00:00+",
                           "2026-01-31T12:00:00+5",
                           "2026-01-31T12:00:00+05:",
                           "2026-01-31T12:00:00+05:6",
                           "2026-01-31T12:00:00+19:00",
                           "2026-01-31T12:00:00+05:60",
                           "2026-01-31T12:00:00ZZ",
                           " 2026-01-31",
                           "2026-01-31 ",
                           "+2026-01-31",
                           "2026-01-31T12:00:00Z\n",
                           "not a time"}) {
    EXPECT_THAT(ParseTimestamp(text), Fails(ErrorCode::kInvalidArgument)) << text;
  }
}

TEST(ClockTest, RoundTripsAcrossFourCenturies) {
  for (int64_t day = -200'000; day < 200'000; day += 997) {
    const Timestamp time = FromMicros(day * 86'400'000'000 + 45'296'123'456);
    EXPECT_THAT(ParseTimestamp(FormatTimestamp(time)), IsOkAndHolds(time));
  }
}

TEST(ClockTest, MillisecondsRoundDownAlsoBefore1970) {
  EXPECT_EQ(ToMillis(FromMicros(1'999)), 1);
  EXPECT_EQ(ToMillis(FromMicros(-1)), -1);
  EXPECT_EQ(ToMicros(FromMillis(-2)), -2'000);
}

TEST(ClockTest, AManualClockMovesWhenTold) {
  ManualClock clock(FromMicros(10));
  clock.Advance(std::chrono::milliseconds(1));
  EXPECT_EQ(ToMicros(clock.Now()), 1'010);
  clock.Set(FromMicros(5));
  EXPECT_EQ(ToMicros(clock.Now()), 5);
}

TEST(ClockTest, TheSystemClockIsInThisCentury) {
  EXPECT_THAT(ParseTimestamp("2026-01-01"), IsOkAndHolds(::testing::Lt(SystemClock().Now())));
  EXPECT_THAT(ParseTimestamp("2100-01-01"), IsOkAndHolds(::testing::Gt(SystemClock().Now())));
}

}  // namespace
}  // namespace tarn
