#include "tarn/engine/quoting.h"

#include "tarn/base/sql_name.h"

namespace tarn::engine {

std::string QuoteName(std::string_view name) { return QuoteSqlName(name); }

std::string QuoteNames(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) {
    out += out.empty() ? "" : ".";
    out += QuoteName(part);
  }
  return out;
}

std::string QuoteText(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {
    std::string out = "(";
    size_t begin = 0;
    while (true) {
      const size_t end = text.find('\0', begin);
      out += QuoteText(text.substr(begin, end - begin));
      if (end == std::string_view::npos) {
        return out + ")";
      }
      out += "||chr(0)||";
      begin = end + 1;
    }
  }
  std::string out = "'";
  for (const char c : text) {
    out += c;
    if (c == '\'') {
      out += '\'';
    }
  }
  out += '\'';
  return out;
}

std::string QuoteTextList(const std::vector<std::string>& values) {
  std::string out = "[";
  for (const std::string& value : values) {
    out += out.size() > 1 ? ", " : "";
    out += QuoteText(value);
  }
  return out + "]";
}

std::string LowerCase(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

}  // namespace tarn::engine
