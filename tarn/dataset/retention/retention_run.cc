#include "tarn/dataset/retention/retention_run.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tarn/base/crash_point.h"
#include "tarn/dataset/file_scan.h"
#include "tarn/dataset/in_sql.h"
#include "tarn/dataset/retention/dataset_facts.h"
#include "tarn/dataset/retention/policy_store.h"
#include "tarn/dataset/rows.h"

namespace tarn::dataset::retention {

using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;

namespace {

constexpr int64_t kTransactionsPerPage = 200;
constexpr size_t kFilesPerDelete = 500;

// One policy that applies to the dataset being looked at.
struct Applied {
  StoredPolicy stored;
  KeptByPolicy kept;
};

struct Mark {
  int64_t policy_id = 0;
  Timestamp sweep_at{};
};

// What a page of transactions is to become.
struct PageChange {
  std::vector<std::pair<int64_t, Mark>> marked;
  std::vector<int64_t> unmarked;
};

// Works on one dataset. One owner thread.
class DatasetRun {
 public:
  DatasetRun(const RetentionDeps& deps, const RunOptions& options, DatasetRow dataset,
             RetentionReport& report)
      : deps_(deps),
        options_(options),
        dataset_(std::move(dataset)),
        report_(report),
        now_(deps.clock.Now()) {}

  Status Run(const std::vector<StoredPolicy>& policies) {
    TARN_RETURN_IF_ERROR(LoadPolicies(policies));
    report_.datasets += applied_.empty() ? 0 : 1;
    if (!applied_.empty()) {
      TARN_RETURN_IF_ERROR(LoadViewAges());
    }
    int64_t after = 0;
    do {
      if (options_.stop && options_.stop()) {
        report_.stopped = true;
        return Status::Ok();
      }
      TARN_ASSIGN_OR_RETURN(after, MarkPage(after));
    } while (after != 0);
    for (const Applied& policy : applied_) {
      if (policy.stored.policy.latest_view == LatestView::kDelete) {
        TARN_RETURN_IF_ERROR(CleanLatestViews(policy));
      }
    }
    return Status::Ok();
  }

 private:
  Status LoadPolicies(const std::vector<StoredPolicy>& policies) {
    return deps_.database.Read([&](SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(guarded_, LoadGuarded(sql, dataset_.id));
      for (const StoredPolicy& stored : policies) {
        TARN_ASSIGN_OR_RETURN(const bool applies,
                              AppliesTo(sql, stored.policy.datasets, dataset_.dataset.rid));
        if (applies) {
          TARN_ASSIGN_OR_RETURN(KeptByPolicy kept,
                                LoadKept(sql, stored.policy.transactions, guarded_));
          applied_.push_back({.stored = stored, .kept = std::move(kept)});
        }
      }
      return Status::Ok();
    });
  }

  Status LoadViewAges() {
    int64_t after = 0;
    do {
      TARN_RETURN_IF_ERROR(deps_.database.Read([&](SqlTransaction& sql) -> Status {
        TARN_ASSIGN_OR_RETURN(after, AddViewAges(sql, dataset_.id, after, ages_));
        return Status::Ok();
      }));
    } while (after != 0);
    return Status::Ok();
  }

  // Whether the policy selects the transaction. The costly condition is looked at last.
  Result<bool> IsSelected(const Applied& policy, const TransactionRow& row) {
    const TransactionSelector& selector = policy.stored.policy.transactions;
    const auto age = ages_.find(row.view_start());
    TransactionFacts facts{.aborted = row.state == TransactionState::kAborted,
                           .branch = guarded_.NameOf(row.branch_id),
                           .closed_at = row.closed_at.value_or(now_),
                           .view_closed_at = age == ages_.end() ? now_ : age->second,
                           .among_newest = policy.kept.newest.contains(row.id),
                           .in_kept_view = policy.kept.views.contains(row.view_start()),
                           .in_active_view = false};
    if (!Selects(selector, facts, now_)) {
      return false;
    }
    if (!selector.no_file_in_active_view || facts.aborted) {
      return true;
    }
    TARN_ASSIGN_OR_RETURN(facts.in_active_view, HasFileInActiveView(deps_.database, row, guarded_));
    return Selects(selector, facts, now_);
  }

  struct Page {
    std::vector<TransactionRow> rows;
    std::map<int64_t, Mark> marks;
    std::unordered_set<int64_t> kept;  // Unmarked by hand.
  };

