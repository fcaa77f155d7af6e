#include "tarn/iceberg/transform.h"

#include <charconv>
#include <cstring>

#include <arrow/api.h>
#include <arrow/extension_type.h>
#include <arrow/util/decimal.h>
#include <fmt/format.h>

#include "tarn/base/arrow_status.h"
#include "tarn/iceberg/codec/calendar.h"
#include "tarn/iceberg/schema_arrow.h"

namespace tarn::iceberg {
namespace {

bool IsTimestamp(TypeId id) {
  return id == TypeId::kTimestamp || id == TypeId::kTimestampTz || id == TypeId::kTimestampNs ||
         id == TypeId::kTimestampTzNs;
}

int64_t ToMicrosOf(TypeId id, int64_t value) {
  const bool nanos = id == TypeId::kTimestampNs || id == TypeId::kTimestampTzNs;
  return nanos ? FloorDiv(value, 1000) : value;
}

int64_t DaysOf(TypeId id, int64_t value) {
  return id == TypeId::kDate ? value : FloorDiv(ToMicrosOf(id, value), kMicrosPerDay);
}

std::string LongBytes(int64_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

bool CanBucket(TypeId id) {
  switch (id) {
    case TypeId::kInt:
    case TypeId::kLong:
    case TypeId::kDecimal:
    case TypeId::kDate:
    case TypeId::kTime:
    case TypeId::kTimestamp:
    case TypeId::kTimestampTz:
    case TypeId::kTimestampNs:
    case TypeId::kTimestampTzNs:
    case TypeId::kString:
    case TypeId::kUuid:
    case TypeId::kFixed:
    case TypeId::kBinary:
      return true;
    default:
      return false;
  }
}

bool CanTruncate(TypeId id) {
  return id == TypeId::kInt || id == TypeId::kLong || id == TypeId::kDecimal ||
         id == TypeId::kString || id == TypeId::kBinary;
}

Status DoesNotTake(const Transform& transform, const Type& source) {
  return Status::InvalidArgument(fmt::format("transform {} does not take values of type {}",
                                             FormatTransform(transform), FormatType(source)));
}

template <typename Int>
Int TruncateInt(Int value, Int width) {
  return value - (((value % width) + width) % width);
}

Result<Literal> Truncate(const Type& source, int32_t width, const Literal& value) {
  if (const auto* number = std::get_if<int64_t>(&value.value)) {
    const Int128 truncated = TruncateInt<Int128>(*number, width);
    // Below the smallest value there is nothing to round down to: wraps as other writers do.
    return source.id == TypeId::kInt
               ? Literal::Long(static_cast<int32_t>(static_cast<uint32_t>(truncated)))
               : Literal::Long(static_cast<int64_t>(static_cast<uint64_t>(truncated)));
  }
  if (const auto* unscaled = std::get_if<Int128>(&value.value)) {
    return Literal::Decimal(TruncateInt<Int128>(*unscaled, width));
  }
  return Literal::String(TruncateLower(source, value.AsString(), width));
}

}  // namespace

bool Transform::preserves_order() const {
  switch (kind) {
    case TransformKind::kIdentity:
    case TransformKind::kTruncate:
    case TransformKind::kYear:
    case TransformKind::kMonth:
    case TransformKind::kDay:
    case TransformKind::kHour:
      return true;
    default:
      return false;
  }
}

Result<Transform> ParseTransform(std::string_view text) {
  static constexpr std::pair<std::string_view, TransformKind> kNames[] = {
      {"identity", TransformKind::kIdentity}, {"year", TransformKind::kYear},
      {"month", TransformKind::kMonth},       {"day", TransformKind::kDay},
      {"hour", TransformKind::kHour},         {"void", TransformKind::kVoid}};
  for (const auto& [name, kind] : kNames) {
    if (text == name) {
      return Transform{kind, 0, {}};
    }
  }
  for (const auto& [prefix, kind] :
       {std::pair<std::string_view, TransformKind>{"bucket[", TransformKind::kBucket},
        {"truncate[", TransformKind::kTruncate}}) {
    if (!text.starts_with(prefix) || !text.ends_with("]")) {
      continue;
    }
    const std::string_view number = text.substr(prefix.size(), text.size() - prefix.size() - 1);
    int32_t parameter = 0;
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), parameter);
    if (error != std::errc() || end != number.data() + number.size() || parameter < 1) {
      return Status::InvalidArgument(
          fmt::format("transform '{}': the number must be positive", text));
    }
    return Transform{kind, parameter, {}};
  }
  return Transform{TransformKind::kUnknown, 0, std::string(text)};
}

std::string FormatTransform(const Transform& transform) {
  switch (transform.kind) {
    case TransformKind::kIdentity:
      return "identity";
    case TransformKind::kBucket:
      return fmt::format("bucket[{}]", transform.parameter);
    case TransformKind::kTruncate:
      return fmt::format("truncate[{}]", transform.parameter);
    case TransformKind::kYear:
      return "year";
    case TransformKind::kMonth:
      return "month";
    case TransformKind::kDay:
      return "day";
    case TransformKind::kHour:
      return "hour";
    case TransformKind::kVoid:
      return "void";
    case TransformKind::kUnknown:
      return transform.text;
  }
  return transform.text;
}

