#include "tarn/base/quantity.h"

#include "test/support/matchers.h"

namespace tarn {
namespace {

using std::chrono::milliseconds;

TEST(QuantityTest, DurationsOfEachUnit) {
  EXPECT_THAT(ParseDuration("200ms"), IsOkAndHolds(milliseconds(200)));
  EXPECT_THAT(ParseDuration("5s"), IsOkAndHolds(milliseconds(5'000)));
  EXPECT_THAT(ParseDuration("10m"), IsOkAndHolds(milliseconds(600'000)));
  EXPECT_THAT(ParseDuration("2h"), IsOkAndHolds(milliseconds(7'200'000)));
  EXPECT_THAT(ParseDuration("7d"), IsOkAndHolds(milliseconds(604'800'000)));
  EXPECT_THAT(ParseDuration("1_000ms"), IsOkAndHolds(milliseconds(1'000)));
  EXPECT_THAT(ParseDuration("0s"), IsOkAndHolds(milliseconds(0)));
  EXPECT_THAT(ParseDuration("0"), IsOkAndHolds(milliseconds(0)));
}

TEST(QuantityTest, BadDurationsNameTheTextAndWhatIsExpected) {
  for (const char* text : {"", "s", "5 s", " 5s", "5s ", "-5s", "1.5h", "5S", "5x", "_5s", "5_s",
                           "1__0s", "off", "5s5", "ms5", "+5s"}) {
    EXPECT_THAT(ParseDuration(text), Fails(ErrorCode::kInvalidArgument)) << text;
  }
  EXPECT_THAT(ParseDuration("5 s"),
              FailsWith(ErrorCode::kInvalidArgument,
                        "not a duration: \"5 s\" (write 200ms, 5s, 10m, 2h or 7d)"));
  EXPECT_THAT(ParseDuration("10"), FailsWith(ErrorCode::kInvalidArgument, "without a unit"));
  EXPECT_THAT(ParseDuration("99999999999999999999d"),
              FailsWith(ErrorCode::kInvalidArgument, "too large"));
  EXPECT_THAT(ParseDuration("9223372036854775807d"),
              FailsWith(ErrorCode::kInvalidArgument, "too large"));
}

TEST(QuantityTest, OffIsNoDuration) {
  EXPECT_THAT(ParseDurationOrOff("off"), IsOkAndHolds(std::nullopt));
  EXPECT_THAT(ParseDurationOrOff("1s"), IsOkAndHolds(milliseconds(1'000)));
  EXPECT_THAT(ParseDurationOrOff("Off"), FailsWith(ErrorCode::kInvalidArgument, "2h, 7d or off"));
  EXPECT_EQ(FormatDurationOrOff(std::nullopt), "off");
}

TEST(QuantityTest, DurationsRoundTrip) {
  for (const char* text : {"0s", "1ms", "1500ms", "90s", "61m", "25h", "7d"}) {
    ASSERT_OK_AND_ASSIGN(const milliseconds duration, ParseDuration(text));
    EXPECT_EQ(FormatDuration(duration), text);
  }
  EXPECT_EQ(FormatDuration(milliseconds(60'000)), "1m");
  EXPECT_EQ(FormatDuration(milliseconds(-1'000)), "-1s");
}

TEST(QuantityTest, Sizes) {
  EXPECT_THAT(ParseSize("0"), IsOkAndHolds(uint64_t{0}));
  EXPECT_THAT(ParseSize("1_000"), IsOkAndHolds(uint64_t{1000}));
  EXPECT_THAT(ParseSize("7B"), IsOkAndHolds(uint64_t{7}));
  EXPECT_THAT(ParseSize("64KiB"), IsOkAndHolds(uint64_t{65'536}));
  EXPECT_THAT(ParseSize("128MiB"), IsOkAndHolds(uint64_t{134'217'728}));
  EXPECT_THAT(ParseSize("1GiB"), IsOkAndHolds(uint64_t{1'073'741'824}));
  EXPECT_THAT(ParseSize("2TiB"), IsOkAndHolds(uint64_t{2} << 40));
}

TEST(QuantityTest, BadSizes) {
  for (const char* text : {"", "KiB", "64KB", "64kib", "64 KiB", "-1", "1.5GiB", "0x10", "1e6"}) {
    EXPECT_THAT(ParseSize(text), Fails(ErrorCode::kInvalidArgument)) << text;
  }
  EXPECT_THAT(ParseSize("8388608TiB"), FailsWith(ErrorCode::kInvalidArgument, "too large"));
  EXPECT_OK(ParseSize("8388607TiB"));
}

TEST(QuantityTest, SizesRoundTrip) {
  for (const char* text : {"0", "1", "1000", "1KiB", "1025", "3MiB", "5GiB", "1TiB", "2048TiB"}) {
    ASSERT_OK_AND_ASSIGN(const uint64_t bytes, ParseSize(text));
    EXPECT_EQ(FormatSize(bytes), text);
  }
}

TEST(QuantityTest, Percentages) {
  EXPECT_THAT(ParsePercentage("1%"), IsOkAndHolds(0.01));
  EXPECT_THAT(ParsePercentage("0.5%"), IsOkAndHolds(0.005));
  EXPECT_THAT(ParsePercentage("100%"), IsOkAndHolds(1.0));
  for (const char* text : {"", "%", "1", "1 %", "-1%", "101%", "1%%", ".%", "1.2.3%", "nan%"}) {
    EXPECT_THAT(ParsePercentage(text), Fails(ErrorCode::kInvalidArgument)) << text;
  }
  for (const char* text : {"0%", "1%", "0.5%", "12.25%", "33.3%", "100%"}) {
    ASSERT_OK_AND_ASSIGN(const double fraction, ParsePercentage(text));
    EXPECT_EQ(FormatPercentage(fraction), text);
  }
}

TEST(QuantityTest, Integers) {
  EXPECT_THAT(ParseInteger("1_000_000"), IsOkAndHolds(int64_t{1'000'000}));
  EXPECT_THAT(ParseInteger("-5"), IsOkAndHolds(int64_t{-5}));
  EXPECT_THAT(ParseInteger("9223372036854775807"), IsOkAndHolds(INT64_MAX));
  EXPECT_THAT(ParseInteger("-9223372036854775808"), IsOkAndHolds(INT64_MIN));
  EXPECT_THAT(ParseInteger("9223372036854775808"), Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(ParseInteger("-9223372036854775809"), Fails(ErrorCode::kInvalidArgument));
  for (const char* text : {"", "-", "--1", "1_", "_1", "1__0", "1.0", "+1", "0x1", " 1"}) {
    EXPECT_THAT(ParseInteger(text), Fails(ErrorCode::kInvalidArgument)) << text;
  }
}

}  // namespace
}  // namespace tarn
