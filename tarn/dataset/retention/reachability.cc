#include "tarn/dataset/retention/reachability.h"

#include <algorithm>
#include <utility>

#include "tarn/base/check.h"

namespace tarn::dataset::retention {

namespace {

// A shown row's transaction on the way down, and the kept members that see it.
struct Open {
  size_t row = 0;
  size_t end = 0;
};

}  // namespace

Reachability::Reachability(std::span<const Member> members) {
  const size_t count = members.size();
  std::vector<size_t> size(count, 1);
  std::vector<int64_t> kept(count, 0);
  for (size_t i = count; i-- > 0;) {
    kept[i] += members[i].kept ? 1 : 0;
    if (members[i].parent) {
      TARN_CHECK(*members[i].parent < i);
      size[*members[i].parent] += size[i];
      kept[*members[i].parent] += kept[i];
    }
  }
  // Positions of a walk, without walking: each member takes the next free part of its parent's.
  std::vector<size_t> begin(count, 0);
  std::vector<size_t> next(count, 0);
  size_t next_tree = 0;
  spans_.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    size_t& free = members[i].parent ? next[*members[i].parent] : next_tree;
    begin[i] = free;
    free += size[i];
    next[i] = begin[i] + 1;
    spans_.emplace(RowPlace{.line = members[i].line, .ordinal = members[i].ordinal},
                   Span{.begin = begin[i], .end = begin[i] + size[i], .kept = kept[i]});
  }
}

const Reachability::Span* Reachability::Find(const RowPlace& row) const {
  const auto found = spans_.find(row);
  return found == spans_.end() ? nullptr : &found->second;
}

std::vector<uint8_t> Reachability::Shown(std::span<const RowPlace> rows) const {
  std::vector<uint8_t> shown(rows.size(), 1);
  std::vector<std::pair<const Span*, size_t>> known;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (const Span* span = Find(rows[i])) {
      known.emplace_back(span, i);
    }
  }
  std::sort(known.begin(), known.end(),
            [](const auto& a, const auto& b) { return a.first->begin < b.first->begin; });
  std::vector<int64_t> seen_by(rows.size(), 0);
  std::vector<Open> above;
  for (const auto& [span, row] : known) {
    while (!above.empty() && above.back().end <= span->begin) {
      above.pop_back();
    }
    if (!above.empty()) {
      seen_by[above.back().row] -= span->kept;
    }
    seen_by[row] = span->kept;
    above.push_back({.row = row, .end = span->end});
  }
  for (const auto& [span, row] : known) {
    shown[row] = seen_by[row] > 0 ? 1 : 0;
  }
  return shown;
}

}  // namespace tarn::dataset::retention
