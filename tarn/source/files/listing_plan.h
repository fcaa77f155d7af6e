// ListingPlan: which places of a bucket to list for a window of time. Pure.
//
// With a date in the pattern the plan covers [last complete date − look-back, now] and what is
// expected next, so its size depends on the window, never on the bucket.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/source/files/path_pattern.h"

namespace tarn::source::files {

/// What to do with files whose date has not come.
enum class FuturePolicy { kWait, kRead };

struct ListingOptions {
  std::chrono::milliseconds look_back = std::chrono::hours(24);
  FuturePolicy future = FuturePolicy::kWait;
  /// Prefixes of one pattern: with more, coarser ones are listed (days instead of minutes).
  size_t prefixes_max = 64;
};

/// One range of keys: all that begin with `prefix` and follow `start_after`.
struct ListingStep {
  std::string prefix;
  std::string start_after;  // Empty = from the beginning.
  friend bool operator==(const ListingStep&, const ListingStep&) = default;
};

struct ListingPlan {
  std::vector<ListingStep> steps;  // In date order; none lies in another.
  Timestamp window_begin{};        // Files dated wholly before are not looked for.
  bool whole = false;              // No window: everything below the literal prefix.
  friend bool operator==(const ListingPlan&, const ListingPlan&) = default;
};

/// Plans one poll of one pattern. `complete_until`: up to where everything has been found
/// (FilesListed); empty on the first poll, which then begins at `from`, or lists everything.
ListingPlan PlanListing(const PathPattern& pattern, const ListingOptions& options,
                        std::optional<Timestamp> complete_until, std::optional<Timestamp> from,
                        Timestamp now);

}  // namespace tarn::source::files
