// Merge: what one branch changed since the two parted, applied to another. Three-way, by path.
//
// The common base is the newest transaction that both sides contain, earlier merges counted as
// containing what they merged. A path that only one side changed takes that side's state; one that
// both changed alike stays; one that both changed differently is a conflict and needs a choice.
// The result is one UPDATE transaction on the target, which may also take paths out of the view.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/dataset/dataset_store.h"
#include "tarn/dataset/ids.h"
#include "tarn/metastore/database.h"

namespace tarn::dataset::branching {

enum class MergeSide : uint8_t { kSource, kTarget };
enum class MergeMode : uint8_t { kDo, kDryRun };

struct MergeRequest {
  DatasetRid dataset;
  std::string target;                        // A branch.
  ViewSelector source;                       // A branch or a committed transaction.
  std::map<std::string, MergeSide> choices;  // For conflicting paths; others are ignored.
  std::optional<MergeSide> otherwise;        // For conflicts without a choice.
  MergeMode mode = MergeMode::kDo;
  Timestamp now{};  // Of the files it takes.
  std::string by;
};

enum class MergeOutcome : uint8_t {
  kUpToDate,     // The target contains the source.
  kFastForward,  // The source contained the target: the branch was moved.
  kMerged,       // A transaction was committed.
  kConflicts,    // A dry run found conflicts without a choice.
};

/// "upToDate", "fastForward", "merged", "conflicts".
std::string_view MergeOutcomeName(MergeOutcome outcome);

struct MergeReport {
  MergeOutcome outcome = MergeOutcome::kUpToDate;
  std::optional<TransactionRid> head;   // Of the target, afterwards.
  std::optional<TransactionRid> base;   // What both had; empty = nothing.
  int64_t put = 0;                      // Paths that took the source's file.
  int64_t removed = 0;                  // Paths that the source removed.
  int64_t conflicts = 0;                // All, whether chosen or not.
  std::vector<std::string> unresolved;  // Conflicts without a choice, the first 100.
};

/// Merges. Nothing is visible until the whole is committed, and a target that moved meanwhile is
/// refused. Up to 5,000 changed paths are one write. More are registered in an OPEN transaction: a
/// crash then leaves it OPEN, to be aborted like any other.
///
/// Errors: BranchNotFound, TransactionNotFound; kConflict with reason MergeConflicts (parameters
/// paths, up to 100, and count), OpenTransactionAlreadyExists, or when the target moved;
/// TransactionDataRemovedByRetention when the base was swept. Cost: O(changes since the base).
Result<MergeReport> MergeBranch(metastore::Database& database, DatasetStore& datasets,
                                const MergeRequest& request);

}  // namespace tarn::dataset::branching
