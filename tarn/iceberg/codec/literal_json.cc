// The text forms of Literal (literal.h): JSON, people, and casts.
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/base/hash.h"
#include "tarn/base/uuid.h"
#include "tarn/iceberg/codec/calendar.h"
#include "tarn/iceberg/literal.h"

namespace tarn::iceberg {
namespace {

std::string FormatUuid(const std::string& bytes) {
  Uuid uuid;
  std::copy_n(bytes.begin(), std::min<size_t>(bytes.size(), 16), uuid.bytes.begin());
  return uuid.ToString();
}

std::string FormatInt128(Int128 value) {
  if (value == 0) {
    return "0";
  }
  const bool negative = value < 0;
  auto rest =
      negative ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
  std::string digits;
  while (rest != 0) {
    digits.push_back(static_cast<char>('0' + static_cast<int>(rest % 10)));
    rest /= 10;
  }
  if (negative) {
    digits.push_back('-');
  }
  return {digits.rbegin(), digits.rend()};
}

std::string FormatDecimal(Int128 unscaled, int32_t scale) {
  std::string text = FormatInt128(unscaled);
  if (scale <= 0) {
    return text;
  }
  const bool negative = text[0] == '-';
  std::string digits = negative ? text.substr(1) : text;
  if (digits.size() <= static_cast<size_t>(scale)) {
    digits.insert(0, static_cast<size_t>(scale) + 1 - digits.size(), '0');
  }
  digits.insert(digits.size() - static_cast<size_t>(scale), ".");
  return negative ? "-" + digits : digits;
}

// Reads "[-]digits[.digits]" exactly at a scale; nothing when it does not fit.
std::optional<Int128> ParseDecimal(std::string_view text, int32_t scale) {
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) {
    text.remove_prefix(1);
  }
  Int128 value = 0;
  int32_t fraction = -1;  // Digits after the point so far.
  int digits = 0;
  for (const char c : text) {
    if (c == '.' && fraction < 0) {
      fraction = 0;
      continue;
    }
    if (c < '0' || c > '9') {
      return std::nullopt;
    }
    if (fraction >= 0 && ++fraction > scale) {
      if (c != '0') {
        return std::nullopt;
      }
      fraction = scale;
      continue;
    }
    if (value != 0 && ++digits > 38) {
      return std::nullopt;
    }
    value = value * 10 + (c - '0');
  }
  if (text.empty() || text == ".") {
    return std::nullopt;
  }
  for (int32_t i = std::max(fraction, 0); i < scale; ++i) {
    if (value != 0 && ++digits > 38) {
      return std::nullopt;
    }
    value *= 10;
  }
  return negative ? -value : value;
}

Status BadValue(const Type& type, const Json& json) {
  return Status::InvalidArgument(
      fmt::format("{} is not a value of type {}", DumpJson(json), FormatType(type)));
}

Result<Literal> TextLiteral(const Type& type, const std::string& text) {
  switch (type.id) {
    case TypeId::kDate: {
      TARN_ASSIGN_OR_RETURN(const int64_t value, ParseDate(text));
      return Literal::Long(value);
    }
    case TypeId::kTime: {
      TARN_ASSIGN_OR_RETURN(const int64_t value, ParseTimeOfDay(text, false));
      return Literal::Long(value);
    }
    case TypeId::kTimestamp:
    case TypeId::kTimestampNs: {
      TARN_ASSIGN_OR_RETURN(const int64_t value,
                            ParseDateTime(text, type.id == TypeId::kTimestampNs, false));
      return Literal::Long(value);
    }
    case TypeId::kTimestampTz:
    case TypeId::kTimestampTzNs: {
      TARN_ASSIGN_OR_RETURN(const int64_t value,
                            ParseDateTime(text, type.id == TypeId::kTimestampTzNs, true));
      return Literal::Long(value);
    }
    case TypeId::kString:
      return Literal::String(text);
    case TypeId::kUuid: {
      TARN_ASSIGN_OR_RETURN(const Uuid uuid, Uuid::Parse(text));
      return Literal::String(std::string(uuid.bytes.begin(), uuid.bytes.end()));
    }
    case TypeId::kFixed:
    case TypeId::kBinary: {
      TARN_ASSIGN_OR_RETURN(std::string bytes, DecodeHex(text));
      return Literal::String(std::move(bytes));
    }
    case TypeId::kDecimal: {
      const auto unscaled = ParseDecimal(text, type.scale);
      if (!unscaled) {
        return BadValue(type, Json(text));
      }
      return Literal::Decimal(*unscaled);
    }
    default:
      return BadValue(type, Json(text));
  }
}

// Numbers and booleans written as text, for casts.
Result<Literal> NumberFromText(const Type& type, const std::string& text) {
  const char* end = text.data() + text.size();
  if (type.id == TypeId::kBoolean && (text == "true" || text == "false")) {
    return Literal::Boolean(text == "true");
  }
  if (type.id == TypeId::kInt || type.id == TypeId::kLong) {
    int64_t value = 0;
    const auto [at, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && at == end) {
      return Literal::Long(value);
    }
  }
  if (type.id == TypeId::kFloat || type.id == TypeId::kDouble) {
    double value = 0;
    const auto [at, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && at == end) {
      return Literal::Double(value);
    }
  }
  return BadValue(type, Json(text));
}

bool IsLongType(TypeId id) { return id == TypeId::kInt || id == TypeId::kLong; }
bool IsFloatType(TypeId id) { return id == TypeId::kFloat || id == TypeId::kDouble; }
bool IsMicros(TypeId id) { return id == TypeId::kTimestamp || id == TypeId::kTimestampTz; }
bool IsNanos(TypeId id) { return id == TypeId::kTimestampNs || id == TypeId::kTimestampTzNs; }

Status CannotCast(const Type& from, const Type& to, const Literal& literal) {
  return Status::InvalidArgument(fmt::format("the {} value {} cannot be read as {}",
                                             FormatType(from), FormatLiteral(from, literal),
                                             FormatType(to)));
}

Result<Literal> CastUnchecked(const Type& from, const Type& to, const Literal& literal) {
  if (const auto* number = std::get_if<int64_t>(&literal.value)) {
    if (IsLongType(from.id) && IsFloatType(to.id)) {
      return Literal::Double(static_cast<double>(*number));
    }
    if (IsLongType(from.id) && to.id == TypeId::kDecimal) {
      const auto scaled = ParseDecimal(std::to_string(*number), to.scale);
      return scaled ? Result<Literal>(Literal::Decimal(*scaled)) : CannotCast(from, to, literal);
    }
    if (from.id == TypeId::kDate && IsMicros(to.id)) {
      return Literal::Long(*number * kMicrosPerDay);
    }
    if (IsMicros(from.id) && IsNanos(to.id)) {
      const Int128 nanos = static_cast<Int128>(*number) * 1000;
      return nanos == static_cast<int64_t>(nanos)
                 ? Result<Literal>(Literal::Long(static_cast<int64_t>(nanos)))
                 : CannotCast(from, to, literal);
    }
    const bool same = (IsLongType(from.id) && IsLongType(to.id)) ||
                      (IsMicros(from.id) && IsMicros(to.id)) ||
                      (IsNanos(from.id) && IsNanos(to.id));
    return same ? Result<Literal>(literal) : CannotCast(from, to, literal);
  }
  if (const auto* number = std::get_if<double>(&literal.value)) {
    if (IsFloatType(to.id)) {
      return to.id == TypeId::kFloat ? Literal::Double(static_cast<float>(*number)) : literal;
    }
    if (IsLongType(to.id) && *number == std::floor(*number) && std::abs(*number) < 9e15) {
      return Literal::Long(static_cast<int64_t>(*number));
    }
    if (to.id == TypeId::kDecimal && std::isfinite(*number)) {
      const auto scaled = ParseDecimal(fmt::format("{:.17f}", *number), to.scale);
      return scaled ? Result<Literal>(Literal::Decimal(*scaled)) : CannotCast(from, to, literal);
    }
    return CannotCast(from, to, literal);
  }
  if (const auto* unscaled = std::get_if<Int128>(&literal.value)) {
    const std::string text = FormatDecimal(*unscaled, from.scale);
    if (to.id == TypeId::kDecimal) {
      const auto scaled = ParseDecimal(text, to.scale);
      return scaled ? Result<Literal>(Literal::Decimal(*scaled)) : CannotCast(from, to, literal);
    }
    return NumberFromText(to, IsLongType(to.id) ? text.substr(0, text.find('.')) : text);
  }
  if (from.id == TypeId::kString) {
    const std::string& text = literal.AsString();
    const bool number = to.id == TypeId::kBoolean || IsLongType(to.id) || IsFloatType(to.id);
    return number ? NumberFromText(to, text) : TextLiteral(to, text);
  }
  const bool bytes = to.id == TypeId::kBinary || to.id == TypeId::kFixed;
  return bytes ? Result<Literal>(literal) : CannotCast(from, to, literal);
}

}  // namespace

