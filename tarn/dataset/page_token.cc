#include "tarn/dataset/page_token.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "tarn/base/hash.h"
#include "tarn/dataset/errors.h"

namespace tarn::dataset {

namespace {

constexpr char kVersion = '1';
constexpr size_t kChecksumBytes = 4;

std::string ChecksumOf(std::string_view body) {
  const uint64_t digest = Xxh3(body);
  std::string checksum;
  for (size_t i = 0; i < kChecksumBytes; ++i) {
    checksum += static_cast<char>(digest >> (8 * i));
  }
  return checksum;
}

// Length of a field in four bytes, then its bytes.
void AppendField(std::string& body, std::string_view field) {
  for (size_t i = 0; i < 4; ++i) {
    body += static_cast<char>(field.size() >> (8 * i));
  }
  body.append(field);
}

std::optional<std::vector<std::string>> SplitFields(std::string_view body) {
  std::vector<std::string> fields;
  while (!body.empty()) {
    if (body.size() < 4) {
      return std::nullopt;
    }
    size_t size = 0;
    for (size_t i = 0; i < 4; ++i) {
      size |= static_cast<size_t>(static_cast<unsigned char>(body[i])) << (8 * i);
    }
    body.remove_prefix(4);
    if (size > body.size()) {
      return std::nullopt;
    }
    fields.emplace_back(body.substr(0, size));
    body.remove_prefix(size);
  }
  return fields;
}

}  // namespace

std::string EncodePageToken(TokenKind kind, const std::vector<std::string>& fields) {
  std::string body = {kVersion, static_cast<char>(kind)};
  for (const std::string& field : fields) {
    AppendField(body, field);
  }
  std::string token = EncodeBase64(body + ChecksumOf(body));
  std::replace(token.begin(), token.end(), '+', '-');
  std::replace(token.begin(), token.end(), '/', '_');
  token.erase(std::find(token.begin(), token.end(), '='), token.end());
  return token;
}

Result<std::vector<std::string>> DecodePageToken(TokenKind kind, size_t field_count,
                                                 std::string_view token) {
  std::string padded(token);
  std::replace(padded.begin(), padded.end(), '-', '+');
  std::replace(padded.begin(), padded.end(), '_', '/');
  padded.append((4 - padded.size() % 4) % 4, '=');
  const Result<std::string> bytes = DecodeBase64(padded);
  if (!bytes.ok() || bytes->size() < 2 + kChecksumBytes) {
    return InvalidPageToken(token);
  }
  const std::string_view body = std::string_view(*bytes).substr(0, bytes->size() - kChecksumBytes);
  if (bytes->substr(body.size()) != ChecksumOf(body) || body[0] != kVersion ||
      body[1] != static_cast<char>(kind)) {
    return InvalidPageToken(token);
  }
  std::optional<std::vector<std::string>> fields = SplitFields(body.substr(2));
  // One text per token: the last character of base64 has bits that decoding ignores.
  if (!fields || fields->size() != field_count || EncodePageToken(kind, *fields) != token) {
    return InvalidPageToken(token);
  }
  return *std::move(fields);
}

}  // namespace tarn::dataset
