#include "tarn/base/url.h"

#include "tarn/base/hex_digit.h"

namespace tarn {

namespace {

bool IsUnreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

enum class Plus { kLiteral, kSpace };

Result<std::string> Decode(std::string_view text, Plus plus) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus == Plus::kSpace) {
      decoded += ' ';
    } else if (text[i] != '%') {
      decoded += text[i];
    } else {
      const int high = i + 2 < text.size() ? HexValue(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexValue(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return Status::InvalidArgument(
            "decode a URL: '%' must be followed by two hexadecimal "
            "digits, found \"" +
            std::string(text) + "\"");
      }
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return decoded;
}

}  // namespace

std::string EncodeUrl(std::string_view text, std::string_view keep) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (IsUnreserved(c) || keep.find(c) != std::string_view::npos) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += '%';
      encoded += kDigits[byte >> 4];
      encoded += kDigits[byte & 15];
    }
  }
  return encoded;
}

Result<std::string> DecodeUrl(std::string_view text) { return Decode(text, Plus::kLiteral); }

Result<UrlQuery> UrlQuery::Parse(std::string_view text) {
  UrlQuery query;
  while (!text.empty()) {
    const size_t end = text.find('&');
    const std::string_view pair = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (pair.empty()) {
      continue;
    }
    const size_t equals = pair.find('=');
    TARN_ASSIGN_OR_RETURN(std::string name, Decode(pair.substr(0, equals), Plus::kSpace));
    std::string value;
    if (equals != std::string_view::npos) {
      TARN_ASSIGN_OR_RETURN(value, Decode(pair.substr(equals + 1), Plus::kSpace));
    }
    query.Add(std::move(name), std::move(value));
  }
  return query;
}

std::optional<std::string> UrlQuery::Find(std::string_view name) const {
  for (const auto& [key, value] : parameters_) {
    if (key == name) {
      return value;
    }
  }
  return std::nullopt;
}

std::vector<std::string> UrlQuery::FindAll(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [key, value] : parameters_) {
    if (key == name) {
      values.push_back(value);
    }
  }
  return values;
}

void UrlQuery::Add(std::string name, std::string value) {
  parameters_.emplace_back(std::move(name), std::move(value));
}

std::string UrlQuery::ToString() const {
  std::string text;
  for (const auto& [name, value] : parameters_) {
    if (!text.empty()) {
      text += '&';
    }
    text += EncodeUrl(name) + "=" + EncodeUrl(value);
  }
  return text;
}

}  // namespace tarn
