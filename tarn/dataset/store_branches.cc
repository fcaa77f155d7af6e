// DatasetStore: branches and their reflogs.
#include <algorithm>
#include <chrono>
#include <utility>

#include "tarn/base/json_text.h"
#include "tarn/dataset/ancestry.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/dataset/errors.h"
#include "tarn/dataset/in_sql.h"
#include "tarn/dataset/page_token.h"
#include "tarn/dataset/rows.h"

namespace tarn::dataset {

using metastore::Blob;
using metastore::Durability;
using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;

namespace {

constexpr int kPageSizeMax = 1000;

// Where a new branch starts and whose schemas it sees.
struct Origin {
  std::optional<int64_t> parent_id;
  std::optional<int64_t> head_id;
  std::optional<int64_t> open_id;
  std::string ancestry;
  Timestamp moved_at{};
};

// What a child of this branch sees of schemas: this branch's own as they are now, and its
// ancestors' as this branch sees them.
Result<std::string> AncestryBelow(SqlTransaction& sql, int64_t branch_id,
                                  const std::string& ancestry) {
  TARN_ASSIGN_OR_RETURN(
      const std::optional<int64_t> newest,
      FindInt(sql, "SELECT MAX(id) FROM dataset_schemas WHERE branch_id = ?1", {branch_id}));
  std::string below = std::to_string(branch_id) + ":" + std::to_string(newest.value_or(0));
  return ancestry.empty() ? below : below + "," + ancestry;
}

Result<Origin> OriginAtBranch(SqlTransaction& sql, const DatasetRow& dataset,
                              std::string_view name) {
  TARN_ASSIGN_OR_RETURN(const BranchRow from, LoadBranch(sql, dataset, name));
  Origin origin{.parent_id = from.id,
                .head_id = from.head_id,
                .open_id = from.open_id,
                .ancestry = {},
                .moved_at = from.moved_at};
  TARN_ASSIGN_OR_RETURN(origin.ancestry, AncestryBelow(sql, from.id, from.ancestry));
  if (from.open_id) {
    TARN_RETURN_IF_ERROR(
        sql.Execute("UPDATE dataset_transactions SET shared = 1 WHERE id = ?1", {*from.open_id}));
  }
  return origin;
}

Result<Origin> OriginAtTransaction(SqlTransaction& sql, const DatasetRow& dataset,
                                   const TransactionRid& rid) {
  TARN_ASSIGN_OR_RETURN(const TransactionRow row, LoadTransaction(sql, dataset, rid));
  if (row.state != TransactionState::kCommitted) {
    return TransactionNotCommitted(dataset.dataset.rid, rid, row.state);
  }
  if (row.swept) {
    return TransactionSwept(dataset.dataset.rid, rid);
  }
  Origin origin{.parent_id = std::nullopt,
                .head_id = row.id,
                .open_id = std::nullopt,
                .ancestry = {},
                .moved_at = row.closed_at.value_or(Timestamp{})};
  TARN_ASSIGN_OR_RETURN(const std::optional<BranchRow> owner, FindBranchById(sql, row.branch_id));
  if (owner) {
    origin.parent_id = owner->id;
  }
  TARN_ASSIGN_OR_RETURN(origin.ancestry,
                        AncestryBelow(sql, row.branch_id, owner ? owner->ancestry : ""));
  return origin;
}

Status BranchAlreadyExists(const DatasetRid& dataset, std::string_view name) {
  return Status::AlreadyExists("dataset " + dataset.ToString() + " already has a branch " +
                               JsonString(name))
      .WithReason("BranchAlreadyExists",
                  JsonObject({{"datasetRid", dataset.ToString()}, {"branchName", name}}));
}

Result<BranchRow> MoveBranch(SqlTransaction& sql, const Clock& clock, const BranchRow& branch,
                             const TransactionRow& target, std::string_view by) {
  BranchRow moved = branch;
  moved.head_id = target.id;
  moved.line = 0;
  moved.moved_at = std::max({clock.Now(), branch.moved_at + std::chrono::milliseconds(1),
                             target.closed_at.value_or(Timestamp{})});
  TARN_RETURN_IF_ERROR(
      sql.Execute("UPDATE dataset_branches SET head_id = ?2, line = 0, moved_at = ?3 WHERE id = ?1",
                  {branch.id, target.id, ToMicros(moved.moved_at)}));
  TARN_RETURN_IF_ERROR(InsertReflog(sql, {.branch_id = branch.id,
                                          .at = moved.moved_at,
                                          .from = branch.head_id,
                                          .to = target.id,
                                          .by = std::string(by)}));
  return moved;
}

struct MoveTarget {
  BranchRow branch;
  TransactionRow target;
};

// The branch and the committed transaction it is to point at; refused while it has an OPEN one.
Result<MoveTarget> LoadMove(SqlTransaction& sql, const DatasetRow& dataset, std::string_view name,
                            const TransactionRid& to) {
  TARN_ASSIGN_OR_RETURN(BranchRow branch, LoadBranch(sql, dataset, name));
  if (branch.open_id) {
    return OpenTransactionAlreadyExists(dataset.dataset.rid, name);
  }
  TARN_ASSIGN_OR_RETURN(TransactionRow target, LoadTransaction(sql, dataset, to));
  if (target.state != TransactionState::kCommitted) {
    return TransactionNotCommitted(dataset.dataset.rid, to, target.state);
  }
  if (target.swept) {
    return TransactionSwept(dataset.dataset.rid, to);
  }
  return MoveTarget{.branch = std::move(branch), .target = std::move(target)};
}

}  // namespace

Result<Branch> DatasetStore::CreateBranch(SqlTransaction& sql, const DatasetRid& dataset,
                                          std::string_view name,
                                          const CreateBranchOptions& options) {
  TARN_RETURN_IF_ERROR(CheckBranchName(name));
  if (options.from_branch && options.from_transaction) {
    return Status::InvalidArgument("a branch starts at a branch or at a transaction, not at both")
        .WithReason("InvalidParameterCombination",
                    R"({"validCombinations":[["fromBranch"],["transactionRid"]],)"
                    R"("providedParameters":["fromBranch","transactionRid"]})");
  }
  TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, dataset));
  Origin origin;
  if (options.from_branch) {
    TARN_ASSIGN_OR_RETURN(origin, OriginAtBranch(sql, row, *options.from_branch));
  } else if (options.from_transaction) {
    TARN_ASSIGN_OR_RETURN(origin, OriginAtTransaction(sql, row, *options.from_transaction));
  }
  const Timestamp now = std::max(clock_.Now(), origin.moved_at);
  const Result<int64_t> id = QueryInt(
      sql,
      "INSERT INTO dataset_branches (dataset_id, name, parent_id, ancestry, head_id, open_id, "
      "moved_at, created_at, created_by) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8) RETURNING id",
      {row.id, Blob{std::string(name)}, OrNull(origin.parent_id), origin.ancestry,
       OrNull(origin.head_id), OrNull(origin.open_id), ToMicros(now), options.by});
  if (!id.ok() && id.status().code() == ErrorCode::kAlreadyExists) {
    return BranchAlreadyExists(dataset, name);
  }
  TARN_RETURN_IF_ERROR(id);
  TARN_RETURN_IF_ERROR(InsertReflog(
      sql,
      {.branch_id = *id, .at = now, .from = std::nullopt, .to = origin.head_id, .by = options.by}));
  return GetBranch(sql, dataset, name);
}

