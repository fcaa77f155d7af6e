// DatasetStore: increments of a branch since a transaction.
#include "tarn/dataset/increment.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "tarn/dataset/ancestry.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/dataset/errors.h"
#include "tarn/dataset/in_sql.h"
#include "tarn/dataset/net_change.h"
#include "tarn/dataset/page_token.h"
#include "tarn/dataset/rows.h"
#include "tarn/dataset/view_lineage.h"

namespace tarn::dataset {

using metastore::SqlTransaction;

namespace {

constexpr int kPageSizeMax = 50'000;
constexpr size_t kChangesPerRead = 500;
constexpr int64_t kRowsPerRead = 16'384;
constexpr std::array<std::string_view, 5> kReasonNames = {"none", "snapshot", "overwrite", "delete",
                                                          "diverged"};

// A page's work: what is known before its files are read.
struct Plan {
  std::optional<TransactionRow> since;
  std::optional<TransactionRow> head;
  std::optional<IncrementReason> reason;  // Empty: to be found in the changes.
  Lineage changes;
  ChangedPaths::Position position;  // With `since`.
  std::string from_path;            // Without: the whole view is added, in path order.
};

// Reads the page token into the plan, or the branch's head when there is none.
Result<Plan> PlanStart(SqlTransaction& sql, const DatasetRow& dataset, std::string_view branch,
                       const std::optional<TransactionRid>& since, std::string_view token) {
  Plan plan;
  if (since) {
    TARN_ASSIGN_OR_RETURN(plan.since, LoadTransaction(sql, dataset, *since));
    if (plan.since->state != TransactionState::kCommitted) {
      return TransactionNotCommitted(dataset.dataset.rid, *since, plan.since->state);
    }
  }
  TARN_ASSIGN_OR_RETURN(const BranchRow branch_row, LoadBranch(sql, dataset, branch));
  if (token.empty()) {
    if (branch_row.head_id) {
      TARN_ASSIGN_OR_RETURN(plan.head, LoadTransactionById(sql, *branch_row.head_id));
    }
    return plan;
  }
  TARN_ASSIGN_OR_RETURN(const std::vector<std::string> fields,
                        DecodePageToken(TokenKind::kIncrement, 6, token));
  const std::optional<TransactionRid> head = RidOfTokenBytes(fields[1]);
  const size_t reason = fields[2].empty() ? 99 : static_cast<size_t>(fields[2][0] - '0');
  if (RidOfTokenBytes(fields[0]) != since || !head || reason >= kReasonNames.size()) {
    return InvalidPageToken(token);
  }
  const Result<TransactionRow> row = LoadTransaction(sql, dataset, *head);
  if (!row.ok()) {
    return row.status().code() == ErrorCode::kNotFound ? InvalidPageToken(token) : row.status();
  }
  plan.head = *row;
  plan.reason = static_cast<IncrementReason>(reason);
  plan.position = {.interval = std::strtoull(fields[3].c_str(), nullptr, 10),
                   .ordinal = std::strtoll(fields[4].c_str(), nullptr, 10),
                   .path = fields[5]};
  plan.from_path = fields[5];
  return plan;
}

// Decides what can be decided without looking at files, and which transactions to read.
Status PlanChanges(SqlTransaction& sql, Plan& plan) {
  if (!plan.since) {
    plan.reason = IncrementReason::kNone;
    return Status::Ok();
  }
  if (!plan.head) {
    plan.reason = IncrementReason::kDiverged;
    return Status::Ok();
  }
  if (!plan.reason) {
    TARN_ASSIGN_OR_RETURN(const bool on_path, IsAncestor(sql, *plan.since, *plan.head));
    if (!on_path) {
      plan.reason = IncrementReason::kDiverged;
      return Status::Ok();
    }
    if (plan.since->depth < plan.head->view_start_depth) {
      plan.reason = IncrementReason::kSnapshot;
      return Status::Ok();
    }
    const auto overwritten = [](const TransactionRow& row) {
      return row.base_overwritten + row.overwritten_count;
    };
    const auto removed = [](const TransactionRow& row) {
      return row.base_removed + row.removed_count;
    };
    if (overwritten(*plan.head) == overwritten(*plan.since) &&
        removed(*plan.head) == removed(*plan.since)) {
      plan.reason = IncrementReason::kNone;
    }
  }
  TARN_ASSIGN_OR_RETURN(plan.changes, ChangesBetween(sql, plan.since->lineage, plan.head->lineage));
  return Status::Ok();
}

// Sorts net changes into the lists of a page. One owner thread.
class Sorter {
 public:
  explicit Sorter(IncrementPage& page) : page_(page) {}

  Status Add(SqlTransaction& sql, const DatasetRow& dataset, NetChange net) {
    if (net.difference.before && net.difference.after) {
      page_.changed.push_back(*std::move(net.difference.after));
    } else if (net.difference.after) {
      page_.added.push_back(*std::move(net.difference.after));
    } else {
      auto known = by_retention_.find(net.by);
      if (known == by_retention_.end()) {
        TARN_ASSIGN_OR_RETURN(const TransactionRow row, LoadTransaction(sql, dataset, net.by));
        known = by_retention_.emplace(net.by, row.by_retention).first;
      }
      (known->second ? page_.removed_by_retention : page_.removed)
          .push_back(*std::move(net.difference.before));
    }
    return Status::Ok();
  }

