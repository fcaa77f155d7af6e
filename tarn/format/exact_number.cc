#include "tarn/format/exact_number.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

namespace tarn::format {

namespace {

constexpr int kDigitsMax = 38;

constexpr std::array<Int128, 39> MakePowers() {
  std::array<Int128, 39> powers{};
  powers[0] = 1;
  for (size_t i = 1; i < powers.size(); ++i) {
    powers[i] = powers[i - 1] * 10;
  }
  return powers;
}
constexpr std::array<Int128, 39> kPowers = MakePowers();

constexpr std::array<double, 19> kDoublePowers = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,
                                                  1e7,  1e8,  1e9,  1e10, 1e11, 1e12, 1e13,
                                                  1e14, 1e15, 1e16, 1e17, 1e18};

// Significant digits of number text without leading and trailing zeros, and the power of ten of the
// last of them. Zero has no digits.
struct Digits {
  std::string digits;
  int64_t exponent = 0;
  bool negative = false;
  int written_fraction = 0;  // Digits behind the point as written.
  bool has_exponent = false;
};

Digits ReadDigits(std::string_view text) {
  Digits result;
  size_t i = 0;
  result.negative = !text.empty() && text[0] == '-';
  i += result.negative ? 1 : 0;
  bool point = false;
  for (; i < text.size() && text[i] != 'e' && text[i] != 'E'; ++i) {
    if (text[i] == '.') {
      point = true;
      continue;
    }
    result.written_fraction += point ? 1 : 0;
    if (text[i] != '0' || !result.digits.empty()) {
      result.digits.push_back(text[i]);
    }
  }
  result.exponent = -result.written_fraction;
  if (i < text.size()) {
    result.has_exponent = true;
    i += text[i + 1] == '+' ? 2 : 1;
    int64_t power = 0;
    const auto read = std::from_chars(text.data() + i, text.data() + text.size(), power);
    if (read.ec != std::errc() || power > 1'000'000'000 || power < -1'000'000'000) {
      power = text[i] == '-' ? -1'000'000'000 : 1'000'000'000;
    }
    result.exponent += power;
  }
  while (!result.digits.empty() && result.digits.back() == '0') {
    result.digits.pop_back();
    ++result.exponent;
  }
  if (result.digits.empty()) {
    result.exponent = 0;
  }
  return result;
}

template <typename T>
std::string FormatFloating(T value) {
  if (std::isnan(value)) {
    return "NaN";
  }
  if (std::isinf(value)) {
    return value > 0 ? "Infinity" : "-Infinity";
  }
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  std::string result(text, end);
  if (result.find_first_of(".e") == std::string::npos) {
    result += ".0";
  }
  return result;
}

}  // namespace

Int128 PowerOfTen(int exponent) { return kPowers[static_cast<size_t>(exponent)]; }

int DigitCount(uint64_t value) { return DigitCount(static_cast<Int128>(value)); }

int DigitCount(Int128 value) {
  value = value < 0 ? -value : value;
  int digits = 1;
  while (digits < kDigitsMax && value >= kPowers[static_cast<size_t>(digits)]) {
    ++digits;
  }
  return value >= kPowers[38] || value < 0 ? kDigitsMax + 1 : digits;
}

ExactDecimal ReadDecimal(std::string_view text) {
  const Digits parts = ReadDigits(text);
  constexpr int64_t kFar = 1'000'000;
  ExactDecimal result;
  const auto count = static_cast<int64_t>(parts.digits.size());
  int64_t scale = parts.exponent < 0 ? -parts.exponent : 0;
  if (!parts.has_exponent) {
    scale = std::max<int64_t>(scale, parts.written_fraction);
  }
  const int64_t integer_digits = std::max<int64_t>(count + parts.exponent, 0);
  result.scale = static_cast<int>(std::min(scale, kFar));
  result.integer_digits = static_cast<int>(std::min(integer_digits, kFar));
  result.fits = scale + integer_digits <= kDigitsMax;
  if (!result.fits) {
    return result;
  }
  Int128 value = 0;
  for (const char c : parts.digits) {
    value = value * 10 + (c - '0');
  }
  value *= kPowers[static_cast<size_t>(count == 0 ? 0 : parts.exponent + scale)];
  result.unscaled = parts.negative ? -value : value;
  return result;
}

