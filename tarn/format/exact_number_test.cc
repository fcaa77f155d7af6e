#include "tarn/format/exact_number.h"

#include <cmath>
#include <random>

#include "test/support/matchers.h"

namespace tarn::format {
namespace {

std::string Show(const ExactDecimal& number) {
  return number.fits ? FormatDecimal(number.unscaled, number.scale) : "too long";
}

TEST(ExactNumberTest, ReadsDecimals) {
  EXPECT_EQ(Show(ReadDecimal("12.30")), "12.30");
  EXPECT_EQ(Show(ReadDecimal("-0.05")), "-0.05");
  EXPECT_EQ(Show(ReadDecimal("0")), "0");
  EXPECT_EQ(Show(ReadDecimal("0.00")), "0.00");
  EXPECT_EQ(Show(ReadDecimal("1.50e1")), "15");
  EXPECT_EQ(Show(ReadDecimal("15E-3")), "0.015");
  EXPECT_EQ(Show(ReadDecimal("1e37")), "1" + std::string(37, '0'));
  EXPECT_EQ(Show(ReadDecimal("1e38")), "too long");
  EXPECT_EQ(Show(ReadDecimal("1e-38")), "0." + std::string(37, '0') + "1");
  EXPECT_EQ(Show(ReadDecimal("1e-39")), "too long");
  EXPECT_EQ(Show(ReadDecimal("1e999999999999")), "too long");
  EXPECT_EQ(Show(ReadDecimal("-99999999999999999999999999999999999999")),
            "-99999999999999999999999999999999999999");
  EXPECT_EQ(ReadDecimal("1e400").integer_digits, 401);
  EXPECT_EQ(ReadDecimal("0.001").integer_digits, 0);
}

TEST(ExactNumberTest, ExactDoublesAreThoseWhoseShortestTextIsTheWrittenValue) {
  EXPECT_EQ(ReadExactDouble("0.1"), 0.1);
  EXPECT_EQ(ReadExactDouble("1.50"), 1.5);
  EXPECT_EQ(ReadExactDouble("3.141592653589793"), 3.141592653589793);
  EXPECT_EQ(ReadExactDouble("1e22"), 1e22);
  EXPECT_EQ(ReadExactDouble("5e-324"), 5e-324);
  EXPECT_EQ(ReadExactDouble("0.1000000000000000055"), std::nullopt);
  EXPECT_EQ(ReadExactDouble("9007199254740993.0"), std::nullopt);
  EXPECT_EQ(ReadExactDouble("1e309"), std::nullopt);
  EXPECT_EQ(ReadExactDouble("1e-400"), std::nullopt);
  EXPECT_EQ(ReadNearestDouble("1e-400"), 0.0);
  EXPECT_EQ(ReadNearestDouble("1e400"), std::nullopt);
}

TEST(ExactNumberTest, SmallDecimalsAgreeWithTheLongWay) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 20000; ++i) {
    const auto unscaled =
        static_cast<int64_t>(random() % 1'000'000'000'000'000ULL) * (random() % 2 == 0 ? 1 : -1);
    const int scale = 1 + static_cast<int>(random() % 18);
    const std::string text = FormatDecimal(unscaled, scale);
    ASSERT_EQ(ReadExactDouble(text), SmallDecimalToDouble(unscaled, scale)) << text;
  }
}

TEST(ExactNumberTest, FormatsDoubles) {
  EXPECT_EQ(FormatDouble(1), "1.0");
  EXPECT_EQ(FormatDouble(-0.5), "-0.5");
  EXPECT_EQ(FormatDouble(1e300), "1e+300");
  EXPECT_EQ(FormatDouble(std::nan("")), "NaN");
  EXPECT_EQ(FormatDouble(-INFINITY), "-Infinity");
  EXPECT_EQ(FormatFloat(0.1F), "0.1");
}

TEST(ExactNumberTest, CountsDigits) {
  EXPECT_EQ(DigitCount(uint64_t{0}), 1);
  EXPECT_EQ(DigitCount(uint64_t{9}), 1);
  EXPECT_EQ(DigitCount(uint64_t{10}), 2);
  EXPECT_EQ(DigitCount(~uint64_t{0}), 20);
  EXPECT_EQ(DigitCount(-PowerOfTen(37)), 38);
}

TEST(ExactNumberTest, RescalesWithinThirtyEightDigits) {
  EXPECT_EQ(Rescale(5, 2), Int128{500});
  EXPECT_EQ(Rescale(0, 38), Int128{0});
  EXPECT_EQ(Rescale(PowerOfTen(37), 1), std::nullopt);
}

TEST(ExactNumberTest, ReadsBigEndianBytes) {
  using namespace std::string_literals;  // NOLINT
  EXPECT_EQ(ReadBigEndian(""), Int128{0});
  EXPECT_EQ(ReadBigEndian("\x0f\x3c"), Int128{3900});
  EXPECT_EQ(ReadBigEndian("\xff"), Int128{-1});
  EXPECT_EQ(ReadBigEndian("\0\x9c"s), Int128{156});
  EXPECT_EQ(ReadBigEndian(std::string(20, '\xff')), Int128{-1});
  EXPECT_EQ(ReadBigEndian("\x01" + std::string(16, '\0')), std::nullopt);
  EXPECT_EQ(ReadBigEndian("\x7f" + std::string(15, '\xff')), std::nullopt);
  EXPECT_EQ(FormatBigEndian("\x0f\x3c", 2), "39.00");
  EXPECT_EQ(FormatBigEndian("\xff", 2), "-0.01");
  EXPECT_EQ(FormatBigEndian("\x05", -3), "5000");
  EXPECT_EQ(FormatBigEndian("\x01" + std::string(16, '\0'), 0),
            "340282366920938463463374607431768211456");
  EXPECT_EQ(FormatBigEndian("", 0), "0");
  EXPECT_EQ(FormatBigEndian("\x80", 1), "-12.8");
}

}  // namespace
}  // namespace tarn::format
