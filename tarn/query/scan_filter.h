// ScanFilter: conditions of a statement that every row of its only table must meet, so that files
// that cannot hold such a row are left out. The engine checks the rows all the same.
#pragma once

#include <string>
#include <vector>

#include "tarn/engine/select_check.h"
#include "tarn/iceberg/expression.h"
#include "tarn/iceberg/schema.h"

namespace tarn::query {

/// `column` compared with constants. Value.
struct ScanCondition {
  std::string column;  // As written; compared without case.
  iceberg::ExpressionKind kind = iceberg::ExpressionKind::kEqual;  // Also kIn.
  std::vector<iceberg::Literal> values;                            // Whole numbers or text.
  bool is_text = false;
  bool is_date = false;  // Text that the statement casts to a date or time.
  friend bool operator==(const ScanCondition&, const ScanCondition&) = default;
};

/// The conditions that WHERE joins by AND, where the statement reads one table in all and names it
/// in FROM alone; others are passed over. Pure.
std::vector<ScanCondition> FindConditions(const engine::SelectStatement& statement);

/// As a filter over a schema; conditions whose columns it lacks, or whose constants the engine
/// would not compare as the column's type does, are left out. Pure.
iceberg::Expression FilterOf(const std::vector<ScanCondition>& conditions,
                             const iceberg::Schema& schema);

}  // namespace tarn::query
