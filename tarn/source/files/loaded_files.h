// What happens to source files after the commit that loaded them: deleted, or moved aside.
//
// Landing calls these from its durable queue, after the commit, as often as it takes: both may be
// repeated after a crash at any point.
#pragma once

#include <string>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/source/files/file_ledger.h"
#include "tarn/storage/object_store.h"

namespace tarn::source::files {

enum class RunMode { kDoIt, kDryRun };

enum class RemovalOutcome {
  kRemoved,      // Deleted or moved (kDryRun: would be).
  kAlreadyGone,  // Nothing of that name any more.
  kChanged,      // Another version lies there now: left alone.
  kFailed,       // See status; try again later.
};

struct Removal {
  std::string key;
  RemovalOutcome outcome = RemovalOutcome::kRemoved;
  Status status;  // Of kFailed.
};

/// Deletes files that are still in the version that was loaded.
std::vector<Removal> RemoveLoaded(storage::ObjectStore& store,
                                  const std::vector<LedgerEntry>& loaded, VersionKind kind,
                                  RunMode mode);

/// Copies each to `<prefix>/<key>`, then deletes it as RemoveLoaded does. A copy of the same bytes
/// that is already there counts as made; another file there is kFailed with kAlreadyExists.
/// Errors: kInvalidArgument when `prefix` is no key. The caller makes sure that no pattern matches
/// what lies below it.
Result<std::vector<Removal>> MoveLoaded(storage::ObjectStore& store,
                                        const std::vector<LedgerEntry>& loaded, VersionKind kind,
                                        std::string_view prefix, RunMode mode);

}  // namespace tarn::source::files
