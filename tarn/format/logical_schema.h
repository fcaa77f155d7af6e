// LogicalSchema: types that a record's own schema states (Kafka Connect and Debezium), so that the
// JSON forms of decimals, dates, times and bytes become exact values instead of text and numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/format/json_tape.h"

namespace tarn::format {

/// How a JSON value is to be read. The comment names the JSON form and the column type.
enum class LogicalType : uint8_t {
  kInferred,  // Anything; as JSON without a schema.
  kBoolean,
  kInteger,  // int8, int16, int32: INTEGER.
  kLong,
  kFloat,
  kDouble,
  kString,
  kBytes,                 // Base64: BINARY.
  kDecimal,               // Base64 of a big-endian two's complement integer: DECIMAL(p, scale).
  kVariableScaleDecimal,  // {"scale": n, "value": base64}: as a JSON number, exactly.
  kDate,                  // Days since 1970-01-01: DATE.
  kTimeMillis,            // Since midnight: time of day.
  kTimeMicros,
  kTimeNanos,
  kTimestampMillis,  // Since 1970, wall clock: timestamp without zone.
  kTimestampMicros,
  kTimestampNanos,
  kZonedTimestamp,  // ISO-8601 text with offset: TIMESTAMP.
  kIsoDate,         // ISO-8601 texts of the same.
  kIsoTimestamp,
  kArray,
  kMap,  // Object of values of one type: MAP.
  kStruct,
};

/// A named, typed member; a tree.
struct LogicalField {
  std::string name;
  LogicalType type = LogicalType::kInferred;
  int precision = 0;     // kDecimal: 0 = unknown, taken as 38.
  int scale = 0;         // kDecimal.
  bool instant = false;  // kTimestamp*: a point in time (Connect's Timestamp), not a wall clock.
  std::vector<LogicalField> children;  // kStruct: members; kArray: [element]; kMap: [value].
  friend bool operator==(const LogicalField&, const LogicalField&) = default;
};

/// Members of a record. `id` tells schemas apart cheaply; it is never 0 and unique in the process.
struct LogicalSchema {
  uint64_t id = 0;
  std::vector<LogicalField> fields;
};

/// Reads a Kafka Connect schema as the JSON converter writes it ({"type":"struct","fields":[…]}).
/// Unknown logical names fall back to their physical type. Nested structs keep their nesting.
/// Returns null when `schema` is not a struct.
std::shared_ptr<const LogicalSchema> ParseConnectSchema(JsonValue schema);

}  // namespace tarn::format
