#include "tarn/dataset/rows.h"

#include <algorithm>
#include <utility>

#include "tarn/dataset/errors.h"

namespace tarn::dataset {

using metastore::Blob;
using metastore::RowAction;
using metastore::SqlArguments;
using metastore::SqlRow;
using metastore::SqlTransaction;
using metastore::SqlValue;

namespace {

#define TARN_BRANCH_COLUMNS                                                           \
  "id, dataset_id, name, parent_id, ancestry, head_id, open_id, line, next_ordinal, " \
  "moved_at, created_at, created_by, protected"

#define TARN_TRANSACTION_COLUMNS                                                      \
  "id, uuid, dataset_id, branch_id, type, state, shared, parent_id, depth, jump_id, " \
  "jump_depth, view_start_id, view_start_depth, root, line, ordinal, lineage, "       \
  "base_overwritten, base_removed, file_count, overwritten_count, removed_count, "    \
  "size_bytes, by_retention, created_at, closed_at, created_by, swept_at, "           \
  "merged_id"

BranchRow ReadBranch(const SqlRow& row) {
  return {.id = row.Int(0),
          .dataset_id = row.Int(1),
          .name = std::string(row.Text(2)),
          .parent_id = ReadOptionalInt(row, 3),
          .ancestry = std::string(row.Text(4)),
          .head_id = ReadOptionalInt(row, 5),
          .open_id = ReadOptionalInt(row, 6),
          .line = row.Int(7),
          .next_ordinal = row.Int(8),
          .moved_at = FromMicros(row.Int(9)),
          .created_at = FromMicros(row.Int(10)),
          .created_by = std::string(row.Text(11)),
          .is_protected = row.Int(12) != 0};
}

Result<TransactionRow> ReadTransaction(const SqlRow& row) {
  TransactionRow read{.id = row.Int(0),
                      .rid = {.uuid = ReadUuid(row, 1)},
                      .dataset_id = row.Int(2),
                      .branch_id = row.Int(3),
                      .type = static_cast<TransactionType>(row.Int(4)),
                      .state = static_cast<TransactionState>(row.Int(5)),
                      .shared = row.Int(6) != 0,
                      .parent_id = ReadOptionalInt(row, 7),
                      .depth = row.Int(8),
                      .jump_id = ReadOptionalInt(row, 9),
                      .jump_depth = row.Int(10),
                      .view_start_id = ReadOptionalInt(row, 11),
                      .view_start_depth = row.Int(12),
                      .root = row.Int(13),
                      .line = row.Int(14),
                      .ordinal = row.Int(15),
                      .lineage = {},
                      .base_overwritten = row.Int(17),
                      .base_removed = row.Int(18),
                      .file_count = row.Int(19),
                      .overwritten_count = row.Int(20),
                      .removed_count = row.Int(21),
                      .size_bytes = row.Int(22),
                      .by_retention = row.Int(23) != 0,
                      .created_at = FromMicros(row.Int(24)),
                      .closed_at = std::nullopt,
                      .created_by = std::string(row.Text(26)),
                      .merged_id = ReadOptionalInt(row, 28),
                      .swept = !row.IsNull(27)};
  if (!row.IsNull(25)) {
    read.closed_at = FromMicros(row.Int(25));
  }
  TARN_ASSIGN_OR_RETURN(read.lineage, DecodeLineage(row.Text(16)));
  return read;
}

Result<std::optional<TransactionRow>> QueryTransaction(SqlTransaction& sql, std::string_view text,
                                                       const SqlArguments& arguments) {
  std::optional<TransactionRow> found;
  TARN_RETURN_IF_ERROR(sql.Query(text, arguments, [&](const SqlRow& row) -> Result<RowAction> {
    TARN_ASSIGN_OR_RETURN(found, ReadTransaction(row));
    return RowAction::kStop;
  }));
  return found;
}

Result<std::optional<BranchRow>> QueryBranch(SqlTransaction& sql, std::string_view text,
                                             const SqlArguments& arguments) {
  std::optional<BranchRow> found;
  TARN_RETURN_IF_ERROR(sql.Query(text, arguments, [&](const SqlRow& row) -> Result<RowAction> {
    found = ReadBranch(row);
    return RowAction::kStop;
  }));
  return found;
}

}  // namespace

Blob ToBlob(const Uuid& uuid) {
  return {.bytes =
              std::string(reinterpret_cast<const char*>(uuid.bytes.data()), uuid.bytes.size())};
}

SqlValue OrNull(const std::optional<int64_t>& value) {
  return value ? SqlValue(*value) : SqlValue();
}

SqlValue OrNull(const std::optional<std::string>& value) {
  return value ? SqlValue(*value) : SqlValue();
}

Uuid ReadUuid(const SqlRow& row, int column) {
  const std::string_view bytes = row.Text(column);
  Uuid uuid;
  std::copy_n(bytes.begin(), std::min(bytes.size(), uuid.bytes.size()), uuid.bytes.begin());
  return uuid;
}

std::optional<int64_t> ReadOptionalInt(const SqlRow& row, int column) {
  if (row.IsNull(column)) {
    return std::nullopt;
  }
  return row.Int(column);
}

Result<std::optional<int64_t>> FindInt(SqlTransaction& sql, std::string_view text,
                                       const SqlArguments& arguments) {
  std::optional<int64_t> found;
  // To the end: an INSERT … RETURNING is a statement that must finish.
  TARN_RETURN_IF_ERROR(sql.Query(text, arguments, [&](const SqlRow& row) -> Result<RowAction> {
    found = ReadOptionalInt(row, 0);
    return RowAction::kContinue;
  }));
  return found;
}

Result<int64_t> QueryInt(SqlTransaction& sql, std::string_view text,
                         const SqlArguments& arguments) {
  TARN_ASSIGN_OR_RETURN(const std::optional<int64_t> found, FindInt(sql, text, arguments));
  if (!found) {
    return Status::Internal("no row where one was expected: " + std::string(text));
  }
  return *found;
}

Result<DatasetRow> LoadDataset(SqlTransaction& sql, const DatasetRid& rid) {
  std::optional<DatasetRow> found;
  TARN_RETURN_IF_ERROR(sql.Query(
      "SELECT id, base_uri, inherit_schema, validate, idle_abort_seconds, created_at, created_by "
      "FROM dataset_datasets WHERE uuid = ?1 AND deleted_at IS NULL",
      {ToBlob(rid.uuid)}, [&](const SqlRow& row) -> Result<RowAction> {
        DatasetSettings settings{.inherit_schema_on_snapshot = row.Int(2) != 0,
                                 .validate = static_cast<SchemaValidation>(row.Int(3)),
                                 .idle_abort = std::nullopt};
        if (!row.IsNull(4)) {
          settings.idle_abort = std::chrono::seconds(row.Int(4));
        }
        found = DatasetRow{.id = row.Int(0),
                           .dataset = {.rid = rid,
                                       .base_uri = std::string(row.Text(1)),
                                       .settings = settings,
                                       .created_at = FromMicros(row.Int(5)),
                                       .created_by = std::string(row.Text(6))}};
        return RowAction::kStop;
      }));
  if (!found) {
    return DatasetNotFound(rid);
  }
  return *std::move(found);
}

Result<BranchRow> LoadBranch(SqlTransaction& sql, const DatasetRow& dataset,
                             std::string_view name) {
  TARN_ASSIGN_OR_RETURN(std::optional<BranchRow> found,
                        QueryBranch(sql,
                                    "SELECT " TARN_BRANCH_COLUMNS
                                    " FROM dataset_branches WHERE dataset_id = ?1 AND name = ?2",
                                    {dataset.id, Blob{std::string(name)}}));
  if (!found) {
    return BranchNotFound(dataset.dataset.rid, name);
  }
  return *std::move(found);
}

Result<std::optional<BranchRow>> FindBranchById(SqlTransaction& sql, int64_t id) {
  return QueryBranch(sql, "SELECT " TARN_BRANCH_COLUMNS " FROM dataset_branches WHERE id = ?1",
                     {id});
}

Result<TransactionRow> LoadTransaction(SqlTransaction& sql, const DatasetRow& dataset,
                                       const TransactionRid& rid) {
  TARN_ASSIGN_OR_RETURN(std::optional<TransactionRow> found,
                        QueryTransaction(sql,
                                         "SELECT " TARN_TRANSACTION_COLUMNS
                                         " FROM dataset_transactions WHERE uuid = ?1",
                                         {ToBlob(rid.uuid)}));
  if (!found || found->dataset_id != dataset.id) {
    return TransactionNotFound(dataset.dataset.rid, rid);
  }
  return *std::move(found);
}

Result<TransactionRow> LoadTransactionById(SqlTransaction& sql, int64_t id) {
  TARN_ASSIGN_OR_RETURN(std::optional<TransactionRow> found,
                        QueryTransaction(sql,
                                         "SELECT " TARN_TRANSACTION_COLUMNS
                                         " FROM dataset_transactions WHERE id = ?1",
                                         {id}));
  if (!found) {
    return Status::Corruption("dataset transaction number " + std::to_string(id) +
                              " is referred to but missing in the metastore");
  }
  return *std::move(found);
}

Result<Uuid> TransactionUuid(SqlTransaction& sql, int64_t id) {
  std::optional<Uuid> uuid;
  TARN_RETURN_IF_ERROR(sql.Query("SELECT uuid FROM dataset_transactions WHERE id = ?1", {id},
                                 [&](const SqlRow& row) -> Result<RowAction> {
                                   uuid = ReadUuid(row, 0);
                                   return RowAction::kStop;
                                 }));
  if (!uuid) {
    return Status::Corruption("dataset transaction number " + std::to_string(id) +
                              " is referred to but missing in the metastore");
  }
  return *uuid;
}

Result<Branch> ToBranch(SqlTransaction& sql, const BranchRow& row) {
  Branch branch{.name = row.name,
                .head = std::nullopt,
                .open = std::nullopt,
                .parent = std::nullopt,
                .created_at = row.created_at,
                .created_by = row.created_by};
  if (row.head_id) {
    TARN_ASSIGN_OR_RETURN(const Uuid uuid, TransactionUuid(sql, *row.head_id));
    branch.head = TransactionRid{.uuid = uuid};
  }
  if (row.open_id) {
    TARN_ASSIGN_OR_RETURN(const Uuid uuid, TransactionUuid(sql, *row.open_id));
    branch.open = TransactionRid{.uuid = uuid};
  }
  if (row.parent_id) {
    TARN_ASSIGN_OR_RETURN(const std::optional<BranchRow> parent,
                          FindBranchById(sql, *row.parent_id));
    if (parent) {
      branch.parent = parent->name;
    }
  }
  return branch;
}

Result<Transaction> ToTransaction(SqlTransaction& sql, const DatasetRow& dataset,
                                  const TransactionRow& row) {
  Transaction transaction{.rid = row.rid,
                          .dataset = dataset.dataset.rid,
                          .type = row.type,
                          .state = row.state,
                          .parent = std::nullopt,
                          .created_at = row.created_at,
                          .closed_at = row.closed_at,
                          .created_by = row.created_by,
                          .record_json = std::nullopt,
                          .provenance_json = std::nullopt,
                          .by_retention = row.by_retention,
                          .file_count = row.file_count,
                          .overwritten_count = row.overwritten_count,
                          .removed_count = row.removed_count,
                          .size_bytes = row.size_bytes};
  if (row.parent_id) {
    TARN_ASSIGN_OR_RETURN(const Uuid uuid, TransactionUuid(sql, *row.parent_id));
    transaction.parent = TransactionRid{.uuid = uuid};
  }
  if (row.state == TransactionState::kCommitted) {
    TARN_RETURN_IF_ERROR(
        sql.Query("SELECT record, provenance FROM dataset_transactions WHERE id = ?1", {row.id},
                  [&](const SqlRow& found) -> Result<RowAction> {
                    if (!found.IsNull(0)) {
                      transaction.record_json = std::string(found.Text(0));
                    }
                    if (!found.IsNull(1)) {
                      transaction.provenance_json = std::string(found.Text(1));
                    }
                    return RowAction::kStop;
                  }));
  }
  return transaction;
}

Result<LineId> InsertLine(SqlTransaction& sql, int64_t dataset_id) {
  return QueryInt(sql, "INSERT INTO dataset_lines (dataset_id) VALUES (?1) RETURNING id",
                  {dataset_id});
}

Result<int64_t> InsertTransaction(SqlTransaction& sql, const TransactionRow& row) {
  return QueryInt(
      sql,
      "INSERT INTO dataset_transactions (uuid, dataset_id, branch_id, type, state, parent_id, "
      "depth, jump_id, jump_depth, view_start_id, view_start_depth, root, line, ordinal, lineage, "
      "base_overwritten, base_removed, created_at, touched_at, created_by) VALUES (?1, ?2, ?3, "
      "?4, 0, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?17, ?18) RETURNING id",
      {ToBlob(row.rid.uuid), row.dataset_id, row.branch_id, static_cast<int64_t>(row.type),
       OrNull(row.parent_id), row.depth, OrNull(row.jump_id), row.jump_depth,
       OrNull(row.view_start_id), row.view_start_depth, row.root, row.line, row.ordinal,
       EncodeLineage(row.lineage), row.base_overwritten, row.base_removed, ToMicros(row.created_at),
       row.created_by});
}

Status InsertReflog(SqlTransaction& sql, const BranchMove& move) {
  return StatusOf(sql.Execute(
      "INSERT INTO dataset_reflog (branch_id, moved_at, from_id, to_id, moved_by) "
      "VALUES (?1, ?2, ?3, ?4, ?5)",
      {move.branch_id, ToMicros(move.at), OrNull(move.from), OrNull(move.to), move.by}));
}

}  // namespace tarn::dataset
