// Mapping: a MappingSpec compiled against a landing schema into one SQL statement.
//
// The statement reads the relation `tarn_input` (landed columns and tarn_row) and gives one row per
// input row, or per array element, also for rows that are rejected: a conversion error never stops
// the batch. outcome.h takes its result apart.
//
// Rules. An expression that fails, in `columns` or in any other key, rejects the row
// (expression_failed). A value that does not fit its declared `type`, or only after rounding a
// number given as text, decimal or (to an integer type) double, is a cast error: it rejects the row
// (cast_failed) or becomes NULL, as `on_cast_error` says. `where` drops a row unless it is true;
// the other rules do not look at dropped rows. Checks run in the order key, expect; the first
// failure counts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/engine/engine.h"
#include "tarn/transform/mapping_spec.h"

namespace tarn::transform {

/// Name of the relation that the statement reads.
inline constexpr std::string_view kInputRelation = "tarn_input";

// Hidden columns. tarn_row is the one that the input must have as well.
inline constexpr std::string_view kRowColumn = "tarn_row";          // int64: order in the batch.
inline constexpr std::string_view kElementColumn = "tarn_element";  // int64: 0, or index from 0.
inline constexpr std::string_view kBeforeColumn = "tarn_before";    // bool: a before image.
inline constexpr std::string_view kOutcomeColumn = "tarn_outcome";  // utf8: NULL = good, or code.
inline constexpr std::string_view kOutcomeTextColumn = "tarn_outcome_text";  // utf8
inline constexpr std::string_view kLandedColumn = "tarn_landed";  // utf8: JSON, rejected rows only.
inline constexpr std::string_view kWarningsColumn = "tarn_warnings";      // int64: bit per expect.
inline constexpr std::string_view kNullChecksColumn = "tarn_null_checks";  // int64: bit per expect.
inline constexpr std::string_view kNullCastsColumn = "tarn_null_casts";    // int64: how many.
inline constexpr std::string_view kDeleteColumn = "tarn_delete";           // bool, never NULL.
inline constexpr std::string_view kSequenceColumn = "tarn_sequence";       // With sequence_by.
inline constexpr std::string_view kEventTimeColumn = "tarn_event_time";    // timestamptz.

/// Landed header columns that go through under their own names when the input has them.
const std::vector<std::string>& PassedHeaderColumns();

/// One column of the table.
struct MappedColumn {
  std::string name;
  std::shared_ptr<arrow::DataType> type;  // Of the table: boolean int32 int64 float double
                                          // decimal128 utf8 binary date32 time64(us)
                                          // timestamp(us[, UTC]) arrow.uuid list struct map.
  bool hashed = false;  // The statement gives the plain value; outcome.h hashes it.
};

/// Everything needed to run a mapping over batches of one landing schema. A value.
struct CompiledMapping {
  MappingSpec spec;
  std::string sql;
  std::vector<MappedColumn> columns;            // In table order.
  std::vector<int> key_columns;                 // Indexes in `columns`, in key order.
  std::vector<std::string> landed_columns;      // Columns of the input that the statement reads.
  std::vector<std::string> passed_columns;      // Of PassedHeaderColumns(), those there are.
  std::shared_ptr<arrow::DataType> sequence_type;  // Null without sequence_by.
  std::shared_ptr<arrow::Schema> result;        // Of the statement: columns, then hidden columns.
  bool has_elements = false;                    // Rows come from array elements.
};

/// Compiles `spec` against the columns of a landing dataset (hdr__ columns included, tarn_row not).
///
/// `session` parses and binds; nothing is read. Order of the columns: landed ones in source order,
/// with replaced ones in place, then added ones. Landed hdr__ columns are left out unless an
/// expression names them; a column whose array elements are chosen is left out, too.
/// Errors: kInvalidArgument naming the target, the key of the file and what was found: an expression
/// that is not scalar, an unknown column, two columns of one name (both are named), two array paths
/// (both are named), a key that is missing, nested, float or double, a type without counterpart.
Result<CompiledMapping> CompileMapping(engine::Session& session, const MappingSpec& spec,
                                       const arrow::Schema& landed);

/// The type that a table column of this type gets: int8, int16, uint8, uint16 -> int32; uint32 ->
/// int64; uint64 -> decimal(20, 0); timestamps -> microseconds; large and fixed types -> plain
/// ones; null -> utf8; at every level. Errors: kInvalidArgument on a type without counterpart.
Result<std::shared_ptr<arrow::DataType>> TableType(const arrow::DataType& type);

}  // namespace tarn::transform
