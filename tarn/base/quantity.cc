#include "tarn/base/quantity.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/core.h>

namespace tarn {

namespace {

struct Unit {
  std::string_view name;
  uint64_t factor;
};

constexpr std::array<Unit, 5> kDurationUnits = {
    {{"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}}};
constexpr std::array<Unit, 5> kSizeUnits = {
    {{"B", 1}, {"KiB", 1ULL << 10}, {"MiB", 1ULL << 20}, {"GiB", 1ULL << 30}, {"TiB", 1ULL << 40}}};
constexpr std::string_view kDigits = "0123456789";

Status Malformed(std::string_view what, std::string_view text, std::string_view example) {
  return Status::InvalidArgument(fmt::format("not a {}: \"{}\" (write {})", what, text, example));
}

Status TooLarge(std::string_view what, std::string_view text) {
  return Status::InvalidArgument(fmt::format("{} is too large: \"{}\"", what, text));
}

// Digits with single '_' between them; nothing when malformed or beyond 64 bits.
enum class DigitsError { kNone, kMalformed, kTooLarge };
struct Digits {
  uint64_t value = 0;
  DigitsError error = DigitsError::kNone;
};

Digits ReadDigits(std::string_view text) {
  if (text.empty() || text.front() == '_' || text.back() == '_' ||
      text.find("__") != std::string_view::npos) {
    return {.error = DigitsError::kMalformed};
  }
  uint64_t value = 0;
  for (const char c : text) {
    if (c == '_') {
      continue;
    }
    if (c < '0' || c > '9') {
      return {.error = DigitsError::kMalformed};
    }
    const auto digit = static_cast<uint64_t>(c - '0');
    if (value > (std::numeric_limits<uint64_t>::max() - digit) / 10) {
      return {.error = DigitsError::kTooLarge};
    }
    value = value * 10 + digit;
  }
  return {.value = value};
}

struct Kind {
  std::string_view name;
  std::string_view example;
  const std::array<Unit, 5>& units;
  uint64_t value_max;
};

// A whole number and one of the units; `bare` is the factor of a number alone, 0 = refused unless
// the number is zero.
Result<uint64_t> ParseWithUnit(std::string_view text, const Kind& kind, uint64_t bare) {
  const size_t split = text.find_last_of(kDigits);
  if (split == std::string_view::npos) {
    return Malformed(kind.name, text, kind.example);
  }
  const std::string_view unit_name = text.substr(split + 1);
  const Digits digits = ReadDigits(text.substr(0, split + 1));
  if (digits.error == DigitsError::kMalformed) {
    return Malformed(kind.name, text, kind.example);
  }
  uint64_t factor = 0;
  if (unit_name.empty()) {
    if (bare == 0 && digits.value != 0) {
      return Status::InvalidArgument(
          fmt::format("{} without a unit: \"{}\" (write {})", kind.name, text, kind.example));
    }
    factor = bare;
  } else {
    for (const Unit& unit : kind.units) {
      factor = unit.name == unit_name ? unit.factor : factor;
    }
    if (factor == 0) {
      return Malformed(kind.name, text, kind.example);
    }
  }
  if (digits.error == DigitsError::kTooLarge ||
      (factor != 0 && digits.value > kind.value_max / factor)) {
    return TooLarge(kind.name, text);
  }
  return digits.value * factor;
}

// The largest unit that divides `value`.
std::string FormatWithUnit(uint64_t value, const std::array<Unit, 5>& units) {
  for (auto unit = units.rbegin(); unit != units.rend(); ++unit) {
    if (value % unit->factor == 0) {
      return fmt::format("{}{}", value / unit->factor, unit->name);
    }
  }
  return fmt::format("{}", value);
}

}  // namespace

bool IsOff(std::string_view text) { return text == "off"; }

Result<std::chrono::milliseconds> ParseDuration(std::string_view text) {
  // A century of centuries: sums with today's time stay far from overflow.
  const Kind kind{.name = "duration",
                  .example = "200ms, 5s, 10m, 2h or 7d",
                  .units = kDurationUnits,
                  .value_max = 10'000ULL * 366 * 86'400'000};
  TARN_ASSIGN_OR_RETURN(const uint64_t millis, ParseWithUnit(text, kind, 0));
  return std::chrono::milliseconds{static_cast<int64_t>(millis)};
}

Result<std::optional<std::chrono::milliseconds>> ParseDurationOrOff(std::string_view text) {
  if (IsOff(text)) {
    return std::optional<std::chrono::milliseconds>();
  }
  Result<std::chrono::milliseconds> duration = ParseDuration(text);
  if (!duration.ok()) {
    return Malformed("duration", text, "200ms, 5s, 10m, 2h, 7d or off");
  }
  return std::optional<std::chrono::milliseconds>(*duration);
}

std::string FormatDuration(std::chrono::milliseconds duration) {
  if (duration.count() == 0) {
    return "0s";
  }
  if (duration.count() < 0) {
    return "-" + FormatDuration(-duration);
  }
  return FormatWithUnit(static_cast<uint64_t>(duration.count()), kDurationUnits);
}

std::string FormatDurationOrOff(std::optional<std::chrono::milliseconds> duration) {
  return duration ? FormatDuration(*duration) : "off";
}

Result<uint64_t> ParseSize(std::string_view text) {
  const Kind kind{.name = "size",
                  .example = "64KiB, 128MiB, 1GiB or a number of bytes",
                  .units = kSizeUnits,
                  .value_max = std::numeric_limits<int64_t>::max()};
  return ParseWithUnit(text, kind, 1);
}

std::string FormatSize(uint64_t bytes) {
  if (bytes == 0 || bytes % 1024 != 0) {
    return fmt::format("{}", bytes);
  }
  return FormatWithUnit(bytes, kSizeUnits);
}

Result<double> ParsePercentage(std::string_view text) {
  const auto malformed = [&] { return Malformed("percentage", text, "1% or 0.5%, 0 to 100"); };
  if (!text.ends_with('%') || text.size() < 2 ||
      text.find_first_not_of("0123456789.") != text.size() - 1) {
    return malformed();
  }
  const std::string_view number = text.substr(0, text.size() - 1);
  double percent = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), percent);
  if (error != std::errc() || end != number.data() + number.size() || percent > 100) {
    return malformed();
  }
  return percent / 100;
}

std::string FormatPercentage(double fraction) {
  // Fifteen digits hide the error of the division by a hundred.
  return fmt::format("{:.15g}%", fraction * 100);
}

Result<int64_t> ParseInteger(std::string_view text) {
  const bool negative = text.starts_with('-');
  const Digits digits = ReadDigits(text.substr(negative ? 1 : 0));
  if (digits.error == DigitsError::kMalformed) {
    return Malformed("whole number", text, "5 or 1_000_000");
  }
  const uint64_t limit =
      static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) + (negative ? 1 : 0);
  if (digits.error == DigitsError::kTooLarge || digits.value > limit) {
    return TooLarge("whole number", text);
  }
  // Negating as unsigned reaches the lowest value too.
  return static_cast<int64_t>(negative ? 0 - digits.value : digits.value);
}

}  // namespace tarn
