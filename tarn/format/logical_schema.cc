#include "tarn/format/logical_schema.h"

#include <array>
#include <atomic>
#include <charconv>

namespace tarn::format {

namespace {

constexpr int kDepthMax = 100;

struct NamedLogical {
  std::string_view name;
  LogicalType type;
  bool instant = false;
};
// Names that fall back to their physical type are not listed: Uuid, Json, Xml, Enum, EnumSet,
// Interval, ZonedTime, Year, durations, geometry and what is unknown.
constexpr std::array<NamedLogical, 16> kNamed = {
    {{"org.apache.kafka.connect.data.Decimal", LogicalType::kDecimal},
     {"org.apache.kafka.connect.data.Date", LogicalType::kDate},
     {"org.apache.kafka.connect.data.Time", LogicalType::kTimeMillis},
     {"org.apache.kafka.connect.data.Timestamp", LogicalType::kTimestampMillis, true},
     {"io.debezium.data.VariableScaleDecimal", LogicalType::kVariableScaleDecimal},
     {"io.debezium.time.Date", LogicalType::kDate},
     {"io.debezium.time.Time", LogicalType::kTimeMillis},
     {"io.debezium.time.MicroTime", LogicalType::kTimeMicros},
     {"io.debezium.time.NanoTime", LogicalType::kTimeNanos},
     {"io.debezium.time.Timestamp", LogicalType::kTimestampMillis},
     {"io.debezium.time.MicroTimestamp", LogicalType::kTimestampMicros},
     {"io.debezium.time.NanoTimestamp", LogicalType::kTimestampNanos},
     {"io.debezium.time.ZonedTimestamp", LogicalType::kZonedTimestamp},
     {"io.debezium.time.IsoDate", LogicalType::kIsoDate},
     {"io.debezium.time.IsoTimestamp", LogicalType::kIsoTimestamp},
     {"io.debezium.data.Bits", LogicalType::kBytes}}};

struct NamedPhysical {
  std::string_view name;
  LogicalType type;
};
constexpr std::array<NamedPhysical, 14> kPhysical = {{{"boolean", LogicalType::kBoolean},
                                                      {"int8", LogicalType::kInteger},
                                                      {"int16", LogicalType::kInteger},
                                                      {"int32", LogicalType::kInteger},
                                                      {"int64", LogicalType::kLong},
                                                      {"float", LogicalType::kFloat},
                                                      {"float32", LogicalType::kFloat},
                                                      {"double", LogicalType::kDouble},
                                                      {"float64", LogicalType::kDouble},
                                                      {"string", LogicalType::kString},
                                                      {"bytes", LogicalType::kBytes},
                                                      {"array", LogicalType::kArray},
                                                      {"map", LogicalType::kMap},
                                                      {"struct", LogicalType::kStruct}}};

std::string_view TextOf(JsonValue object, std::string_view name) {
  const JsonValue value = object.Find(name);
  return value && value.is_string() ? value.string() : std::string_view();
}

// A number in the parameters of a schema, where Connect writes numbers as text.
int Parameter(JsonValue schema, std::string_view name) {
  const JsonValue parameters = schema.Find("parameters");
  if (!parameters || !parameters.is_object()) {
    return 0;
  }
  const std::string_view text = TextOf(parameters, name);
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

LogicalField FieldOf(JsonValue schema, int depth);

std::vector<LogicalField> MembersOf(JsonValue schema, int depth) {
  std::vector<LogicalField> members;
  const JsonValue fields = schema.Find("fields");
  if (fields && fields.is_array()) {
    for (const JsonValue field : fields.elements()) {
      if (field.is_object()) {
        members.push_back(FieldOf(field, depth + 1));
      }
    }
  }
  return members;
}

LogicalField FieldOf(JsonValue schema, int depth) {
  LogicalField field{.name = std::string(TextOf(schema, "field"))};
  if (depth > kDepthMax) {
    return field;
  }
  const std::string_view logical = TextOf(schema, "name");
  for (const NamedLogical& named : kNamed) {
    if (named.name == logical) {
      field.type = named.type;
      field.instant = named.instant;
      field.scale = Parameter(schema, "scale");
      field.precision = Parameter(schema, "connect.decimal.precision");
      return field;
    }
  }
  const std::string_view physical = TextOf(schema, "type");
  for (const NamedPhysical& named : kPhysical) {
    if (named.name == physical) {
      field.type = named.type;
    }
  }
  if (field.type == LogicalType::kStruct) {
    field.children = MembersOf(schema, depth);
  } else if (field.type == LogicalType::kArray || field.type == LogicalType::kMap) {
    const JsonValue element = schema.Find(field.type == LogicalType::kArray ? "items" : "values");
    if (element && element.is_object()) {
      field.children.push_back(FieldOf(element, depth + 1));
    } else {
      field.type = LogicalType::kInferred;
    }
  }
  return field;
}

}  // namespace

std::shared_ptr<const LogicalSchema> ParseConnectSchema(JsonValue schema) {
  static std::atomic<uint64_t> next_id{1};
  if (!schema || !schema.is_object() || TextOf(schema, "type") != "struct") {
    return nullptr;
  }
  auto result = std::make_shared<LogicalSchema>();
  result->id = next_id.fetch_add(1);
  result->fields = MembersOf(schema, 0);
  return result;
}

}  // namespace tarn::format
