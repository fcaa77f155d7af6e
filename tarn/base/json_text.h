// Writing strings into JSON text where a JSON library would be too much.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace tarn {

/// The JSON string with this text, in quotes. '"', '\' and control characters are escaped, all
/// other valid UTF-8 is kept; invalid bytes become U+FFFD, since JSON has no bytes.
std::string JsonString(std::string_view text);

/// `{"name":"value"}` from pairs of names and texts: the parameters of Status::WithReason.
std::string JsonObject(
    std::initializer_list<std::pair<std::string_view, std::string_view>> members);

}  // namespace tarn
