// Array paths in expressions: `items[].sku` means a field of each element of the array `items`.
//
// A path is replaced by a column that holds one element; the statement makes one row per element.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"

namespace tarn::transform {

/// One array whose elements become rows.
struct ArrayLevel {
  std::string path;                // "items[]" or "orders[].lines[]", lower-case.
  std::string parent;              // Path of the array around it, empty for a landed column.
  std::vector<std::string> names;  // Names from the landed column, or from the parent's element.
  std::string column;              // Name of the column that holds the element.
  friend bool operator==(const ArrayLevel&, const ArrayLevel&) = default;
};

/// Replaces the array paths of all expressions of a mapping. One owner thread.
class ArrayPaths {
 public:
  /// `landed`: names of the landed columns; only paths that begin with one are array paths.
  explicit ArrayPaths(const std::vector<std::string>& landed);

  /// `text` with the part of each array path up to its last [] replaced by a quoted column.
  std::string Replace(std::string_view text);

  /// The arrays met so far, outer ones first.
  ///
  /// Errors: kInvalidArgument naming both paths when two arrays do not lie inside each other,
  /// unless `zip`: then all must be arrays of landed columns; or when arrays nest more than two
  /// deep.
  [[nodiscard]] Result<std::vector<ArrayLevel>> Plan(bool zip) const;

 private:
  std::string ColumnOf(const std::vector<std::vector<std::string>>& segments);

  std::set<std::string> landed_;    // Lower-case.
  std::vector<ArrayLevel> levels_;  // In order of first use.
};

}  // namespace tarn::transform
