// Deduplicator: drops rows whose `by` values were seen shortly before, across batches.
//
// A row is a duplicate when an earlier row with the same values was at most the window older, by
// event time; NULL values are values like any other. What was seen is kept for the window only. The
// state is rebuilt after a restart by showing it the rows of the last window again (Learn).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/transform/mapping_spec.h"

namespace tarn::transform {

/// One owner thread. Memory: about 100 bytes per distinct row of the window.
class Deduplicator {
 public:
  /// `time_column`: timestamp (microseconds) by which the window counts.
  Deduplicator(DeduplicateSpec spec, std::string time_column)
      : spec_(std::move(spec)), time_column_(std::move(time_column)) {}

  /// A boolean per row in order: true = keep. Rows without time are kept and not remembered.
  /// Errors: kInvalidArgument when a `by` column or the time column is missing or of another type.
  Result<std::shared_ptr<arrow::Array>> Keep(const arrow::RecordBatch& batch);
  /// Remembers rows that were kept before.
  Status Learn(const arrow::RecordBatch& batch);

  [[nodiscard]] size_t remembered() const { return seen_.size(); }

 private:
  void Forget();

  DeduplicateSpec spec_;
  std::string time_column_;
  int64_t newest_ = INT64_MIN;                     // Microseconds.
  std::unordered_map<std::string, int64_t> seen_;  // Hash of the values -> time of the kept row.
  std::multimap<int64_t, std::string> by_time_;    // The same, oldest first.
};

}  // namespace tarn::transform
