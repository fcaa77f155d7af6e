#include "tarn/iceberg/json.h"

#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tarn::iceberg {
namespace {

constexpr int kDepthMax = 200;

// nlohmann's parser recurses per level only when it destroys; the depth is bounded all the same.
bool IsTooDeep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDepthMax) {
        return true;
      }
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

std::string Shorten(const Json& json) {
  std::string text = DumpJson(json);
  if (text.size() > 80) {
    text.resize(77);
    text += "...";
  }
  return text;
}

}  // namespace

Result<Json> ParseJson(std::string_view text, std::string_view what) {
  if (IsTooDeep(text)) {
    return Status::InvalidArgument(fmt::format("{}: JSON nested deeper than {}", what, kDepthMax));
  }
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return Status::InvalidArgument(fmt::format("{}: not valid JSON ({} bytes)", what, text.size()));
  }
  return json;
}

std::string DumpJson(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<JsonObject> JsonObject::Of(const Json& json, std::string_view what) {
  if (!json.is_object()) {
    return Status::InvalidArgument(
        fmt::format("{}: expected an object, found {}", what, Shorten(json)));
  }
  return JsonObject(json, what);
}

const Json* JsonObject::Find(std::string_view key) const {
  const auto at = json_->find(std::string(key));
  return at == json_->end() || at->is_null() ? nullptr : &*at;
}

Result<const Json*> JsonObject::Get(std::string_view key) const {
  const Json* member = Find(key);
  if (member == nullptr) {
    return Status::InvalidArgument(fmt::format("{}: member '{}' is missing", what_, key));
  }
  return member;
}

Status JsonObject::Error(std::string_view key, std::string_view expected, const Json& found) const {
  return Status::InvalidArgument(
      fmt::format("{}: member '{}' must be {}, found {}", what_, key, expected, Shorten(found)));
}

namespace {

std::optional<int64_t> AsLong(const Json& json) {
  if (json.is_number_unsigned()) {
    const auto value = json.get<uint64_t>();
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return std::nullopt;
    }
    return static_cast<int64_t>(value);
  }
  if (json.is_number_integer()) {
    return json.get<int64_t>();
  }
  return std::nullopt;
}

std::optional<int32_t> AsInt(const Json& json) {
  const std::optional<int64_t> value = AsLong(json);
  if (!value || *value < std::numeric_limits<int32_t>::min() ||
      *value > std::numeric_limits<int32_t>::max()) {
    return std::nullopt;
  }
  return static_cast<int32_t>(*value);
}

}  // namespace

Result<std::optional<int64_t>> JsonObject::FindLong(std::string_view key) const {
  const Json* member = Find(key);
  if (member == nullptr) {
    return std::optional<int64_t>();
  }
  const std::optional<int64_t> value = AsLong(*member);
  if (!value) {
    return Error(key, "a 64-bit integer", *member);
  }
  return value;
}

Result<std::optional<int32_t>> JsonObject::FindInt(std::string_view key) const {
  const Json* member = Find(key);
  if (member == nullptr) {
    return std::optional<int32_t>();
  }
  const std::optional<int32_t> value = AsInt(*member);
  if (!value) {
    return Error(key, "a 32-bit integer", *member);
  }
  return value;
}

Result<std::optional<std::string>> JsonObject::FindString(std::string_view key) const {
  const Json* member = Find(key);
  if (member == nullptr) {
    return std::optional<std::string>();
  }
  if (!member->is_string()) {
    return Error(key, "a string", *member);
  }
  return std::optional<std::string>(member->get_ref<const std::string&>());
}

Result<int64_t> JsonObject::GetLong(std::string_view key) const {
  TARN_RETURN_IF_ERROR(Get(key));
  TARN_ASSIGN_OR_RETURN(const std::optional<int64_t> value, FindLong(key));
  return *value;
}

Result<int32_t> JsonObject::GetInt(std::string_view key) const {
  TARN_RETURN_IF_ERROR(Get(key));
  TARN_ASSIGN_OR_RETURN(const std::optional<int32_t> value, FindInt(key));
  return *value;
}

Result<bool> JsonObject::GetBool(std::string_view key) const {
  TARN_ASSIGN_OR_RETURN(const Json* member, Get(key));
  if (!member->is_boolean()) {
    return Error(key, "true or false", *member);
  }
  return member->get<bool>();
}

Result<std::string> JsonObject::GetString(std::string_view key) const {
  TARN_RETURN_IF_ERROR(Get(key));
  TARN_ASSIGN_OR_RETURN(std::optional<std::string> value, FindString(key));
  return *std::move(value);
}

Result<std::map<std::string, std::string>> JsonObject::FindStringMap(std::string_view key) const {
  std::map<std::string, std::string> map;
  const Json* member = Find(key);
  if (member == nullptr) {
    return map;
  }
  if (!member->is_object()) {
    return Error(key, "an object of strings", *member);
  }
  for (const auto& [name, value] : member->items()) {
    if (!value.is_string()) {
      return Error(key, "an object of strings", *member);
    }
    map[name] = value.get_ref<const std::string&>();
  }
  return map;
}

Result<std::vector<const Json*>> JsonObject::FindArray(std::string_view key) const {
  std::vector<const Json*> elements;
  const Json* member = Find(key);
  if (member == nullptr) {
    return elements;
  }
  if (!member->is_array()) {
    return Error(key, "an array", *member);
  }
  elements.reserve(member->size());
  for (const Json& element : *member) {
    elements.push_back(&element);
  }
  return elements;
}

Result<std::vector<int64_t>> JsonObject::FindLongs(std::string_view key) const {
  TARN_ASSIGN_OR_RETURN(const auto elements, FindArray(key));
  std::vector<int64_t> values;
  for (const Json* element : elements) {
    const std::optional<int64_t> value = AsLong(*element);
    if (!value) {
      return Error(key, "an array of integers", *element);
    }
    values.push_back(*value);
  }
  return values;
}

Result<std::vector<int32_t>> JsonObject::FindInts(std::string_view key) const {
  TARN_ASSIGN_OR_RETURN(const auto elements, FindArray(key));
  std::vector<int32_t> values;
  for (const Json* element : elements) {
    const std::optional<int32_t> value = AsInt(*element);
    if (!value) {
      return Error(key, "an array of 32-bit integers", *element);
    }
    values.push_back(*value);
  }
  return values;
}

Result<std::vector<std::string>> JsonObject::FindStrings(std::string_view key) const {
  TARN_ASSIGN_OR_RETURN(const auto elements, FindArray(key));
  std::vector<std::string> values;
  for (const Json* element : elements) {
    if (!element->is_string()) {
      return Error(key, "an array of strings", *element);
    }
    values.push_back(element->get_ref<const std::string&>());
  }
  return values;
}

UnknownMembers JsonObject::Unknown(const std::vector<std::string_view>& known) const {
  UnknownMembers unknown;
  for (const auto& [name, value] : json_->items()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      unknown[name] = DumpJson(value);
    }
  }
  return unknown;
}

void AppendUnknown(Json& object, const UnknownMembers& unknown) {
  for (const auto& [name, text] : unknown) {
    object[name] = Json::parse(text, nullptr, false);
  }
}

}  // namespace tarn::iceberg
