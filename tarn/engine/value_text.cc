#include "tarn/engine/value_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

namespace tarn::engine {
namespace {

constexpr int64_t kMicrosPerSecond = 1'000'000;
constexpr int64_t kMicrosPerDay = 86'400 * kMicrosPerSecond;
constexpr std::string_view kLowerDigits = "0123456789abcdef";
constexpr std::string_view kUpperDigits = "0123456789ABCDEF";

template <typename T>
void AppendWhole(T value, std::string& out) {
  std::array<char, 24> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  out.append(buffer.data(), end);
}

/// `value` (not negative) with at least `width` digits.
void AppendPadded(int64_t value, int width, std::string& out) {
  std::array<char, 24> buffer;
  char* const end = buffer.data() + buffer.size();
  char* begin = end;
  do {
    *--begin = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  while (end - begin < width) {
    *--begin = '0';
  }
  out.append(begin, end);
}

/// Writes digits d1 d2 … with the decimal exponent of d1.
void AppendDigits(std::string_view digits, int exponent, std::string& out) {
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (count > 1) {
      out += '.';
      out += digits.substr(1);
    }
    out += exponent < 0 ? "e-" : "e+";
    AppendPadded(std::abs(exponent), 2, out);
  } else if (exponent < 0) {
    out += "0.";
    out.append(static_cast<size_t>(-exponent - 1), '0');
    out += digits;
  } else if (count <= exponent + 1) {
    out += digits;
    out.append(static_cast<size_t>(exponent + 1 - count), '0');
    out += ".0";
  } else {
    const auto point = static_cast<size_t>(exponent) + 1;
    out += digits.substr(0, point);
    out += '.';
    out += digits.substr(point);
  }
}

template <typename T>
void AppendReal(T value, std::string& out) {
  if (std::isnan(value)) {
    out += "NaN";
    return;
  }
  if (std::isinf(value)) {
    out += value < 0 ? "-Infinity" : "Infinity";
    return;
  }
  if (value == 0) {
    out += "0.0";
    return;
  }
  std::array<char, 40> buffer;  // [-]d[.ddd]e±dd
  const char* const end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                        std::chars_format::scientific)
                              .ptr;
  const char* at = buffer.data();
  if (*at == '-') {
    out += '-';
    ++at;
  }
  std::array<char, 24> digits;
  size_t count = 0;
  for (; *at != 'e'; ++at) {
    if (*at != '.') {
      digits[count++] = *at;
    }
  }
  ++at;
  const bool negative = *at++ == '-';
  int exponent = 0;
  std::from_chars(at, end, exponent);
  AppendDigits({digits.data(), count}, negative ? -exponent : exponent, out);
}

struct CivilDate {
  int64_t year;
  int64_t month;
  int64_t day;
};

/// Howard Hinnant's algorithm: eras of 400 years that begin on 1 March.
CivilDate ToCivil(int64_t days) {
  const int64_t shifted = days + 719'468;
  const int64_t era = (shifted >= 0 ? shifted : shifted - 146'096) / 146'097;
  const int64_t day_of_era = shifted - era * 146'097;
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t month = (5 * day_of_year + 2) / 153;
  const int64_t civil_month = month < 10 ? month + 3 : month - 9;
  return {.year = year_of_era + era * 400 + (civil_month <= 2 ? 1 : 0),
          .month = civil_month,
          .day = day_of_year - (153 * month + 2) / 5 + 1};
}

int64_t FloorDivide(int64_t value, int64_t by) {
  const int64_t quotient = value / by;
  return value % by < 0 ? quotient - 1 : quotient;
}

}  // namespace

void AppendInteger(int64_t value, std::string& out) { AppendWhole(value, out); }
void AppendUnsigned(uint64_t value, std::string& out) { AppendWhole(value, out); }
void AppendDouble(double value, std::string& out) { AppendReal(value, out); }
void AppendFloat(float value, std::string& out) { AppendReal(value, out); }

void AppendDecimal(const uint8_t* bytes, int32_t scale, std::string& out) {
  unsigned __int128 magnitude;
  std::memcpy(&magnitude, bytes, sizeof(magnitude));
  if ((bytes[15] & 0x80) != 0) {
    out += '-';
    magnitude = ~magnitude + 1;
  }
  std::array<char, 48> buffer;
  char* const end = buffer.data() + buffer.size();
  char* begin = end;
  const auto push = [&begin](uint64_t part) {
    do {
      *--begin = static_cast<char>('0' + part % 10);
      part /= 10;
    } while (part != 0);
  };
  constexpr uint64_t kChunk = 10'000'000'000'000'000'000ULL;  // 19 digits at a time.
  while (magnitude >= kChunk) {
    char* const stop = begin - 19;
    push(static_cast<uint64_t>(magnitude % kChunk));
    while (begin > stop) {
      *--begin = '0';
    }
    magnitude /= kChunk;
  }
  push(static_cast<uint64_t>(magnitude));
  const auto digits = static_cast<int32_t>(end - begin);
  if (scale <= 0) {
    out.append(begin, end);
    if (digits > 1 || *begin != '0') {
      out.append(static_cast<size_t>(-scale), '0');
    }
    return;
  }
  if (digits > scale) {
    out.append(begin, end - scale);
    out += '.';
    out.append(end - scale, end);
    return;
  }
  out += "0.";
  out.append(static_cast<size_t>(scale - digits), '0');
  out.append(begin, end);
}

void AppendDate(int64_t days, std::string& out) {
  const CivilDate date = ToCivil(days);
  if (date.year < 0) {
    out += '-';
  }
  AppendPadded(std::abs(date.year), 4, out);
  out += '-';
  AppendPadded(date.month, 2, out);
  out += '-';
  AppendPadded(date.day, 2, out);
}

void AppendTime(int64_t micros, std::string& out) {
  AppendPadded(micros / (3600 * kMicrosPerSecond), 2, out);
  out += ':';
  AppendPadded(micros / (60 * kMicrosPerSecond) % 60, 2, out);
  out += ':';
  AppendPadded(micros / kMicrosPerSecond % 60, 2, out);
  out += '.';
  AppendPadded(micros % kMicrosPerSecond, 6, out);
}

void AppendTimestamp(int64_t micros, ZoneSuffix suffix, std::string& out) {
  const int64_t days = FloorDivide(micros, kMicrosPerDay);
  AppendDate(days, out);
  out += 'T';
  // The difference fits although days * kMicrosPerDay may not, near the least timestamp.
  const int64_t rest = micros % kMicrosPerDay;
  AppendTime(rest < 0 ? rest + kMicrosPerDay : rest, out);
  if (suffix == ZoneSuffix::kUtc) {
    out += 'Z';
  }
}

void AppendHex(std::string_view bytes, HexCase hex_case, std::string& out) {
  const std::string_view digits = hex_case == HexCase::kLower ? kLowerDigits : kUpperDigits;
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
}

void AppendUuid(const uint8_t* bytes, std::string& out) {
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) {
      out += '-';
    }
    out += kLowerDigits[bytes[i] >> 4];
    out += kLowerDigits[bytes[i] & 15];
  }
}

}  // namespace tarn::engine
