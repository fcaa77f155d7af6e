#include "tarn/iceberg/codec/calendar.h"

#include <limits>
#include <optional>

#include <fmt/format.h>

namespace tarn::iceberg {
namespace {

// Reads exactly `count` digits.
std::optional<int64_t> TakeDigits(std::string_view& text, size_t count) {
  if (text.size() < count) {
    return std::nullopt;
  }
  int64_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    if (text[i] < '0' || text[i] > '9') {
      return std::nullopt;
    }
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return value;
}

bool Take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) {
    return false;
  }
  text.remove_prefix(1);
  return true;
}

int32_t DaysOfMonth(int64_t year, int32_t month) {
  static constexpr int32_t kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return month == 2 && leap ? 29 : kDays[month - 1];
}

std::optional<int64_t> TakeDate(std::string_view& text) {
  const bool negative = Take(text, '-');
  if (!negative) {
    Take(text, '+');
  }
  size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
    ++digits;
  }
  if (digits < 4 || digits > 7) {
    return std::nullopt;
  }
  const auto year = TakeDigits(text, digits);
  if (!year || !Take(text, '-')) {
    return std::nullopt;
  }
  const auto month = TakeDigits(text, 2);
  if (!month || *month < 1 || *month > 12 || !Take(text, '-')) {
    return std::nullopt;
  }
  const auto day = TakeDigits(text, 2);
  const int64_t signed_year = negative ? -*year : *year;
  if (!day || *day < 1 || *day > DaysOfMonth(signed_year, static_cast<int32_t>(*month))) {
    return std::nullopt;
  }
  return DaysFromCivil({signed_year, static_cast<int32_t>(*month), static_cast<int32_t>(*day)});
}

// Nanoseconds of the day. More than nine digits of a fraction are refused.
std::optional<int64_t> TakeTime(std::string_view& text) {
  const auto hour = TakeDigits(text, 2);
  if (!hour || *hour > 23 || !Take(text, ':')) {
    return std::nullopt;
  }
  const auto minute = TakeDigits(text, 2);
  if (!minute || *minute > 59) {
    return std::nullopt;
  }
  int64_t nanos = (*hour * 60 + *minute) * 60 * 1'000'000'000LL;
  if (!Take(text, ':')) {
    return nanos;
  }
  const auto second = TakeDigits(text, 2);
  if (!second || *second > 59) {
    return std::nullopt;
  }
  nanos += *second * 1'000'000'000LL;
  if (!Take(text, '.')) {
    return nanos;
  }
  int64_t fraction = 0;
  int digits = 0;
  while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
    if (++digits > 9) {
      return std::nullopt;
    }
    fraction = fraction * 10 + (text[0] - '0');
    text.remove_prefix(1);
  }
  if (digits == 0) {
    return std::nullopt;
  }
  for (; digits < 9; ++digits) {
    fraction *= 10;
  }
  return nanos + fraction;
}

// Seconds east of UTC.
std::optional<int64_t> TakeOffset(std::string_view& text) {
  if (Take(text, 'Z') || Take(text, 'z')) {
    return 0;
  }
  const bool negative = !text.empty() && text[0] == '-';
  if (!negative && (text.empty() || text[0] != '+')) {
    return std::nullopt;
  }
  text.remove_prefix(1);
  const auto hour = TakeDigits(text, 2);
  Take(text, ':');
  const auto minute = TakeDigits(text, 2);
  if (!hour || !minute || *hour > 18 || *minute > 59) {
    return std::nullopt;
  }
  const int64_t seconds = (*hour * 60 + *minute) * 60;
  return negative ? -seconds : seconds;
}

Status Bad(std::string_view what, std::string_view text) {
  return Status::InvalidArgument(fmt::format("'{}' is not a {}", text, what));
}

}  // namespace

