// ColumnSet: what is known of the columns of a landing dataset, kept with its schema so that types
// only ever widen from batch to batch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/format/field_type.h"

namespace tarn::format {

/// A column or nested field, and what decides how it may widen.
struct ColumnState {
  std::string name;
  // The type found so far. Children of `type` are not used: `children` below has them.
  FieldType type;
  bool declared = false;        // Given by the user: never widens; a value that does not fit fails.
  bool exact_in_double = true;  // Every number so far is exact as a double.
  int integer_digits = 0;       // Most digits before the point so far.
  int fraction_digits = 0;      // Most digits behind it.
  std::vector<ColumnState> children;
  friend bool operator==(const ColumnState&, const ColumnState&) = default;
};

struct ColumnSet {
  std::vector<ColumnState> columns;  // In order of first appearance.
  friend bool operator==(const ColumnSet&, const ColumnSet&) = default;
};

/// The fields a dataset schema shows.
std::vector<Field> FieldsOf(const ColumnSet& set);
/// Starts from a schema whose history is unknown, e.g. of a dataset written by others.
ColumnSet ColumnSetOf(const std::vector<Field>& fields);

/// JSON text, and back. Errors: kInvalidArgument.
std::string EncodeColumnSet(const ColumnSet& set);
Result<ColumnSet> DecodeColumnSet(std::string_view json);

}  // namespace tarn::format
