#include "tarn/format/time_text.h"

#include "test/support/matchers.h"

namespace tarn::format {
namespace {

TEST(TimeTextTest, ReadsAndWritesDates) {
  EXPECT_EQ(ReadDate("1970-01-01"), 0);
  EXPECT_EQ(ReadDate("1969-12-31"), -1);
  EXPECT_EQ(ReadDate("2026-02-28"), 20512);
  EXPECT_EQ(ReadDate("2026-02-28Z"), 20512);
  EXPECT_EQ(ReadDate("2024-02-29"), 19782);
  EXPECT_EQ(ReadDate("0001-01-01"), -719162);
  EXPECT_EQ(ReadDate("-5877611-06-21Z"), -2147472692);
  for (const char* bad :
       {"", "2026", "2026-2-1", "2026-02-29", "2026-13-01", "2026-00-15", "2023-02-31",
        "0000-00-00", "2026-02-28x", "26-02-28", "infinity", "-99999999-01-01"}) {
    EXPECT_EQ(ReadDate(bad), std::nullopt) << bad;
  }
  // Every day of a long stretch, and far ones: 15000-01-01 and 44 BC.
  for (int64_t day = -800'000; day < 800'000; day += 37) {
    ASSERT_EQ(ReadDate(FormatDate(day)), day);
  }
  EXPECT_EQ(FormatDate(*ReadDate("+15000-01-01")), "+15000-01-01");
  EXPECT_EQ(FormatDate(*ReadDate("-0043-03-15")), "-0043-03-15");
}

TEST(TimeTextTest, ReadsAndWritesTimes) {
  EXPECT_EQ(ReadTime("00:00"), 0);
  EXPECT_EQ(ReadTime("12:34:56.789"), 45'296'789'000);
  EXPECT_EQ(ReadTime("12:34:56.7890000000"), 45'296'789'000);
  for (const char* bad :
       {"24:00:00", "12:60", "12:00:60", "1:00", "12:00:00.", "12:00:00.1234567", "12:00Z", ""}) {
    EXPECT_EQ(ReadTime(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(FormatTime(45'296'789'000), "12:34:56.789");
  EXPECT_EQ(FormatTime(-838LL * 3'600'000'000 - 59'000'000), "-838:00:59");
}

TEST(TimeTextTest, ReadsAndWritesTimestamps) {
  const auto micros = [](const char* text) {
    const auto read = ReadTimestamp(text);
    return read.has_value() ? std::optional(std::pair(read->micros, read->has_zone)) : std::nullopt;
  };
  EXPECT_EQ(micros("1970-01-01T00:00:00Z"), std::pair(int64_t{0}, true));
  EXPECT_EQ(micros("1969-12-31 23:59:59.999999"), std::pair(int64_t{-1}, false));
  EXPECT_EQ(micros("1970-01-01T02:00:00+02:00"), std::pair(int64_t{0}, true));
  EXPECT_EQ(micros("1970-01-01T02:00+0200"), std::pair(int64_t{0}, true));
  EXPECT_EQ(micros("1969-12-31T19:00:00-05"), std::pair(int64_t{0}, true));
  for (const char* bad :
       {"1970-01-01", "1970-01-01T", "1970-01-01T00:00:00 Z", "-infinity", "1970-01-01T00:00:00+",
        "+294248-01-01T00:00:00Z", "1970-01-01T00:00:00.1234567Z"}) {
    EXPECT_EQ(micros(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(FormatTimestamp(-1, true), "1969-12-31T23:59:59.999999Z");
  EXPECT_EQ(FormatTimestamp(1'500'000, false), "1970-01-01T00:00:01.5");
  EXPECT_EQ(FormatTimestampNanos(1, 7, true), "1970-01-01T00:00:00.000001007Z");
}

}  // namespace
}  // namespace tarn::format