Result<Branch> DatasetStore::CreateBranch(const DatasetRid& dataset, std::string_view name,
                                          const CreateBranchOptions& options) {
  return InWrite(database_, Durability::kDurable,
                 [&](SqlTransaction& sql) { return CreateBranch(sql, dataset, name, options); });
}

Result<Branch> DatasetStore::GetBranch(SqlTransaction& sql, const DatasetRid& dataset,
                                       std::string_view name) {
  TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, dataset));
  TARN_ASSIGN_OR_RETURN(const BranchRow branch, LoadBranch(sql, row, name));
  return ToBranch(sql, branch);
}

Result<Branch> DatasetStore::GetBranch(const DatasetRid& dataset, std::string_view name) {
  return InRead(database_, [&](SqlTransaction& sql) { return GetBranch(sql, dataset, name); });
}

Result<BranchPage> DatasetStore::ListBranches(const DatasetRid& dataset, int page_size,
                                              std::string_view page_token) {
  TARN_RETURN_IF_ERROR(CheckPageSize(page_size, kPageSizeMax));
  std::string after;
  if (!page_token.empty()) {
    TARN_ASSIGN_OR_RETURN(const std::vector<std::string> fields,
                          DecodePageToken(TokenKind::kBranches, 1, page_token));
    after = fields[0];
  }
  return InRead(database_, [&](SqlTransaction& sql) -> Result<BranchPage> {
    TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, dataset));
    std::vector<std::string> names;
    TARN_RETURN_IF_ERROR(sql.Query(
        "SELECT name FROM dataset_branches WHERE dataset_id = ?1 AND name > ?2 ORDER BY name "
        "LIMIT ?3",
        {row.id, Blob{after}, int64_t{page_size} + 1},
        [&](const SqlRow& found) -> Result<RowAction> {
          names.emplace_back(found.Text(0));
          return RowAction::kContinue;
        }));
    BranchPage page;
    if (names.size() > static_cast<size_t>(page_size)) {
      names.pop_back();
      page.next_page_token = EncodePageToken(TokenKind::kBranches, {names.back()});
    }
    for (const std::string& name : names) {
      TARN_ASSIGN_OR_RETURN(const BranchRow branch, LoadBranch(sql, row, name));
      TARN_ASSIGN_OR_RETURN(Branch listed, ToBranch(sql, branch));
      page.branches.push_back(std::move(listed));
    }
    return page;
  });
}

