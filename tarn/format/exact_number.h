// Exact numbers: decimal text to 128-bit integers and doubles, and the question whether a double
// says the same as the text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tarn::format {

using Int128 = __int128;

/// 10^exponent for 0 <= exponent <= 38.
Int128 PowerOfTen(int exponent);
/// Decimal digits of |value|; 1 for 0.
int DigitCount(uint64_t value);
int DigitCount(Int128 value);

/// A decimal number: `unscaled` / 10^`scale`. `integer_digits` and `scale` tell its size even where
/// it has more than 38 digits; then `fits` is false.
struct ExactDecimal {
  bool fits = false;
  Int128 unscaled = 0;
  int scale = 0;           // Digits behind the point, trailing zeros dropped unless written so.
  int integer_digits = 0;  // Digits before the point.
};

/// Reads JSON number text: digits, at most one point, at most one exponent. Trailing zeros of the
/// fraction count only where no exponent is written.
ExactDecimal ReadDecimal(std::string_view text);

/// The value as a double where that double's shortest decimal form has the same value as the text.
std::optional<double> ReadExactDouble(std::string_view text);
/// The nearest double; nothing when it is beyond the range of double.
std::optional<double> ReadNearestDouble(std::string_view text);

/// The double `unscaled` / 10^`scale` for |unscaled| < 10^15, 0 <= scale <= 18: exact by the 15
/// digits every double keeps.
double SmallDecimalToDouble(int64_t unscaled, int scale);

/// Multiplies by 10^`places`; nothing when that needs more than 38 digits.
std::optional<Int128> Rescale(Int128 unscaled, int places);

/// "-12.30" for (-1230, 2).
std::string FormatDecimal(Int128 unscaled, int scale);
/// Shortest text that reads back as the same double, with ".0" where it would look like an integer;
/// "NaN", "Infinity", "-Infinity".
std::string FormatDouble(double value);
std::string FormatFloat(float value);

/// Big-endian two's complement bytes, as Kafka Connect writes decimals. Nothing when they need more
/// than 128 bits or more than 38 digits. Empty bytes are 0.
std::optional<Int128> ReadBigEndian(std::string_view bytes);
/// The same for any length, as decimal text of value / 10^scale (scale may be negative).
std::string FormatBigEndian(std::string_view bytes, int scale);

}  // namespace tarn::format
