// Expression: a row filter, used to leave out files that cannot hold a matching row.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/literal.h"
#include "tarn/iceberg/manifest.h"
#include "tarn/iceberg/partition_spec.h"
#include "tarn/iceberg/schema.h"

namespace tarn::iceberg {

enum class ExpressionKind : uint8_t {
  kTrue,
  kFalse,
  kAnd,
  kOr,
  kNot,
  kIsNull,
  kNotNull,
  kIsNan,
  kNotNan,
  kEqual,
  kNotEqual,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kIn,
  kNotIn,
  kStartsWith,
  kNotStartsWith,
};

/// A tree; a value. Predicates follow SQL: a null value matches none but kIsNull.
struct Expression {
  ExpressionKind kind = ExpressionKind::kTrue;
  std::vector<Expression> children;  // And, or: two or more; not: one.
  std::string column;                // Predicates: dotted name.
  int32_t field_id = 0;              // Predicates: set by Bind.
  std::vector<Literal> values;       // One; several for kIn and kNotIn.
  std::optional<Type> value_type;    // Type of `values` as given; empty = that of the column.

  static Expression True() { return {}; }
  static Expression False();
  static Expression And(Expression a, Expression b);
  static Expression Or(Expression a, Expression b);
  static Expression Not(Expression a);
  static Expression IsNull(std::string column);
  static Expression NotNull(std::string column);
  static Expression IsNan(std::string column);
  static Expression NotNan(std::string column);
  /// One of kEqual … kGreaterOrEqual, kStartsWith, kNotStartsWith.
  static Expression Compare(ExpressionKind kind, std::string column, Literal value,
                            std::optional<Type> value_type = std::nullopt);
  static Expression Equal(std::string column, Literal value);
  static Expression In(std::string column, std::vector<Literal> values);
  friend bool operator==(const Expression&, const Expression&) = default;
};

/// Text for messages: `(a > 5 and not b is null)`.
std::string FormatExpression(const Expression& expression);

/// Finds columns, casts values to their types and removes `not`. A comparison that a value outside
/// the column's range decides becomes true-for-not-null or false.
/// Errors: kInvalidArgument for an unknown or nested column, or a value that cannot be cast.
Result<Expression> Bind(const Expression& expression, const Schema& schema,
                        CaseRule rule = CaseRule::kSensitive);

// All below take bound expressions.

/// False only when no row of the file can match, by its counts and bounds.
bool MayMatchFile(const Expression& expression, const Schema& schema, const DataFile& file);
/// True only when every row of the file matches.
bool MustMatchFile(const Expression& expression, const Schema& schema, const DataFile& file);
/// False only when no row of a partition with these values can match.
bool MayMatchPartition(const Expression& expression, const Schema& schema,
                       const PartitionSpec& spec, const PartitionValues& values);
/// False only when no file of the manifest can match, by its partition summaries.
bool MayMatchManifest(const Expression& expression, const Schema& schema, const PartitionSpec& spec,
                      const ManifestFile& manifest);
/// What is left to check on rows of a partition: predicates that identity partition values decide
/// are gone.
Expression ResidualOf(const Expression& expression, const Schema& schema, const PartitionSpec& spec,
                      const PartitionValues& values);
/// Evaluates on one value: the predicate of a leaf.
bool Matches(const Expression& predicate, const Literal& value);

}  // namespace tarn::iceberg
