// Escapes of JSON strings: what they stand for, and writing them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tarn/format/record_error.h"

namespace tarn::format {

/// Resolves the escapes of a JSON string's content (without quotes) into `out`, which has room for
/// as many bytes. Returns the number of bytes, or npos and sets `failure` (position within
/// content): kBadJson for an unknown escape, kBadUtf8 for half a surrogate pair.
size_t UnescapeJson(std::string_view content, char* out, RecordFailure& failure);

/// Appends `text`, which is valid UTF-8, as a quoted JSON string.
void AppendJsonString(std::string_view text, std::string& out);

}  // namespace tarn::format