std::optional<double> ReadNearestDouble(std::string_view text) {
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec == std::errc::result_out_of_range) {
    // Too small is zero; too large has no double.
    const Digits parts = ReadDigits(text);
    if (static_cast<int64_t>(parts.digits.size()) + parts.exponent < 0) {
      return parts.negative ? -0.0 : 0.0;
    }
    return std::nullopt;
  }
  return std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
}

std::optional<double> ReadExactDouble(std::string_view text) {
  const std::optional<double> value = ReadNearestDouble(text);
  if (!value.has_value()) {
    return std::nullopt;
  }
  char shortest[32];
  const auto end = std::to_chars(shortest, shortest + sizeof shortest, *value).ptr;
  const Digits written = ReadDigits(text);
  const Digits kept = ReadDigits({shortest, static_cast<size_t>(end - shortest)});
  if (written.digits != kept.digits || written.exponent != kept.exponent) {
    return std::nullopt;
  }
  return value;
}

double SmallDecimalToDouble(int64_t unscaled, int scale) {
  return static_cast<double>(unscaled) / kDoublePowers[static_cast<size_t>(scale)];
}

std::optional<Int128> Rescale(Int128 unscaled, int places) {
  if (unscaled == 0) {
    return Int128{0};
  }
  if (places < 0 || DigitCount(unscaled) + places > kDigitsMax) {
    return std::nullopt;
  }
  return unscaled * kPowers[static_cast<size_t>(places)];
}

std::string FormatDecimal(Int128 unscaled, int scale) {
  const bool negative = unscaled < 0;
  auto rest = static_cast<unsigned __int128>(negative ? -unscaled : unscaled);
  std::string text;
  for (int digits = 0; rest != 0 || digits <= scale; ++digits) {
    if (digits == scale && scale > 0) {
      text.push_back('.');
    }
    text.push_back(static_cast<char>('0' + static_cast<int>(rest % 10)));
    rest /= 10;
  }
  if (negative) {
    text.push_back('-');
  }
  std::reverse(text.begin(), text.end());
  return text;
}

std::string FormatDouble(double value) { return FormatFloating(value); }
std::string FormatFloat(float value) { return FormatFloating(value); }

std::optional<Int128> ReadBigEndian(std::string_view bytes) {
  const bool negative = !bytes.empty() && (bytes[0] & 0x80) != 0;
  const char fill = negative ? '\xff' : '\0';
  while (bytes.size() > 16) {
    if (bytes[0] != fill || (bytes[1] & 0x80) != (fill & 0x80)) {
      return std::nullopt;
    }
    bytes.remove_prefix(1);
  }
  unsigned __int128 value = negative ? ~static_cast<unsigned __int128>(0) : 0;
  for (const char c : bytes) {
    value = value << 8U | static_cast<unsigned char>(c);
  }
  const auto signed_value = static_cast<Int128>(value);
  if (DigitCount(signed_value) > kDigitsMax) {
    return std::nullopt;
  }
  return signed_value;
}

std::string FormatBigEndian(std::string_view bytes, int scale) {
  const bool negative = !bytes.empty() && (bytes[0] & 0x80) != 0;
  std::vector<uint8_t> magnitude(bytes.begin(), bytes.end());
  if (negative) {
    unsigned carry = 1;
    for (size_t i = magnitude.size(); i-- > 0;) {
      const unsigned sum = (0xffU & ~static_cast<unsigned>(magnitude[i])) + carry;
      magnitude[i] = static_cast<uint8_t>(sum);
      carry = sum >> 8U;
    }
  }
  std::string digits;  // Least significant first.
  while (std::any_of(magnitude.begin(), magnitude.end(), [](uint8_t b) { return b != 0; })) {
    unsigned rest = 0;
    for (uint8_t& byte : magnitude) {
      const unsigned value = rest << 8U | byte;
      byte = static_cast<uint8_t>(value / 10);
      rest = value % 10;
    }
    digits.push_back(static_cast<char>('0' + rest));
  }
  if (scale < 0) {
    digits.insert(0, digits.empty() ? 0 : static_cast<size_t>(-scale), '0');
    scale = 0;
  }
  while (digits.size() <= static_cast<size_t>(scale)) {
    digits.push_back('0');
  }
  if (scale > 0) {
    digits.insert(static_cast<size_t>(scale), 1, '.');
  }
  if (negative) {
    digits.push_back('-');
  }
  std::reverse(digits.begin(), digits.end());
  return digits;
}

}  // namespace tarn::format
