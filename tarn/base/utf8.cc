#include "tarn/base/utf8.h"

#include <cstdint>
#include <cstring>

namespace tarn {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// What the first byte of a sequence says: its length, and the range of the second byte, which is
// where overlong forms, surrogates and the upper limit are told apart (RFC 3629, section 4).
struct Lead {
  size_t length = 0;  // 0 = no sequence starts with this byte.
  uint8_t second_min = 0x80;
  uint8_t second_max = 0xBF;
};

Lead LeadOf(uint8_t byte) {
  if (byte < 0x80) {
    return {.length = 1};
  }
  if (byte >= 0xC2 && byte <= 0xDF) {
    return {.length = 2};
  }
  if (byte >= 0xE0 && byte <= 0xEF) {
    return {.length = 3,
            .second_min = static_cast<uint8_t>(byte == 0xE0 ? 0xA0 : 0x80),
            .second_max = static_cast<uint8_t>(byte == 0xED ? 0x9F : 0xBF)};
  }
  if (byte >= 0xF0 && byte <= 0xF4) {
    return {.length = 4,
            .second_min = static_cast<uint8_t>(byte == 0xF0 ? 0x90 : 0x80),
            .second_max = static_cast<uint8_t>(byte == 0xF4 ? 0x8F : 0xBF)};
  }
  return {};
}

struct Sequence {
  bool valid = false;
  size_t length = 1;  // Of the sequence, or of its longest valid beginning (at least 1).
};

Sequence ReadSequence(std::string_view bytes) {
  const Lead lead = LeadOf(static_cast<uint8_t>(bytes[0]));
  for (size_t i = 1; i < lead.length; ++i) {
    const uint8_t low = i == 1 ? lead.second_min : 0x80;
    const uint8_t high = i == 1 ? lead.second_max : 0xBF;
    if (i >= bytes.size() || static_cast<uint8_t>(bytes[i]) < low ||
        static_cast<uint8_t>(bytes[i]) > high) {
      return {.valid = false, .length = i};
    }
  }
  return lead.length == 0 ? Sequence{} : Sequence{.valid = true, .length = lead.length};
}

}  // namespace

std::optional<size_t> FindInvalidUtf8(std::string_view bytes) {
  size_t position = 0;
  while (position < bytes.size()) {
    uint64_t word = 0;
    while (position + sizeof(word) <= bytes.size()) {
      std::memcpy(&word, bytes.data() + position, sizeof(word));
      if ((word & 0x8080808080808080ULL) != 0) {
        break;
      }
      position += sizeof(word);
    }
    if (position == bytes.size()) {
      break;
    }
    const Sequence sequence = ReadSequence(bytes.substr(position));
    if (!sequence.valid) {
      return position;
    }
    position += sequence.length;
  }
  return std::nullopt;
}

std::string ReplaceInvalidUtf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const Sequence sequence = ReadSequence(bytes);
    text += sequence.valid ? bytes.substr(0, sequence.length) : kReplacement;
    bytes.remove_prefix(sequence.length);
  }
  return text;
}

}  // namespace tarn
