// Mapping: a MappingSpec compiled against a landing schema into one SQL statement.
//
// The statement reads the relation `tarn_input` (landed columns and tarn_row) and gives one row per
// input row, or per array element, also for rows that are rejected: a conversion error never stops
// the batch. outcome.h takes its result apart.
//
// Rules. `where` leaves a row out unless it is true. An expression that fails, in any key of the
// file, rejects the row (expression_failed). A value that does not fit its declared `type`, or only
// after rounding a number given as text, decimal or (to an integer type) double, is a cast error:
// it rejects the row (cast_failed) or becomes NULL, as `on_cast_error` says. The order is where,
// columns in table order, delete_when, sequence_by, event_time, NULL keys, expectations in file
// order; the first failure counts.
//
// In merge mode deletes (operation D, tombstones) pass `where` and the checks, and fail on their
// key only: a delete must not get lost because a column is missing. Truncates (T) never fail. But a
// `where` that reads header columns only (hdr__cdc_table, hdr__kafka_topic) is about the event, not
// the row: it leaves out deletes, updates and truncates as it leaves out any other row.
//
// With hdr__cdc_before, an update whose before image is there gives a second row, tarn_before =
// true, with the same tarn_row: the key as it was before, mapped by the same expressions. Its other
// columns are those of the after image. Mappings of array elements give no such rows.
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
#include "tarn/transform/table_type.h"

namespace tarn::transform {

/// Name of the relation that the statement reads.
inline constexpr std::string_view kInputRelation = "tarn_input";

// Hidden columns. tarn_row is the one that the input must have as well.
inline constexpr std::string_view kRowColumn = "tarn_row";  // int64: order in the batch.
// int64: index of the array element from 0; in nested arrays outer index * 2^31 + inner index.
inline constexpr std::string_view kElementColumn = "tarn_element";
inline constexpr std::string_view kBeforeColumn = "tarn_before";    // bool: a before image.
inline constexpr std::string_view kOutcomeColumn = "tarn_outcome";  // utf8: NULL = good, or code.
inline constexpr std::string_view kOutcomeTextColumn = "tarn_outcome_text";  // utf8
inline constexpr std::string_view kWarningsColumn = "tarn_warnings";       // int64: bit per expect.
inline constexpr std::string_view kNullChecksColumn = "tarn_null_checks";  // int64: bit per expect.
inline constexpr std::string_view kNullCastsColumn = "tarn_null_casts";    // int64: how many.
// bool, never NULL: the row deletes its key. Of a before image: `where` did not want it, so that
// its key was not in the table.
inline constexpr std::string_view kDeleteColumn = "tarn_delete";
inline constexpr std::string_view kEventTimeColumn = "tarn_event_time";  // timestamptz or NULL.
inline constexpr std::string_view kSequenceColumn = "tarn_sequence";     // With sequence_by.

/// Landed header columns that go through under their own names when the input has them.
const std::vector<std::string>& PassedHeaderColumns();

/// Positions of the hidden columns in the result, behind the `mapped` table columns.
struct ResultLayout {
  int mapped = 0;
  bool has_sequence = false;
  [[nodiscard]] int row() const { return mapped; }
  [[nodiscard]] int element() const { return mapped + 1; }
  [[nodiscard]] int before() const { return mapped + 2; }
  [[nodiscard]] int outcome() const { return mapped + 3; }
  [[nodiscard]] int outcome_text() const { return mapped + 4; }
  [[nodiscard]] int warnings() const { return mapped + 5; }
  [[nodiscard]] int null_checks() const { return mapped + 6; }
  [[nodiscard]] int null_casts() const { return mapped + 7; }
  [[nodiscard]] int deleted() const { return mapped + 8; }
  [[nodiscard]] int event_time() const { return mapped + 9; }
  [[nodiscard]] int sequence() const { return mapped + 10; }
  [[nodiscard]] int passed() const { return mapped + (has_sequence ? 11 : 10); }
};

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
  std::string sql{};  // Without ORDER BY: with RowOrder::kPreserve rows come in input order.
  std::vector<MappedColumn> columns{};        // In table order.
  std::vector<int> key_columns{};             // Indexes in `columns`, in key order.
  std::vector<std::string> landed_columns{};  // Columns of the input that the statement reads.
  std::vector<std::string> passed_columns{};  // Of PassedHeaderColumns(), those there are.
  std::shared_ptr<arrow::DataType> sequence_type{};  // Null without sequence_by.
  std::shared_ptr<arrow::Schema> result{};  // Of the statement: columns, then hidden columns.
  bool has_elements = false;                // Rows come from array elements.

  [[nodiscard]] ResultLayout layout() const {
    return {.mapped = static_cast<int>(columns.size()), .has_sequence = sequence_type != nullptr};
  }
};

/// What a table that is there asks of a column of the mapping.
struct ColumnFit {
  std::string column;                     // Compared without case.
  std::shared_ptr<arrow::DataType> type;  // Of the table; wins over that of the mapping.
  /// Column for values that do not fit `type`, behind all others: NULL where they fit, as `column`
  /// is where they do not. Empty: they are cast errors. Not for hashed columns and keys.
  std::string overflow{};
  std::shared_ptr<arrow::DataType> overflow_type{};
};

/// Compiles `spec` against the columns of a landing dataset (hdr__ columns included, tarn_row not).
///
/// `session` parses and binds; nothing is read, and what was registered as tarn_input is forgotten.
/// Order of the columns: landed ones in source order,
/// with replaced ones in place, then added ones. Landed hdr__ columns are left out unless an
/// expression names them; a column whose array elements are chosen is left out, too. An overflow
/// column is left out where every value fits.
/// Errors: kInvalidArgument naming the target, the key of the file and what was found: an
/// expression that is not scalar, an unknown column, two columns of one name (both are named), two
/// array paths (both are named), a key that is missing, nested, float or double, a type without
/// counterpart.
Result<CompiledMapping> CompileMapping(engine::Session& session, const MappingSpec& spec,
                                       const arrow::Schema& landed,
                                       const std::vector<ColumnFit>& fits = {});

}  // namespace tarn::transform
