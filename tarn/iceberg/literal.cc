#include "tarn/iceberg/literal.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "tarn/base/check.h"

namespace tarn::iceberg {
namespace {

template <typename T>
void AppendLittleEndian(std::string& out, T value) {
  static_assert(std::endian::native == std::endian::little);
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <typename T>
T LoadLittleEndian(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

// Order of IEEE total order with every NaN as the greatest.
int64_t DoubleKey(double value) {
  if (std::isnan(value)) {
    return std::numeric_limits<int64_t>::max();
  }
  const auto bits = std::bit_cast<int64_t>(value);
  return bits < 0 ? std::numeric_limits<int64_t>::min() - bits - 1 : bits;
}

template <typename T>
int Compare3(const T& a, const T& b) {
  return a < b ? -1 : (b < a ? 1 : 0);
}

bool FitsInt(int64_t value) {
  return value >= std::numeric_limits<int32_t>::min() &&
         value <= std::numeric_limits<int32_t>::max();
}

enum class Physical : uint8_t { kNone, kBool, kInt32, kInt64, kFloat, kDouble, kDecimal, kBytes };

Physical PhysicalOf(TypeId id) {
  switch (id) {
    case TypeId::kBoolean:
      return Physical::kBool;
    case TypeId::kInt:
    case TypeId::kDate:
      return Physical::kInt32;
    case TypeId::kLong:
    case TypeId::kTime:
    case TypeId::kTimestamp:
    case TypeId::kTimestampTz:
    case TypeId::kTimestampNs:
    case TypeId::kTimestampTzNs:
      return Physical::kInt64;
    case TypeId::kFloat:
      return Physical::kFloat;
    case TypeId::kDouble:
      return Physical::kDouble;
    case TypeId::kDecimal:
      return Physical::kDecimal;
    case TypeId::kString:
    case TypeId::kUuid:
    case TypeId::kFixed:
    case TypeId::kBinary:
    case TypeId::kGeometry:
    case TypeId::kGeography:
      return Physical::kBytes;
    default:
      return Physical::kNone;
  }
}

Status BadLength(const Type& type, std::string_view bytes) {
  return Status::Corruption(
      fmt::format("a value of {} bytes is not one of type {}", bytes.size(), FormatType(type)));
}

Int128 DecimalLimit(int32_t precision) {
  Int128 limit = 1;
  for (int32_t i = 0; i < precision; ++i) {
    limit *= 10;
  }
  return limit;
}

}  // namespace

bool Literal::is_nan() const {
  const auto* v = std::get_if<double>(&value);
  return v != nullptr && std::isnan(*v);
}

bool operator==(const Literal& a, const Literal& b) {
  return a.value.index() == b.value.index() && CompareLiterals(a, b) == 0;
}

int CompareLiterals(const Literal& a, const Literal& b) {
  if (a.value.index() != b.value.index()) {
    return Compare3(a.value.index(), b.value.index());
  }
  if (const auto* x = std::get_if<bool>(&a.value)) {
    return Compare3(*x, std::get<bool>(b.value));
  }
  if (const auto* x = std::get_if<int64_t>(&a.value)) {
    return Compare3(*x, std::get<int64_t>(b.value));
  }
  if (const auto* x = std::get_if<double>(&a.value)) {
    return Compare3(DoubleKey(*x), DoubleKey(std::get<double>(b.value)));
  }
  if (const auto* x = std::get_if<Int128>(&a.value)) {
    return Compare3(*x, std::get<Int128>(b.value));
  }
  if (const auto* x = std::get_if<std::string>(&a.value)) {
    const int order = x->compare(std::get<std::string>(b.value));  // Compares as unsigned bytes.
    return order < 0 ? -1 : (order > 0 ? 1 : 0);
  }
  return 0;
}

size_t HashLiteral(const Literal& literal) {
  size_t hash = literal.value.index() * 0x9E3779B97F4A7C15ULL;
  if (const auto* x = std::get_if<bool>(&literal.value)) {
    hash ^= *x ? 1 : 2;
  } else if (const auto* y = std::get_if<int64_t>(&literal.value)) {
    hash ^= std::hash<int64_t>{}(*y);
  } else if (const auto* z = std::get_if<double>(&literal.value)) {
    hash ^= std::hash<int64_t>{}(DoubleKey(*z));
  } else if (const auto* d = std::get_if<Int128>(&literal.value)) {
    hash ^= std::hash<uint64_t>{}(static_cast<uint64_t>(*d)) ^
            (std::hash<uint64_t>{}(static_cast<uint64_t>(*d >> 64)) << 1);
  } else if (const auto* s = std::get_if<std::string>(&literal.value)) {
    hash ^= std::hash<std::string>{}(*s);
  }
  return hash * 0x9E3779B97F4A7C15ULL;
}

size_t PartitionValuesHash::operator()(const PartitionValues& values) const {
  size_t hash = values.size();
  for (const Literal& literal : values) {
    hash = (hash ^ HashLiteral(literal)) * 0x9E3779B97F4A7C15ULL + 1;
  }
  return hash;
}

bool IsLiteralOf(const Type& type, const Literal& literal) {
  if (literal.is_null()) {
    return true;
  }
  const auto* number = std::get_if<int64_t>(&literal.value);
  const auto* text = std::get_if<std::string>(&literal.value);
  switch (PhysicalOf(type.id)) {
    case Physical::kBool:
      return std::holds_alternative<bool>(literal.value);
    case Physical::kInt32:
      return number != nullptr && FitsInt(*number);
    case Physical::kInt64:
      return number != nullptr;
    case Physical::kFloat:
    case Physical::kDouble:
      return std::holds_alternative<double>(literal.value);
    case Physical::kDecimal: {
      const auto* unscaled = std::get_if<Int128>(&literal.value);
      const Int128 limit = DecimalLimit(type.precision);
      return unscaled != nullptr && *unscaled < limit && *unscaled > -limit;
    }
    case Physical::kBytes:
      return text != nullptr && (type.id != TypeId::kUuid || text->size() == 16) &&
             (type.id != TypeId::kFixed || text->size() == static_cast<size_t>(type.length));
    case Physical::kNone:
      return false;
  }
  return false;
}

Result<std::string> EncodeLiteral(const Type& type, const Literal& literal) {
  if (literal.is_null() || !IsLiteralOf(type, literal)) {
    return Status::InvalidArgument(
        fmt::format("the value is not one of type {}", FormatType(type)));
  }
  std::string out;
  switch (PhysicalOf(type.id)) {
    case Physical::kBool:
      out.push_back(std::get<bool>(literal.value) ? '\1' : '\0');
      break;
    case Physical::kInt32:
      AppendLittleEndian(out, static_cast<int32_t>(literal.AsLong()));
      break;
    case Physical::kInt64:
      AppendLittleEndian(out, literal.AsLong());
      break;
    case Physical::kFloat:
      AppendLittleEndian(out, static_cast<float>(std::get<double>(literal.value)));
      break;
    case Physical::kDouble:
      AppendLittleEndian(out, std::get<double>(literal.value));
      break;
    case Physical::kDecimal:
      return EncodeDecimal(std::get<Int128>(literal.value));
    case Physical::kBytes:
      return literal.AsString();
    case Physical::kNone:
      break;
  }
  return out;
}

Result<Literal> DecodeLiteral(const Type& type, std::string_view bytes) {
  switch (PhysicalOf(type.id)) {
    case Physical::kBool:
      if (bytes.size() != 1) {
        return BadLength(type, bytes);
      }
      return Literal::Boolean(bytes[0] != 0);
    case Physical::kInt32:
    case Physical::kInt64: {
      if (bytes.size() == 4) {
        const int64_t value = LoadLittleEndian<int32_t>(bytes);
        if (type.id == TypeId::kTimestamp) {
          return Literal::Long(value * 86'400'000'000LL);  // A date before its promotion.
        }
        if (type.id == TypeId::kTimestampNs) {
          Int128 nanos = static_cast<Int128>(value) * 86'400'000'000'000LL;
          if (nanos != static_cast<int64_t>(nanos)) {
            return BadLength(type, bytes);
          }
          return Literal::Long(static_cast<int64_t>(nanos));
        }
        return Literal::Long(value);
      }
      if (bytes.size() != 8 || PhysicalOf(type.id) == Physical::kInt32) {
        return BadLength(type, bytes);
      }
      return Literal::Long(LoadLittleEndian<int64_t>(bytes));
    }
    case Physical::kFloat:
    case Physical::kDouble:
      if (bytes.size() == 4) {
        return Literal::Double(LoadLittleEndian<float>(bytes));
      }
      if (bytes.size() != 8 || type.id == TypeId::kFloat) {
        return BadLength(type, bytes);
      }
      return Literal::Double(LoadLittleEndian<double>(bytes));
    case Physical::kDecimal: {
      TARN_ASSIGN_OR_RETURN(const Int128 unscaled, DecodeDecimal(bytes));
      return Literal::Decimal(unscaled);
    }
    case Physical::kBytes:
      if ((type.id == TypeId::kUuid && bytes.size() != 16) ||
          (type.id == TypeId::kFixed && bytes.size() != static_cast<size_t>(type.length))) {
        return BadLength(type, bytes);
      }
      return Literal::String(std::string(bytes));
    case Physical::kNone:
      break;
  }
  return BadLength(type, bytes);
}

std::string EncodeDecimalFixed(Int128 unscaled, int32_t size_bytes) {
  std::string out(static_cast<size_t>(size_bytes), '\0');
  for (int32_t i = size_bytes - 1; i >= 0; --i) {
    out[static_cast<size_t>(i)] = static_cast<char>(static_cast<unsigned char>(unscaled & 0xFF));
    unscaled >>= 8;
  }
  return out;
}

std::string EncodeDecimal(Int128 unscaled) {
  std::string full = EncodeDecimalFixed(unscaled, 16);
  size_t start = 0;
  const char fill = unscaled < 0 ? '\xFF' : '\0';
  while (start < 15 && full[start] == fill && ((full[start + 1] ^ fill) & 0x80) == 0) {
    ++start;
  }
  return full.substr(start);
}

Result<Int128> DecodeDecimal(std::string_view bytes) {
  if (bytes.empty()) {
    return Status::Corruption("a decimal of no bytes");
  }
  const bool negative = (static_cast<unsigned char>(bytes[0]) & 0x80) != 0;
  const char fill = negative ? '\xFF' : '\0';
  while (bytes.size() > 16) {
    if (bytes[0] != fill || ((bytes[1] ^ fill) & 0x80) != 0) {
      return Status::Corruption(fmt::format("a decimal of {} bytes is too large", bytes.size()));
    }
    bytes.remove_prefix(1);
  }
  unsigned __int128 value = negative ? ~static_cast<unsigned __int128>(0) : 0;
  for (const char c : bytes) {
    value = (value << 8) | static_cast<unsigned char>(c);
  }
  return static_cast<Int128>(value);
}

namespace {

// Start of the code point after the one at `at`; bytes that are not UTF-8 count one each.
size_t NextCodePoint(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  size_t next = at + 1;
  while (next < text.size() && next < at + length &&
         (static_cast<unsigned char>(text[next]) & 0xC0) == 0x80) {
    ++next;
  }
  return next;
}

void AppendUtf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out.push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out.push_back(static_cast<char>(0xC0 | (code >> 6)));
    out.push_back(static_cast<char>(0x80 | (code & 0x3F)));
  } else if (code < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | (code >> 12)));
    out.push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (code & 0x3F)));
  } else {
    out.push_back(static_cast<char>(0xF0 | (code >> 18)));
    out.push_back(static_cast<char>(0x80 | ((code >> 12) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (code & 0x3F)));
  }
}

