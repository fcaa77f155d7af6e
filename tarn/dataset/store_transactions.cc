// DatasetStore: the life of a transaction.
#include <algorithm>
#include <chrono>
#include <utility>

#include "tarn/base/json_text.h"
#include "tarn/dataset/ancestry.h"
#include "tarn/dataset/changes/change_list.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/dataset/errors.h"
#include "tarn/dataset/in_sql.h"
#include "tarn/dataset/page_token.h"
#include "tarn/dataset/rows.h"

namespace tarn::dataset {

using metastore::Durability;
using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;

namespace {

constexpr int kPageSizeMax = 1000;
constexpr int kClashesShownMax = 100;
// An abort removes this many rows itself; more are left to PurgeDeleted.
constexpr int64_t kAbortRowsMax = 1000;

// Gives the transaction its root, line, ordinal and lineage on top of `head`.
//
// The branch's own line goes on while the head is its tip; else, and for a SNAPSHOT, a new line
// begins.
Status PlaceOnLine(SqlTransaction& sql, const BranchRow& branch, const TransactionRow* head,
                   TransactionRow& row) {
  const bool starts_view = row.type == TransactionType::kSnapshot || head == nullptr;
  if (!starts_view && branch.line != 0 && branch.line == head->line) {
    row.line = branch.line;
    row.ordinal = branch.next_ordinal;
    TARN_RETURN_IF_ERROR(sql.Execute("UPDATE dataset_branches SET next_ordinal = ?2 WHERE id = ?1",
                                     {branch.id, branch.next_ordinal + 1}));
  } else {
    TARN_ASSIGN_OR_RETURN(row.line, InsertLine(sql, row.dataset_id));
    row.ordinal = 1;
  }
  if (starts_view) {
    row.root = row.line;
    row.lineage = Extend({}, row.root, row.line, row.ordinal);
    row.view_start_id.reset();
    row.view_start_depth = row.depth;
  } else {
    row.root = head->lineage.front().root;
    row.lineage = Extend(head->lineage, row.root, row.line, row.ordinal);
    row.view_start_id = head->view_start();
    row.view_start_depth = head->view_start_depth;
  }
  return Status::Ok();
}

Result<std::optional<TransactionRow>> LoadHead(SqlTransaction& sql, const BranchRow& branch) {
  if (!branch.head_id) {
    return std::optional<TransactionRow>();
  }
  TARN_ASSIGN_OR_RETURN(TransactionRow head, LoadTransactionById(sql, *branch.head_id));
  return std::optional<TransactionRow>(std::move(head));
}

// Paths of an APPEND that its parent's view already has.
Status ClashFailure(SqlTransaction& sql, const DatasetRow& dataset, const TransactionRow& row) {
  TARN_ASSIGN_OR_RETURN(const std::vector<std::string> written,
                        changes::PathsAmongReplaced(sql, {.line = row.line, .ordinal = row.ordinal},
                                                    kClashesShownMax));
  std::string paths;
  int shown = 0;
  for (const std::string& path : written) {
    TARN_ASSIGN_OR_RETURN(const std::optional<int64_t> replaces,
                          FindInt(sql,
                                  "SELECT replaces FROM dataset_files WHERE root = ?1 AND path = "
                                  "?2 AND line = ?3 "
                                  "AND ordinal = ?4",
                                  {row.root, metastore::Blob{path}, row.line, row.ordinal}));
    if (replaces.value_or(0) != 0) {
      paths += (paths.empty() ? "" : ",") + JsonString(path);
      if (++shown == kClashesShownMax) {
        break;
      }
    }
  }
  const std::string count = std::to_string(row.overwritten_count);
  return Status::Conflict("APPEND transaction " + row.rid.ToString() + " of dataset " +
                          dataset.dataset.rid.ToString() + " has " + count +
                          " path(s) that the view already has; remove them from it, or abort it "
                          "and use UPDATE")
      .WithReason("AppendOverwritesExistingFiles",
                  R"({"datasetRid":)" + JsonString(dataset.dataset.rid.ToString()) +
                      R"(,"transactionRid":)" + JsonString(row.rid.ToString()) + R"(,"paths":[)" +
                      paths + R"(],"count":)" + count + "}");
}

// The branches that stand on an OPEN transaction: usually its own alone.
Result<std::vector<BranchRow>> BranchesOn(SqlTransaction& sql, const TransactionRow& row) {
  std::vector<int64_t> ids;
  if (!row.shared) {
    ids.push_back(row.branch_id);
  } else {
    TARN_RETURN_IF_ERROR(
        sql.Query("SELECT id FROM dataset_branches WHERE dataset_id = ?1 AND open_id = ?2",
                  {row.dataset_id, row.id}, [&](const SqlRow& found) -> Result<RowAction> {
                    ids.push_back(found.Int(0));
                    return RowAction::kContinue;
                  }));
  }
  std::vector<BranchRow> branches;
  for (const int64_t id : ids) {
    TARN_ASSIGN_OR_RETURN(std::optional<BranchRow> branch, FindBranchById(sql, id));
    if (!branch || branch->open_id != row.id) {
      return Status::Corruption("OPEN transaction " + row.rid.ToString() +
                                " is not the newest of its branch in the metastore");
    }
    branches.push_back(*std::move(branch));
  }
  return branches;
}

Status AskCheckpointIfTangled(SqlTransaction& sql, const TransactionRow& row, Timestamp now) {
  const CheckpointLimits limits;
  if (row.lineage.size() <= static_cast<size_t>(limits.intervals_max) &&
      row.removed_count <= limits.removed_max) {
    return Status::Ok();
  }
  return StatusOf(sql.Execute(
      "INSERT INTO dataset_checkpoint_requests (branch_id, dataset_id, requested_at) VALUES "
      "(?1, ?2, ?3) ON CONFLICT (branch_id) DO NOTHING",
      {row.branch_id, row.dataset_id, ToMicros(now)}));
}

// Moves one branch from its OPEN transaction's parent to the transaction, compare-and-set.
Status AdvanceBranch(SqlTransaction& sql, const BranchRow& branch, const TransactionRow& row,
                     const CommitOptions& options) {
  const bool owner = branch.id == row.branch_id;
  TARN_ASSIGN_OR_RETURN(
      const int64_t moved,
      sql.Execute("UPDATE dataset_branches SET head_id = ?2, open_id = NULL, line = ?3, "
                  "next_ordinal = ?4, moved_at = ?5 WHERE id = ?1 AND open_id = ?2",
                  {branch.id, row.id, owner ? row.line : LineId{0},
                   owner ? row.ordinal + 1 : int64_t{0}, ToMicros(*row.closed_at)}));
  if (moved != 1) {
    return Status::Conflict("branch " + JsonString(branch.name) + " moved while transaction " +
                            row.rid.ToString() + " was being committed");
  }
  return InsertReflog(sql, {.branch_id = branch.id,
                            .at = *row.closed_at,
                            .from = branch.head_id,
                            .to = row.id,
                            .by = options.by});
}

// Rows of an aborted transaction were never visible. Few are removed at once; many are queued,
// and the line they are on must then not go on over them.
Status DropRows(SqlTransaction& sql, const TransactionRow& row) {
  if (row.file_count == 0) {
    return Status::Ok();
  }
  if (row.file_count <= kAbortRowsMax) {
    while (true) {
      TARN_ASSIGN_OR_RETURN(
          const std::vector<std::string> paths,
          changes::TakeFirstList(sql, {.line = row.line, .ordinal = row.ordinal}));
      if (paths.empty()) {
        return Status::Ok();
      }
      for (const std::string& path : paths) {
        TARN_RETURN_IF_ERROR(
            sql.Execute("DELETE FROM dataset_files WHERE root = ?1 AND path = ?2 AND line "
                        "= ?3 AND ordinal = "
                        "?4",
                        {row.root, metastore::Blob{path}, row.line, row.ordinal}));
      }
    }
  }
  TARN_RETURN_IF_ERROR(
      sql.Execute("UPDATE dataset_branches SET line = 0 WHERE id = ?1 AND line = ?2",
                  {row.branch_id, row.line}));
  return StatusOf(
      sql.Execute("INSERT INTO dataset_garbage (root, line, ordinal) VALUES (?1, ?2, "
                  "?3)",
                  {row.root, row.line, row.ordinal}));
}

Result<TransactionRow> LoadOpen(SqlTransaction& sql, const DatasetRow& dataset,
                                const TransactionRid& rid) {
  TARN_ASSIGN_OR_RETURN(TransactionRow row, LoadTransaction(sql, dataset, rid));
  if (row.state != TransactionState::kOpen) {
    return TransactionNotOpen(dataset.dataset.rid, rid, row.state);
  }
  return row;
}

}  // namespace

Result<Transaction> DatasetStore::StartTransaction(SqlTransaction& sql, const DatasetRid& dataset,
                                                   std::string_view branch,
                                                   const StartOptions& options) {
  TARN_ASSIGN_OR_RETURN(const DatasetRow dataset_row, LoadDataset(sql, dataset));
  TARN_ASSIGN_OR_RETURN(const BranchRow branch_row, LoadBranch(sql, dataset_row, branch));
  if (branch_row.open_id) {
    return OpenTransactionAlreadyExists(dataset, branch);
  }
  TARN_ASSIGN_OR_RETURN(const std::optional<TransactionRow> head, LoadHead(sql, branch_row));
  const TransactionRow* const parent = head ? &*head : nullptr;
  TransactionRow row;
  row.rid = {.uuid = uuids_.NextV7()};
  row.dataset_id = dataset_row.id;
  row.branch_id = branch_row.id;
  row.type = options.type;
  row.created_at = clock_.Now();
  row.created_by = options.by;
  if (parent != nullptr) {
    row.base_overwritten = parent->base_overwritten + parent->overwritten_count;
    row.base_removed = parent->base_removed + parent->removed_count;
  }
  TARN_RETURN_IF_ERROR(PlaceUnder(sql, parent, row));
  TARN_RETURN_IF_ERROR(PlaceOnLine(sql, branch_row, parent, row));
  TARN_ASSIGN_OR_RETURN(row.id, InsertTransaction(sql, row));
  TARN_ASSIGN_OR_RETURN(
      const int64_t opened,
      sql.Execute("UPDATE dataset_branches SET open_id = ?2 WHERE id = ?1 AND open_id IS NULL AND "
                  "COALESCE(head_id, 0) = ?3",
                  {branch_row.id, row.id, branch_row.head_id.value_or(0)}));
  if (opened != 1) {
    return OpenTransactionAlreadyExists(dataset, branch);
  }
  return ToTransaction(sql, dataset_row, row);
}

Result<Transaction> DatasetStore::StartTransaction(const DatasetRid& dataset,
                                                   std::string_view branch,
                                                   const StartOptions& options) {
  return InWrite(database_, Durability::kLazy, [&](SqlTransaction& sql) {
    return StartTransaction(sql, dataset, branch, options);
  });
}

Result<Transaction> DatasetStore::SetTransactionType(SqlTransaction& sql, const DatasetRid& dataset,
                                                     const TransactionRid& rid,
                                                     TransactionType type) {
  TARN_ASSIGN_OR_RETURN(const DatasetRow dataset_row, LoadDataset(sql, dataset));
  TARN_ASSIGN_OR_RETURN(TransactionRow row, LoadOpen(sql, dataset_row, rid));
  const bool starts_view = type == TransactionType::kSnapshot || !row.parent_id;
  const bool root_stays = starts_view == !row.view_start_id.has_value();
  if (row.file_count > 0 && row.type != type) {
    if (row.type == TransactionType::kDelete || type == TransactionType::kDelete || !root_stays) {
      return InvalidTransactionType(dataset, rid, row.type,
                                    "its type cannot become " +
                                        std::string(TransactionTypeName(type)) +
                                        " once it has files; remove them first or abort it");
    }
  }
  row.type = type;
  if (!root_stays) {
    TARN_ASSIGN_OR_RETURN(const std::optional<BranchRow> branch,
                          FindBranchById(sql, row.branch_id));
    std::optional<TransactionRow> parent;
    if (row.parent_id) {
      TARN_ASSIGN_OR_RETURN(parent, LoadTransactionById(sql, *row.parent_id));
    }
    // A branch that is gone has no line to go on.
    TARN_RETURN_IF_ERROR(
        PlaceOnLine(sql, branch.value_or(BranchRow{}), parent ? &*parent : nullptr, row));
  }
  TARN_RETURN_IF_ERROR(sql.Execute(
      "UPDATE dataset_transactions SET type = ?2, root = ?3, line = ?4, ordinal = ?5, lineage = "
      "?6, view_start_id = ?7, view_start_depth = ?8 WHERE id = ?1",
      {row.id, static_cast<int64_t>(type), row.root, row.line, row.ordinal,
       EncodeLineage(row.lineage), OrNull(row.view_start_id), row.view_start_depth}));
  return ToTransaction(sql, dataset_row, row);
}

Result<Transaction> DatasetStore::CommitTransaction(SqlTransaction& sql, const DatasetRid& dataset,
                                                    const TransactionRid& rid,
                                                    const CommitOptions& options) {
  TARN_ASSIGN_OR_RETURN(const DatasetRow dataset_row, LoadDataset(sql, dataset));
  TARN_ASSIGN_OR_RETURN(TransactionRow row, LoadOpen(sql, dataset_row, rid));
  if (row.type == TransactionType::kAppend && row.overwritten_count > 0) {
    return ClashFailure(sql, dataset_row, row);
  }
  TARN_ASSIGN_OR_RETURN(const std::vector<BranchRow> branches, BranchesOn(sql, row));
  Timestamp closed_at = clock_.Now();
  for (const BranchRow& branch : branches) {
    closed_at = std::max(closed_at, branch.moved_at + std::chrono::milliseconds(1));
  }
  row.closed_at = closed_at;
  row.state = TransactionState::kCommitted;
  row.by_retention = options.by_retention;
  for (const BranchRow& branch : branches) {
    TARN_RETURN_IF_ERROR(AdvanceBranch(sql, branch, row, options));
  }
  // Compare-and-set on what was decided with: a registration may have come in between.
  TARN_ASSIGN_OR_RETURN(
      const int64_t committed,
      sql.Execute("UPDATE dataset_transactions SET state = 1, closed_at = ?2, record = ?3, "
                  "provenance = ?4, by_retention = ?5 WHERE id = ?1 AND state = 0 AND "
                  "file_count = ?6 AND overwritten_count = ?7 AND size_bytes = ?8",
                  {row.id, ToMicros(closed_at), OrNull(options.record_json),
                   OrNull(options.provenance_json), static_cast<int64_t>(options.by_retention),
                   row.file_count, row.overwritten_count, row.size_bytes}));
  if (committed != 1) {
    return Status::Conflict("transaction " + row.rid.ToString() +
                            " changed while it was being committed; try again");
  }
  TARN_RETURN_IF_ERROR(AskCheckpointIfTangled(sql, row, closed_at));
  return ToTransaction(sql, dataset_row, row);
}

Result<Transaction> DatasetStore::CommitTransaction(const DatasetRid& dataset,
                                                    const TransactionRid& rid,
                                                    const CommitOptions& options) {
  return InWrite(database_, Durability::kDurable, [&](SqlTransaction& sql) {
    return CommitTransaction(sql, dataset, rid, options);
  });
}

Result<Transaction> DatasetStore::AbortTransaction(SqlTransaction& sql, const DatasetRid& dataset,
                                                   const TransactionRid& rid,
                                                   std::string_view /*by*/) {
  TARN_ASSIGN_OR_RETURN(const DatasetRow dataset_row, LoadDataset(sql, dataset));
  TARN_ASSIGN_OR_RETURN(TransactionRow row, LoadOpen(sql, dataset_row, rid));
  TARN_ASSIGN_OR_RETURN(const std::vector<BranchRow> branches, BranchesOn(sql, row));
  for (const BranchRow& branch : branches) {
    TARN_RETURN_IF_ERROR(
        sql.Execute("UPDATE dataset_branches SET open_id = NULL WHERE id = ?1 AND open_id = ?2",
                    {branch.id, row.id}));
  }
  TARN_RETURN_IF_ERROR(DropRows(sql, row));
  row.state = TransactionState::kAborted;
  row.closed_at = std::max(clock_.Now(), row.created_at);
  TARN_ASSIGN_OR_RETURN(
      const int64_t aborted,
      sql.Execute("UPDATE dataset_transactions SET state = 2, closed_at = ?2 WHERE id = ?1 AND "
                  "state = 0",
                  {row.id, ToMicros(*row.closed_at)}));
  if (aborted != 1) {
    return Status::Conflict("transaction " + row.rid.ToString() +
                            " changed while it was being aborted; try again");
  }
  return ToTransaction(sql, dataset_row, row);
}

Result<Transaction> DatasetStore::AbortTransaction(const DatasetRid& dataset,
                                                   const TransactionRid& rid, std::string_view by) {
  return InWrite(database_, Durability::kDurable,
                 [&](SqlTransaction& sql) { return AbortTransaction(sql, dataset, rid, by); });
}

Result<Transaction> DatasetStore::CommitFiles(SqlTransaction& sql,
                                              const CommitFilesRequest& request) {
  TARN_ASSIGN_OR_RETURN(const Transaction started,
                        StartTransaction(sql, request.dataset, request.branch,
                                         {.type = request.type, .by = request.commit.by}));
  TARN_RETURN_IF_ERROR(RegisterFiles(sql, request.dataset, started.rid, request.files));
  return CommitTransaction(sql, request.dataset, started.rid, request.commit);
}

Result<int64_t> DatasetStore::AbortIdleTransactions() {
  struct Idle {
    DatasetRid dataset;
    TransactionRid transaction;
  };
  constexpr int64_t kAtOnce = 100;
  return InWrite(database_, Durability::kDurable, [&](SqlTransaction& sql) -> Result<int64_t> {
    std::vector<Idle> idle;
    TARN_RETURN_IF_ERROR(sql.Query(
        "SELECT DISTINCT d.uuid, t.uuid FROM dataset_branches b "
        "JOIN dataset_transactions t ON t.id = b.open_id "
        "JOIN dataset_datasets d ON d.id = b.dataset_id WHERE d.idle_abort_seconds IS NOT NULL "
        "AND t.touched_at + d.idle_abort_seconds * 1000000 <= ?1 LIMIT ?2",
        {ToMicros(clock_.Now()), kAtOnce}, [&](const SqlRow& row) -> Result<RowAction> {
          idle.push_back(
              {.dataset = {.uuid = ReadUuid(row, 0)}, .transaction = {.uuid = ReadUuid(row, 1)}});
          return RowAction::kContinue;
        }));
    for (const Idle& one : idle) {
      TARN_RETURN_IF_ERROR(AbortTransaction(sql, one.dataset, one.transaction, "idle"));
    }
    return static_cast<int64_t>(idle.size());
  });
}

Result<Transaction> DatasetStore::GetTransaction(SqlTransaction& sql, const DatasetRid& dataset,
                                                 const TransactionRid& rid) {
  TARN_ASSIGN_OR_RETURN(const DatasetRow dataset_row, LoadDataset(sql, dataset));
  TARN_ASSIGN_OR_RETURN(const TransactionRow row, LoadTransaction(sql, dataset_row, rid));
  return ToTransaction(sql, dataset_row, row);
}

Result<Transaction> DatasetStore::GetTransaction(const DatasetRid& dataset,
                                                 const TransactionRid& rid) {
  return InRead(database_, [&](SqlTransaction& sql) { return GetTransaction(sql, dataset, rid); });
}

Result<TransactionPage> DatasetStore::ListTransactions(const DatasetRid& dataset, int page_size,
                                                       std::string_view page_token) {
  TARN_RETURN_IF_ERROR(CheckPageSize(page_size, kPageSizeMax));
  std::optional<TransactionRid> after;
  if (!page_token.empty()) {
    TARN_ASSIGN_OR_RETURN(const std::vector<std::string> fields,
                          DecodePageToken(TokenKind::kTransactions, 1, page_token));
    TARN_ASSIGN_OR_RETURN(after, TransactionRid::Parse(fields[0]));
  }
  return InRead(database_, [&](SqlTransaction& sql) -> Result<TransactionPage> {
    TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, dataset));
    int64_t before = std::numeric_limits<int64_t>::max();
    if (after) {
      TARN_ASSIGN_OR_RETURN(const TransactionRow last, LoadTransaction(sql, row, *after));
      before = last.id;
    }
    std::vector<int64_t> ids;
    TARN_RETURN_IF_ERROR(sql.Query(
        "SELECT id FROM dataset_transactions WHERE dataset_id = ?1 AND id < ?2 "
        "ORDER BY id DESC LIMIT ?3",
        {row.id, before, int64_t{page_size} + 1}, [&](const SqlRow& found) -> Result<RowAction> {
          ids.push_back(found.Int(0));
          return RowAction::kContinue;
        }));
    const bool more = ids.size() > static_cast<size_t>(page_size);
    ids.resize(std::min(ids.size(), static_cast<size_t>(page_size)));
    TransactionPage page;
    for (const int64_t id : ids) {
      TARN_ASSIGN_OR_RETURN(const TransactionRow listed, LoadTransactionById(sql, id));
      TARN_ASSIGN_OR_RETURN(Transaction transaction, ToTransaction(sql, row, listed));
      page.transactions.push_back(std::move(transaction));
    }
    if (more) {
      page.next_page_token =
          EncodePageToken(TokenKind::kTransactions, {page.transactions.back().rid.ToString()});
    }
    return page;
  });
}

