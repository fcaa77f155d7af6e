// Text of single values, the same wherever tarn writes one: rows as JSON or CSV, hashed keys.
//
// Each function appends to `out`. Years below 0000 or above 9999 are written with as many digits
// as they need and a minus sign below zero (proleptic Gregorian, year 0 exists).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tarn::engine {

void AppendInteger(int64_t value, std::string& out);
void AppendUnsigned(uint64_t value, std::string& out);

/// Shortest digits that read back as the same number; scientific iff the decimal exponent is < -4
/// or >= 16, with at least two exponent digits: 100000.0, 1e+16, 1e-05, NaN, Infinity, -Infinity.
/// -0.0 is 0.0.
void AppendDouble(double value, std::string& out);
void AppendFloat(float value, std::string& out);

/// A decimal given as the 16 bytes of its unscaled value (little-endian two's complement), with
/// exactly `scale` digits after the point: 0.05, -12.30, 7.
void AppendDecimal(const uint8_t* bytes, int32_t scale, std::string& out);

/// Days since 1970-01-01 as 2026-01-31.
void AppendDate(int64_t days, std::string& out);
/// Microseconds since midnight as HH:MM:SS.ffffff.
void AppendTime(int64_t micros, std::string& out);

enum class ZoneSuffix { kNone, kUtc };
/// Microseconds since 1970 as 2026-01-31T23:59:59.123456, with Z for kUtc.
void AppendTimestamp(int64_t micros, ZoneSuffix suffix, std::string& out);

enum class HexCase { kLower, kUpper };
void AppendHex(std::string_view bytes, HexCase hex_case, std::string& out);
/// 16 bytes as 01234567-89ab-cdef-0123-456789abcdef.
void AppendUuid(const uint8_t* bytes, std::string& out);

}  // namespace tarn::engine