std::vector<uint32_t> CodePoints(std::string_view text) {
  std::vector<uint32_t> codes;
  for (size_t at = 0; at < text.size();) {
    const size_t next = NextCodePoint(text, at);
    const auto lead = static_cast<unsigned char>(text[at]);
    uint32_t code = next - at == 1 ? lead : lead & (0xFFu >> (next - at + 1));
    for (size_t i = at + 1; i < next; ++i) {
      code = (code << 6) | (static_cast<unsigned char>(text[i]) & 0x3Fu);
    }
    codes.push_back(code);
    at = next;
  }
  return codes;
}

size_t PrefixSize(const Type& type, std::string_view value, int32_t length) {
  if (type.id != TypeId::kString) {
    return std::min(value.size(), static_cast<size_t>(length));
  }
  size_t at = 0;
  for (int32_t count = 0; count < length && at < value.size(); ++count) {
    at = NextCodePoint(value, at);
  }
  return at;
}

}  // namespace

std::string TruncateLower(const Type& type, std::string_view value, int32_t length) {
  return std::string(value.substr(0, PrefixSize(type, value, length)));
}

std::optional<std::string> TruncateUpper(const Type& type, std::string_view value, int32_t length) {
  const size_t size = PrefixSize(type, value, length);
  if (size == value.size()) {
    return std::string(value);
  }
  if (type.id != TypeId::kString) {
    std::string prefix(value.substr(0, size));
    while (!prefix.empty() && prefix.back() == '\xFF') {
      prefix.pop_back();
    }
    if (prefix.empty()) {
      return std::nullopt;
    }
    prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
    return prefix;
  }
  std::vector<uint32_t> codes = CodePoints(value.substr(0, size));
  while (!codes.empty() && codes.back() >= 0x10FFFF) {
    codes.pop_back();
  }
  if (codes.empty()) {
    return std::nullopt;
  }
  codes.back() += 1;
  if (codes.back() >= 0xD800 && codes.back() <= 0xDFFF) {
    codes.back() = 0xE000;
  }
  std::string upper;
  for (const uint32_t code : codes) {
    AppendUtf8(upper, code);
  }
  return upper;
}

}  // namespace tarn::iceberg
