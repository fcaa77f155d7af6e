// Digests and text codings of bytes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "tarn/base/status.h"

namespace tarn {

using Sha1Digest = std::array<uint8_t, 20>;

/// SHA-1; identifies keys, secures nothing.
Sha1Digest Sha1(std::string_view bytes);
/// SHA-256, 32 raw bytes.
std::string Sha256(std::string_view bytes);
/// XXH3, 64 bits: checksum of stored files.
uint64_t Xxh3(std::string_view bytes);

/// XXH3 over a stream of pieces. One owner thread.
class Xxh3Stream {
 public:
  Xxh3Stream();
  ~Xxh3Stream();
  Xxh3Stream(const Xxh3Stream&) = delete;
  Xxh3Stream& operator=(const Xxh3Stream&) = delete;
  void Update(std::string_view bytes);
  [[nodiscard]] uint64_t Digest() const;

 private:
  void* state_;  // XXH3_state_t, kept out of this header.
};

/// "xxh3:0123456789abcdef": how a checksum is written in the metastore.
std::string FormatXxh3(uint64_t digest);

/// Lower-case hexadecimal.
std::string EncodeHex(std::string_view bytes);
/// Errors: kInvalidArgument on an odd length or another character.
Result<std::string> DecodeHex(std::string_view text);
/// Standard alphabet, padded.
std::string EncodeBase64(std::string_view bytes);
/// Errors: kInvalidArgument on a bad length, alphabet or padding.
Result<std::string> DecodeBase64(std::string_view text);

}  // namespace tarn
