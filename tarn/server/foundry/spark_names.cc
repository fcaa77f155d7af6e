#include "tarn/server/foundry/spark_names.h"

namespace tarn::server::foundry {

namespace {

/// Where the token that begins at `start` with `quote` ends, behind its closing quote; doubled
/// quotes are part of it. The end of the text when it is not closed.
size_t EndOfQuoted(std::string_view sql, size_t start, char quote) {
  size_t at = start + 1;
  while (at < sql.size()) {
    if (sql[at] != quote) {
      ++at;
    } else if (at + 1 < sql.size() && sql[at + 1] == quote) {
      at += 2;
    } else {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

std::string AsQuotedName(std::string_view inside) {
  std::string name = "\"";
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] == '`') {
      ++i;  // Doubled.
    }
    name += inside[i];
    if (inside[i] == '"') {
      name += '"';
    }
  }
  return name + '"';
}

/// Where a comment that begins at `at` ends; `at` itself where none does.
size_t EndOfComment(std::string_view sql, size_t at) {
  const std::string_view two = sql.substr(at, 2);
  if (two == "--") {
    return std::min(sql.find('\n', at), sql.size());
  }
  if (two == "/*") {
    const size_t end = sql.find("*/", at + 2);
    return end == std::string_view::npos ? sql.size() : end + 2;
  }
  return at;
}

}  // namespace

Result<std::string> QuoteSparkNames(std::string_view sql) {
  std::string out;
  for (size_t at = 0; at < sql.size();) {
    const char c = sql[at];
    size_t end = EndOfComment(sql, at);
    if (end == at && (c == '\'' || c == '"' || c == '`')) {
      end = EndOfQuoted(sql, at, c);
      if (end == std::string_view::npos && c == '`') {
        return Status::InvalidArgument("the name in backticks at byte " + std::to_string(at) +
                                       " is not closed");
      }
      end = std::min(end, sql.size());
    }
    if (c == '`') {
      out += AsQuotedName(sql.substr(at + 1, end - at - 2));
    } else {
      end = std::max(end, at + 1);
      out.append(sql.substr(at, end - at));
    }
    at = end;
  }
  return out;
}

}  // namespace tarn::server::foundry
