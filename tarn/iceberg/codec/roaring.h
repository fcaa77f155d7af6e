// Roaring bitmaps of 64-bit row positions in their portable form, as deletion vectors hold them.
//
// A bitmap count (u64, little endian), then for each set of high 32 bits in ascending order the key
// (u32) and a 32-bit bitmap: a header, for each 65,536 values the container's key and cardinality,
// offsets, and containers of one of three forms (sorted values, bits, runs).
//
// An own codec, since the bytes come from anybody: every length is checked before it is used and
// containers must be sorted and count what they claim.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"

namespace tarn::iceberg {

/// Encodes ascending values without doubles, 0 to 2^63-1. Containers take their smallest form.
std::string EncodeRoaring64(const std::vector<int64_t>& values);

/// Values in ascending order. Errors: kCorruption at the byte offset; kResourceExhausted when the
/// bitmap holds more than `count_max` values.
Result<std::vector<int64_t>> DecodeRoaring64(std::string_view bytes, uint64_t count_max);

}  // namespace tarn::iceberg
