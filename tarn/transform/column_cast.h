// SQL of turning a value into the type of its table column. Pure.
#pragma once

#include <memory>
#include <string>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"

namespace tarn::transform {

/// How one value is cast.
struct ColumnCast {
  std::string cast;   // Of `raw`; NULL where it does not fit. Equal to `raw` when nothing is to do.
  std::string fails;  // Condition over `raw` and `done`; empty when the cast cannot fail.
};

/// Cast of the SQL value `raw` of type `from` to `to`; `done` is the SQL name under which the value
/// of `cast` is at hand in `fails`.
///
/// Besides what the engine refuses, these do not fit: what would be rounded on its way between
/// text, decimals, integers and doubles, in either direction; nanoseconds; a text beyond the range
/// of float or double. A double is a decimal when the decimal is the shortest way to write it.
/// Errors: kInvalidArgument on a type without counterpart.
Result<ColumnCast> PlanCast(const std::string& raw, const std::string& done,
                            const arrow::DataType& from, const arrow::DataType& to);

/// The same for a column whose type nobody named, but whose table has had another one since before
/// the values changed: a text that only looks like an integer does not fit, such as one with
/// blanks, a plus sign or leading zeros. "01" is another value than 1.
Result<ColumnCast> PlanImpliedCast(const std::string& raw, const std::string& done,
                                   const arrow::DataType& from, const arrow::DataType& to);

}  // namespace tarn::transform