Result<TransactionPage> DatasetStore::ListBranchTransactions(const DatasetRid& dataset,
                                                             std::string_view branch, int page_size,
                                                             std::string_view page_token) {
  TARN_RETURN_IF_ERROR(CheckPageSize(page_size, kPageSizeMax));
  std::optional<TransactionRid> from;
  if (!page_token.empty()) {
    TARN_ASSIGN_OR_RETURN(const std::vector<std::string> fields,
                          DecodePageToken(TokenKind::kBranchTransactions, 1, page_token));
    TARN_ASSIGN_OR_RETURN(from, TransactionRid::Parse(fields[0]));
  }
  return InRead(database_, [&](SqlTransaction& sql) -> Result<TransactionPage> {
    TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, dataset));
    TARN_ASSIGN_OR_RETURN(const BranchRow branch_row, LoadBranch(sql, row, branch));
    std::optional<int64_t> next = branch_row.open_id ? branch_row.open_id : branch_row.head_id;
    if (from) {
      TARN_ASSIGN_OR_RETURN(const TransactionRow first, LoadTransaction(sql, row, *from));
      next = first.id;
    }
    TransactionPage page;
    while (next && page.transactions.size() < static_cast<size_t>(page_size)) {
      TARN_ASSIGN_OR_RETURN(const TransactionRow listed, LoadTransactionById(sql, *next));
      TARN_ASSIGN_OR_RETURN(Transaction transaction, ToTransaction(sql, row, listed));
      page.transactions.push_back(std::move(transaction));
      next = listed.parent_id;
    }
    if (next) {
      TARN_ASSIGN_OR_RETURN(const Uuid uuid, TransactionUuid(sql, *next));
      page.next_page_token = EncodePageToken(TokenKind::kBranchTransactions,
                                             {TransactionRid{.uuid = uuid}.ToString()});
    }
    return page;
  });
}

Status DatasetStore::VisitCommitted(
    SqlTransaction& sql, const DatasetRid& dataset, std::string_view branch,
    const std::function<Result<RowAction>(const Transaction&)>& visit) {
  TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, dataset));
  TARN_ASSIGN_OR_RETURN(const BranchRow branch_row, LoadBranch(sql, row, branch));
  std::optional<int64_t> next = branch_row.head_id;
  while (next) {
    TARN_ASSIGN_OR_RETURN(const TransactionRow visited, LoadTransactionById(sql, *next));
    TARN_ASSIGN_OR_RETURN(const Transaction transaction, ToTransaction(sql, row, visited));
    TARN_ASSIGN_OR_RETURN(const RowAction action, visit(transaction));
    if (action == RowAction::kStop) {
      return Status::Ok();
    }
    next = visited.parent_id;
  }
  return Status::Ok();
}

}  // namespace tarn::dataset
