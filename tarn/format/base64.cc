#include "tarn/format/base64.h"

#include <array>
#include <cstdint>

namespace tarn::format {

namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> MakeValues() {
  std::array<int8_t, 256> values{};
  values.fill(-1);
  for (size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<int8_t>(i);
  }
  return values;
}
constexpr std::array<int8_t, 256> kValues = MakeValues();

}  // namespace

std::string EncodeBase64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8U | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (size_t k = 0; k < 4; ++k) {
      text.push_back(i + k > bytes.size() ? '=' : kAlphabet[group >> (18U - 6U * k) & 63U]);
    }
  }
  return text;
}

bool DecodeBase64(std::string_view text, std::string& out) {
  const size_t before = out.size();
  while (!text.empty() && text.back() == '=' && text.size() % 4 != 1) {
    text.remove_suffix(1);
  }
  if (text.size() % 4 == 1) {
    return false;
  }
  uint32_t group = 0;
  size_t bits = 0;
  for (const char c : text) {
    const int8_t value = kValues[static_cast<unsigned char>(c)];
    if (value < 0) {
      out.resize(before);
      return false;
    }
    group = group << 6U | static_cast<uint32_t>(value);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      out.push_back(static_cast<char>(group >> bits & 0xffU));
    }
  }
  return true;
}

}  // namespace tarn::format