Status DatasetStore::DeleteBranch(SqlTransaction& sql, const DatasetRid& dataset,
                                  std::string_view name) {
  TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, dataset));
  TARN_ASSIGN_OR_RETURN(const BranchRow branch, LoadBranch(sql, row, name));
  if (name == kDefaultBranch) {
    return DefaultBranchStays(dataset, name);
  }
  if (branch.is_protected) {
    return BranchIsProtected(dataset, name, "deleting it");
  }
  if (branch.open_id) {
    TARN_ASSIGN_OR_RETURN(
        const std::optional<int64_t> other,
        FindInt(sql,
                "SELECT id FROM dataset_branches WHERE dataset_id = ?1 AND open_id = ?2 AND "
                "id <> ?3 LIMIT 1",
                {row.id, *branch.open_id, branch.id}));
    if (!other) {
      TARN_ASSIGN_OR_RETURN(const TransactionRow open, LoadTransactionById(sql, *branch.open_id));
      TARN_RETURN_IF_ERROR(AbortTransaction(sql, dataset, open.rid, branch.created_by));
    } else {
      TARN_RETURN_IF_ERROR(sql.Execute("UPDATE dataset_transactions SET shared = 1 WHERE id = ?1",
                                       {*branch.open_id}));
    }
  }
  TARN_RETURN_IF_ERROR(sql.Execute(
      "UPDATE dataset_branches SET parent_id = ?3 WHERE dataset_id = ?1 AND parent_id = ?2",
      {row.id, branch.id, OrNull(branch.parent_id)}));
  TARN_RETURN_IF_ERROR(sql.Execute("DELETE FROM dataset_reflog WHERE branch_id = ?1", {branch.id}));
  TARN_RETURN_IF_ERROR(
      sql.Execute("DELETE FROM dataset_checkpoint_requests WHERE branch_id = ?1", {branch.id}));
  return StatusOf(sql.Execute("DELETE FROM dataset_branches WHERE id = ?1", {branch.id}));
}

Status DatasetStore::DeleteBranch(const DatasetRid& dataset, std::string_view name) {
  return database_.Write([&](SqlTransaction& sql) { return DeleteBranch(sql, dataset, name); });
}