  Result<Page> ReadPage(int64_t after) {
    return InRead(deps_.database, [&](SqlTransaction& sql) -> Result<Page> {
      Page page;
      std::vector<int64_t> ids;
      TARN_RETURN_IF_ERROR(sql.Query(
          "SELECT id FROM dataset_transactions WHERE dataset_id = ?1 AND id > ?2 ORDER BY id "
          "LIMIT ?3",
          {dataset_.id, after, kTransactionsPerPage}, [&](const SqlRow& row) -> Result<RowAction> {
            ids.push_back(row.Int(0));
            return RowAction::kContinue;
          }));
      for (const int64_t id : ids) {
        TARN_ASSIGN_OR_RETURN(TransactionRow row, LoadTransactionById(sql, id));
        page.rows.push_back(std::move(row));
      }
      const metastore::SqlArguments range = {ids.empty() ? 0 : ids.front(),
                                             ids.empty() ? 0 : ids.back()};
      TARN_RETURN_IF_ERROR(sql.Query(
          "SELECT transaction_id, policy_id, sweep_at FROM dataset_retention_marks WHERE "
          "transaction_id >= ?1 AND transaction_id <= ?2",
          range, [&](const SqlRow& row) -> Result<RowAction> {
            page.marks[row.Int(0)] = {.policy_id = row.Int(1), .sweep_at = FromMicros(row.Int(2))};
            return RowAction::kContinue;
          }));
      TARN_RETURN_IF_ERROR(sql.Query(
          "SELECT transaction_id FROM dataset_retention_kept WHERE transaction_id >= ?1 AND "
          "transaction_id <= ?2",
          range, [&](const SqlRow& row) -> Result<RowAction> {
            page.kept.insert(row.Int(0));
            return RowAction::kContinue;
          }));
      return page;
    });
  }

  // The first policy that selects the transaction, if it may be marked at all.
  Result<const Applied*> Choose(const Page& page, const TransactionRow& row) {
    const Applied* chosen = nullptr;
    if (row.state == TransactionState::kOpen || row.swept || page.kept.contains(row.id) ||
        guarded_.transactions.contains(row.id)) {
      return chosen;
    }
    for (const Applied& policy : applied_) {
      TARN_ASSIGN_OR_RETURN(const bool selected, IsSelected(policy, row));
      if (selected) {
        return &policy;
      }
    }
    return chosen;
  }

  // Looks at the transactions after `after`; returns the last one's id, 0 = there are no more.
  Result<int64_t> MarkPage(int64_t after) {
    TARN_ASSIGN_OR_RETURN(const Page page, ReadPage(after));
    PageChange change;
    for (const TransactionRow& row : page.rows) {
      TARN_ASSIGN_OR_RETURN(const Applied* const chosen, Choose(page, row));
      const auto mark = page.marks.find(row.id);
      const bool was_marked = mark != page.marks.end();
      if (chosen == nullptr) {
        if (was_marked) {
          change.unmarked.push_back(row.id);
          Note(row, MarkChange::kUnmarked, {}, mark->second.sweep_at);
        }
        continue;
      }
      const std::string& name = chosen->stored.policy.name;
      if (was_marked && mark->second.policy_id == chosen->stored.id) {
        Note(row, MarkChange::kWaiting, name, mark->second.sweep_at);
        continue;
      }
      const Timestamp sweep_at = now_ + chosen->stored.policy.grace;
      change.marked.emplace_back(row.id,
                                 Mark{.policy_id = chosen->stored.id, .sweep_at = sweep_at});
      Note(row, MarkChange::kMarked, name, sweep_at);
    }
    report_.transactions += static_cast<int64_t>(page.rows.size());
    if (options_.mode == RunMode::kDo) {
      TARN_RETURN_IF_ERROR(WriteMarks(change));
    }
    return page.rows.size() < static_cast<size_t>(kTransactionsPerPage) ? 0 : page.rows.back().id;
  }

