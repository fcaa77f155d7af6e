// Lineage: which transactions a file view is made of, as a few intervals. Pure; no I/O.
//
// A line is a surrogate id with an ordinal counter that never goes back. Every transaction has a
// (line, ordinal). A SNAPSHOT, a branch that leaves another, and a checkpoint open a new line.
// File rows are keyed by the view root they belong to: the line that starts the view. The view at
// a transaction is made of the rows of its root whose (line, ordinal) lies in its intervals; per
// path the row with the greatest (interval index, ordinal) wins.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"

namespace tarn::dataset {

using LineId = int64_t;

/// The transactions of `line` with ordinals in (after, through], whose rows lie under `root`.
struct Interval {
  LineId root = 0;
  LineId line = 0;
  int64_t after = 0;
  int64_t through = 0;

  [[nodiscard]] bool Contains(LineId other_line, int64_t ordinal) const {
    return other_line == line && ordinal > after && ordinal <= through;
  }
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// Oldest first; (line, ordinal) pairs are disjoint; none is empty.
using Lineage = std::vector<Interval>;

/// The lineage of a transaction at (line, ordinal) started on top of `base`, under `root`: grows
/// the last interval when it is of that line and root, else adds one.
Lineage Extend(Lineage base, LineId root, LineId line, int64_t ordinal);

/// The part of `lineage` that begins with (line, ordinal), or nothing when it is not covered.
std::optional<Lineage> CutBefore(const Lineage& lineage, LineId line, int64_t ordinal);

/// What `from` covers and `without` does not, in the order of `from`.
Lineage Subtract(const Lineage& from, const Lineage& without);

/// Index of the interval that covers (line, ordinal).
std::optional<size_t> FindInterval(const Lineage& lineage, LineId line, int64_t ordinal);

/// Text for the metastore: "root:line:after:through" joined by ','.
std::string EncodeLineage(const Lineage& lineage);
/// Errors: kCorruption.
Result<Lineage> DecodeLineage(std::string_view text);

}  // namespace tarn::dataset