Result<Branch> DatasetStore::ResetBranch(SqlTransaction& sql, const DatasetRid& dataset,
                                         std::string_view name, const TransactionRid& to,
                                         std::string_view by) {
  TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, dataset));
  TARN_ASSIGN_OR_RETURN(const MoveTarget move, LoadMove(sql, row, name, to));
  if (move.branch.is_protected) {
    return BranchIsProtected(dataset, name, "resetting it (fast-forward is possible)");
  }
  TARN_ASSIGN_OR_RETURN(const BranchRow moved,
                        MoveBranch(sql, clock_, move.branch, move.target, by));
  return ToBranch(sql, moved);
}

Result<Branch> DatasetStore::FastForwardBranch(SqlTransaction& sql, const DatasetRid& dataset,
                                               std::string_view name, const TransactionRid& to,
                                               std::string_view by) {
  TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, dataset));
  TARN_ASSIGN_OR_RETURN(const MoveTarget move, LoadMove(sql, row, name, to));
  if (move.branch.head_id) {
    TARN_ASSIGN_OR_RETURN(const TransactionRow head,
                          LoadTransactionById(sql, *move.branch.head_id));
    TARN_ASSIGN_OR_RETURN(const bool forward, IsAncestor(sql, head, move.target));
    if (!forward) {
      return Status::Conflict("branch " + JsonString(name) + " cannot be moved forward to " +
                              to.ToString() + ": its head " + head.rid.ToString() +
                              " is not an ancestor of that; reset or merge instead")
          .WithReason("NotAFastForward", JsonObject({{"datasetRid", dataset.ToString()},
                                                     {"branchName", name},
                                                     {"transactionRid", to.ToString()}}));
    }
  }
  TARN_ASSIGN_OR_RETURN(const BranchRow moved,
                        MoveBranch(sql, clock_, move.branch, move.target, by));
  return ToBranch(sql, moved);
}

Result<ReflogPage> DatasetStore::ListReflog(const DatasetRid& dataset, std::string_view branch,
                                            int page_size, std::string_view page_token) {
  TARN_RETURN_IF_ERROR(CheckPageSize(page_size, kPageSizeMax));
  int64_t before = std::numeric_limits<int64_t>::max();
  if (!page_token.empty()) {
    TARN_ASSIGN_OR_RETURN(const std::vector<std::string> fields,
                          DecodePageToken(TokenKind::kReflog, 1, page_token));
    before = std::strtoll(fields[0].c_str(), nullptr, 10);
  }
  return InRead(database_, [&](SqlTransaction& sql) -> Result<ReflogPage> {
    TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, dataset));
    TARN_ASSIGN_OR_RETURN(const BranchRow found, LoadBranch(sql, row, branch));
    ReflogPage page;
    TARN_RETURN_IF_ERROR(sql.Query(
        "SELECT r.moved_at, f.uuid, t.uuid, r.moved_by FROM dataset_reflog r "
        "LEFT JOIN dataset_transactions f ON f.id = r.from_id "
        "LEFT JOIN dataset_transactions t ON t.id = r.to_id "
        "WHERE r.branch_id = ?1 AND r.moved_at < ?2 ORDER BY r.moved_at DESC LIMIT ?3",
        {found.id, before, int64_t{page_size} + 1}, [&](const SqlRow& line) -> Result<RowAction> {
          ReflogEntry entry{.moved_at = FromMicros(line.Int(0)),
                            .from = std::nullopt,
                            .to = std::nullopt,
                            .moved_by = std::string(line.Text(3))};
          if (!line.IsNull(1)) {
            entry.from = TransactionRid{.uuid = ReadUuid(line, 1)};
          }
          if (!line.IsNull(2)) {
            entry.to = TransactionRid{.uuid = ReadUuid(line, 2)};
          }
          page.entries.push_back(std::move(entry));
          return RowAction::kContinue;
        }));
    if (page.entries.size() > static_cast<size_t>(page_size)) {
      page.entries.pop_back();
      page.next_page_token = EncodePageToken(
          TokenKind::kReflog, {std::to_string(ToMicros(page.entries.back().moved_at))});
    }
    return page;
  });
}

}  // namespace tarn::dataset
