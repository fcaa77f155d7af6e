#include "tarn/server/iceberg_rest/catalog_path.h"

#include <algorithm>

#include <fmt/format.h>

#include "tarn/base/url.h"

namespace tarn::server::iceberg_rest {

namespace {

constexpr char kLevelSeparator = '\x1f';

std::vector<std::string_view> SplitPath(std::string_view path) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t slash = path.find('/');
    parts.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) {
      return parts;
    }
    path.remove_prefix(slash + 1);
  }
}

Result<std::string> DecodePart(std::string_view part) {
  std::string blanks(part);
  std::ranges::replace(blanks, '+', ' ');
  return DecodeUrl(blanks);
}

}  // namespace

Result<CatalogPath> ParseCatalogPath(std::string_view target) {
  target = target.substr(0, target.find('?'));
  const std::vector<std::string_view> parts = SplitPath(target);
  CatalogPath path;
  // "", "iceberg", "v1", then the prefix or "namespaces".
  size_t at = 3;
  const auto is_word = [](std::string_view part) {
    return part == "namespaces" || part == "tables" || part == "views" || part == "transactions";
  };
  if (parts.size() > at && !is_word(parts[at])) {
    TARN_ASSIGN_OR_RETURN(path.prefix, DecodePart(parts[at]));
    ++at;
  }
  if (parts.size() > at && parts[at] != "namespaces") {
    return path;
  }
  ++at;
  if (parts.size() > at) {
    TARN_ASSIGN_OR_RETURN(const std::string levels, DecodePart(parts[at]));
    path.levels = SplitLevels(levels);
  }
  at += 2;
  if (parts.size() > at) {
    TARN_ASSIGN_OR_RETURN(path.name, DecodePart(parts[at]));
  }
  return path;
}

std::string FormatLevels(const std::vector<std::string>& levels) {
  return fmt::format("{}", fmt::join(levels, "."));
}

std::vector<std::string> SplitLevels(std::string_view text) {
  std::vector<std::string> levels;
  while (true) {
    const size_t separator = text.find(kLevelSeparator);
    levels.emplace_back(text.substr(0, separator));
    if (separator == std::string_view::npos) {
      return levels;
    }
    text.remove_prefix(separator + 1);
  }
}

}  // namespace tarn::server::iceberg_rest
