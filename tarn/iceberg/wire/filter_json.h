// FilterJson: row filters as the REST catalog's protocol writes them.
//
//   true | false | {"type":"true"} | {"type":"and"|"or","left":F,"right":F} |
//   {"type":"not","child":F}
//   {"type":"is-null"|"not-null"|"is-nan"|"not-nan","term":T}
//   {"type":"lt"|"lt-eq"|"gt"|"gt-eq"|"eq"|"not-eq"|"starts-with"|"not-starts-with",
//    "term":T,"value":V}
//   {"type":"in"|"not-in","term":T,"values":[V,…]}
//   T: "name" | {"type":"reference","term":"name"} | {"type":"transform","transform":…,"term":T}
//   V: a JSON value | {"type":"literal","value":…}
#pragma once

#include "tarn/base/status.h"
#include "tarn/iceberg/expression.h"
#include "tarn/iceberg/json.h"
#include "tarn/iceberg/schema.h"

namespace tarn::iceberg {

/// The schemas that a filter goes through.
struct FilterSchemas {
  const Schema& named;    // Whose names the filter has.
  const Schema& planned;  // Whose names the result has: that of the snapshot that is read.
  CaseRule rule = CaseRule::kSensitive;
};

/// A filter that no row which passes `json` fails: what planning cannot decide is left out, that is
/// predicates on nested columns, on transforms of columns and on columns that the planned schema
/// does not have. Rows with null may match what asks for unequal values. Without `not`.
/// Errors: kInvalidArgument naming what is wrong: unknown types and columns, values that are none
/// of the column's type, more than 200 levels.
Result<Expression> FilterFromJson(const Json& json, const FilterSchemas& schemas);

}  // namespace tarn::iceberg