  Status WriteMarks(const PageChange& change) {
    if (change.marked.empty() && change.unmarked.empty()) {
      return Status::Ok();
    }
    return deps_.database.Write([&](SqlTransaction& sql) -> Status {
      for (const int64_t id : change.unmarked) {
        TARN_RETURN_IF_ERROR(
            sql.Execute("DELETE FROM dataset_retention_marks WHERE transaction_id = ?1", {id}));
      }
      for (const auto& [id, mark] : change.marked) {
        // Not if its policy, or a hand that keeps it, came in between.
        TARN_RETURN_IF_ERROR(sql.Execute(
            "INSERT INTO dataset_retention_marks (transaction_id, dataset_id, policy_id, "
            "marked_at, sweep_at) SELECT ?1, ?2, id, ?4, ?5 FROM dataset_retention_policies WHERE "
            "id = ?3 AND NOT EXISTS (SELECT 1 FROM dataset_retention_kept WHERE transaction_id = "
            "?1) ON CONFLICT (transaction_id) DO UPDATE SET policy_id = ?3, marked_at = ?4, "
            "sweep_at = ?5",
            {id, dataset_.id, mark.policy_id, ToMicros(now_), ToMicros(mark.sweep_at)}));
      }
      return Status::Ok();
    });
  }

  void Note(const TransactionRow& row, MarkChange change, const std::string& policy,
            Timestamp sweep_at) {
    report_.marked += change == MarkChange::kMarked ? 1 : 0;
    report_.waiting += change == MarkChange::kWaiting ? 1 : 0;
    report_.unmarked += change == MarkChange::kUnmarked ? 1 : 0;
    if (report_.marks.size() < options_.entries_max) {
      report_.marks.push_back({.dataset = dataset_.dataset.rid,
                               .transaction = row.rid,
                               .policy = policy,
                               .change = change,
                               .sweep_at = sweep_at});
    }
  }

  Status CleanLatestViews(const Applied& policy) {
    for (const BranchFacts& branch : guarded_.branches) {
      if (branch.head_id && policy.stored.policy.transactions.SelectsBranch(branch.name)) {
        TARN_RETURN_IF_ERROR(CleanLatestView(policy, branch));
      }
    }
    return Status::Ok();
  }

  // Whether the writer of a file is selected; each is looked at once.
  Result<bool> IsWriterSelected(const Applied& policy, const TransactionRid& writer,
                                std::map<TransactionRid, bool>& known) {
    const auto found = known.find(writer);
    if (found != known.end()) {
      return found->second;
    }
    std::optional<TransactionRow> row;
    TARN_RETURN_IF_ERROR(deps_.database.Read([&](SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(row, LoadTransaction(sql, dataset_, writer));
      return Status::Ok();
    }));
    TARN_ASSIGN_OR_RETURN(const bool selected, IsSelected(policy, *row));
    known.emplace(writer, selected);
    return selected;
  }

  Status CleanLatestView(const Applied& policy, const BranchFacts& branch) {
    ViewSelector selector;
    selector.branch = branch.name;
    TARN_ASSIGN_OR_RETURN(const FileView view,
                          deps_.datasets.ResolveView(dataset_.dataset.rid, selector));
    RemovalEntry entry{.dataset = dataset_.dataset.rid,
                       .branch = branch.name,
                       .policy = policy.stored.policy.name};
    std::map<TransactionRid, bool> writers;
    std::vector<File> files;
    TARN_RETURN_IF_ERROR(
        deps_.datasets.StreamFiles(view, "", [&](std::span<const File> batch) -> Status {
          for (const File& file : batch) {
            TARN_ASSIGN_OR_RETURN(const bool selected,
                                  IsWriterSelected(policy, file.transaction, writers));
            if (selected && !entry.busy) {
              files.push_back(file);
            }
            if (files.size() == kFilesPerDelete) {
              TARN_RETURN_IF_ERROR(RemoveFromView(files, entry));
            }
          }
          return Status::Ok();
        }));
    TARN_RETURN_IF_ERROR(RemoveFromView(files, entry));
    if (entry.files > 0 || entry.busy) {
      report_.files_removed += entry.files;
      report_.removals.push_back(std::move(entry));
    }
    return Status::Ok();
  }

  // One DELETE transaction in one write: a crash leaves it whole or not at all.
  Status RemoveFromView(std::vector<File>& files, RemovalEntry& entry) {
    const std::vector<File> wanted = std::exchange(files, {});
    if (wanted.empty() || entry.busy) {
      return Status::Ok();
    }
    if (options_.mode == RunMode::kDryRun) {
      entry.files += static_cast<int64_t>(wanted.size());
      return Status::Ok();
    }
    const Result<int64_t> removed =
        InWrite(deps_.database, metastore::Durability::kDurable,
                [&](SqlTransaction& sql) { return CommitRemoval(sql, entry.branch, wanted); });
    if (!removed.ok() && removed.status().reason() == "OpenTransactionAlreadyExists") {
      entry.busy = true;
      return Status::Ok();
    }
    TARN_RETURN_IF_ERROR(removed);
    CrashPoint("dataset-retention-removed");
    entry.files += *removed;
    return Status::Ok();
  }

