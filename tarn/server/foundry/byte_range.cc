#include "tarn/server/foundry/byte_range.h"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

namespace tarn::server::foundry {

namespace {

/// Digits only; numbers beyond 64 bits count as the largest.
std::optional<uint64_t> ParseNumber(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? value : UINT64_MAX;
}

}  // namespace

Result<std::optional<RangeOfBytes>> ParseRange(std::string_view field, uint64_t content_bytes) {
  constexpr std::string_view kUnit = "bytes=";
  const std::optional<RangeOfBytes> whole;
  if (!field.starts_with(kUnit) || field.find(',') != std::string_view::npos) {
    return whole;
  }
  field.remove_prefix(kUnit.size());
  const size_t dash = field.find('-');
  if (dash == std::string_view::npos) {
    return whole;
  }
  const std::optional<uint64_t> first = ParseNumber(field.substr(0, dash));
  const std::optional<uint64_t> last = ParseNumber(field.substr(dash + 1));
  const bool well_formed = (first || dash == 0) && (last || dash + 1 == field.size()) &&
                           (first || last) && (!first || !last || *first <= *last);
  if (!well_formed) {
    return whole;
  }
  const uint64_t from = first ? *first : content_bytes - std::min(*last, content_bytes);
  if (from >= content_bytes || (!first && *last == 0)) {
    return Status::InvalidArgument(
               fmt::format("range \"{}\": the content has {} bytes", field, content_bytes))
        .WithReason("RangeNotSatisfiable", fmt::format("{{\"sizeBytes\":\"{}\"}}", content_bytes));
  }
  const uint64_t until = first && last ? std::min(*last, content_bytes - 1) : content_bytes - 1;
  return std::optional<RangeOfBytes>({.first = from, .size_bytes = until - from + 1});
}

}  // namespace tarn::server::foundry