  [[nodiscard]] size_t size() const {
    return page_.added.size() + page_.changed.size() + page_.removed.size() +
           page_.removed_by_retention.size();
  }

 private:
  IncrementPage& page_;
  std::map<TransactionRid, bool> by_retention_;
};

// Reads changes from `paths` on until the page has `size` of them; returns whether more may come.
Result<bool> FillPage(metastore::Database& database, const DatasetRow& dataset, const Plan& plan,
                      ChangedPaths& paths, size_t size, IncrementPage& page) {
  Sorter sorter(page);
  bool more = true;
  while (more && sorter.size() < size) {
    const Status read = database.Read([&](SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(const std::vector<ChangedPaths::Change> changes,
                            paths.Next(sql, std::min(size - sorter.size(), kChangesPerRead)));
      more = !changes.empty();
      for (const ChangedPaths::Change& change : changes) {
        TARN_ASSIGN_OR_RETURN(std::optional<NetChange> net,
                              FindNetChange(sql, plan.changes, plan.since->lineage, change));
        if (net) {
          TARN_RETURN_IF_ERROR(sorter.Add(sql, dataset, *std::move(net)));
        }
      }
      return Status::Ok();
    });
    TARN_RETURN_IF_ERROR(read);
  }
  return more;
}

// Looks at every change until one says that the increment must be refused.
Result<IncrementReason> FindReason(metastore::Database& database, const DatasetRow& dataset,
                                   const Plan& plan) {
  ChangedPaths paths(plan.changes, {});
  bool removed = false;
  bool more = true;
  while (more) {
    IncrementPage page;
    TARN_ASSIGN_OR_RETURN(more, FillPage(database, dataset, plan, paths, kChangesPerRead, page));
    if (!page.changed.empty()) {
      return IncrementReason::kOverwrite;
    }
    removed = removed || !page.removed.empty();
  }
  return removed ? IncrementReason::kDelete : IncrementReason::kNone;
}

std::string TokenFor(const Plan& plan, const ChangedPaths::Position& position) {
  std::optional<TransactionRid> since;
  if (plan.since) {
    since = plan.since->rid;
  }
  const auto reason = static_cast<char>('0' + static_cast<int>(*plan.reason));
  return EncodePageToken(
      TokenKind::kIncrement,
      {TokenBytes(since), TokenBytes(plan.head->rid), std::string(1, reason),
       std::to_string(position.interval), std::to_string(position.ordinal), position.path});
}

// The first increment of a consumer: every file of the view is new to it.
Status FillWholeView(metastore::Database& database, const Plan& plan, int page_size,
                     IncrementPage& page) {
  const auto size = static_cast<size_t>(page_size);
  FileScan scan(plan.head->lineage, {}, plan.from_path);
  while (!scan.done() && page.added.size() < size) {
    TARN_RETURN_IF_ERROR(database.Read([&](SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(const std::span<const File> files,
                            scan.Next(sql, size - page.added.size(), kRowsPerRead));
      page.added.insert(page.added.end(), files.begin(), files.end());
      return Status::Ok();
    }));
  }
  if (!scan.done()) {
    page.next_page_token = TokenFor(plan, {.interval = 0, .ordinal = 0, .path = scan.position()});
  }
  return Status::Ok();
}

}  // namespace

std::string_view IncrementReasonName(IncrementReason reason) {
  return kReasonNames.at(static_cast<size_t>(reason));
}

Result<IncrementPage> DatasetStore::ReadIncrement(const DatasetRid& dataset,
                                                  std::string_view branch,
                                                  const std::optional<TransactionRid>& since,
                                                  const IncrementOptions& options) {
  TARN_RETURN_IF_ERROR(CheckPageSize(options.page_size, kPageSizeMax));
  DatasetRow dataset_row;
  TARN_ASSIGN_OR_RETURN(Plan plan, InRead(database_, [&](SqlTransaction& sql) -> Result<Plan> {
                          TARN_ASSIGN_OR_RETURN(dataset_row, LoadDataset(sql, dataset));
                          TARN_ASSIGN_OR_RETURN(Plan started, PlanStart(sql, dataset_row, branch,
                                                                        since, options.page_token));
                          TARN_RETURN_IF_ERROR(PlanChanges(sql, started));
                          return started;
                        }));
  if (!plan.reason) {
    TARN_ASSIGN_OR_RETURN(plan.reason, FindReason(database_, dataset_row, plan));
  }
  IncrementPage page{.incremental = *plan.reason == IncrementReason::kNone,
                     .reason = *plan.reason,
                     .head = std::nullopt,
                     .added = {},
                     .changed = {},
                     .removed = {},
                     .removed_by_retention = {},
                     .next_page_token = std::nullopt};
  if (!plan.head) {
    return page;
  }
  page.head = plan.head->rid;
  if (page.reason == IncrementReason::kDiverged || page.reason == IncrementReason::kSnapshot) {
    return page;
  }
  if (!since) {
    TARN_RETURN_IF_ERROR(FillWholeView(database_, plan, options.page_size, page));
    return page;
  }
  ChangedPaths paths(plan.changes, plan.position);
  TARN_ASSIGN_OR_RETURN(const bool more, FillPage(database_, dataset_row, plan, paths,
                                                  static_cast<size_t>(options.page_size), page));
  if (more) {
    page.next_page_token = TokenFor(plan, paths.position());
  }
  return page;
}

}  // namespace tarn::dataset
