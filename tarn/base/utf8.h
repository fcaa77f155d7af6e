// UTF-8 by the letter of RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tarn {

/// Offset of the first byte that does not belong to a valid sequence; nothing when all do.
/// Cost: one pass, eight ASCII bytes at a time.
std::optional<size_t> FindInvalidUtf8(std::string_view bytes);

inline bool IsValidUtf8(std::string_view bytes) { return !FindInvalidUtf8(bytes).has_value(); }

/// The same text with U+FFFD for each maximal invalid part, for messages and logs only: stored
/// bytes are never changed.
std::string ReplaceInvalidUtf8(std::string_view bytes);

}  // namespace tarn
