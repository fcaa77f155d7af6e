// Type and SchemaField: the column types of the table format, versions 1 to 3.
//
// Both are plain values. A nested type owns its fields: struct = its fields, list = one field named
// "element", map = two fields named "key" and "value".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/json.h"

namespace tarn::iceberg {

enum class TypeId : uint8_t {
  kBoolean,
  kInt,
  kLong,
  kFloat,
  kDouble,
  kDecimal,
  kDate,
  kTime,
  kTimestamp,
  kTimestampTz,
  kTimestampNs,
  kTimestampTzNs,
  kString,
  kUuid,
  kFixed,
  kBinary,
  // Format version 3; known so that such tables can be read, not written by us.
  kUnknown,
  kVariant,
  kGeometry,
  kGeography,
  kStruct,
  kList,
  kMap,
};

struct SchemaField;

struct Type {
  TypeId id = TypeId::kUnknown;
  int32_t precision = 0;  // Decimal, 1..38.
  int32_t scale = 0;      // Decimal.
  int32_t length = 0;     // Fixed, bytes.
  std::string text;       // Geometry and geography: as written, e.g. "geometry(OGC:CRS84)".
  std::vector<SchemaField> fields;

  static Type Boolean();
  static Type Int();
  static Type Long();
  static Type Float();
  static Type Double();
  static Type Decimal(int32_t precision, int32_t scale);
  static Type Date();
  static Type Time();
  static Type Timestamp();
  static Type TimestampTz();
  static Type String();
  static Type Uuid();
  static Type Fixed(int32_t length);
  static Type Binary();
  static Type Struct(std::vector<SchemaField> fields);
  static Type List(int32_t element_id, Type element, bool element_required);
  static Type Map(int32_t key_id, Type key, int32_t value_id, Type value, bool value_required);

  [[nodiscard]] bool is_nested() const { return id >= TypeId::kStruct; }
  friend bool operator==(const Type& a, const Type& b);
};

/// A column, a struct member, a list element, or a map key or value.
struct SchemaField {
  int32_t id = 0;  // Unique in the table, never used again.
  std::string name;
  bool required = false;
  Type type;
  std::string doc;
  std::optional<std::string> initial_default;  // JSON text of the value; version 3.
  std::optional<std::string> write_default;
  friend bool operator==(const SchemaField&, const SchemaField&) = default;
};

/// As the specification writes it: "long", "decimal(9, 2)", "fixed[16]"; nested types as
/// "struct<1: a: optional int>", "list<string>", "map<string, long>".
std::string FormatType(const Type& type);
/// Reads the text of a primitive type. Errors: kInvalidArgument.
Result<Type> ParsePrimitiveType(std::string_view text);

/// First format version that has the type (and every type inside it).
int32_t MinFormatVersion(const Type& type);

/// True when a column may change from one primitive type to the other without rewriting files.
bool IsPromotionAllowed(const Type& from, const Type& to, int32_t format_version);

/// Bytes of the fixed-length two's complement form of a decimal, by precision 1..38.
int32_t DecimalSizeBytes(int32_t precision);

/// Type as JSON: text for primitives, an object for nested ones.
Json TypeToJson(const Type& type);
Result<Type> TypeFromJson(const Json& json);
Json SchemaFieldToJson(const SchemaField& field);
Result<SchemaField> SchemaFieldFromJson(const Json& json);

}  // namespace tarn::iceberg
