// Branch: a name, a pointer to the newest transaction, and perhaps a parent branch.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/dataset/ids.h"

namespace tarn::dataset {

inline constexpr std::string_view kDefaultBranch = "master";

/// Value, as it was when read.
struct Branch {
  std::string name;
  std::optional<TransactionRid> head;  // Newest committed; empty on a new root branch.
  std::optional<TransactionRid> open;  // The OPEN transaction on top of `head`.
  std::optional<std::string> parent;   // Name of the parent branch.
  Timestamp created_at{};
  std::string created_by;

  /// What the wire calls the branch's transaction: never an aborted one.
  [[nodiscard]] std::optional<TransactionRid> transaction() const { return open ? open : head; }

  friend bool operator==(const Branch&, const Branch&) = default;
};

/// Checks a branch name: UTF-8 of 1–256 characters, no leading or trailing blank, no control
/// characters, not shaped like a resource identifier or a UUID. Slashes and spaces are legal.
///
/// Errors: kInvalidArgument, reason InvalidBranchName.
Status CheckBranchName(std::string_view name);

struct CreateBranchOptions {
  /// Start where this branch stands, its OPEN transaction included.
  std::optional<std::string> from_branch;
  /// Or start at this committed transaction. Both empty: an empty root branch.
  std::optional<TransactionRid> from_transaction;
  std::string by;
};

struct BranchPage {
  std::vector<Branch> branches;  // By bytes of the name.
  std::optional<std::string> next_page_token;
};

/// One move of a branch's head.
struct ReflogEntry {
  Timestamp moved_at{};  // Strictly increases on a branch.
  std::optional<TransactionRid> from;
  std::optional<TransactionRid> to;
  std::string moved_by;
  friend bool operator==(const ReflogEntry&, const ReflogEntry&) = default;
};

struct ReflogPage {
  std::vector<ReflogEntry> entries;  // Newest first.
  std::optional<std::string> next_page_token;
};

}  // namespace tarn::dataset
