#include "tarn/dataset/lineage.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace tarn::dataset {

namespace {

// Parts of `interval` left of and right of every piece of `without` that overlaps it, in order.
void SubtractInto(const Interval& interval, const Lineage& without, Lineage& rest) {
  std::vector<std::pair<int64_t, int64_t>> holes;
  for (const Interval& other : without) {
    const int64_t after = std::max(interval.after, other.after);
    const int64_t through = std::min(interval.through, other.through);
    if (other.line == interval.line && after < through) {
      holes.emplace_back(after, through);
    }
  }
  std::sort(holes.begin(), holes.end());
  Interval piece = interval;
  for (const auto& [after, through] : holes) {
    piece.through = after;
    if (piece.after < piece.through) {
      rest.push_back(piece);
    }
    piece.after = std::max(piece.after, through);
  }
  piece.through = interval.through;
  if (piece.after < piece.through) {
    rest.push_back(piece);
  }
}

}  // namespace

Lineage Extend(Lineage base, LineId root, LineId line, int64_t ordinal) {
  if (!base.empty() && base.back().line == line && base.back().root == root &&
      base.back().through < ordinal) {
    base.back().through = ordinal;
  } else {
    base.push_back({.root = root, .line = line, .after = ordinal - 1, .through = ordinal});
  }
  return base;
}

std::optional<size_t> FindInterval(const Lineage& lineage, LineId line, int64_t ordinal) {
  for (size_t i = 0; i < lineage.size(); ++i) {
    if (lineage[i].Contains(line, ordinal)) {
      return i;
    }
  }
  return std::nullopt;
}

std::optional<Lineage> CutBefore(const Lineage& lineage, LineId line, int64_t ordinal) {
  const std::optional<size_t> index = FindInterval(lineage, line, ordinal);
  if (!index) {
    return std::nullopt;
  }
  Lineage rest(lineage.begin() + static_cast<std::ptrdiff_t>(*index), lineage.end());
  rest.front().after = ordinal - 1;
  return rest;
}

Lineage Subtract(const Lineage& from, const Lineage& without) {
  Lineage rest;
  for (const Interval& interval : from) {
    SubtractInto(interval, without, rest);
  }
  return rest;
}

std::string EncodeLineage(const Lineage& lineage) {
  std::string text;
  for (const Interval& interval : lineage) {
    if (!text.empty()) {
      text += ',';
    }
    text += std::to_string(interval.root);
    for (const int64_t number : {interval.line, interval.after, interval.through}) {
      text += ':';
      text += std::to_string(number);
    }
  }
  return text;
}

Result<Lineage> DecodeLineage(std::string_view text) {
  const auto damaged = [&] {
    return Status::Corruption("damaged lineage \"" + std::string(text.substr(0, 200)) + "\"");
  };
  Lineage lineage;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (at != end) {
    std::array<int64_t, 4> numbers{};
    for (size_t i = 0; i < numbers.size(); ++i) {
      const auto [next, error] = std::from_chars(at, end, numbers[i]);
      if (error != std::errc{} || numbers[i] < 0) {
        return damaged();
      }
      at = next;
      const char separator = i + 1 < numbers.size() ? ':' : ',';
      if (at == end && i + 1 == numbers.size()) {
        break;
      }
      if (at == end || *at != separator || (separator == ',' && at + 1 == end)) {
        return damaged();
      }
      ++at;
    }
    const Interval interval{
        .root = numbers[0], .line = numbers[1], .after = numbers[2], .through = numbers[3]};
    if (interval.after >= interval.through) {
      return damaged();
    }
    lineage.push_back(interval);
  }
  return lineage;
}

}  // namespace tarn::dataset
