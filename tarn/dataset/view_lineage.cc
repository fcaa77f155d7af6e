#include "tarn/dataset/view_lineage.h"

#include <utility>

#include "tarn/base/json_text.h"
#include "tarn/dataset/ancestry.h"
#include "tarn/dataset/errors.h"

namespace tarn::dataset {

using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;

namespace {

Status InvalidCombination(const std::string& message, std::string_view provided) {
  return Status::InvalidArgument(message).WithReason(
      "InvalidParameterCombination",
      R"({"validCombinations":[["branchName"],["endTransactionRid"],)"
      R"(["startTransactionRid","endTransactionRid"],["startTransactionRid","branchName"],)"
      R"(["branchName","at"]],"providedParameters":[)" +
          std::string(provided) + "]}");
}

// The branch as it stood at `time`: by its reflog, and before its creation by its origin.
Result<std::optional<TransactionRow>> ResolveTime(SqlTransaction& sql, const BranchRow& branch,
                                                  Timestamp time) {
  std::optional<int64_t> to;
  bool known = false;
  const auto read = [&](const SqlRow& row) -> Result<RowAction> {
    to = ReadOptionalInt(row, 0);
    known = true;
    return RowAction::kStop;
  };
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT to_id FROM dataset_reflog WHERE branch_id = ?1 AND moved_at <= ?2 "
                "ORDER BY moved_at DESC LIMIT 1",
                {branch.id, ToMicros(time)}, read));
  if (known) {
    if (!to) {
      return std::optional<TransactionRow>();
    }
    TARN_ASSIGN_OR_RETURN(TransactionRow row, LoadTransactionById(sql, *to));
    return std::optional<TransactionRow>(std::move(row));
  }
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT to_id FROM dataset_reflog WHERE branch_id = ?1 ORDER BY moved_at LIMIT 1",
                {branch.id}, read));
  if (!to) {
    return std::optional<TransactionRow>();
  }
  TARN_ASSIGN_OR_RETURN(TransactionRow origin, LoadTransactionById(sql, *to));
  return NewestAtOrBefore(sql, std::move(origin), time);
}

// The lineage from `start` to `end`, one of whose ancestors it must be.
Result<Lineage> ResolveRange(SqlTransaction& sql, const DatasetRow& dataset,
                             const TransactionRow& start, const TransactionRow& end) {
  if (start.id == end.id) {
    return Lineage{{.root = start.root,
                    .line = start.line,
                    .after = start.ordinal - 1,
                    .through = start.ordinal}};
  }
  TARN_ASSIGN_OR_RETURN(const bool on_path, IsAncestor(sql, start, end));
  if (!on_path || start.state != TransactionState::kCommitted) {
    return InvalidCombination("transaction " + start.rid.ToString() + " of dataset " +
                                  dataset.dataset.rid.ToString() + " is not an ancestor of " +
                                  end.rid.ToString(),
                              R"("startTransactionRid","endTransactionRid")");
  }
  if (start.depth <= end.view_start_depth) {
    return end.lineage;  // A SNAPSHOT in between, or the start itself, clears what is before it.
  }
  std::optional<Lineage> cut = CutBefore(end.lineage, start.line, start.ordinal);
  if (!cut) {
    TARN_ASSIGN_OR_RETURN(const Lineage whole, ExpandCheckpoints(sql, end.lineage));
    cut = CutBefore(whole, start.line, start.ordinal);
  }
  if (!cut) {
    return Status::Corruption("the lineage of transaction " + end.rid.ToString() +
                              " does not cover its ancestor " + start.rid.ToString());
  }
  return *std::move(cut);
}

}  // namespace

Result<Lineage> ExpandCheckpoints(SqlTransaction& sql, Lineage lineage) {
  while (!lineage.empty() && lineage.front().root == lineage.front().line) {
    std::optional<std::string> base;
    TARN_RETURN_IF_ERROR(
        sql.Query("SELECT base FROM dataset_lines WHERE id = ?1 AND checkpoint_of IS NOT NULL",
                  {lineage.front().line}, [&](const SqlRow& row) -> Result<RowAction> {
                    base = std::string(row.Text(0));
                    return RowAction::kStop;
                  }));
    if (!base) {
      break;
    }
    TARN_ASSIGN_OR_RETURN(Lineage whole, DecodeLineage(*base));
    whole.insert(whole.end(), lineage.begin() + 1, lineage.end());
    lineage = std::move(whole);
  }
  return lineage;
}

Result<Lineage> ChangesBetween(SqlTransaction& sql, const Lineage& from, const Lineage& to) {
  // Under one root the lines are comparable as they are.
  if (!from.empty() && !to.empty() && from.front().root == to.front().root) {
    return Subtract(to, from);
  }
  TARN_ASSIGN_OR_RETURN(const Lineage from_whole, ExpandCheckpoints(sql, from));
  TARN_ASSIGN_OR_RETURN(const Lineage to_whole, ExpandCheckpoints(sql, to));
  return Subtract(to_whole, from_whole);
}

Result<std::optional<TransactionRow>> ResolveEnd(SqlTransaction& sql, const DatasetRow& dataset,
                                                 const ViewSelector& selector) {
  if (selector.end) {
    TARN_ASSIGN_OR_RETURN(TransactionRow row, LoadTransaction(sql, dataset, *selector.end));
    if (row.state == TransactionState::kAborted) {
      return TransactionNotCommitted(dataset.dataset.rid, *selector.end, row.state);
    }
    return std::optional<TransactionRow>(std::move(row));
  }
  TARN_ASSIGN_OR_RETURN(const BranchRow branch, LoadBranch(sql, dataset, selector.branch));
  if (selector.at) {
    return ResolveTime(sql, branch, *selector.at);
  }
  if (!branch.head_id) {
    return std::optional<TransactionRow>();
  }
  TARN_ASSIGN_OR_RETURN(TransactionRow row, LoadTransactionById(sql, *branch.head_id));
  return std::optional<TransactionRow>(std::move(row));
}

Result<ResolvedView> Resolve(SqlTransaction& sql, const DatasetRow& dataset,
                             const ViewSelector& selector) {
  if (selector.end && selector.at) {
    return InvalidCombination("a view ends at a transaction or at a time, not at both",
                              R"("endTransactionRid","at")");
  }
  ResolvedView resolved;
  resolved.view.dataset = dataset.dataset.rid;
  resolved.view.start = selector.start;
  if (!selector.end) {
    resolved.view.branch = selector.branch;
  }
  TARN_ASSIGN_OR_RETURN(resolved.end, ResolveEnd(sql, dataset, selector));
  if (!resolved.end) {
    if (selector.start) {
      return InvalidCombination("transaction " + selector.start->ToString() +
                                    " cannot start a view of a branch without transactions",
                                R"("startTransactionRid","branchName")");
    }
    return resolved;
  }
  if (resolved.end->swept) {
    return TransactionSwept(dataset.dataset.rid, resolved.end->rid);
  }
  resolved.view.end = resolved.end->rid;
  resolved.view.lineage = resolved.end->lineage;
  if (selector.start) {
    TARN_ASSIGN_OR_RETURN(const TransactionRow start,
                          LoadTransaction(sql, dataset, *selector.start));
    if (start.state == TransactionState::kAborted) {
      return TransactionNotCommitted(dataset.dataset.rid, start.rid, start.state);
    }
    TARN_ASSIGN_OR_RETURN(resolved.view.lineage, ResolveRange(sql, dataset, start, *resolved.end));
  }
  return resolved;
}

}  // namespace tarn::dataset
