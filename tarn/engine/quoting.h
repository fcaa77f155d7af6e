// Quoting of names and values for SQL text that we build. Everything that comes from outside goes
// through here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tarn::engine {

/// `name` as a quoted identifier: any characters but NUL, which ends up removed.
std::string QuoteName(std::string_view name);
/// `parts` as a qualified name: "a"."b"."c".
std::string QuoteNames(const std::vector<std::string>& parts);
/// `text` as a string literal. NUL characters are written as chr(0), so every text survives.
std::string QuoteText(std::string_view text);
/// `values` as a list literal of strings: ['a', 'b'].
std::string QuoteTextList(const std::vector<std::string>& values);

/// `text` with ASCII letters in lower case: how the engine compares names.
std::string LowerCase(std::string_view text);

}  // namespace tarn::engine
