// Base64, standard alphabet.
#pragma once

#include <string>
#include <string_view>

namespace tarn::format {

/// Padded.
std::string EncodeBase64(std::string_view bytes);

/// Appends the bytes of `text` to `out`; padding may be missing. False, and `out` as it was, when
/// the text is no Base64.
bool DecodeBase64(std::string_view text, std::string& out);

}  // namespace tarn::format
