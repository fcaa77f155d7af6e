#include "tarn/dataset/ancestry.h"

#include <utility>

namespace tarn::dataset {

using metastore::SqlTransaction;

Status PlaceUnder(SqlTransaction& sql, const TransactionRow* parent, TransactionRow& child) {
  if (parent == nullptr) {
    child.depth = 0;
    return Status::Ok();
  }
  child.parent_id = parent->id;
  child.depth = parent->depth + 1;
  child.jump_id = parent->id;
  child.jump_depth = parent->depth;
  if (!parent->jump_id) {
    return Status::Ok();
  }
  TARN_ASSIGN_OR_RETURN(const TransactionRow jump, LoadTransactionById(sql, *parent->jump_id));
  if (jump.jump_id && parent->depth - jump.depth == jump.depth - jump.jump_depth) {
    child.jump_id = jump.jump_id;
    child.jump_depth = jump.jump_depth;
  }
  return Status::Ok();
}

Result<TransactionRow> AncestorAt(SqlTransaction& sql, TransactionRow row, int64_t depth) {
  TARN_CHECK(depth >= 0 && depth <= row.depth);
  while (row.depth > depth) {
    TARN_CHECK(row.jump_id && row.parent_id);
    const int64_t next = row.jump_depth >= depth ? *row.jump_id : *row.parent_id;
    TARN_ASSIGN_OR_RETURN(row, LoadTransactionById(sql, next));
  }
  return row;
}

Result<bool> IsAncestor(SqlTransaction& sql, const TransactionRow& ancestor,
                        const TransactionRow& row) {
  if (ancestor.depth > row.depth || ancestor.dataset_id != row.dataset_id) {
    return false;
  }
  TARN_ASSIGN_OR_RETURN(const TransactionRow found, AncestorAt(sql, row, ancestor.depth));
  return found.id == ancestor.id;
}

Result<std::optional<TransactionRow>> NewestAtOrBefore(SqlTransaction& sql, TransactionRow row,
                                                       Timestamp time) {
  // Closing times grow with depth, so the jump is taken while even its end is too new.
  while (!row.closed_at || *row.closed_at > time) {
    if (!row.parent_id) {
      return std::optional<TransactionRow>();
    }
    TARN_ASSIGN_OR_RETURN(TransactionRow next, LoadTransactionById(sql, *row.jump_id));
    if (next.id != *row.parent_id && next.closed_at && *next.closed_at <= time) {
      TARN_ASSIGN_OR_RETURN(next, LoadTransactionById(sql, *row.parent_id));
    }
    row = std::move(next);
  }
  return std::optional<TransactionRow>(std::move(row));
}

}  // namespace tarn::dataset