CivilDate CivilFromDays(int64_t days) {
  // Eras of 400 years from 0000-03-01.
  days += 719468;
  const int64_t era = FloorDiv(days, 146097);
  const int64_t day_of_era = days - era * 146097;
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t month = (5 * day_of_year + 2) / 153;
  CivilDate date;
  date.day = static_cast<int32_t>(day_of_year - (153 * month + 2) / 5 + 1);
  date.month = static_cast<int32_t>(month < 10 ? month + 3 : month - 9);
  date.year = year_of_era + era * 400 + (date.month <= 2 ? 1 : 0);
  return date;
}

int64_t DaysFromCivil(const CivilDate& date) {
  const int64_t year = date.year - (date.month <= 2 ? 1 : 0);
  const int64_t era = FloorDiv(year, 400);
  const int64_t year_of_era = year - era * 400;
  const int64_t shifted = date.month > 2 ? date.month - 3 : date.month + 9;
  const int64_t day_of_year = (153 * shifted + 2) / 5 + date.day - 1;
  const int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + day_of_era - 719468;
}

std::string FormatDate(int64_t days) {
  const CivilDate date = CivilFromDays(days);
  return fmt::format("{}{:04}-{:02}-{:02}",
                     date.year < 0      ? "-"
                     : date.year > 9999 ? "+"
                                        : "",
                     date.year < 0 ? -date.year : date.year, date.month, date.day);
}

std::string FormatTimeOfDay(int64_t value, bool nanos) {
  const int64_t unit = nanos ? 1'000'000'000 : 1'000'000;
  const int64_t seconds = FloorDiv(value, unit);
  const int64_t fraction = value - seconds * unit;
  std::string text =
      fmt::format("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
  if (fraction != 0) {
    text += nanos ? fmt::format(".{:09}", fraction) : fmt::format(".{:06}", fraction);
  }
  return text;
}

std::string FormatDateTime(int64_t value, bool nanos, bool zoned) {
  const int64_t day = nanos ? kMicrosPerDay * 1000 : kMicrosPerDay;
  const int64_t days = FloorDiv(value, day);
  return FormatDate(days) + "T" + FormatTimeOfDay(value - days * day, nanos) +
         (zoned ? "+00:00" : "");
}

Result<int64_t> ParseDate(std::string_view text) {
  std::string_view rest = text;
  const auto days = TakeDate(rest);
  if (!days || !rest.empty() || *days > std::numeric_limits<int32_t>::max() ||
      *days < std::numeric_limits<int32_t>::min()) {
    return Bad("date", text);
  }
  return *days;
}

Result<int64_t> ParseTimeOfDay(std::string_view text, bool nanos) {
  std::string_view rest = text;
  const auto value = TakeTime(rest);
  if (!value || !rest.empty()) {
    return Bad("time", text);
  }
  return nanos ? *value : *value / 1000;
}

Result<int64_t> ParseDateTime(std::string_view text, bool nanos, bool zoned) {
  const std::string_view what = zoned ? "timestamp with an offset" : "timestamp without an offset";
  std::string_view rest = text;
  const auto days = TakeDate(rest);
  if (!days || !(Take(rest, 'T') || Take(rest, ' '))) {
    return Bad(what, text);
  }
  const auto time = TakeTime(rest);
  if (!time) {
    return Bad(what, text);
  }
  int64_t offset = 0;
  if (zoned) {
    const auto parsed = TakeOffset(rest);
    if (!parsed) {
      return Bad(what, text);
    }
    offset = *parsed;
  }
  const __int128 value = static_cast<__int128>(*days) * 86'400'000'000'000LL + *time -
                         static_cast<__int128>(offset) * 1'000'000'000LL;
  const __int128 scaled = nanos ? value : (value >= 0 ? value / 1000 : -((999 - value) / 1000));
  if (!rest.empty() || scaled != static_cast<int64_t>(scaled)) {
    return Bad(what, text);
  }
  return static_cast<int64_t>(scaled);
}

}  // namespace tarn::iceberg