  Result<int64_t> CommitRemoval(SqlTransaction& sql, const std::string& branch,
                                const std::vector<File>& wanted) {
    const DatasetRid& rid = dataset_.dataset.rid;
    ViewSelector selector;
    selector.branch = branch;
    TARN_ASSIGN_OR_RETURN(const FileView now, deps_.datasets.ResolveView(sql, rid, selector));
    std::vector<std::string> paths;
    for (const File& file : wanted) {
      // What someone wrote there meanwhile is theirs.
      TARN_ASSIGN_OR_RETURN(const std::optional<File> current,
                            FindFile(sql, now.lineage, file.path));
      if (current && current->transaction == file.transaction) {
        paths.push_back(file.path);
      }
    }
    if (paths.empty()) {
      return 0;
    }
    TARN_ASSIGN_OR_RETURN(
        const Transaction started,
        deps_.datasets.StartTransaction(sql, rid, branch,
                                        {.type = TransactionType::kDelete, .by = options_.by}));
    TARN_ASSIGN_OR_RETURN(
        const int64_t removed,
        deps_.datasets.RemoveFiles(sql, rid, started.rid, paths, MissingPath::kIgnore));
    CommitOptions commit;
    commit.by_retention = true;
    commit.by = options_.by;
    TARN_RETURN_IF_ERROR(deps_.datasets.CommitTransaction(sql, rid, started.rid, commit));
    return removed;
  }

  const RetentionDeps& deps_;
  const RunOptions& options_;
  const DatasetRow dataset_;
  RetentionReport& report_;
  const Timestamp now_;
  Guarded guarded_;
  ViewAges ages_;
  std::vector<Applied> applied_;
};

// The dataset after `after`, if there is one.
Result<std::optional<DatasetRow>> NextDataset(SqlTransaction& sql, int64_t after) {
  std::optional<DatasetRid> rid;
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT uuid FROM dataset_datasets WHERE id > ?1 AND deleted_at IS NULL ORDER BY "
                "id LIMIT 1",
                {after}, [&](const SqlRow& row) -> Result<RowAction> {
                  rid = DatasetRid{.uuid = ReadUuid(row, 0)};
                  return RowAction::kStop;
                }));
  if (!rid) {
    return std::optional<DatasetRow>();
  }
  TARN_ASSIGN_OR_RETURN(DatasetRow row, LoadDataset(sql, *rid));
  return std::optional<DatasetRow>(std::move(row));
}

}  // namespace

Result<RetentionReport> RunRetention(const RetentionDeps& deps, const RunOptions& options) {
  RetentionReport report;
  TARN_ASSIGN_OR_RETURN(
      const std::vector<StoredPolicy> policies,
      InRead(deps.database, [](SqlTransaction& sql) { return ListPolicies(sql); }));
  int64_t after = 0;
  while (!report.stopped) {
    TARN_ASSIGN_OR_RETURN(
        std::optional<DatasetRow> dataset,
        InRead(deps.database, [&](SqlTransaction& sql) { return NextDataset(sql, after); }));
    if (!dataset) {
      break;
    }
    after = dataset->id;
    const Status status = DatasetRun(deps, options, *std::move(dataset), report).Run(policies);
    // A dataset deleted under way is no failure of the run.
    if (!status.ok() && status.reason() != "DatasetNotFound") {
      return status;
    }
  }
  return report;
}

Status Unmark(SqlTransaction& sql, const UnmarkRequest& request) {
  TARN_ASSIGN_OR_RETURN(const DatasetRow dataset, LoadDataset(sql, request.dataset));
  TARN_ASSIGN_OR_RETURN(const TransactionRow row,
                        LoadTransaction(sql, dataset, request.transaction));
  if (row.swept) {
    return Status::FailedPrecondition("transaction " + row.rid.ToString() +
                                      " cannot be unmarked: its data is already gone");
  }
  TARN_RETURN_IF_ERROR(
      sql.Execute("DELETE FROM dataset_retention_marks WHERE transaction_id = ?1", {row.id}));
  return StatusOf(sql.Execute(
      "INSERT INTO dataset_retention_kept (transaction_id, dataset_id, kept_at, kept_by) VALUES "
      "(?1, ?2, ?3, ?4) ON CONFLICT (transaction_id) DO NOTHING",
      {row.id, dataset.id, ToMicros(request.now), request.by}));
}

}  // namespace tarn::dataset::retention
