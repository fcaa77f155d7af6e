// Dates and times as ISO-8601 text, proleptic Gregorian calendar, microseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tarn::format {

/// Days since 1970-01-01 of "2026-01-31", "-0043-03-15" or "+15000-01-01"; a trailing "Z" is
/// allowed. Nothing when it is no such text, the day does not exist, or int32 cannot hold it.
std::optional<int32_t> ReadDate(std::string_view text);

/// Microseconds since midnight of "12:34", "12:34:56" or "12:34:56.123456" (at most 6 digits that
/// are not zero); below 24 h.
std::optional<int64_t> ReadTime(std::string_view text);

struct TimestampText {
  int64_t micros = 0;     // Since 1970, UTC where there is an offset.
  bool has_zone = false;  // "Z" or an offset was written.
};

/// A date, then 'T' or a blank, a time, and "Z", "+02", "+02:00", "+0200" or nothing. Nothing for
/// other text, more than 6 digits of a second that are not zero, and beyond int64 microseconds.
std::optional<TimestampText> ReadTimestamp(std::string_view text);

/// "2026-01-31"; years before 0 and after 9999 carry a sign.
std::string FormatDate(int64_t days);
/// "12:34:56.789", fraction only where there is one; may be negative or beyond 24 h.
std::string FormatTime(int64_t micros);
/// "2026-01-31T12:34:56.789", with "Z" for an instant.
std::string FormatTimestamp(int64_t micros, bool instant);
/// The same with nanoseconds, given as floored microseconds and 0..999.
std::string FormatTimestampNanos(int64_t micros, int nanos, bool instant);

}  // namespace tarn::format
