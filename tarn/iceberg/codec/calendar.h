// Calendar arithmetic on days and microseconds since 1970, far beyond the years of std::chrono.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tarn/base/status.h"

namespace tarn::iceberg {

struct CivilDate {
  int64_t year = 1970;
  int32_t month = 1;  // 1..12.
  int32_t day = 1;    // 1..31.
};

/// Proleptic Gregorian.
CivilDate CivilFromDays(int64_t days);
int64_t DaysFromCivil(const CivilDate& date);

/// Quotient rounded towards minus infinity; `divisor` is positive.
constexpr int64_t FloorDiv(int64_t value, int64_t divisor) {
  const int64_t quotient = value / divisor;
  return quotient * divisor > value ? quotient - 1 : quotient;
}

inline constexpr int64_t kMicrosPerSecond = 1'000'000;
inline constexpr int64_t kMicrosPerDay = 86'400'000'000;

/// "2017-11-16".
std::string FormatDate(int64_t days);
/// "22:31:08.123456"; no fraction when it is zero; 9 digits when `nanos`.
std::string FormatTimeOfDay(int64_t value, bool nanos);
/// "2017-11-16T22:31:08.123456" and "+00:00" when `zoned`.
std::string FormatDateTime(int64_t value, bool nanos, bool zoned);

/// Errors of all: kInvalidArgument showing the text.
Result<int64_t> ParseDate(std::string_view text);
Result<int64_t> ParseTimeOfDay(std::string_view text, bool nanos);
/// An offset ("Z", "+01:00") is required when `zoned` and refused otherwise. 'T' or a space
/// between.
Result<int64_t> ParseDateTime(std::string_view text, bool nanos, bool zoned);

}  // namespace tarn::iceberg
