#include "tarn/landing/message_key.h"

#include <algorithm>

#include <fmt/format.h>

#include "tarn/base/utf8.h"
#include "tarn/format/column_node.h"
#include "tarn/format/json_escape.h"

namespace tarn::landing {

namespace {

using format::JsonValue;
using format::RecordError;
using format::RecordFailure;

// Without the {schema, payload} that a converter of Kafka Connect puts around it.
JsonValue PayloadOf(JsonValue key) {
  if (key.is_object() && key.size() == 2) {
    const JsonValue payload = key.Find("payload");
    if (payload && key.Find("schema")) {
      return payload;
    }
  }
  return key;
}

}  // namespace

JsonValue MessageKey::Parse(std::string_view key) {
  return tape_.Parse(key).ok() ? tape_.root() : JsonValue();
}

void MessageKey::AddMember(std::string_view name, std::string_view value_json) {
  if (text_.size() > 1) {
    text_ += ',';
  }
  format::AppendJsonString(name, text_);
  text_ += ':';
  text_ += value_json;
}

RecordFailure MessageKey::AddKey(std::string_view key) {
  if (columns_.format == KeyColumns::Format::kString) {
    if (!IsValidUtf8(key)) {
      return {RecordError::kBadUtf8, 0, "the message key is not UTF-8"};
    }
    std::string value;
    format::AppendJsonString(key, value);
    AddMember(columns_.names.front(), value);
    return {};
  }
  const RecordFailure parsed = tape_.Parse(key);
  if (!parsed.ok()) {
    return {parsed.code, parsed.position_bytes, fmt::format("the message key: {}", parsed.text)};
  }
  const JsonValue value = PayloadOf(tape_.root());
  if (!value.is_object()) {
    if (columns_.names.size() > 1) {
      return {RecordError::kNotAnObject, 0, "the message key is no object"};
    }
    AddMember(columns_.names.front(), value.text());
    return {};
  }
  for (const std::string& name : columns_.names) {
    if (const JsonValue member = value.Find(name)) {
      AddMember(name, member.text());
    }
  }
  return {};
}

RecordFailure MessageKey::Join(const LandedMessage& message, JsonValue value) {
  text_.assign(1, '{');
  for (const format::JsonMember member : value.members()) {
    const bool of_key =
        message.has_key &&
        std::any_of(columns_.names.begin(), columns_.names.end(), [&](const std::string& name) {
          return name.size() == member.name.size() &&
                 format::FoldCase(name) == format::FoldCase(member.name);
        });
    if (!of_key) {
      AddMember(member.name, member.value.text());
    }
  }
  if (message.has_key) {
    RecordFailure added = AddKey(message.key);
    if (!added.ok()) {
      return added;
    }
  }
  text_ += '}';
  return joined_.Parse(text_);
}

}  // namespace tarn::landing
