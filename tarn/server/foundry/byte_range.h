// The Range field of a request (RFC 9110, section 14): which bytes of a content are asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tarn/base/status.h"

namespace tarn::server::foundry {

/// Bytes [first, first + size_bytes) of a content. Value.
struct RangeOfBytes {
  uint64_t first = 0;
  uint64_t size_bytes = 0;
  friend bool operator==(const RangeOfBytes&, const RangeOfBytes&) = default;
};

/// Reads "bytes=0-9", "bytes=5-", "bytes=-3". Empty: answer the whole content (another unit, more
/// than one range or a malformed field, all of which may be ignored).
/// Errors: kInvalidArgument "RangeNotSatisfiable" when no byte of the content is in the range.
Result<std::optional<RangeOfBytes>> ParseRange(std::string_view field, uint64_t content_bytes);

}  // namespace tarn::server::foundry
