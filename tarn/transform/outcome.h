// Taking the result of a compiled mapping apart: good rows, rejected rows, counts.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/transform/mapping.h"

namespace tarn::transform {

// Codes of kOutcomeColumn. The first four reject the row, the next two drop it, the last stops the
// task before anything of the batch is committed.
inline constexpr std::string_view kExpressionFailed = "expression_failed";
inline constexpr std::string_view kCastFailed = "cast_failed";
inline constexpr std::string_view kNullKey = "null_key";
inline constexpr std::string_view kExpectationFailed = "expectation_failed";
inline constexpr std::string_view kExpectationDropped = "expectation_dropped";
inline constexpr std::string_view kEmptyArray = "empty_array";
inline constexpr std::string_view kExpectationStopped = "expectation_stopped";

/// A landed row for the dead-letter dataset.
struct RejectedRow {
  int64_t row = 0;
  int64_t element = 0;
  std::string code;
  std::string text;
  std::string landed_json{};  // Filled by ReadLanded.
};

struct OutcomeCounts {
  int64_t good = 0;
  int64_t rejected = 0;
  int64_t dropped = 0;       // By an expectation.
  int64_t empty_arrays = 0;  // Dropped.
  int64_t null_casts = 0;
  std::map<std::string, int64_t> warnings{};     // Expectation -> rows.
  std::map<std::string, int64_t> null_checks{};  // Expectation -> rows whose check was NULL.
  friend bool operator==(const OutcomeCounts&, const OutcomeCounts&) = default;
};

/// One batch of a mapping's result. `good` has the mapped columns (hashed ones as utf8), then
/// tarn_row, tarn_element, tarn_before, tarn_delete, tarn_event_time, tarn_sequence (if any) and
/// the passed header columns; rows in the order of the result. A before image (tarn_before) comes
/// right behind the row of its change; without that row the change was rejected and the image means
/// nothing.
struct MappedBatch {
  std::shared_ptr<arrow::RecordBatch> good;
  std::vector<RejectedRow> rejected;
  OutcomeCounts counts;
};

/// Schema of MappedBatch::good.
std::shared_ptr<arrow::Schema> GoodSchema(const CompiledMapping& mapping);

/// Sorts the rows of one batch of the result by their outcome.
/// Errors: kFailedPrecondition naming the expectation when a row asks the task to stop.
Result<MappedBatch> SplitOutcome(const CompiledMapping& mapping, const arrow::RecordBatch& batch);

/// Fills `landed_json` of all rows by a second look at the relation tarn_input: the landed columns
/// as one JSON object, written as row_writer.h does. Call it when the statement's stream has ended.
/// Errors: kInternal when the relation no longer has one of the rows.
Status ReadLanded(engine::Session& session, std::vector<RejectedRow>& rows);

/// Counts the input rows that a result has rows of: the others `where` left out. Batches in order;
/// several rows, also in two batches, may come of one.
class InputRowCount {
 public:
  void Add(const CompiledMapping& mapping, const arrow::RecordBatch& batch);
  [[nodiscard]] int64_t rows() const { return rows_; }

 private:
  int64_t rows_ = 0;
  int64_t newest_ = -1;
};

/// Adds the counts of another batch.
void AddCounts(const OutcomeCounts& more, OutcomeCounts& total);

}  // namespace tarn::transform
