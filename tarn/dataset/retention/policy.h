// RetentionPolicy: which transactions of which datasets may lose their data, and after how long.
//
// A transaction without data is one whose view can no longer be read; what other views show of its
// files stays. docs/formats/retention.md has the JSON form.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"

namespace tarn::dataset::retention {

/// Datasets a policy is about: the named ones and those below the named folders and projects, or
/// all; of these only those that `derived` and `in_trash` fit. Value.
struct DatasetSelector {
  bool all = false;
  std::vector<std::string> datasets;  // RIDs, as all below.
  std::vector<std::string> folders;
  std::vector<std::string> projects;
  std::optional<bool> derived;   // Its newest commit names inputs.
  std::optional<bool> in_trash;  // Itself or a folder above it is trashed.

  friend bool operator==(const DatasetSelector&, const DatasetSelector&) = default;
};

/// Conditions that a transaction must meet, all of those given. Value.
struct TransactionSelector {
  std::vector<std::string> branch_in;      // It was written on a branch of these names.
  std::vector<std::string> branch_not_in;  // … on none of these.
  std::optional<int64_t> keep_newest;      // Not among the newest N of any selected branch.
  std::optional<int64_t> keep_views;       // Not in the last N views of any selected branch.
  std::optional<std::chrono::milliseconds> older_than;
  std::optional<std::chrono::milliseconds> view_older_than;  // So is its view's newest commit.
  bool no_file_in_active_view = false;                       // No branch's latest view has one.
  bool aborted = false;  // ABORTED ones, which other conditions never select.

  [[nodiscard]] bool SelectsBranch(const std::optional<std::string>& name) const;
  friend bool operator==(const TransactionSelector&, const TransactionSelector&) = default;
};

/// Whether files of a latest view may go, by a DELETE transaction.
enum class LatestView : uint8_t { kKeep, kDelete };

struct RetentionPolicy {
  std::string name;  // 1–256 characters, unique.
  DatasetSelector datasets;
  TransactionSelector transactions;
  std::chrono::milliseconds grace = std::chrono::hours(7 * 24);  // From mark to sweep.
  LatestView latest_view = LatestView::kKeep;

  friend bool operator==(const RetentionPolicy&, const RetentionPolicy&) = default;
};

/// Errors: kInvalidArgument (InvalidRetentionPolicy) naming the member, what was found and what
/// is expected; also for unknown members and for policies that select everything by omission.
Result<RetentionPolicy> ParsePolicy(std::string_view json);
std::string FormatPolicy(const RetentionPolicy& policy);

/// What a policy looks at of one transaction. Value.
struct TransactionFacts {
  bool aborted = false;
  std::optional<std::string> branch;  // Empty: its branch is gone.
  Timestamp closed_at{};
  Timestamp view_closed_at{};  // The newest commit of its view.
  bool among_newest = false;   // By the policy's keep_newest.
  bool in_kept_view = false;   // By its keep_views.
  bool in_active_view = true;  // Some latest view has one of its files.
};

/// Whether the conditions select a transaction. Pure.
bool Selects(const TransactionSelector& selector, const TransactionFacts& facts, Timestamp now);

}  // namespace tarn::dataset::retention
