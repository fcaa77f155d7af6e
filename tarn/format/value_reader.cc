#include "tarn/format/value_reader.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "tarn/format/time_text.h"

namespace tarn::format {

namespace {

constexpr int kDigitsMax = 38;
constexpr int64_t kDoubleIntegerMax = 1LL << 53U;
constexpr int64_t kFifteenDigits = 1'000'000'000'000'000;

using Kind = JsonNode::Kind;

uint64_t Magnitude(int64_t value) {
  return value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

bool IsNested(ColumnKind kind) {
  return kind == ColumnKind::kStruct || kind == ColumnKind::kList || kind == ColumnKind::kMap;
}

// Makes `node` a string column. Nested values and inferred times are lost by that and must be read
// again.
void BecomeString(ReadContext& context, ColumnNode& node) {
  if (node.kind == ColumnKind::kUntyped) {
    node.Adopt(ColumnKind::kString);
  } else if (IsNested(node.kind) || node.keeps_raw) {
    const int64_t rows = node.length;
    node.Reset();
    node.FillNulls(rows);
    node.Adopt(ColumnKind::kString);
    context.conflict = true;
  } else if (node.kind != ColumnKind::kString) {
    node.ConvertToString();
  }
}

void PushLong(ColumnNode& node, int64_t value) {
  node.integer_max = std::max(node.integer_max, Magnitude(value));
  node.PushValue(value);
}

void PushDouble(ColumnNode& node, double value) {
  const double magnitude = std::fabs(value);
  node.real_max = magnitude > node.real_max && std::isfinite(value) ? magnitude : node.real_max;
  node.PushValue(value);
}

bool IsNumber(ColumnKind kind) {
  return kind == ColumnKind::kInteger || kind == ColumnKind::kLong || kind == ColumnKind::kFloat ||
         kind == ColumnKind::kDouble || kind == ColumnKind::kDecimal;
}

ExactDecimal DecimalOf(int64_t value) {
  return {
      .fits = true, .unscaled = value, .scale = 0, .integer_digits = DigitCount(Magnitude(value))};
}

// Appends an integer to a column that is not kLong.
void AppendInteger(ReadContext& context, ColumnNode& node, int64_t value, std::string_view text) {
  switch (node.kind) {
    case ColumnKind::kUntyped:
      node.Adopt(ColumnKind::kLong);
      PushLong(node, value);
      return;
    case ColumnKind::kLong:
      PushLong(node, value);
      return;
    case ColumnKind::kInteger:
      node.ConvertToLong();
      PushLong(node, value);
      return;
    case ColumnKind::kFloat:
      node.ConvertToDouble();
      [[fallthrough]];
    case ColumnKind::kDouble:
      if (context.numbers == NumberMode::kDouble ||
          (value <= kDoubleIntegerMax && value >= -kDoubleIntegerMax)) {
        PushDouble(node, static_cast<double>(value));
        return;
      }
      [[fallthrough]];
    case ColumnKind::kDecimal:
      AppendExactDecimal(context, node, DecimalOf(value), text);
      return;
    default:
      AppendText(context, node, text);
  }
}

// Appends a fraction whose double says the same as its text.
void AppendDouble(ReadContext& context, ColumnNode& node, double value, int scale,
                  std::string_view text) {
  switch (node.kind) {
    case ColumnKind::kUntyped:
      node.Adopt(ColumnKind::kDouble);
      break;
    case ColumnKind::kInteger:
    case ColumnKind::kLong:
      if (context.numbers == NumberMode::kExact && !node.ExactInDouble()) {
        AppendExactDecimal(context, node, ReadDecimal(text), text);
        return;
      }
      node.ConvertToDouble();
      break;
    case ColumnKind::kFloat:
      node.ConvertToDouble();
      break;
    case ColumnKind::kDouble:
      break;
    case ColumnKind::kDecimal:
      AppendExactDecimal(context, node, ReadDecimal(text), text);
      return;
    default:
      AppendText(context, node, text);
      return;
  }
  node.fraction_digits = std::max(node.fraction_digits, scale);
  PushDouble(node, value);
}

// Any number that is not a small integer or a short fraction.
void AppendLongNumber(ReadContext& context, ColumnNode& node, std::string_view text) {
  if (node.kind != ColumnKind::kUntyped && !IsNumber(node.kind)) {
    AppendText(context, node, text);
    return;
  }
  if (context.numbers == NumberMode::kDouble) {
    const std::optional<double> nearest = ReadNearestDouble(text);
    if (nearest.has_value() && node.kind != ColumnKind::kDecimal) {
      AppendDouble(context, node, *nearest, 0, text);
      return;
    }
  }
  const ExactDecimal exact = ReadDecimal(text);
  const bool integral = text.find_first_of(".eE") == std::string_view::npos;
  if (!integral) {
    const std::optional<double> value = ReadExactDouble(text);
    if (value.has_value()) {
      AppendDouble(context, node, *value, exact.scale, text);
      return;
    }
  }
  AppendExactDecimal(context, node, exact, text);
}

void AppendFraction(ReadContext& context, ColumnNode& node, const JsonNode& number,
                    std::string_view text) {
  const auto scale = static_cast<int>(number.size >> 16U);
  if (number.integer < kFifteenDigits && number.integer > -kFifteenDigits &&
      (number.integer != 0 || text[0] != '-')) {
    const double value = SmallDecimalToDouble(number.integer, scale);
    if (node.kind == ColumnKind::kDouble) {
      node.fraction_digits = std::max(node.fraction_digits, scale);
      PushDouble(node, value);
    } else {
      AppendDouble(context, node, value, scale, text);
    }
    return;
  }
  AppendLongNumber(context, node, text);
}

void AppendString(ReadContext& context, ColumnNode& node, std::string_view text) {
  if (!context.infer_times || node.kind == ColumnKind::kString || IsNumber(node.kind) ||
      IsNested(node.kind) || node.kind == ColumnKind::kBoolean) {
    AppendText(context, node, text);
    return;
  }
  Cell cell;
  if (const auto date = ReadDate(text); date.has_value() && text.back() != 'Z') {
    cell = {.kind = ColumnKind::kDate, .integer = *date};
  } else if (const auto timestamp = ReadTimestamp(text); timestamp.has_value()) {
    cell = {.kind = timestamp->has_zone ? ColumnKind::kInstant : ColumnKind::kWallClock,
            .integer = timestamp->micros};
  }
  if (cell.kind == ColumnKind::kUntyped ||
      (node.kind != cell.kind && node.kind != ColumnKind::kUntyped)) {
    AppendText(context, node, text);
    return;
  }
  if (node.kind == ColumnKind::kUntyped) {
    node.keeps_raw = true;
  }
  AppendCell(context, node, cell);
}

void ReadObject(ReadContext& context, ColumnNode& node, JsonValue value, int depth) {
  size_t hint = 0;
  const int64_t row = node.length;
  for (const JsonMember member : value.members()) {
    ColumnNode* field = MemberColumn(context, node, hint, member.name);
    if (field == nullptr) {
      BecomeString(context, node);
      node.PushBytes(value.text());
      return;
    }
    if (field->length > row) {
      ++context.counters.repeated_members;
      field->Truncate(row);
    } else if (field->length < row) {
      field->FillNulls(row);
    }
    ReadInferred(context, *field, member.value, depth + 1);
  }
  node.MarkValid();
}

}  // namespace

void AppendText(ReadContext& context, ColumnNode& node, std::string_view text) {
  if (node.kind != ColumnKind::kString) {
    BecomeString(context, node);
  }
  node.PushBytes(text);
}

void AppendExactDecimal(ReadContext& context, ColumnNode& node, const ExactDecimal& number,
                        std::string_view text) {
  const int scale = std::max(
      {node.kind == ColumnKind::kDecimal ? node.scale : node.fraction_digits, number.scale, 0});
  int integer_digits = number.integer_digits;
  if (node.kind != ColumnKind::kUntyped) {
    integer_digits = std::max(integer_digits, node.IntegerDigits());
  }
  if (!number.fits || integer_digits + scale > kDigitsMax) {
    AppendText(context, node, text);
    return;
  }
  if (node.kind == ColumnKind::kUntyped) {
    node.Adopt(ColumnKind::kDecimal);
    node.precision = kDigitsMax;
    node.scale = scale;
  } else if (node.kind != ColumnKind::kDecimal || node.scale != scale ||
             integer_digits > node.precision - node.scale) {
    node.ConvertToDecimal(kDigitsMax, scale);
  }
  node.integer_digits = integer_digits;
  node.fraction_digits = scale;
  node.exact_in_double = false;
  node.PushValue<Int128>(number.unscaled * PowerOfTen(scale - number.scale));
}

namespace {

void AppendDecimalCell(ReadContext& context, ColumnNode& node, const Cell& cell) {
  const ExactDecimal exact{.fits = true,
                           .unscaled = cell.decimal,
                           .scale = cell.scale,
                           .integer_digits = std::max(DigitCount(cell.decimal) - cell.scale, 0)};
  if (node.kind == cell.kind && node.scale == cell.scale &&
      exact.integer_digits <= node.precision - node.scale) {
    node.integer_digits = std::max(node.integer_digits, exact.integer_digits);
    node.PushValue<Int128>(cell.decimal);
  } else if (IsNumber(node.kind)) {
    AppendExactDecimal(context, node, exact, TextOf(cell));
  } else {
    AppendText(context, node, TextOf(cell));
  }
}

void AppendRealCell(ReadContext& context, ColumnNode& node, const Cell& cell) {
  if (cell.kind == ColumnKind::kFloat && node.kind == ColumnKind::kFloat) {
    node.PushValue(static_cast<float>(cell.real));
  } else if (node.kind == ColumnKind::kDouble) {
    PushDouble(node, cell.real);
  } else if (!std::isfinite(cell.real)) {
    AppendText(context, node, TextOf(cell));
  } else {
    const std::string text = TextOf(cell);
    AppendDouble(context, node, cell.real, ReadDecimal(text).scale, text);
  }
}

// Appends to a column of the cell's own kind.
void PushSame(ColumnNode& node, const Cell& cell) {
  switch (cell.kind) {
    case ColumnKind::kBoolean:
      node.PushValue(static_cast<uint8_t>(cell.integer));
      return;
    case ColumnKind::kInteger:
      node.integer_max = std::max(node.integer_max, Magnitude(cell.integer));
      node.PushValue(static_cast<int32_t>(cell.integer));
      return;
    case ColumnKind::kDate:
      node.PushValue(static_cast<int32_t>(cell.integer));
      return;
    case ColumnKind::kUuid:
      node.values.PushBytes(cell.bytes.data(), cell.bytes.size());
      node.MarkValid();
      return;
    case ColumnKind::kString:
    case ColumnKind::kBinary:
      node.PushBytes(cell.bytes);
      return;
    default:
      node.PushValue(cell.integer);
      return;
  }
}

}  // namespace

void AppendCell(ReadContext& context, ColumnNode& node, const Cell& cell) {
  if (cell.kind == ColumnKind::kUntyped) {
    node.PushNull();
    return;
  }
  if (node.kind == ColumnKind::kUntyped) {
    node.Adopt(cell.kind);
    node.precision = cell.precision == 0 ? kDigitsMax : cell.precision;
    node.scale = cell.scale;
  }
  switch (cell.kind) {
    case ColumnKind::kLong:
      if (node.kind == cell.kind) {
        PushLong(node, cell.integer);
      } else {
        AppendInteger(context, node, cell.integer, TextOf(cell));
      }
      return;
    case ColumnKind::kInteger:
      if (node.kind == cell.kind) {
        PushSame(node, cell);
      } else {
        AppendInteger(context, node, cell.integer, TextOf(cell));
      }
      return;
    case ColumnKind::kFloat:
    case ColumnKind::kDouble:
      AppendRealCell(context, node, cell);
      return;
    case ColumnKind::kDecimal:
      AppendDecimalCell(context, node, cell);
      return;
    default:
      if (node.kind == cell.kind) {
        PushSame(node, cell);
      } else {
        AppendText(context, node, TextOf(cell));
      }
  }
}

void ReadInferred(ReadContext& context, ColumnNode& node, JsonValue value, int depth) {
  const JsonNode& json = value.node();
  switch (json.kind()) {
    case Kind::kNull:
      node.PushNull();
      return;
    case Kind::kFalse:
    case Kind::kTrue:
      if (node.kind == ColumnKind::kUntyped) {
        node.Adopt(ColumnKind::kBoolean);
      }
      if (node.kind == ColumnKind::kBoolean) {
        node.PushValue<uint8_t>(json.kind() == Kind::kTrue ? 1 : 0);
      } else {
        AppendText(context, node, value.text());
      }
      return;
    case Kind::kInteger:
      if (node.kind == ColumnKind::kLong) [[likely]] {
        PushLong(node, json.integer);
      } else {
        AppendInteger(context, node, json.integer, value.number_text());
      }
      return;
    case Kind::kDecimal:
      AppendFraction(context, node, json, value.number_text());
      return;
    case Kind::kNumber:
      AppendLongNumber(context, node, value.number_text());
      return;
    case Kind::kString:
    case Kind::kEscapedString:
      if (node.kind == ColumnKind::kString) [[likely]] {
        node.PushBytes(value.string());
      } else {
        AppendString(context, node, value.string());
      }
      return;
    case Kind::kArray:
    case Kind::kObject:
      break;
  }
  const bool object = json.kind() == Kind::kObject;
  const ColumnKind wanted = object ? ColumnKind::kStruct : ColumnKind::kList;
  if (node.kind == ColumnKind::kUntyped && depth < context.nesting_max) {
    node.Adopt(wanted);
  }
  if (node.kind != wanted) {
    AppendText(context, node, value.text());
  } else if (object) {
    ReadObject(context, node, value, depth);
  } else {
    for (const JsonValue element : value.elements()) {
      ReadInferred(context, *node.children[0], element, depth + 1);
    }
    node.PushList();
  }
}

std::string WithoutNuls(std::string_view name) {
  std::string kept(name);
  std::replace(kept.begin(), kept.end(), '\0', '_');
  return kept;
}

ColumnNode* LookUpMember(ReadContext& context, ColumnNode& parent, size_t& hint,
                         std::string_view name) {
  const auto found = parent.spelling_index.find(name);
  if (found != parent.spelling_index.end()) {
    hint = found->second + 1U;
    return parent.spellings[found->second].node;
  }
  const std::string column_name = WithoutNuls(name);
  context.counters.renamed_columns += column_name != name ? 1 : 0;
  ColumnNode* node = parent.AddMember(name, column_name, context.struct_fields_max);
  hint = parent.spellings.size();
  return node;
}

std::vector<JsonMember> LastMembers(ReadContext& context, JsonValue object) {
  std::vector<JsonMember> members;
  std::unordered_map<std::string_view, size_t> places;
  for (const JsonMember member : object.members()) {
    const auto [place, added] = places.emplace(member.name, members.size());
    if (added) {
      members.push_back(member);
    } else {
      ++context.counters.repeated_members;
      members[place->second] = member;
    }
  }
  return members;
}

const LogicalField* FindField(const std::vector<LogicalField>& fields, size_t& hint,
                              std::string_view name) {
  for (size_t i = 0; i < fields.size(); ++i) {
    const size_t at = hint + i < fields.size() ? hint + i : hint + i - fields.size();
    if (fields[at].name == name) {
      hint = at + 1;
      return &fields[at];
    }
  }
  return nullptr;
}

}  // namespace tarn::format
