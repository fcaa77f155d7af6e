#include "tarn/transform/array_path.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "tarn/engine/quoting.h"

namespace tarn::transform {
namespace {

constexpr size_t kLevelsMax = 2;

bool IsNameStart(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' ||
         static_cast<uint8_t>(c) >= 0x80;
}
bool IsNamePart(char c) {
  return IsNameStart(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '$';
}

/// A name at `at` (plain, "quoted" or ${marked}); moves `at` behind it.
std::optional<std::string> ReadName(std::string_view text, size_t& at) {
  if (at >= text.size()) {
    return std::nullopt;
  }
  if (text[at] == '"') {
    std::string name;
    for (size_t i = at + 1; i < text.size(); ++i) {
      if (text[i] != '"') {
        name += text[i];
      } else if (text.substr(i, 2) == "\"\"") {
        name += text[i++];
      } else {
        at = i + 1;
        return name;
      }
    }
    return std::nullopt;
  }
  if (text.substr(at, 2) == "${") {
    const size_t close = text.find('}', at);
    if (close == std::string_view::npos) {
      return std::nullopt;
    }
    std::string name(text.substr(at + 2, close - at - 2));
    at = close + 1;
    return name;
  }
  if (!IsNameStart(text[at])) {
    return std::nullopt;
  }
  const size_t begin = at;
  while (at < text.size() && IsNamePart(text[at])) {
    ++at;
  }
  return std::string(text.substr(begin, at - begin));
}

/// Where the text literal or comment at `at` ends, or `at`.
size_t SkipLiteral(std::string_view text, size_t at) {
  const auto behind = [&](size_t found, size_t size) {
    return found == std::string_view::npos ? text.size() : found + size;
  };
  if (text[at] == '\'') {
    return behind(text.find('\'', at + 1), 1);
  }
  if (text.substr(at, 2) == "--") {
    return behind(text.find('\n', at), 1);
  }
  if (text.substr(at, 2) == "/*") {
    return behind(text.find("*/", at + 2), 2);
  }
  return at;
}

/// A chain a.b[].c: `segments` are the names before each [], `end` is behind the last [].
struct Chain {
  std::vector<std::vector<std::string>> segments;
  size_t segments_end = 0;
  size_t end = 0;  // Behind the whole chain.
};

std::optional<Chain> ReadChain(std::string_view text, size_t at) {
  Chain chain;
  std::vector<std::string> names;
  std::optional<std::string> name = ReadName(text, at);
  if (!name) {
    return std::nullopt;
  }
  names.push_back(*std::move(name));
  while (at < text.size()) {
    if (text.substr(at, 2) == "[]") {
      at += 2;
      chain.segments.push_back(std::exchange(names, {}));
      chain.segments_end = at;
      continue;
    }
    size_t next = at + 1;
    if (text[at] != '.' || !(name = ReadName(text, next))) {
      break;
    }
    names.push_back(*std::move(name));
    at = next;
  }
  chain.end = at;
  return chain;
}

/// True where a type name stands: behind `::` or AS.
bool FollowsType(std::string_view before) {
  while (!before.empty() && std::isspace(static_cast<unsigned char>(before.back())) != 0) {
    before.remove_suffix(1);
  }
  if (before.ends_with("::")) {
    return true;
  }
  return before.size() > 2 && engine::LowerCase(before.substr(before.size() - 2)) == "as" &&
         !IsNamePart(before[before.size() - 3]);
}

}  // namespace

ArrayPaths::ArrayPaths(const std::vector<std::string>& landed) {
  for (const std::string& name : landed) {
    landed_.insert(engine::LowerCase(name));
  }
}

std::string ArrayPaths::ColumnOf(const std::vector<std::vector<std::string>>& segments) {
  std::string path;
  std::string column;
  for (const std::vector<std::string>& names : segments) {
    ArrayLevel level;
    level.parent = path;
    level.names = names;
    for (const std::string& name : names) {
      path += (path.empty() ? "" : ".") + engine::LowerCase(name);
    }
    path += "[]";
    const auto known = std::find_if(levels_.begin(), levels_.end(),
                                    [&](const ArrayLevel& l) { return l.path == path; });
    if (known != levels_.end()) {
      column = known->column;
      continue;
    }
    column = "tarn:element" + std::to_string(levels_.size());
    level.path = path;
    level.column = column;
    levels_.push_back(std::move(level));
  }
  return column;
}

std::string ArrayPaths::Replace(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t literal_end = SkipLiteral(text, at);
    if (literal_end > at) {
      out += text.substr(at, literal_end - at);
      at = literal_end;
      continue;
    }
    const std::optional<Chain> chain = ReadChain(text, at);
    if (!chain) {
      out += text[at++];
      continue;
    }
    size_t copied = at;
    if (!chain->segments.empty() && !FollowsType(text.substr(0, at)) &&
        landed_.contains(engine::LowerCase(chain->segments.front().front()))) {
      out += engine::QuoteName(ColumnOf(chain->segments));
      copied = chain->segments_end;
    }
    out += text.substr(copied, chain->end - copied);
    at = chain->end;
  }
  return out;
}

Result<std::vector<ArrayLevel>> ArrayPaths::Plan(bool zip) const {
  std::vector<ArrayLevel> levels = levels_;
  if (zip) {
    for (const ArrayLevel& level : levels) {
      if (!level.parent.empty()) {
        return Status::InvalidArgument("zip pairs arrays of landed columns, " + level.path +
                                       " lies inside " + level.parent);
      }
    }
    return levels;
  }
  std::stable_sort(levels.begin(), levels.end(), [](const ArrayLevel& a, const ArrayLevel& b) {
    return std::count(a.path.begin(), a.path.end(), '[') <
           std::count(b.path.begin(), b.path.end(), '[');
  });
  for (size_t i = 1; i < levels.size(); ++i) {
    if (levels[i].parent != levels[i - 1].path) {
      return Status::InvalidArgument(
          "fields of two arrays cannot be in one target: " + levels[i - 1].path + " and " +
          levels[i].path + " (zip: true pairs them by index)");
    }
  }
  if (levels.size() > kLevelsMax) {
    return Status::InvalidArgument("arrays nest more than two deep in " + levels.back().path);
  }
  return levels;
}

}  // namespace tarn::transform
