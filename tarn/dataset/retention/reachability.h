// Reachability: which file rows of a view root some kept transaction's view shows. Pure; no I/O.
//
// The transactions of one view root are a forest. A row is seen by its transaction and all below
// it, up to where a row of the same path stands further down. Counting the kept transactions of a
// subtree answers the question for all rows of a path at once, whatever the number of branches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "tarn/dataset/lineage.h"

namespace tarn::dataset::retention {

/// A committed transaction of a view root. Value.
struct Member {
  LineId line = 0;
  int64_t ordinal = 0;
  std::optional<size_t> parent;  // Index of an earlier member; empty = it starts the root.
  bool kept = true;              // Its view must stay readable.
};

/// A file row of one path, by its place.
struct RowPlace {
  LineId line = 0;
  int64_t ordinal = 0;
  friend bool operator==(const RowPlace&, const RowPlace&) = default;
};

/// Immutable after construction. Threads: any, one buffer each. Memory: O(members).
class Reachability {
 public:
  /// `members`: parents before their children.
  explicit Reachability(std::span<const Member> members);

  /// For each row of one path, 1 where a kept member's view shows it, else 0. Rows of transactions
  /// that are not members (OPEN, or committed later) count as shown and hide nothing.
  /// Cost: O(rows log rows).
  std::vector<uint8_t> Shown(std::span<const RowPlace> rows) const;

 private:
  struct Span {
    size_t begin = 0;  // Position in a walk that gives parents first …
    size_t end = 0;    // … and the first position behind the subtree.
    int64_t kept = 0;  // Kept members in the subtree.
  };
  struct PlaceHash {
    size_t operator()(const RowPlace& place) const noexcept {
      return std::hash<int64_t>{}(place.line * 1'000'003 + place.ordinal);
    }
  };

  [[nodiscard]] const Span* Find(const RowPlace& row) const;

  std::unordered_map<RowPlace, Span, PlaceHash> spans_;
};

}  // namespace tarn::dataset::retention
