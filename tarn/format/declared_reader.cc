// ReadDeclared of value_reader.h: JSON values into columns whose types the user declared.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "tarn/format/base64.h"
#include "tarn/format/json_escape.h"
#include "tarn/format/time_text.h"
#include "tarn/format/value_reader.h"

namespace tarn::format {

namespace {

bool Mismatch(ReadContext& context, JsonValue value, std::string_view expected) {
  std::string_view text = value.text();
  std::string shown(text.substr(0, 60));
  while (!shown.empty() && (static_cast<unsigned char>(shown.back()) & 0xc0U) == 0x80 &&
         text.size() > 60) {
    shown.pop_back();
  }
  context.mismatch = shown + (text.size() > 60 ? "…" : "") + " is no " + std::string(expected);
  return false;
}

// Number text of a number, or of a string that holds nothing but a JSON number.
std::optional<std::string_view> NumberText(JsonValue value, JsonTape& tape) {
  if (value.kind() == JsonKind::kNumber) {
    return value.number_text();
  }
  if (value.is_string() && value.string().size() <= 400 && tape.Parse(value.string()).ok() &&
      tape.root().kind() == JsonKind::kNumber) {
    return tape.root().number_text();
  }
  return std::nullopt;
}

// The value as an integer, also when written 5.0 or 5e3; nothing when it has a fraction.
std::optional<int64_t> IntegerOf(std::string_view text) {
  int64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec == std::errc() && read.ptr == text.data() + text.size()) {
    return value;
  }
  const ExactDecimal exact = ReadDecimal(text);
  if (!exact.fits || exact.unscaled % PowerOfTen(exact.scale) != 0) {
    return std::nullopt;
  }
  const Int128 whole = exact.unscaled / PowerOfTen(exact.scale);
  if (whole > INT64_MAX || whole < INT64_MIN) {
    return std::nullopt;
  }
  return static_cast<int64_t>(whole);
}

bool ReadInteger(ReadContext& context, ColumnNode& node, JsonValue value) {
  const bool is_long = node.kind == ColumnKind::kLong;
  const auto text = NumberText(value, context.Tape());
  const auto number = text.has_value() ? IntegerOf(*text) : std::nullopt;
  if (!number.has_value() || (!is_long && (*number > INT32_MAX || *number < INT32_MIN))) {
    return Mismatch(context, value, is_long ? "long" : "int");
  }
  if (is_long) {
    node.PushValue<int64_t>(*number);
  } else {
    node.PushValue<int32_t>(static_cast<int32_t>(*number));
  }
  return true;
}

bool ReadReal(ReadContext& context, ColumnNode& node, JsonValue value) {
  const bool is_double = node.kind == ColumnKind::kDouble;
  double number = 0;
  bool fits = false;
  if (const auto text = NumberText(value, context.Tape()); text.has_value()) {
    const std::optional<double> nearest = ReadNearestDouble(*text);
    fits = nearest.has_value() &&
           (is_double ||
            std::fabs(*nearest) <= static_cast<double>(std::numeric_limits<float>::max()));
    number = nearest.value_or(0);
  } else if (value.is_string()) {
    const std::string_view name = value.string();
    fits = name == "NaN" || name == "Infinity" || name == "-Infinity";
    number = name == "NaN"        ? std::numeric_limits<double>::quiet_NaN()
             : name == "Infinity" ? std::numeric_limits<double>::infinity()
                                  : -std::numeric_limits<double>::infinity();
  }
  if (!fits) {
    return Mismatch(context, value, is_double ? "double" : "float");
  }
  if (is_double) {
    node.PushValue<double>(number);
  } else {
    node.PushValue<float>(static_cast<float>(number));
  }
  return true;
}

bool ReadDecimalValue(ReadContext& context, ColumnNode& node, JsonValue value) {
  const auto text = NumberText(value, context.Tape());
  if (text.has_value()) {
    const ExactDecimal exact = ReadDecimal(*text);
    if (exact.fits) {
      Int128 unscaled = exact.unscaled;
      int scale = exact.scale;
      while (scale > node.scale && unscaled % 10 == 0) {
        unscaled /= 10;
        --scale;
      }
      const auto scaled =
          scale <= node.scale ? Rescale(unscaled, node.scale - scale) : std::nullopt;
      if (scaled.has_value() && (*scaled == 0 || DigitCount(*scaled) <= node.precision)) {
        node.PushValue<Int128>(*scaled);
        return true;
      }
    }
  }
  return Mismatch(
      context, value,
      "decimal(" + std::to_string(node.precision) + "," + std::to_string(node.scale) + ")");
}

bool ReadUuid(std::string_view text, std::string& out) {
  out.clear();
  int digits = 0;
  unsigned byte = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '-' && text.size() == 36 && (i == 8 || i == 13 || i == 18 || i == 23)) {
      continue;
    }
    unsigned nibble = 0;
    if (c >= '0' && c <= '9') {
      nibble = static_cast<unsigned>(c - '0');
    } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
      nibble = static_cast<unsigned>((c | 0x20) - 'a' + 10);
    } else {
      return false;
    }
    byte = byte << 4U | nibble;
    if (++digits % 2 == 0) {
      out.push_back(static_cast<char>(byte & 0xffU));
    }
  }
  return digits == 32 && (text.size() == 32 || text.size() == 36);
}

