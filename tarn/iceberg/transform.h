// Transform: from a column value to a partition or sort value.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/iceberg/literal.h"
#include "tarn/iceberg/type.h"

namespace tarn::iceberg {

enum class TransformKind : uint8_t {
  kIdentity,
  kBucket,
  kTruncate,
  kYear,
  kMonth,
  kDay,
  kHour,
  kVoid,
  kUnknown,  // Of a newer writer: read, ignored for pruning, never written with.
};

struct Transform {
  TransformKind kind = TransformKind::kIdentity;
  int32_t parameter = 0;  // Number of buckets, or width.
  std::string text;       // Unknown transforms: as written.

  static Transform Identity() { return {}; }
  static Transform Bucket(int32_t count) { return {TransformKind::kBucket, count, {}}; }
  static Transform Truncate(int32_t width) { return {TransformKind::kTruncate, width, {}}; }
  static Transform Year() { return {TransformKind::kYear, 0, {}}; }
  static Transform Month() { return {TransformKind::kMonth, 0, {}}; }
  static Transform Day() { return {TransformKind::kDay, 0, {}}; }
  static Transform Hour() { return {TransformKind::kHour, 0, {}}; }
  static Transform Void() { return {TransformKind::kVoid, 0, {}}; }

  /// True when the order of values is kept (never decreases).
  [[nodiscard]] bool preserves_order() const;
  friend bool operator==(const Transform&, const Transform&) = default;
};

/// "identity", "bucket[16]", …; text that is none of them gives kUnknown.
/// Errors: kInvalidArgument for a bucket count or width that is not positive.
Result<Transform> ParseTransform(std::string_view text);
std::string FormatTransform(const Transform& transform);

/// Type of the result. Errors: kInvalidArgument when the transform does not take that type.
Result<Type> TransformResultType(const Transform& transform, const Type& source);

/// Applies to one value; null gives null. Errors: kInvalidArgument as above, kUnimplemented for
/// unknown transforms.
Result<Literal> ApplyTransform(const Transform& transform, const Type& source,
                               const Literal& value);

/// Applies to a column. The result has the Arrow type of TransformResultType. Rows: as many as
/// given.
Result<std::shared_ptr<arrow::Array>> ApplyTransform(const Transform& transform, const Type& source,
                                                     const arrow::Array& column);

/// Reads one value of an Arrow column (dictionaries not included).
Result<Literal> LiteralAt(const Type& type, const arrow::Array& column, int64_t row);
/// The value behind an Arrow scalar of that type.
Result<Literal> LiteralFromScalar(const Type& type, const arrow::Scalar& scalar);

/// The value as partition paths show it: "2017-11" for month, "null" for null.
std::string FormatPartitionValue(const Transform& transform, const Type& source,
                                 const Literal& value);

/// MurmurHash3 x86 32 bits, seed 0.
uint32_t Murmur3(std::string_view bytes);
/// Hash of a value before the modulo. Errors: kInvalidArgument for types that cannot be bucketed.
Result<int32_t> BucketHash(const Type& type, const Literal& value);

}  // namespace tarn::iceberg
