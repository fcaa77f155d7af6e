// ReadLogical of value_reader.h: JSON values whose types the record's own schema states.
#include <algorithm>
#include <cstdlib>
#include <limits>

#include "tarn/format/base64.h"
#include "tarn/format/time_text.h"
#include "tarn/format/value_reader.h"

namespace tarn::format {

namespace {

constexpr int64_t kDayMicros = 86'400'000'000;

// What Debezium sends for PostgreSQL's infinite dates: the largest and smallest int32 of days since
// 2000, wrapped around when moved to 1970.
constexpr int64_t kInfiniteDate = -2147472692;
constexpr int64_t kInfinitePastDate = -2147472691;
// The PostgreSQL driver's infinite timestamps in milliseconds; Debezium also sends them unscaled as
// microseconds, and divided by a thousand as milliseconds.
constexpr int64_t kInfinite = 9223372036825200000;
constexpr int64_t kInfinitePast = -9223372036832400000;

bool IsInfinite(int64_t value) {
  return value == kInfinite || value == kInfinitePast || value == kInfinite / 1000 ||
         value == kInfinitePast / 1000 || value == std::numeric_limits<int64_t>::max() ||
         value == std::numeric_limits<int64_t>::min();
}

bool IsInfinityText(std::string_view text) { return text == "infinity" || text == "-infinity"; }

void AppendNulled(ReadContext& context, ColumnNode& node) {
  ++context.counters.nulled_values;
  node.PushNull();
}

// One of the two is 1.
struct TimeUnit {
  int64_t micros_per_unit = 1;
  int64_t units_per_micro = 1;
};

TimeUnit UnitOf(LogicalType type) {
  switch (type) {
    case LogicalType::kTimeMillis:
    case LogicalType::kTimestampMillis:
      return {.micros_per_unit = 1000};
    case LogicalType::kTimeNanos:
    case LogicalType::kTimestampNanos:
      return {.units_per_micro = 1000};
    default:
      return {};
  }
}

void ReadTimestampNumber(ReadContext& context, ColumnNode& node, const LogicalField& field,
                         int64_t value) {
  const TimeUnit unit = UnitOf(field.type);
  int64_t micros = 0;
  if (IsInfinite(value) || __builtin_mul_overflow(value, unit.micros_per_unit, &micros)) {
    AppendNulled(context, node);
    return;
  }
  int64_t rest = micros % unit.units_per_micro;
  micros /= unit.units_per_micro;
  if (rest < 0) {
    rest += unit.units_per_micro;
    --micros;
  }
  if (rest != 0) {
    AppendText(context, node, FormatTimestampNanos(micros, static_cast<int>(rest), field.instant));
    return;
  }
  AppendCell(
      context, node,
      {.kind = field.instant ? ColumnKind::kInstant : ColumnKind::kWallClock, .integer = micros});
}

void ReadTimeNumber(ReadContext& context, ColumnNode& node, const LogicalField& field,
                    int64_t value) {
  const TimeUnit unit = UnitOf(field.type);
  int64_t micros = 0;
  if (__builtin_mul_overflow(value, unit.micros_per_unit, &micros)) {
    AppendNulled(context, node);
    return;
  }
  const int64_t rest = micros % unit.units_per_micro;
  micros /= unit.units_per_micro;
  if (rest != 0 || micros < 0 || micros >= kDayMicros) {
    // MySQL's TIME spans more than a day; 100 ns steps have no place in microseconds.
    std::string text = FormatTime(micros);
    if (rest != 0) {
      text = FormatTimestampNanos(micros, static_cast<int>(std::abs(rest)), false).substr(11);
    }
    AppendText(context, node, text);
    return;
  }
  AppendCell(context, node, {.kind = ColumnKind::kTime, .integer = micros});
}

void ReadDateNumber(ReadContext& context, ColumnNode& node, int64_t days) {
  if (days == kInfiniteDate || days == kInfinitePastDate ||
      days > std::numeric_limits<int32_t>::max() || days < std::numeric_limits<int32_t>::min()) {
    AppendNulled(context, node);
    return;
  }
  AppendCell(context, node, {.kind = ColumnKind::kDate, .integer = days});
}

// Appends bytes of a decimal: exactly, or as text where 38 digits do not do.
bool ReadDecimalBytes(ReadContext& context, ColumnNode& node, std::string_view base64, int scale,
                      int precision) {
  context.scratch.clear();
  if (!DecodeBase64(base64, context.scratch)) {
    return false;
  }
  const std::optional<Int128> unscaled = ReadBigEndian(context.scratch);
  if (!unscaled.has_value() || scale < 0 || scale > 38) {
    AppendText(context, node, FormatBigEndian(context.scratch, scale));
    return true;
  }
  AppendCell(context, node,
             {.kind = ColumnKind::kDecimal,
              .scale = scale,
              .precision = precision == 0 ? 0 : std::max(precision, scale),
              .decimal = *unscaled});
  return true;
}

// {"scale": n, "value": base64}.
bool ReadVariableDecimal(ReadContext& context, ColumnNode& node, JsonValue value) {
  const JsonValue scale = value.is_object() ? value.Find("scale") : JsonValue();
  const JsonValue bytes = value.is_object() ? value.Find("value") : JsonValue();
  if (!scale || !bytes || !bytes.is_string() || scale.kind() != JsonKind::kNumber ||
      !scale.int64().has_value() || std::abs(*scale.int64()) > 100'000) {
    return false;
  }
  context.scratch.clear();
  if (!DecodeBase64(bytes.string(), context.scratch)) {
    return false;
  }
  const int places = static_cast<int>(*scale.int64());
  const std::string text = FormatBigEndian(context.scratch, places);
  const ExactDecimal exact = ReadDecimal(text);
  if (exact.fits && (node.kind == ColumnKind::kUntyped || node.kind == ColumnKind::kDecimal)) {
    AppendExactDecimal(context, node, exact, text);
  } else {
    AppendText(context, node, text);
  }
  return true;
}

bool ReadIsoText(ReadContext& context, ColumnNode& node, const LogicalField& field,
                 std::string_view text) {
  if (IsInfinityText(text)) {
    AppendNulled(context, node);
    return true;
  }
  if (field.type == LogicalType::kIsoDate) {
    const auto days = ReadDate(text);
    if (days.has_value()) {
      AppendCell(context, node, {.kind = ColumnKind::kDate, .integer = *days});
    }
    return days.has_value();
  }
  const auto timestamp = ReadTimestamp(text);
  if (!timestamp.has_value() ||
      (field.type == LogicalType::kZonedTimestamp && !timestamp->has_zone)) {
    return false;
  }
  AppendCell(context, node,
             {.kind = field.type == LogicalType::kZonedTimestamp ? ColumnKind::kInstant
                                                                 : ColumnKind::kWallClock,
              .integer = timestamp->micros});
  return true;
}

bool ReadReal(ReadContext& context, ColumnNode& node, const LogicalField& field, JsonValue value) {
  std::optional<double> real;
  if (value.kind() == JsonKind::kNumber) {
    real = ReadNearestDouble(value.number_text());
  } else if (value.is_string()) {
    const std::string_view text = value.string();
    if (text == "NaN") {
      real = std::numeric_limits<double>::quiet_NaN();
    } else if (text == "Infinity" || text == "-Infinity") {
      real = text[0] == '-' ? -std::numeric_limits<double>::infinity()
                            : std::numeric_limits<double>::infinity();
    }
  }
  if (!real.has_value()) {
    return false;
  }
  AppendCell(context, node,
             {.kind = field.type == LogicalType::kFloat ? ColumnKind::kFloat : ColumnKind::kDouble,
              .real = *real});
  return true;
}

bool ReadStruct(ReadContext& context, ColumnNode& node, const LogicalField& field, JsonValue value,
                int depth) {
  if (node.kind == ColumnKind::kUntyped) {
    node.Adopt(ColumnKind::kStruct);
  }
  if (node.kind != ColumnKind::kStruct) {
    return false;
  }
  size_t hint = 0;
  size_t field_hint = 0;
  const int64_t row = node.length;
  for (const JsonMember member : value.members()) {
    ColumnNode* child = MemberColumn(context, node, hint, member.name);
    if (child == nullptr) {
      return false;
    }
    if (child->length > row) {
      ++context.counters.repeated_members;
      child->Truncate(row);
    }
    child->FillNulls(row);
    const LogicalField* typed = FindField(field.children, field_hint, member.name);
    if (typed != nullptr) {
      ReadLogical(context, *child, *typed, member.value, depth + 1);
    } else {
      ReadInferred(context, *child, member.value, depth + 1);
    }
  }
  node.MarkValid();
  return true;
}

bool ReadArray(ReadContext& context, ColumnNode& node, const LogicalField& field, JsonValue value,
               int depth) {
  if (node.kind == ColumnKind::kUntyped) {
    node.Adopt(ColumnKind::kList);
  }
  if (node.kind != ColumnKind::kList) {
    return false;
  }
  for (const JsonValue element : value.elements()) {
    ReadLogical(context, *node.children[0], field.children[0], element, depth + 1);
  }
  node.PushList();
  return true;
}

bool ReadMap(ReadContext& context, ColumnNode& node, const LogicalField& field, JsonValue value,
             int depth) {
  if (node.kind == ColumnKind::kUntyped) {
    node.Adopt(ColumnKind::kMap);
    node.children[0]->Adopt(ColumnKind::kString);
  }
  if (node.kind != ColumnKind::kMap || node.children[0]->kind != ColumnKind::kString) {
    return false;
  }
  for (const JsonMember& member : LastMembers(context, value)) {
    node.children[0]->PushBytes(member.name);
    ReadLogical(context, *node.children[1], field.children[0], member.value, depth + 1);
  }
  node.PushList();
  return true;
}

// False when the value is not of the stated form; nothing is appended then.
bool ReadNumberOf(ReadContext& context, ColumnNode& node, const LogicalField& field,
                  JsonValue value) {
  if (value.kind() != JsonKind::kNumber || !value.int64().has_value()) {
    return false;
  }
  const int64_t number = *value.int64();
  switch (field.type) {
    case LogicalType::kInteger:
      if (number > INT32_MAX || number < INT32_MIN) {
        return false;
      }
      AppendCell(context, node, {.kind = ColumnKind::kInteger, .integer = number});
      return true;
    case LogicalType::kLong:
      AppendCell(context, node, {.kind = ColumnKind::kLong, .integer = number});
      return true;
    case LogicalType::kDate:
      ReadDateNumber(context, node, number);
      return true;
    case LogicalType::kTimeMillis:
    case LogicalType::kTimeMicros:
    case LogicalType::kTimeNanos:
      ReadTimeNumber(context, node, field, number);
      return true;
    default:
      ReadTimestampNumber(context, node, field, number);
      return true;
  }
}

bool ReadBytes(ReadContext& context, ColumnNode& node, JsonValue value) {
  context.scratch.clear();
  if (!value.is_string() || !DecodeBase64(value.string(), context.scratch)) {
    return false;
  }
  AppendCell(context, node, {.kind = ColumnKind::kBinary, .bytes = context.scratch});
  return true;
}

bool TryReadLogical(ReadContext& context, ColumnNode& node, const LogicalField& field,
                    JsonValue value, int depth) {
  switch (field.type) {
    case LogicalType::kInteger:
    case LogicalType::kLong:
    case LogicalType::kDate:
    case LogicalType::kTimeMillis:
    case LogicalType::kTimeMicros:
    case LogicalType::kTimeNanos:
    case LogicalType::kTimestampMillis:
    case LogicalType::kTimestampMicros:
    case LogicalType::kTimestampNanos:
      return ReadNumberOf(context, node, field, value);
    case LogicalType::kFloat:
    case LogicalType::kDouble:
      return ReadReal(context, node, field, value);
    case LogicalType::kString:
      if (!value.is_string()) {
        return false;
      }
      AppendText(context, node, value.string());
      return true;
    case LogicalType::kBytes:
      return ReadBytes(context, node, value);
    case LogicalType::kDecimal:
      return value.is_string() &&
             ReadDecimalBytes(context, node, value.string(), field.scale, field.precision);
    case LogicalType::kVariableScaleDecimal:
      return ReadVariableDecimal(context, node, value);
    case LogicalType::kZonedTimestamp:
    case LogicalType::kIsoDate:
    case LogicalType::kIsoTimestamp:
      return value.is_string() && ReadIsoText(context, node, field, value.string());
    case LogicalType::kStruct:
      return value.is_object() && depth < context.nesting_max &&
             ReadStruct(context, node, field, value, depth);
    case LogicalType::kArray:
      return value.is_array() && depth < context.nesting_max &&
             ReadArray(context, node, field, value, depth);
    case LogicalType::kMap:
      return value.is_object() && depth < context.nesting_max &&
             ReadMap(context, node, field, value, depth);
    case LogicalType::kBoolean:
    case LogicalType::kInferred:
      break;
  }
  return false;
}

}  // namespace

void ReadLogical(ReadContext& context, ColumnNode& node, const LogicalField& field, JsonValue value,
                 int depth) {
  if (value.is_null()) {
    node.PushNull();
  } else if (!TryReadLogical(context, node, field, value, depth)) {
    if (value.is_object() && node.kind == ColumnKind::kMap) {
      AppendText(context, node, value.text());
    } else {
      ReadInferred(context, node, value, depth);
    }
  }
}

}  // namespace tarn::format
