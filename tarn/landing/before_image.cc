#include "tarn/landing/before_image.h"

#include <map>

#include <arrow/api.h>

#include "tarn/format/column_node.h"
#include "tarn/format/json_escape.h"
#include "tarn/format/value_reader.h"

namespace tarn::landing {

namespace {

using format::ColumnKind;
using format::ColumnNode;
using format::JsonKind;
using format::JsonMember;
using format::JsonValue;
using format::LogicalField;
using format::LogicalType;

// True when a member of the key differs between the images.
bool KeyChanged(JsonValue before, JsonValue after, JsonValue key) {
  for (const JsonMember member : key.members()) {
    const JsonValue old = before.Find(member.name);
    const JsonValue now = after.Find(member.name);
    if (old && now && old.text() != now.text()) {
      return true;
    }
  }
  return false;
}

// True for scalars whose JSON form is not what the column shows.
bool IsEncoded(LogicalType type) {
  switch (type) {
    case LogicalType::kBytes:
    case LogicalType::kDecimal:
    case LogicalType::kVariableScaleDecimal:
    case LogicalType::kDate:
    case LogicalType::kTimeMillis:
    case LogicalType::kTimeMicros:
    case LogicalType::kTimeNanos:
    case LogicalType::kTimestampMillis:
    case LogicalType::kTimestampMicros:
    case LogicalType::kTimestampNanos:
      return true;
    default:
      return false;
  }
}

bool IsPlain(ColumnKind kind) {
  return kind != ColumnKind::kStruct && kind != ColumnKind::kList && kind != ColumnKind::kMap;
}

void AppendHex(std::string_view bytes, std::string& out) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out.push_back(kDigits[byte >> 4U]);
    out.push_back(kDigits[byte & 15U]);
  }
}

}  // namespace

struct BeforeImage::State {
  explicit State(const LandingSpec& landing_spec) : spec(landing_spec) {
    context.numbers = spec.columns.numbers;
    for (const format::Field& field : spec.columns.declared) {
      declared.emplace(format::FoldCase(field.name), field);
    }
  }

  void AppendMember(std::string_view name, JsonValue value, const LogicalField* field);
  bool AppendDeclared(const format::Field& type, JsonValue value);
  void AppendLandedValue(const ColumnNode& node);

  const LandingSpec& spec;
  format::ReadContext context;
  std::map<std::string, format::Field> declared;  // By lower-case name.
  std::string text;
};

// Appends the one value of a column.
void BeforeImage::State::AppendLandedValue(const ColumnNode& node) {
  if (node.length != 1 || (node.has_nulls && node.valid.As<uint8_t>()[0] == 0) ||
      node.kind == ColumnKind::kUntyped) {
    text += "null";
    return;
  }
  if (node.kind == ColumnKind::kBinary) {
    text.push_back('"');
    AppendHex(format::TextView(node, 0), text);
    text.push_back('"');
    return;
  }
  format::AppendJsonString(format::TextOf(node, 0), text);
}

// False when the value does not fit, as the row's would not.
bool BeforeImage::State::AppendDeclared(const format::Field& type, JsonValue value) {
  const std::unique_ptr<ColumnNode> node =
      format::NodeOf(format::ColumnSetOf({type}).columns.front());
  if (!IsPlain(node->kind) || !format::ReadDeclared(context, *node, value)) {
    return false;
  }
  AppendLandedValue(*node);
  return true;
}

void BeforeImage::State::AppendMember(std::string_view name, JsonValue value,
                                      const LogicalField* field) {
  text += text.empty() ? "{" : ",";
  format::AppendJsonString(name, text);
  text += ":";
  if (!declared.empty()) {
    const auto typed = declared.find(format::FoldCase(name));
    if (typed != declared.end() && AppendDeclared(typed->second, value)) {
      return;
    }
  }
  if (field != nullptr && IsEncoded(field->type) && !value.is_null()) {
    ColumnNode node;
    format::ReadLogical(context, node, *field, value, 0);
    if (IsPlain(node.kind)) {
      AppendLandedValue(node);
      return;
    }
  }
  const bool quoted = value.kind() == JsonKind::kNumber && !value.int64().has_value();
  text += quoted ? "\"" : "";
  text += value.text();
  text += quoted ? "\"" : "";
}

BeforeImage::BeforeImage(const LandingSpec& spec) : state_(std::make_unique<State>(spec)) {}
BeforeImage::~BeforeImage() = default;

std::string_view BeforeImage::TextOf(const DebeziumEvent& event) {
  State& state = *state_;
  state.text.clear();
  const bool update = event.operation == 'U' && event.before && event.before.is_object();
  if (!update || state.spec.cdc_before == CdcBefore::kOff) {
    return {};
  }
  const bool whole =
      state.spec.cdc_before == CdcBefore::kFull || !event.key || !event.key.is_object();
  // An update that changes the key is keyed by the new one; compare under either name.
  if (!whole && !(event.after.is_object() && KeyChanged(event.before, event.after, event.key))) {
    return {};
  }
  size_t hint = 0;
  for (const JsonMember member : event.before.members()) {
    if (!whole && !event.key.Find(member.name)) {
      continue;
    }
    const LogicalField* field =
        event.row_schema == nullptr
            ? nullptr
            : format::FindField(event.row_schema->fields, hint, member.name);
    state.AppendMember(member.name, member.value, field);
  }
  if (state.text.empty()) {
    return {};
  }
  return state.text += "}";
}

}  // namespace tarn::landing
