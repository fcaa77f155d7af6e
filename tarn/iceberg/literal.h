// Literal: one value of a primitive type, as bounds, partition values and predicates hold it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/json.h"
#include "tarn/iceberg/type.h"

namespace tarn::iceberg {

using Int128 = __int128;

/// The value in its physical form; what it means follows from the type it is used with:
/// bool; int64_t for int, long, date (days), time and timestamps (µs, or ns); double for float and
/// double; Int128 for decimals (unscaled); std::string for string (UTF-8), uuid (16 bytes, big
/// endian), fixed and binary. Empty = null.
struct Literal {
  std::variant<std::monostate, bool, int64_t, double, Int128, std::string> value;

  static Literal Null() { return {}; }
  static Literal Boolean(bool v) { return {v}; }
  static Literal Long(int64_t v) { return {v}; }
  static Literal Double(double v) { return {v}; }
  static Literal Decimal(Int128 unscaled) { return {unscaled}; }
  static Literal String(std::string v) { return {std::move(v)}; }

  [[nodiscard]] bool is_null() const { return value.index() == 0; }
  [[nodiscard]] bool is_nan() const;
  [[nodiscard]] int64_t AsLong() const { return std::get<int64_t>(value); }
  [[nodiscard]] const std::string& AsString() const { return std::get<std::string>(value); }

  /// Equality of partition values: null equals null, all NaN are one value, -0.0 is not 0.0.
  friend bool operator==(const Literal& a, const Literal& b);
};

/// Total order of two values of one type: null first; doubles -NaN < -Inf < -0 < +0 < Inf < NaN;
/// strings and bytes unsigned. Returns <0, 0, >0.
int CompareLiterals(const Literal& a, const Literal& b);
size_t HashLiteral(const Literal& literal);

/// Values of the fields of one partition spec, in the order of its fields.
using PartitionValues = std::vector<Literal>;
struct PartitionValuesHash {
  size_t operator()(const PartitionValues& values) const;
};

/// Binary single-value form (bounds). Errors: kInvalidArgument when null, nested, or of another
/// type.
Result<std::string> EncodeLiteral(const Type& type, const Literal& literal);
/// Reads the binary form; 4 bytes where 8 are expected are a value from before a promotion.
/// Errors: kCorruption on a length that does not fit the type.
Result<Literal> DecodeLiteral(const Type& type, std::string_view bytes);

/// JSON single-value form; null gives JSON null.
Result<Json> LiteralToJson(const Type& type, const Literal& literal);
/// Errors: kInvalidArgument.
Result<Literal> LiteralFromJson(const Type& type, const Json& json);
/// Text for people and paths: dates and times ISO-8601, binary base64, null as "null".
std::string FormatLiteral(const Type& type, const Literal& literal);

/// True when the value is in the physical form and the range of the type (null always is).
bool IsLiteralOf(const Type& type, const Literal& literal);
/// A value of one primitive type as another: widening always, narrowing where the value fits, text
/// to anything its JSON form can be read as. Errors: kInvalidArgument.
Result<Literal> CastLiteral(const Type& from, const Type& to, const Literal& literal);

/// Longest prefix of at most `length` code points (bytes for binary): a lower bound.
std::string TruncateLower(const Type& type, std::string_view value, int32_t length);
/// Shortest value above every value with that prefix; nothing when there is none.
std::optional<std::string> TruncateUpper(const Type& type, std::string_view value, int32_t length);

/// Two's complement, big endian: minimal, or sign-extended to `size_bytes`.
std::string EncodeDecimal(Int128 unscaled);
std::string EncodeDecimalFixed(Int128 unscaled, int32_t size_bytes);
/// Errors: kCorruption when empty or longer than 16 bytes with significant digits.
Result<Int128> DecodeDecimal(std::string_view bytes);

}  // namespace tarn::iceberg
