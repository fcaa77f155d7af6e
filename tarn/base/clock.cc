#include "tarn/base/clock.h"

#include <cstdlib>
#include <optional>

#include <fmt/core.h>

namespace tarn {

namespace {

// Reads exactly `count` digits at `position` and moves past them; -1 when they are not there.
int64_t Digits(std::string_view text, size_t* position, size_t count) {
  if (*position + count > text.size()) {
    return -1;
  }
  int64_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    const char c = text[*position + i];
    if (c < '0' || c > '9') {
      return -1;
    }
    value = value * 10 + (c - '0');
  }
  *position += count;
  return value;
}

bool Skip(std::string_view text, size_t* position, std::string_view any_of) {
  if (*position < text.size() && any_of.find(text[*position]) != std::string_view::npos) {
    ++*position;
    return true;
  }
  return false;
}

// Fraction after the point, as microseconds; further digits are cut.
int64_t FractionMicros(std::string_view text, size_t* position) {
  int64_t micros = 0;
  int64_t scale = 100000;
  size_t digits = 0;
  while (*position < text.size() && text[*position] >= '0' && text[*position] <= '9') {
    micros += (text[*position] - '0') * scale;
    scale /= 10;
    ++*position;
    ++digits;
  }
  return digits == 0 || digits > 9 ? -1 : micros;
}

// Offset from UTC in minutes, or nothing when malformed.
std::optional<int64_t> ZoneMinutes(std::string_view text, size_t* position) {
  if (Skip(text, position, "Zz")) {
    return 0;
  }
  const bool negative = *position < text.size() && text[*position] == '-';
  if (!Skip(text, position, "+-")) {
    return std::nullopt;
  }
  const int64_t hours = Digits(text, position, 2);
  const bool colon = Skip(text, position, ":");
  const int64_t minutes = *position == text.size() && !colon ? 0 : Digits(text, position, 2);
  if (hours < 0 || hours > 18 || minutes < 0 || minutes > 59) {
    return std::nullopt;
  }
  return (negative ? -1 : 1) * (hours * 60 + minutes);
}

struct TimeOfDay {
  int64_t micros = 0;
  int64_t zone_minutes = 0;
};

std::optional<TimeOfDay> ParseTimeOfDay(std::string_view text, size_t* position) {
  const int64_t hour = Digits(text, position, 2);
  if (!Skip(text, position, ":")) {
    return std::nullopt;
  }
  const int64_t minute = Digits(text, position, 2);
  int64_t second = 0;
  int64_t fraction = 0;
  if (Skip(text, position, ":")) {
    second = Digits(text, position, 2);
    if (Skip(text, position, ".,")) {
      fraction = FractionMicros(text, position);
    }
  }
  const std::optional<int64_t> zone = ZoneMinutes(text, position);
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59 ||
      fraction < 0 || !zone || *position != text.size()) {
    return std::nullopt;
  }
  return TimeOfDay{((hour * 60 + minute) * 60 + second) * 1'000'000 + fraction, *zone};
}

struct CivilDate {
  int64_t year = 0;
  int64_t month = 0;
  int64_t day = 0;
};

// Days since 1970-01-01 to the proleptic Gregorian calendar: eras of 400 years that begin in March,
// so that the leap day is the last of a year.
CivilDate CivilDateOf(int64_t days) {
  const int64_t shifted = days + 719'468;
  const int64_t era = (shifted >= 0 ? shifted : shifted - 146'096) / 146'097;
  const int64_t day_of_era = shifted - era * 146'097;
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1'460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t march_month = (5 * day_of_year + 2) / 153;
  const int64_t month = march_month < 10 ? march_month + 3 : march_month - 9;
  return {.year = year_of_era + era * 400 + (month <= 2 ? 1 : 0),
          .month = month,
          .day = day_of_year - (153 * march_month + 2) / 5 + 1};
}

}  // namespace

std::string FormatTimestamp(Timestamp time) {
  constexpr int64_t kDayMicros = 86'400'000'000;
  // Whole numbers, since std::chrono cannot name years beyond 32767, which 64 bits reach.
  const int64_t micros = ToMicros(time);
  const int64_t in_day = (micros % kDayMicros + kDayMicros) % kDayMicros;
  const int64_t day = micros / kDayMicros - (micros % kDayMicros < 0 ? 1 : 0);
  const CivilDate date = CivilDateOf(day);
  const int64_t second = in_day / 1'000'000;
  return fmt::format("{}{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z",
                     date.year > 9999 ? "+" : (date.year < 0 ? "-" : ""), std::abs(date.year),
                     date.month, date.day, second / 3600, second / 60 % 60, second % 60,
                     in_day % 1'000'000);
}

Result<Timestamp> ParseTimestamp(std::string_view text) {
  const auto malformed = [&] {
    return Status::InvalidArgument(
        fmt::format("not a time with a zone, such as 2026-01-31T12:00:00Z: \"{}\"", text));
  };
  size_t position = 0;
  const int64_t year = Digits(text, &position, 4);
  const bool first_dash = Skip(text, &position, "-");
  const int64_t month = Digits(text, &position, 2);
  const bool second_dash = Skip(text, &position, "-");
  const int64_t day = Digits(text, &position, 2);
  if (year < 0 || month < 1 || day < 1 || !first_dash || !second_dash) {
    return malformed();
  }
  const std::chrono::year_month_day date{std::chrono::year{static_cast<int>(year)},
                                         std::chrono::month{static_cast<unsigned>(month)},
                                         std::chrono::day{static_cast<unsigned>(day)}};
  if (!date.ok()) {
    return malformed();
  }
  const Timestamp midnight = std::chrono::sys_days{date};
  if (position == text.size()) {
    return midnight;
  }
  if (!Skip(text, &position, "Tt ")) {
    return malformed();
  }
  const std::optional<TimeOfDay> time = ParseTimeOfDay(text, &position);
  if (!time) {
    return malformed();
  }
  return midnight + std::chrono::microseconds{time->micros} -
         std::chrono::minutes{time->zone_minutes};
}

Timestamp SystemClock::Now() const {
  return std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
}

}  // namespace tarn
