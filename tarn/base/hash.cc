#include "tarn/base/hash.h"

#include <fmt/core.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <xxhash.h>

#include "tarn/base/hex_digit.h"

namespace tarn {

namespace {
XXH3_state_t* State(void* state) { return static_cast<XXH3_state_t*>(state); }

int Base64Value(char c) {
  if (c >= 'A' && c <= 'Z') {
    return c - 'A';
  }
  if (c >= 'a' && c <= 'z') {
    return c - 'a' + 26;
  }
  if (c >= '0' && c <= '9') {
    return c - '0' + 52;
  }
  return c == '+' ? 62 : (c == '/' ? 63 : -1);
}
}  // namespace

Sha1Digest Sha1(std::string_view bytes) {
  Sha1Digest digest;
  SHA1(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return digest;
}

std::string Sha256(std::string_view bytes) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

uint64_t Xxh3(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

Xxh3Stream::Xxh3Stream() : state_(XXH3_createState()) {
  TARN_CHECK(state_ != nullptr);
  XXH3_64bits_reset(State(state_));
}
Xxh3Stream::~Xxh3Stream() { XXH3_freeState(State(state_)); }
void Xxh3Stream::Update(std::string_view bytes) {
  XXH3_64bits_update(State(state_), bytes.data(), bytes.size());
}
uint64_t Xxh3Stream::Digest() const { return XXH3_64bits_digest(State(state_)); }

std::string FormatXxh3(uint64_t digest) { return fmt::format("xxh3:{:016x}", digest); }

std::string EncodeHex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

Result<std::string> DecodeHex(std::string_view text) {
  if (text.size() % 2 != 0) {
    return Status::InvalidArgument("odd number of hexadecimal digits");
  }
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2) {
    const int high = HexValue(text[i]);
    const int low = HexValue(text[i + 1]);
    if (high < 0 || low < 0) {
      return Status::InvalidArgument(fmt::format("not hexadecimal at character {}", i));
    }
    bytes += static_cast<char>(high << 4 | low);
  }
  return bytes;
}

std::string EncodeBase64(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                     reinterpret_cast<const unsigned char*>(bytes.data()),
                                     static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(length));
  return text;
}

Result<std::string> DecodeBase64(std::string_view text) {
  // Not OpenSSL's decoder: it skips blanks and takes '-' for an end.
  const auto malformed = [](size_t at) {
    return Status::InvalidArgument(fmt::format("not Base64 at character {}", at));
  };
  if (text.size() % 4 != 0) {
    return malformed(text.size());
  }
  const size_t padding = text.ends_with("==") ? 2 : (text.ends_with('=') ? 1 : 0);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    uint32_t group = 0;
    for (size_t j = i; j < i + 4; ++j) {
      const int value = j >= text.size() - padding ? 0 : Base64Value(text[j]);
      if (value < 0) {
        return malformed(j);
      }
      group = group << 6 | static_cast<uint32_t>(value);
    }
    bytes += static_cast<char>(group >> 16);
    bytes += static_cast<char>(group >> 8);
    bytes += static_cast<char>(group);
  }
  bytes.erase(bytes.size() - padding);
  return bytes;
}

}  // namespace tarn
