#include "tarn/engine/value_text.h"

#include <charconv>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

namespace tarn::engine {
namespace {

template <typename Append, typename... Arguments>
std::string Text(Append append, Arguments... arguments) {
  std::string out;
  append(arguments..., out);
  return out;
}

TEST(ValueTextTest, DoublesReadBackExactly) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 20'000; ++round) {
    const uint64_t bits = random();
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    if (value != value || value - value != 0) {
      continue;
    }
    const std::string text = Text(AppendDouble, value);
    double back = 0;
    std::from_chars(text.data(), text.data() + text.size(), back);
    ASSERT_EQ(back, value) << text;
  }
}

TEST(ValueTextTest, Decimals) {
  const auto text = [](__int128 value, int32_t scale) {
    uint8_t bytes[16];
    std::memcpy(bytes, &value, sizeof(bytes));
    return Text(AppendDecimal, static_cast<const uint8_t*>(bytes), scale);
  };
  EXPECT_EQ(text(0, 0), "0");
  EXPECT_EQ(text(0, 3), "0.000");
  EXPECT_EQ(text(-5, 2), "-0.05");
  EXPECT_EQ(text(12345, 2), "123.45");
  EXPECT_EQ(text(12345, 5), "0.12345");
  EXPECT_EQ(text(7, -2), "700");
  EXPECT_EQ(text(0, -2), "0");
  const __int128 ten18 = 1'000'000'000'000'000'000;
  EXPECT_EQ(text(ten18 * 10, 0), "10000000000000000000");
  EXPECT_EQ(text(-(ten18 * ten18 * 100 - 1), 38), "-0.99999999999999999999999999999999999999");
}

TEST(ValueTextTest, DatesAndTimes) {
  EXPECT_EQ(Text(AppendDate, int64_t{0}), "1970-01-01");
  EXPECT_EQ(Text(AppendDate, int64_t{11016}), "2000-02-29");
  EXPECT_EQ(Text(AppendTime, int64_t{3'723'000'001}), "01:02:03.000001");
  EXPECT_EQ(Text(AppendTimestamp, int64_t{-1}, ZoneSuffix::kUtc), "1969-12-31T23:59:59.999999Z");
}

TEST(ValueTextTest, Bytes) {
  EXPECT_EQ(Text(AppendHex, std::string_view("\x00\xff", 2), HexCase::kLower), "00ff");
  EXPECT_EQ(Text(AppendHex, std::string_view("\x00\xff", 2), HexCase::kUpper), "00FF");
}

}  // namespace
}  // namespace tarn::engine