Result<Json> LiteralToJson(const Type& type, const Literal& literal) {
  if (literal.is_null()) {
    return Json();
  }
  if (!IsLiteralOf(type, literal)) {
    return Status::InvalidArgument(
        fmt::format("the value is not one of type {}", FormatType(type)));
  }
  switch (type.id) {
    case TypeId::kBoolean:
      return Json(std::get<bool>(literal.value));
    case TypeId::kInt:
    case TypeId::kLong:
      return Json(literal.AsLong());
    case TypeId::kFloat:
      return Json(static_cast<float>(std::get<double>(literal.value)));
    case TypeId::kDouble:
      return Json(std::get<double>(literal.value));
    case TypeId::kFixed:
    case TypeId::kBinary:
      return Json(EncodeHex(literal.AsString()));
    default:
      return Json(FormatLiteral(type, literal));
  }
}

Result<Literal> LiteralFromJson(const Type& type, const Json& json) {
  if (json.is_null()) {
    return Literal::Null();
  }
  Literal literal;
  switch (type.id) {
    case TypeId::kBoolean:
      if (!json.is_boolean()) {
        return BadValue(type, json);
      }
      return Literal::Boolean(json.get<bool>());
    case TypeId::kInt:
    case TypeId::kLong:
      if (!json.is_number_integer() ||
          (json.is_number_unsigned() &&
           json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))) {
        return BadValue(type, json);
      }
      literal = Literal::Long(json.get<int64_t>());
      break;
    case TypeId::kFloat:
    case TypeId::kDouble:
      if (!json.is_number()) {
        return BadValue(type, json);
      }
      return Literal::Double(type.id == TypeId::kFloat ? json.get<float>() : json.get<double>());
    default: {
      if (!json.is_string()) {
        return BadValue(type, json);
      }
      TARN_ASSIGN_OR_RETURN(literal, TextLiteral(type, json.get_ref<const std::string&>()));
      break;
    }
  }
  if (!IsLiteralOf(type, literal)) {
    return BadValue(type, json);
  }
  return literal;
}

