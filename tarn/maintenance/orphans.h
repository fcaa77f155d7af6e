// Orphans: files below a table's location that no version of its metadata refers to, left there by
// crashes and failed commits.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/catalog/catalog.h"

namespace tarn::maintenance {

/// Younger files may belong to a commit that is under way.
inline constexpr std::chrono::hours kOrphanAgeMin{72};

struct OrphansRequest {
  std::chrono::milliseconds older_than = kOrphanAgeMin;
  bool dry_run = true;
  size_t listed_max = 1000;  // Files named in the report.
};

struct OrphanFile {
  std::string uri;
  int64_t size_bytes = 0;
  Timestamp modified{};
};

struct OrphansReport {
  int64_t seen = 0;       // Objects below the location.
  int64_t found = 0;      // Orphans old enough.
  int64_t too_young = 0;  // Not referred to, but young.
  int64_t found_bytes = 0;
  int64_t removed = 0;
  int64_t left_behind = 0;        // Could not be deleted.
  std::vector<OrphanFile> files;  // The first ones found.
};

/// Finds orphans and, unless it is a dry run, deletes them. What counts as referred to: everything
/// that any snapshot of the table reaches, its metadata log, statistics, and what the published
/// tables of a pipeline's table reach. The table is read after the listing, so that what was
/// committed while it ran is referred to.
///
/// Errors: kInvalidArgument for an age below three days unless it is a dry run; kFailedPrecondition
/// when the table refers to a file outside of the store, or has gc.enabled = false and files are to
/// be deleted; kCorruption when a manifest cannot be read: then nothing is deleted.
/// Crash: some orphans are gone; the next run goes on.
Result<OrphansReport> FindOrphans(catalog::Catalog& catalog, const Rid& table,
                                  const OrphansRequest& request);

}  // namespace tarn::maintenance
