#include "tarn/dataset/retention/dataset_facts.h"

#include <algorithm>
#include <utility>

#include "tarn/dataset/file_scan.h"

namespace tarn::dataset::retention {

using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;

std::optional<std::string> Guarded::NameOf(int64_t branch_id) const {
  const auto found = std::find_if(branches.begin(), branches.end(),
                                  [&](const BranchFacts& b) { return b.id == branch_id; });
  return found == branches.end() ? std::nullopt : std::optional<std::string>(found->name);
}

Result<Guarded> LoadGuarded(SqlTransaction& sql, int64_t dataset_id) {
  Guarded guarded;
  TARN_RETURN_IF_ERROR(sql.Query(
      "SELECT id, name, head_id FROM dataset_branches WHERE dataset_id = ?1 ORDER BY name",
      {dataset_id}, [&](const SqlRow& row) -> Result<RowAction> {
        guarded.branches.push_back({.id = row.Int(0),
                                    .name = std::string(row.Text(1)),
                                    .head_id = ReadOptionalInt(row, 2)});
        if (guarded.branches.back().head_id) {
          guarded.transactions.insert(*guarded.branches.back().head_id);
        }
        return RowAction::kContinue;
      }));
  TARN_RETURN_IF_ERROR(sql.Query("SELECT transaction_id FROM dataset_tags WHERE dataset_id = ?1",
                                 {dataset_id}, [&](const SqlRow& row) -> Result<RowAction> {
                                   guarded.transactions.insert(row.Int(0));
                                   return RowAction::kContinue;
                                 }));
  return guarded;
}

Result<KeptByPolicy> LoadKept(SqlTransaction& sql, const TransactionSelector& selector,
                              const Guarded& guarded) {
  KeptByPolicy kept;
  for (const BranchFacts& branch : guarded.branches) {
    if (!selector.SelectsBranch(branch.name)) {
      continue;
    }
    std::optional<int64_t> next = branch.head_id;
    for (int64_t i = 0; next && i < selector.keep_newest.value_or(0); ++i) {
      kept.newest.insert(*next);
      TARN_ASSIGN_OR_RETURN(const TransactionRow row, LoadTransactionById(sql, *next));
      next = row.parent_id;
    }
    next = branch.head_id;
    for (int64_t i = 0; next && i < selector.keep_views.value_or(0); ++i) {
      TARN_ASSIGN_OR_RETURN(const TransactionRow row, LoadTransactionById(sql, *next));
      kept.views.insert(row.view_start());
      TARN_ASSIGN_OR_RETURN(const TransactionRow start, LoadTransactionById(sql, row.view_start()));
      next = start.parent_id;
    }
  }
  return kept;
}

Result<int64_t> AddViewAges(SqlTransaction& sql, int64_t dataset_id, int64_t after,
                            ViewAges& ages) {
  int64_t last = 0;
  TARN_RETURN_IF_ERROR(sql.Query(
      "SELECT id, COALESCE(view_start_id, id), closed_at, state FROM dataset_transactions WHERE "
      "dataset_id = ?1 AND id > ?2 ORDER BY id LIMIT 1000",
      {dataset_id, after}, [&](const SqlRow& row) -> Result<RowAction> {
        last = row.Int(0);
        if (static_cast<TransactionState>(row.Int(3)) == TransactionState::kCommitted) {
          Timestamp& age = ages[row.Int(1)];
          age = std::max(age, FromMicros(row.Int(2)));
        }
        return RowAction::kContinue;
      }));
  return last;
}

Result<bool> HasFileInActiveView(metastore::Database& database, const TransactionRow& row,
                                 const Guarded& guarded) {
  constexpr size_t kPathsPerRead = 200;
  const Lineage own = {
      {.root = row.root, .line = row.line, .after = row.ordinal - 1, .through = row.ordinal}};
  for (const BranchFacts& branch : guarded.branches) {
    if (!branch.head_id) {
      continue;
    }
    ChangedPaths paths(own, {});
    bool more = true;
    bool found = false;
    while (more && !found) {
      TARN_RETURN_IF_ERROR(database.Read([&](SqlTransaction& sql) -> Status {
        TARN_ASSIGN_OR_RETURN(const TransactionRow head, LoadTransactionById(sql, *branch.head_id));
        if (head.view_start() != row.view_start()) {
          more = false;
          return Status::Ok();
        }
        TARN_ASSIGN_OR_RETURN(const auto changes, paths.Next(sql, kPathsPerRead));
        more = !changes.empty();
        for (const ChangedPaths::Change& change : changes) {
          TARN_ASSIGN_OR_RETURN(const std::optional<File> file,
                                FindFile(sql, head.lineage, change.path));
          found = found || (file && file->transaction == row.rid);
        }
        return Status::Ok();
      }));
    }
    if (found) {
      return true;
    }
  }
  return false;
}

}  // namespace tarn::dataset::retention