std::string FormatLiteral(const Type& type, const Literal& literal) {
  if (literal.is_null()) {
    return "null";
  }
  if (const auto* v = std::get_if<bool>(&literal.value)) {
    return *v ? "true" : "false";
  }
  if (const auto* v = std::get_if<double>(&literal.value)) {
    return type.id == TypeId::kFloat ? fmt::format("{}", static_cast<float>(*v))
                                     : fmt::format("{}", *v);
  }
  if (const auto* v = std::get_if<Int128>(&literal.value)) {
    return FormatDecimal(*v, type.scale);
  }
  if (const auto* v = std::get_if<std::string>(&literal.value)) {
    switch (type.id) {
      case TypeId::kUuid:
        return FormatUuid(*v);
      case TypeId::kString:
        return *v;
      default:
        return EncodeBase64(*v);
    }
  }
  const int64_t value = literal.AsLong();
  switch (type.id) {
    case TypeId::kDate:
      return FormatDate(value);
    case TypeId::kTime:
      return FormatTimeOfDay(value, false);
    case TypeId::kTimestamp:
    case TypeId::kTimestampNs:
      return FormatDateTime(value, type.id == TypeId::kTimestampNs, false);
    case TypeId::kTimestampTz:
    case TypeId::kTimestampTzNs:
      return FormatDateTime(value, type.id == TypeId::kTimestampTzNs, true);
    default:
      return std::to_string(value);
  }
}

Result<Literal> CastLiteral(const Type& from, const Type& to, const Literal& literal) {
  if (literal.is_null() || from == to) {
    return literal;
  }
  TARN_ASSIGN_OR_RETURN(Literal cast, CastUnchecked(from, to, literal));
  if (!IsLiteralOf(to, cast)) {
    return CannotCast(from, to, literal);
  }
  return cast;
}

}  // namespace tarn::iceberg