bool ReadTimeValue(ReadContext& context, ColumnNode& node, JsonValue value) {
  const std::string_view text = value.is_string() ? value.string() : std::string_view();
  switch (node.kind) {
    case ColumnKind::kDate:
      if (const auto days = ReadDate(text); days.has_value()) {
        node.PushValue<int32_t>(*days);
        return true;
      }
      return Mismatch(context, value, "date");
    case ColumnKind::kTime:
      if (const auto micros = ReadTime(text); micros.has_value()) {
        node.PushValue<int64_t>(*micros);
        return true;
      }
      return Mismatch(context, value, "time");
    default: {
      const bool instant = node.kind == ColumnKind::kInstant;
      const auto timestamp = ReadTimestamp(text);
      if (timestamp.has_value() && timestamp->has_zone == instant) {
        node.PushValue<int64_t>(timestamp->micros);
        return true;
      }
      return Mismatch(context, value,
                      instant ? "timestamp with a zone" : "timestamp without a zone");
    }
  }
}

bool ReadBinaryValue(ReadContext& context, ColumnNode& node, JsonValue value) {
  context.scratch.clear();
  if (!value.is_string() ||
      !(node.kind == ColumnKind::kUuid ? ReadUuid(value.string(), context.scratch)
                                       : DecodeBase64(value.string(), context.scratch))) {
    return Mismatch(context, value, node.kind == ColumnKind::kUuid ? "uuid" : "Base64 text");
  }
  AppendCell(context, node, {.kind = node.kind, .bytes = context.scratch});
  return true;
}

bool ReadBoolean(ReadContext& context, ColumnNode& node, JsonValue value) {
  const bool is_text = value.is_string();
  const std::string_view text = is_text ? value.string() : value.text();
  if ((value.kind() != JsonKind::kBoolean && !is_text) || (text != "true" && text != "false")) {
    return Mismatch(context, value, "boolean");
  }
  node.PushValue<uint8_t>(text == "true" ? 1 : 0);
  return true;
}

bool ReadStructValue(ReadContext& context, ColumnNode& node, JsonValue value) {
  if (!value.is_object()) {
    return Mismatch(context, value, "object");
  }
  const int64_t row = node.length;
  for (const JsonMember member : value.members()) {
    ColumnNode* field = node.FindMember(member.name);
    if (field == nullptr) {
      ++context.counters.ignored_members;
      continue;
    }
    if (field->length > row) {
      ++context.counters.repeated_members;
      field->Truncate(row);
    }
    field->FillNulls(row);
    if (!ReadDeclared(context, *field, member.value)) {
      context.mismatch = "member " + field->name + ": " + context.mismatch;
      return false;
    }
  }
  node.MarkValid();
  return true;
}

bool ReadListValue(ReadContext& context, ColumnNode& node, JsonValue value) {
  if (!value.is_array()) {
    return Mismatch(context, value, "array");
  }
  for (const JsonValue element : value.elements()) {
    if (!ReadDeclared(context, *node.children[0], element)) {
      return false;
    }
  }
  node.PushList();
  return true;
}

bool ReadMapValue(ReadContext& context, ColumnNode& node, JsonValue value) {
  if (!value.is_object()) {
    return Mismatch(context, value, "object");
  }
  for (const JsonMember& member : LastMembers(context, value)) {
    // A key is text; keys of other types are read from it.
    std::string quoted;
    AppendJsonString(member.name, quoted);
    JsonTape& tape = context.KeyTape();
    if (!tape.Parse(quoted).ok() || !ReadDeclared(context, *node.children[0], tape.root())) {
      return false;
    }
    if (!ReadDeclared(context, *node.children[1], member.value)) {
      context.mismatch = "key " + std::string(member.name) + ": " + context.mismatch;
      return false;
    }
  }
  node.PushList();
  return true;
}

}  // namespace

bool ReadDeclared(ReadContext& context, ColumnNode& node, JsonValue value) {
  if (value.is_null()) {
    node.PushNull();
    return true;
  }
  switch (node.kind) {
    case ColumnKind::kBoolean:
      return ReadBoolean(context, node, value);
    case ColumnKind::kInteger:
    case ColumnKind::kLong:
      return ReadInteger(context, node, value);
    case ColumnKind::kFloat:
    case ColumnKind::kDouble:
      return ReadReal(context, node, value);
    case ColumnKind::kDecimal:
      return ReadDecimalValue(context, node, value);
    case ColumnKind::kString:
    case ColumnKind::kUntyped:
      AppendText(context, node, value.is_string() ? value.string() : value.text());
      return true;
    case ColumnKind::kBinary:
    case ColumnKind::kUuid:
      return ReadBinaryValue(context, node, value);
    case ColumnKind::kDate:
    case ColumnKind::kTime:
    case ColumnKind::kWallClock:
    case ColumnKind::kInstant:
      return ReadTimeValue(context, node, value);
    case ColumnKind::kStruct:
      return ReadStructValue(context, node, value);
    case ColumnKind::kList:
      return ReadListValue(context, node, value);
    case ColumnKind::kMap:
      return ReadMapValue(context, node, value);
  }
  return false;
}

}  // namespace tarn::format
