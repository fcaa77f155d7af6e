#include "tarn/format/time_text.h"

#include <array>
#include <cstdio>
#include <limits>

namespace tarn::format {

namespace {

constexpr int64_t kDayMicros = 86'400'000'000;

// Days since 1970-01-01; Howard Hinnant's days_from_civil, for any year.
int64_t DaysOf(int64_t year, int month, int day) {
  year -= month <= 2 ? 1 : 0;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const int64_t year_of_era = year - era * 400;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + day_of_era - 719468;
}

int DaysInMonth(int64_t year, int month) {
  static constexpr std::array<int, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return month == 2 && leap ? 29 : kDays[static_cast<size_t>(month - 1)];
}

// Reads between `min` and `max` digits off the front of `text`; -1 when they are not there.
int64_t TakeDigits(std::string_view& text, size_t min, size_t max) {
  int64_t value = 0;
  size_t i = 0;
  while (i < text.size() && i < max && text[i] >= '0' && text[i] <= '9') {
    value = value * 10 + (text[i++] - '0');
  }
  if (i < min) {
    return -1;
  }
  text.remove_prefix(i);
  return value;
}

bool TakeChar(std::string_view& text, char c) {
  if (text.empty() || text[0] != c) {
    return false;
  }
  text.remove_prefix(1);
  return true;
}

std::optional<int64_t> TakeDate(std::string_view& text) {
  const bool negative = TakeChar(text, '-');
  const bool sign = negative || TakeChar(text, '+');
  int64_t year = TakeDigits(text, 4, sign ? 9 : 4);
  if (year < 0 || !TakeChar(text, '-')) {
    return std::nullopt;
  }
  year = negative ? -year : year;
  const int64_t month = TakeDigits(text, 2, 2);
  if (month < 1 || month > 12 || !TakeChar(text, '-')) {
    return std::nullopt;
  }
  const int64_t day = TakeDigits(text, 2, 2);
  if (day < 1 || day > DaysInMonth(year, static_cast<int>(month))) {
    return std::nullopt;
  }
  return DaysOf(year, static_cast<int>(month), static_cast<int>(day));
}

std::optional<int64_t> TakeTime(std::string_view& text) {
  const int64_t hour = TakeDigits(text, 2, 2);
  if (hour < 0 || hour > 23 || !TakeChar(text, ':')) {
    return std::nullopt;
  }
  const int64_t minute = TakeDigits(text, 2, 2);
  if (minute < 0 || minute > 59) {
    return std::nullopt;
  }
  int64_t second = 0;
  int64_t micros = 0;
  if (TakeChar(text, ':')) {
    second = TakeDigits(text, 2, 2);
    if (second < 0 || second > 59) {
      return std::nullopt;
    }
    if (TakeChar(text, '.')) {
      const size_t before = text.size();
      micros = TakeDigits(text, 1, 6);
      if (micros < 0) {
        return std::nullopt;
      }
      for (size_t digits = before - text.size(); digits < 6; ++digits) {
        micros *= 10;
      }
      while (TakeChar(text, '0')) {
      }
    }
  }
  return ((hour * 60 + minute) * 60 + second) * 1'000'000 + micros;
}

// Reads "Z", "+02", "+02:00", "+0200", "+02:00:00" into microseconds east of UTC.
std::optional<int64_t> TakeOffset(std::string_view& text) {
  if (TakeChar(text, 'Z') || TakeChar(text, 'z')) {
    return 0;
  }
  const bool negative = TakeChar(text, '-');
  if (!negative && !TakeChar(text, '+')) {
    return std::nullopt;
  }
  const int64_t hours = TakeDigits(text, 2, 2);
  int64_t minutes = 0;
  int64_t seconds = 0;
  if (hours < 0 || hours > 18) {
    return std::nullopt;
  }
  if (!text.empty()) {
    const bool colon = TakeChar(text, ':');
    minutes = TakeDigits(text, 2, 2);
    if (minutes < 0 || minutes > 59) {
      return std::nullopt;
    }
    if (colon && TakeChar(text, ':')) {
      seconds = TakeDigits(text, 2, 2);
      if (seconds < 0 || seconds > 59) {
        return std::nullopt;
      }
    }
  }
  const int64_t offset = ((hours * 60 + minutes) * 60 + seconds) * 1'000'000;
  return negative ? -offset : offset;
}

std::string FormatFraction(int64_t micros, int nanos) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), ".%06d%03d", static_cast<int>(micros), nanos);
  std::string fraction(text.data());
  while (fraction.back() == '0') {
    fraction.pop_back();
  }
  return fraction == "." ? "" : fraction;
}

