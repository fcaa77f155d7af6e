// FieldType: the types of a dataset's fields, and their mapping to Arrow and to the type names that
// people declare in a pipeline file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"

namespace tarn::format {

enum class FieldKind : uint8_t {
  kBoolean,
  kByte,
  kShort,
  kInteger,
  kLong,
  kFloat,
  kDouble,
  kDecimal,
  kString,
  kMap,
  kArray,
  kStruct,
  kBinary,
  kDate,
  kTimestamp
};

/// What a kind alone does not say. kUntyped: every value so far was NULL (kind is kString).
/// kWallClock: a timestamp without zone (kind kTimestamp). kTime: time of day in microseconds
/// (kind kLong). kUuid: 16 bytes (kind kString).
enum class FieldDetail : uint8_t { kNone, kUntyped, kWallClock, kTime, kUuid };

struct Field;

/// Type of a field. A value.
struct FieldType {
  FieldKind kind = FieldKind::kString;
  FieldDetail detail = FieldDetail::kNone;
  int precision = 0;            // kDecimal: 1..38.
  int scale = 0;                // kDecimal: 0..precision.
  std::vector<Field> children;  // kStruct: members; kArray: [element]; kMap: [key, value].
  friend bool operator==(const FieldType&, const FieldType&) = default;
};

struct Field {
  std::string name;
  FieldType type;
  bool nullable = true;
  friend bool operator==(const Field&, const Field&) = default;
};

/// "BOOLEAN", "BYTE", …: names of the dataset schema API.
std::string_view FieldKindName(FieldKind kind);
/// Errors: kInvalidArgument.
Result<FieldKind> ParseFieldKind(std::string_view name);

/// Reads a declared type: boolean int long float double decimal(p,s) string binary date time
/// timestamp timestamptz uuid array<…> struct<a: …, b: …> map<…, …>, in any case. `timestamp` has
/// no zone. Names in struct may be quoted with `"` or '`'. Errors: kInvalidArgument naming the
/// position.
Result<FieldType> ParseTypeName(std::string_view text);
/// The inverse of ParseTypeName.
std::string FormatTypeName(const FieldType& type);

/// The Arrow type that columns of this type have in our files: int8 int16 int32 int64 float double
/// decimal128 utf8 map list struct binary date32 timestamp[us, UTC]; kWallClock: timestamp[us];
/// kTime: time64[us]; kUuid: arrow.uuid.
std::shared_ptr<arrow::DataType> ToArrowType(const FieldType& type);
/// Nullable, with metadata {"tarn.untyped": "true"} for kUntyped.
std::shared_ptr<arrow::Field> ToArrowField(const Field& field);
std::shared_ptr<arrow::Schema> ToArrowSchema(const std::vector<Field>& fields);

/// The nearest type that loses nothing: unsigned types get the next larger signed type (uint64:
/// DECIMAL(20, 0)), large and view types their plain ones, dictionaries their values, timestamps in
/// other units TIMESTAMP, null STRING (kUntyped). Errors: kUnimplemented naming the type (unions,
/// intervals, decimals beyond 38 digits).
Result<FieldType> FromArrowType(const arrow::DataType& type);
Result<std::vector<Field>> FromArrowSchema(const arrow::Schema& schema);

/// JSON text of fields, for storage beside a schema: [{"name":…,"type":…,"nullable":…,…}].
std::string EncodeFields(const std::vector<Field>& fields);
/// Errors: kInvalidArgument.
Result<std::vector<Field>> DecodeFields(std::string_view json);

/// The narrowest type that holds every value of both without loss: BYTE < SHORT < INTEGER < LONG <
/// DECIMAL(38, 0); FLOAT < DOUBLE; LONG with DOUBLE is DOUBLE; decimals widen to hold both, structs
/// member by member (names without regard to case), arrays by element, anything else STRING.
FieldType WidenType(const FieldType& a, const FieldType& b);

}  // namespace tarn::format
