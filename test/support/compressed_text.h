// Compress: what the usual tools make of a text, for tests of what reads it back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <arrow/result.h>
#include <arrow/util/compression.h>

namespace tarn {

/// One whole member or frame.
inline std::string Compress(arrow::Compression::type type, std::string_view text) {
  const std::unique_ptr<arrow::util::Codec> codec =
      arrow::util::Codec::Create(type).MoveValueUnsafe();
  const std::shared_ptr<arrow::util::Compressor> compressor =
      codec->MakeCompressor().MoveValueUnsafe();
  std::string out(2 * text.size() + (1 << 20), '\0');  // Codecs want room for a whole block.
  auto* const bytes = reinterpret_cast<uint8_t*>(out.data());
  int64_t size = 0;
  while (!text.empty()) {
    const auto step = compressor
                          ->Compress(static_cast<int64_t>(text.size()),
                                     reinterpret_cast<const uint8_t*>(text.data()),
                                     static_cast<int64_t>(out.size()) - size, bytes + size)
                          .ValueOrDie();
    text.remove_prefix(static_cast<size_t>(step.bytes_read));
    size += step.bytes_written;
  }
  const auto end = compressor->End(static_cast<int64_t>(out.size()) - size, bytes + size);
  if (end.ValueOrDie().should_retry) {
    return "there was too little room";
  }
  size += end->bytes_written;
  out.resize(static_cast<size_t>(size));
  return out;
}

}  // namespace tarn