std::string FormatClock(int64_t micros, int nanos) {
  const int64_t seconds = micros / 1'000'000;
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%02lld:%02d:%02d",
                static_cast<long long>(seconds / 3600), static_cast<int>(seconds / 60 % 60),
                static_cast<int>(seconds % 60));
  return text.data() + FormatFraction(micros % 1'000'000, nanos);
}

}  // namespace

std::optional<int32_t> ReadDate(std::string_view text) {
  const std::optional<int64_t> days = TakeDate(text);
  TakeChar(text, 'Z');
  if (!days.has_value() || !text.empty() || *days > std::numeric_limits<int32_t>::max() ||
      *days < std::numeric_limits<int32_t>::min()) {
    return std::nullopt;
  }
  return static_cast<int32_t>(*days);
}

std::optional<int64_t> ReadTime(std::string_view text) {
  const std::optional<int64_t> micros = TakeTime(text);
  return text.empty() ? micros : std::nullopt;
}

std::optional<TimestampText> ReadTimestamp(std::string_view text) {
  const std::optional<int64_t> days = TakeDate(text);
  if (!days.has_value() || text.empty() || (text[0] != 'T' && text[0] != ' ' && text[0] != 't')) {
    return std::nullopt;
  }
  text.remove_prefix(1);
  const std::optional<int64_t> time = TakeTime(text);
  if (!time.has_value()) {
    return std::nullopt;
  }
  TimestampText result;
  int64_t offset = 0;
  if (!text.empty()) {
    const std::optional<int64_t> zone = TakeOffset(text);
    if (!zone.has_value() || !text.empty()) {
      return std::nullopt;
    }
    offset = *zone;
    result.has_zone = true;
  }
  if (__builtin_mul_overflow(*days, kDayMicros, &result.micros) ||
      __builtin_add_overflow(result.micros, *time - offset, &result.micros)) {
    return std::nullopt;
  }
  return result;
}

std::string FormatDate(int64_t days) {
  // Howard Hinnant's civil_from_days.
  days += 719468;
  const int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  const int64_t day_of_era = days - era * 146097;
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t shifted = (5 * day_of_year + 2) / 153;
  const auto day = static_cast<int>(day_of_year - (153 * shifted + 2) / 5 + 1);
  const auto month = static_cast<int>(shifted < 10 ? shifted + 3 : shifted - 9);
  const int64_t year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%s%04lld-%02d-%02d",
                year < 0 ? "-" : (year > 9999 ? "+" : ""),
                static_cast<long long>(year < 0 ? -year : year), month, day);
  return text.data();
}

std::string FormatTime(int64_t micros) {
  return micros < 0 ? "-" + FormatClock(-micros, 0) : FormatClock(micros, 0);
}

std::string FormatTimestampNanos(int64_t micros, int nanos, bool instant) {
  int64_t days = micros / kDayMicros;
  int64_t rest = micros % kDayMicros;
  if (rest < 0) {
    rest += kDayMicros;
    --days;
  }
  return FormatDate(days) + "T" + FormatClock(rest, nanos) + (instant ? "Z" : "");
}

std::string FormatTimestamp(int64_t micros, bool instant) {
  return FormatTimestampNanos(micros, 0, instant);
}

}  // namespace tarn::format
