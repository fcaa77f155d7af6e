#include "tarn/lakehouse/apply_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tarn::lakehouse {

namespace {
// A row of a pass: its change, its outcome, its slot with base and start, its place in the index.
constexpr int64_t kPassBytesPerRow = 220;
// At most this share of a file may be dead rows before it is rewritten.
constexpr double kDeadShareMax = 0.2;
constexpr double kBehindRatio = 0.5;
constexpr int64_t kBehindRowsMin = 1'000'000;
constexpr int64_t kBehindFactor = 8;
}  // namespace

ApplyThresholds WhileBehind(const ApplyThresholds& thresholds) {
  ApplyThresholds behind = thresholds;
  behind.rows_ratio = std::max(thresholds.rows_ratio, kBehindRatio);
  behind.rows_min = std::max(thresholds.rows_min, kBehindRowsMin);
  const auto grown = [](int64_t value) {
    return value > INT64_MAX / kBehindFactor ? INT64_MAX : value * kBehindFactor;
  };
  behind.bytes = grown(thresholds.bytes);
  behind.files = grown(thresholds.files);
  return behind;
}

bool IsApplyDue(const UnappliedWork& work, const ApplyThresholds& thresholds, Timestamp now) {
  if (work.rows == 0) {
    return false;
  }
  const auto share = static_cast<int64_t>(
      std::ceil(thresholds.rows_ratio * static_cast<double>(work.current_rows)));
  const bool too_old =
      thresholds.age_max && work.oldest && now - *work.oldest >= *thresholds.age_max;
  return work.rows >= std::max(share, thresholds.rows_min) || work.bytes >= thresholds.bytes ||
         work.files >= thresholds.files || too_old;
}

FileAction ChooseFileAction(int64_t row_count, int64_t dead_before, int64_t dead_after) {
  if (dead_after == dead_before) {
    return FileAction::kKeep;
  }
  if (dead_after >= row_count) {
    return FileAction::kRemove;
  }
  return static_cast<double>(dead_after) > kDeadShareMax * static_cast<double>(row_count)
             ? FileAction::kRewrite
             : FileAction::kWriteDeletes;
}

int64_t PassCount(int64_t change_rows, int64_t key_bytes_per_row, uint64_t memory_bytes) {
  const int64_t bytes = change_rows * (kPassBytesPerRow + key_bytes_per_row);
  // The other half of the memory is for the batches read and the row groups written.
  const auto budget = static_cast<int64_t>(std::max<uint64_t>(memory_bytes / 2, 1 << 20));
  return std::max<int64_t>(1, (bytes + budget - 1) / budget);
}

}  // namespace tarn::lakehouse
