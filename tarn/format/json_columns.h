// JsonColumns: JSON objects in, Arrow record batches out, with columns and types found on the way.
//
// Nothing is lost to a type: a column widens in place (int64 to DECIMAL(38,0) to STRING, to DOUBLE
// only where every value is exact in one, scalars against objects and arrays to STRING holding the
// JSON text), within a batch and, through ColumnSet, from batch to batch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/format/column_set.h"
#include "tarn/format/json_tape.h"
#include "tarn/format/logical_schema.h"
#include "tarn/format/record_error.h"

namespace tarn::format {

enum class NumberMode : uint8_t {
  kExact,
  kDouble,  // A fraction, an exponent or an integer beyond int64 makes a DOUBLE, rounded.
};

struct JsonColumnsOptions {
  NumberMode numbers = NumberMode::kExact;
  bool infer_times = false;        // ISO dates and timestamps in strings get their type.
  bool track_absent = false;       // JsonBatch::absent also names columns a record did not carry.
  std::vector<Field> declared;     // Types that win over inference.
  size_t columns_max = 2000;       // Top-level columns; a record that needs more fails.
  size_t struct_fields_max = 500;  // A nested object with more different names becomes STRING.
  int nesting_max = 24;            // What is nested deeper becomes STRING holding JSON.
};

/// How often the rules about names and values were needed, since Make.
struct JsonCounters {
  uint64_t repeated_members = 0;  // Names met twice in one object, also those equal but for case.
  // Names met that start with hdr__ or tarn_ and got a _ in front, or have NUL and got _ for it.
  uint64_t renamed_columns = 0;
  uint64_t ignored_members = 0;  // Members that a declared struct does not have.
  uint64_t nulled_values = 0;    // Infinite or out-of-range dates and timestamps made NULL.
  friend bool operator==(const JsonCounters&, const JsonCounters&) = default;
};

/// What accompanies one record.
struct JsonRowOptions {
  const LogicalSchema* schema = nullptr;          // Of the record; null = infer.
  std::span<const std::string_view> unavailable;  // Members whose value the source left out: NULL
                                                  // and named in JsonBatch::absent.
};

struct JsonBatch {
  std::shared_ptr<arrow::RecordBatch> batch;
  /// Per row a JSON array of column names, or NULL; null pointer when no row has any.
  std::shared_ptr<arrow::Array> absent;
};

/// Collects rows of one batch after the other. One owner thread. Memory: the batch.
class JsonColumns {
 public:
  /// `start` is the state after the batches before. Declared columns of `options` that it lacks are
  /// added, those that it has take the declared type.
  /// Errors: kInvalidArgument on declared names that are equal but for case or have NUL, and on a
  /// declared type that does not hold what the column has held so far (both types are named).
  static Result<std::unique_ptr<JsonColumns>> Make(JsonColumnsOptions options,
                                                   ColumnSet start = {});
  ~JsonColumns();
  JsonColumns(const JsonColumns&) = delete;
  JsonColumns& operator=(const JsonColumns&) = delete;

  /// Appends a row. After a failure no trace of the record is left, except that columns may have
  /// widened. Errors: kNotAnObject, kTypeMismatch, kTooManyColumns (text names the column).
  RecordFailure Append(JsonValue object, const JsonRowOptions& row = {});
  /// Takes the last appended row back; at most once per Append.
  void RollBack();

  [[nodiscard]] int64_t row_count() const;
  /// Bytes the values take in memory, roughly.
  [[nodiscard]] int64_t size_bytes() const;
  [[nodiscard]] const JsonCounters& counters() const;

  /// The rows since the last Finish, and an empty batch to go on with. Columns that are known but
  /// had no row are there too, all NULL.
  /// Errors: kResourceExhausted (memory, or a column of more than 2 GiB).
  Result<JsonBatch> Finish();
  /// Columns and types as of now.
  [[nodiscard]] ColumnSet column_set() const;

 private:
  class Rows;
  explicit JsonColumns(std::unique_ptr<Rows> rows);
  std::unique_ptr<Rows> rows_;
};

}  // namespace tarn::format
