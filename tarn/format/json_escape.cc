#include "tarn/format/json_escape.h"

#include <cstdint>
#include <cstring>

namespace tarn::format {

namespace {

// Value of four hexadecimal digits, -1 when they are not.
int32_t Hex4(const char* p) {
  int32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = p[i];
    int digit = 0;
    if (c >= '0' && c <= '9') {
      digit = c - '0';
    } else if (c >= 'a' && c <= 'f') {
      digit = c - 'a' + 10;
    } else if (c >= 'A' && c <= 'F') {
      digit = c - 'A' + 10;
    } else {
      return -1;
    }
    value = value * 16 + digit;
  }
  return value;
}

char* PutCodePoint(uint32_t code, char* out) {
  const auto put = [&out](uint32_t byte) { *out++ = static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0U | (code >> 6U));
    put(0x80U | (code & 0x3fU));
  } else if (code < 0x10000) {
    put(0xe0U | (code >> 12U));
    put(0x80U | ((code >> 6U) & 0x3fU));
    put(0x80U | (code & 0x3fU));
  } else {
    put(0xf0U | (code >> 18U));
    put(0x80U | ((code >> 12U) & 0x3fU));
    put(0x80U | ((code >> 6U) & 0x3fU));
    put(0x80U | (code & 0x3fU));
  }
  return out;
}

// What a one-letter escape stands for; 0 for none.
char SimpleEscape(char c) {
  switch (c) {
    case '"':
    case '\\':
    case '/':
      return c;
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return 0;
  }
}

}  // namespace

size_t UnescapeJson(std::string_view content, char* out, RecordFailure& failure) {
  const auto fail = [&](const char* at, RecordError code, std::string text) {
    failure = {code, static_cast<uint64_t>(at - content.data()), std::move(text)};
    return std::string_view::npos;
  };
  const char* p = content.data();
  const char* const end = p + content.size();
  char* o = out;
  while (p < end) {
    const auto* slash = static_cast<const char*>(memchr(p, '\\', static_cast<size_t>(end - p)));
    const char* run_end = slash == nullptr ? end : slash;
    memcpy(o, p, static_cast<size_t>(run_end - p));
    o += run_end - p;
    if (slash == nullptr) {
      break;
    }
    p = slash + 1;
    if (p == end) {
      return fail(slash, RecordError::kBadJson, "a string ends in a backslash");
    }
    if (*p != 'u') {
      const char simple = SimpleEscape(*p);
      if (simple == 0) {
        return fail(slash, RecordError::kBadJson, "unknown escape in a string");
      }
      *o++ = simple;
      ++p;
      continue;
    }
    int32_t code = end - p < 5 ? -1 : Hex4(p + 1);
    if (code < 0) {
      return fail(slash, RecordError::kBadJson, "\\u needs four hexadecimal digits");
    }
    p += 5;
    if (code >= 0xd800 && code <= 0xdfff) {
      const bool pair = code <= 0xdbff && end - p >= 6 && p[0] == '\\' && p[1] == 'u';
      const int32_t low = pair ? Hex4(p + 2) : -1;
      if (low < 0xdc00 || low > 0xdfff) {
        return fail(slash, RecordError::kBadUtf8, "escape of half a surrogate pair");
      }
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      p += 6;
    }
    o = PutCodePoint(static_cast<uint32_t>(code), o);
  }
  return static_cast<size_t>(o - out);
}

void AppendJsonString(std::string_view text, std::string& out) {
  static constexpr char kHex[] = "0123456789abcdef";
  out.push_back('"');
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20) {
      out += "\\u00";
      out.push_back(kHex[byte >> 4U]);
      out.push_back(kHex[byte & 15U]);
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

}  // namespace tarn::format
