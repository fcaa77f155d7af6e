// Quantities as people write them in configuration: durations, sizes, percentages, counts.
//
// All parsers take the whole text, without blanks around it, and fail with kInvalidArgument naming
// the text and what was expected.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tarn/base/status.h"

namespace tarn {

/// True for "off", the word that switches a limit or a period off.
bool IsOff(std::string_view text);

/// A whole number and a unit: "200ms", "5s", "10m", "2h", "7d". A plain "0" is zero.
Result<std::chrono::milliseconds> ParseDuration(std::string_view text);
/// As ParseDuration; nothing for "off".
Result<std::optional<std::chrono::milliseconds>> ParseDurationOrOff(std::string_view text);
/// The shortest text that parses back to the same: "90s", "2h", "0s".
std::string FormatDuration(std::chrono::milliseconds duration);
std::string FormatDurationOrOff(std::optional<std::chrono::milliseconds> duration);

/// Bytes: "64KiB", "128MiB", "1GiB", "2TiB"; a number without a unit (or with "B") is bytes.
Result<uint64_t> ParseSize(std::string_view text);
/// The shortest text that parses back to the same: "64KiB", "1000".
std::string FormatSize(uint64_t bytes);

/// A fraction from "1%" or "0.5%", 0..1.
Result<double> ParsePercentage(std::string_view text);
std::string FormatPercentage(double fraction);

/// A whole number whose digits may be grouped: "-5", "1_000_000".
Result<int64_t> ParseInteger(std::string_view text);

}  // namespace tarn