Result<Type> TransformResultType(const Transform& transform, const Type& source) {
  if (source.is_nested()) {
    return DoesNotTake(transform, source);
  }
  switch (transform.kind) {
    case TransformKind::kIdentity:
      if (source.id == TypeId::kVariant || source.id == TypeId::kGeometry ||
          source.id == TypeId::kGeography) {
        return DoesNotTake(transform, source);
      }
      return source;
    case TransformKind::kVoid:
      return source;
    case TransformKind::kBucket:
      return CanBucket(source.id) ? Result<Type>(Type::Int()) : DoesNotTake(transform, source);
    case TransformKind::kTruncate:
      return CanTruncate(source.id) ? Result<Type>(source) : DoesNotTake(transform, source);
    case TransformKind::kYear:
    case TransformKind::kMonth:
      return source.id == TypeId::kDate || IsTimestamp(source.id) ? Result<Type>(Type::Int())
                                                                  : DoesNotTake(transform, source);
    case TransformKind::kDay:
      return source.id == TypeId::kDate || IsTimestamp(source.id) ? Result<Type>(Type::Date())
                                                                  : DoesNotTake(transform, source);
    case TransformKind::kHour:
      return IsTimestamp(source.id) ? Result<Type>(Type::Int()) : DoesNotTake(transform, source);
    case TransformKind::kUnknown:
      break;
  }
  return Type{};
}

Result<Literal> ApplyTransform(const Transform& transform, const Type& source,
                               const Literal& value) {
  if (transform.kind == TransformKind::kUnknown) {
    return Status(ErrorCode::kUnimplemented,
                  fmt::format("transform '{}' is not known here", transform.text));
  }
  TARN_RETURN_IF_ERROR(TransformResultType(transform, source));
  if (value.is_null() || transform.kind == TransformKind::kVoid) {
    return Literal::Null();
  }
  if (!IsLiteralOf(source, value)) {
    return Status::InvalidArgument(
        fmt::format("the value is not one of type {}", FormatType(source)));
  }
  switch (transform.kind) {
    case TransformKind::kBucket: {
      TARN_ASSIGN_OR_RETURN(const int32_t hash, BucketHash(source, value));
      return Literal::Long((hash & 0x7fffffff) % transform.parameter);
    }
    case TransformKind::kTruncate:
      return Truncate(source, transform.parameter, value);
    case TransformKind::kYear:
      return Literal::Long(CivilFromDays(DaysOf(source.id, value.AsLong())).year - 1970);
    case TransformKind::kMonth: {
      const CivilDate date = CivilFromDays(DaysOf(source.id, value.AsLong()));
      return Literal::Long((date.year - 1970) * 12 + date.month - 1);
    }
    case TransformKind::kDay:
      return Literal::Long(DaysOf(source.id, value.AsLong()));
    case TransformKind::kHour:
      return Literal::Long(
          FloorDiv(ToMicrosOf(source.id, value.AsLong()), 3600 * kMicrosPerSecond));
    default:
      return value;
  }
}

uint32_t Murmur3(std::string_view bytes) {
  constexpr uint32_t kC1 = 0xcc9e2d51;
  constexpr uint32_t kC2 = 0x1b873593;
  const auto rotate = [](uint32_t x, int by) { return (x << by) | (x >> (32 - by)); };
  const auto mix = [&](uint32_t k) { return rotate(k * kC1, 15) * kC2; };
  uint32_t hash = 0;
  const size_t blocks = bytes.size() / 4;
  for (size_t i = 0; i < blocks; ++i) {
    uint32_t block = 0;
    std::memcpy(&block, bytes.data() + i * 4, 4);
    hash = rotate(hash ^ mix(block), 13) * 5 + 0xe6546b64;
  }
  uint32_t tail = 0;
  for (size_t i = bytes.size(); i > blocks * 4; --i) {
    tail = (tail << 8) | static_cast<unsigned char>(bytes[i - 1]);
  }
  if (bytes.size() % 4 != 0) {
    hash ^= mix(tail);
  }
  hash ^= static_cast<uint32_t>(bytes.size());
  hash = (hash ^ (hash >> 16)) * 0x85ebca6b;
  hash = (hash ^ (hash >> 13)) * 0xc2b2ae35;
  return hash ^ (hash >> 16);
}

Result<int32_t> BucketHash(const Type& type, const Literal& value) {
  if (!CanBucket(type.id) || value.is_null()) {
    return DoesNotTake(Transform::Bucket(1), type);
  }
  if (const auto* number = std::get_if<int64_t>(&value.value)) {
    return static_cast<int32_t>(Murmur3(LongBytes(ToMicrosOf(type.id, *number))));
  }
  if (const auto* unscaled = std::get_if<Int128>(&value.value)) {
    return static_cast<int32_t>(Murmur3(EncodeDecimal(*unscaled)));
  }
  return static_cast<int32_t>(Murmur3(value.AsString()));
}

std::string FormatPartitionValue(const Transform& transform, const Type& source,
                                 const Literal& value) {
  if (value.is_null()) {
    return "null";
  }
  const auto* number = std::get_if<int64_t>(&value.value);
  switch (transform.kind) {
    case TransformKind::kYear:
      return number != nullptr ? fmt::format("{:04}", 1970 + *number) : "null";
    case TransformKind::kMonth:
      return number != nullptr ? fmt::format("{:04}-{:02}", 1970 + FloorDiv(*number, 12),
                                             *number - FloorDiv(*number, 12) * 12 + 1)
                               : "null";
    case TransformKind::kDay:
      return number != nullptr ? FormatDate(*number) : "null";
    case TransformKind::kHour:
      return number != nullptr ? fmt::format("{}-{:02}", FormatDate(FloorDiv(*number, 24)),
                                             *number - FloorDiv(*number, 24) * 24)
                               : "null";
    case TransformKind::kBucket:
      return FormatLiteral(Type::Int(), value);
    default:
      return FormatLiteral(source, value);
  }
}

}  // namespace tarn::iceberg
