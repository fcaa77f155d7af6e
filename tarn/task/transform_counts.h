// TransformCounts: what a transform task counts of the rows that it takes in.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tarn::task {

/// Counted since the task was opened. Value.
struct TransformCounts {
  int64_t rows_in = 0;
  int64_t rows_out = 0;
  int64_t rejected = 0;
  int64_t filtered = 0;  // By where, expectations and empty arrays.
  int64_t null_casts = 0;
  int64_t null_checks = 0;
  std::map<std::string, int64_t> warned{};     // Expectation -> rows that failed it and went on.
  std::map<std::string, int64_t> unchecked{};  // Expectation -> rows whose check was NULL.
  int64_t noop_deletes = 0;
  int64_t truncates = 0;  // Of a source's table, which are not applied.
  int64_t applies = 0;
};

}  // namespace tarn::task
