#include "tarn/base/json_text.h"

#include "tarn/base/utf8.h"

namespace tarn {

namespace {

void AppendEscaped(std::string& out, char c) {
  static constexpr char kHex[] = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  if (static_cast<unsigned char>(c) < 0x20) {
    out += "\\u00";
    out += kHex[c >> 4];
    out += kHex[c & 15];
  } else {
    out += c;
  }
}

}  // namespace

std::string JsonString(std::string_view text) {
  std::string replaced;
  if (!IsValidUtf8(text)) {
    replaced = ReplaceInvalidUtf8(text);
    text = replaced;
  }
  std::string out;
  out.reserve(text.size() + 2);
  out += '"';
  for (const char c : text) {
    AppendEscaped(out, c);
  }
  out += '"';
  return out;
}

std::string JsonObject(
    std::initializer_list<std::pair<std::string_view, std::string_view>> members) {
  std::string out = "{";
  for (const auto& [name, value] : members) {
    out += out.size() > 1 ? "," : "";
    out += JsonString(name) + ":" + JsonString(value);
  }
  return out + "}";
}

}  // namespace tarn
