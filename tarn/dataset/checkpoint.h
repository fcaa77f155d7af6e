// Checkpoints: a copy of a head's view under a root of its own, so that reads of branches with a
// long or tangled history stay proportional to what they return.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tarn/dataset/ids.h"

namespace tarn::dataset {

/// When a head is worth a checkpoint.
struct CheckpointLimits {
  int intervals_max = 64;             // More intervals than this in the head's lineage.
  int64_t examined_per_returned = 4;  // A read examined more than this many rows per file.
  int64_t examined_min = 1000;        // … and at least this many.
  int64_t removed_max = 10'000;       // A DELETE took out more paths than this.
};

/// A branch whose head asked for a checkpoint.
struct CheckpointRequest {
  DatasetRid dataset;
  std::string branch;
};

enum class CheckpointOutcome {
  kPublished,
  kHeadMoved,  // The head moved or is OPEN; nothing was changed, ask again later.
  kNotNeeded,  // No committed head.
};

struct CheckpointOptions {
  int slice_millis_max = 5;  // Write lock held per slice.
};

}  // namespace tarn::dataset
