// TaskLag: what has landed and was not yet read by a transform. Only for this room.
#pragma once

#include <cstdint>
#include <optional>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"
#include "tarn/metastore/database.h"
#include "tarn/pipeline/pipeline_spec.h"
#include "tarn/task/control.h"

namespace tarn::task {

struct TransformLag {
  int64_t rows = 0;
  int64_t bytes = 0;  // Of the files of the transactions.
  std::optional<Timestamp> since;  // Commit time of the oldest transaction that waits.
};

/// Counts at most the newest 10,000 transactions of each input. Cost: O(transactions not read).
Result<TransformLag> ReadTransformLag(metastore::SqlTransaction& sql, const ControlDeps& deps,
                                      const pipeline::PipelineSpec& spec,
                                      const pipeline::TransformSpec& transform);

}  // namespace tarn::task
