#include "tarn/dataset/dataset_store.h"

#include <algorithm>
#include <utility>

#include "tarn/dataset/changes/change_list.h"
#include "tarn/dataset/errors.h"
#include "tarn/dataset/in_sql.h"
#include "tarn/dataset/rows.h"

namespace tarn::dataset {

using metastore::Durability;
using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;
using metastore::SqlValue;

namespace {

/// A queued piece of work for PurgeDeleted: a whole dataset, or one transaction's rows.
struct Garbage {
  int64_t id = 0;
  std::optional<int64_t> dataset_id;
  LineId root = 0;
  LineId line = 0;
  int64_t ordinal = 0;
};

Result<std::optional<Garbage>> FirstGarbage(SqlTransaction& sql) {
  std::optional<Garbage> found;
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT id, dataset_id, line, ordinal, root FROM "
                "dataset_garbage ORDER BY id LIMIT 1",
                {}, [&](const SqlRow& row) -> Result<RowAction> {
                  found = Garbage{.id = row.Int(0),
                                  .dataset_id = ReadOptionalInt(row, 1),
                                  .root = row.Int(4),
                                  .line = row.Int(2),
                                  .ordinal = row.Int(3)};
                  return RowAction::kStop;
                }));
  return found;
}

Result<int64_t> PurgeRoot(SqlTransaction& sql, LineId root, int64_t rows_max) {
  return sql.Execute(
      "DELETE FROM dataset_files WHERE root = ?1 AND (path, line, ordinal) IN (SELECT path, line, "
      "ordinal FROM dataset_files WHERE root = ?1 ORDER BY path, line, ordinal LIMIT ?2)",
      {root, rows_max});
}

// Whether nothing but the garbage itself can have rows under its root: it began the root, and no
// transaction that is not aborted is placed there.
Result<bool> OwnsRoot(SqlTransaction& sql, const Garbage& garbage) {
  if (garbage.root != garbage.line || garbage.ordinal != 1) {
    return false;
  }
  TARN_ASSIGN_OR_RETURN(
      const std::optional<int64_t> other,
      FindInt(sql, "SELECT id FROM dataset_transactions WHERE root = ?1 AND state <> 2 LIMIT 1",
              {garbage.root}));
  return !other.has_value();
}

// One list of paths after the other. A copy for a checkpoint has none, but a root of its own.
Result<int64_t> PurgeTransactionRows(SqlTransaction& sql, const Garbage& garbage,
                                     int64_t rows_max) {
  TARN_ASSIGN_OR_RETURN(
      const std::vector<std::string> paths,
      changes::TakeFirstList(sql, {.line = garbage.line, .ordinal = garbage.ordinal}));
  for (const std::string& path : paths) {
    TARN_RETURN_IF_ERROR(
        sql.Execute("DELETE FROM dataset_files WHERE root = ?1 AND path = ?2 AND line = ?3 "
                    "AND ordinal = ?4",
                    {garbage.root, metastore::Blob{path}, garbage.line, garbage.ordinal}));
  }
  if (!paths.empty()) {
    return static_cast<int64_t>(paths.size());
  }
  TARN_ASSIGN_OR_RETURN(const bool owns_root, OwnsRoot(sql, garbage));
  return owns_root ? PurgeRoot(sql, garbage.root, rows_max) : 0;
}

// Files line by line, then what hangs on the dataset, at last its own row.
Result<int64_t> PurgeDatasetRows(SqlTransaction& sql, int64_t dataset_id, int64_t rows_max) {
  TARN_ASSIGN_OR_RETURN(
      const std::optional<int64_t> line,
      FindInt(sql, "SELECT id FROM dataset_lines WHERE dataset_id = ?1 ORDER BY id LIMIT 1",
              {dataset_id}));
  if (line) {
    // Every row's root is a line of the dataset.
    TARN_ASSIGN_OR_RETURN(int64_t removed, PurgeRoot(sql, *line, rows_max));
    if (removed == 0) {
      TARN_ASSIGN_OR_RETURN(removed, sql.Execute("DELETE FROM dataset_changes WHERE line = ?1 "
                                                 "AND (ordinal, first_path) IN "
                                                 "(SELECT ordinal, first_path FROM "
                                                 "dataset_changes WHERE line = ?1 ORDER BY "
                                                 "ordinal, first_path LIMIT ?2)",
                                                 {*line, rows_max}));
    }
    if (removed > 0) {
      return removed;
    }
    return sql.Execute("DELETE FROM dataset_lines WHERE id = ?1", {*line});
  }
  TARN_ASSIGN_OR_RETURN(
      const int64_t transactions,
      sql.Execute("DELETE FROM dataset_transactions WHERE id IN (SELECT id FROM "
                  "dataset_transactions WHERE dataset_id = ?1 ORDER BY id LIMIT ?2)",
                  {dataset_id, rows_max}));
  if (transactions > 0) {
    return transactions;
  }
  for (const char* const text : {"DELETE FROM dataset_schemas WHERE dataset_id = ?1",
                                 "DELETE FROM dataset_retention_marks WHERE dataset_id = ?1",
                                 "DELETE FROM dataset_retention_kept WHERE dataset_id = ?1",
                                 // Its bytes are the sweep's, which needs to know the name.
                                 "INSERT INTO dataset_remains (uuid, base_uri, deleted_at) SELECT "
                                 "uuid, base_uri, deleted_at FROM dataset_datasets WHERE id = ?1 "
                                 "ON CONFLICT (uuid) DO NOTHING"}) {
    TARN_RETURN_IF_ERROR(sql.Execute(text, {dataset_id}));
  }
  return sql.Execute("DELETE FROM dataset_datasets WHERE id = ?1", {dataset_id});
}

Result<int64_t> PurgeOnce(SqlTransaction& sql, int64_t rows_max) {
  TARN_ASSIGN_OR_RETURN(const std::optional<Garbage> garbage, FirstGarbage(sql));
  if (!garbage) {
    return 0;
  }
  TARN_ASSIGN_OR_RETURN(const int64_t removed,
                        garbage->dataset_id ? PurgeDatasetRows(sql, *garbage->dataset_id, rows_max)
                                            : PurgeTransactionRows(sql, *garbage, rows_max));
  if (removed > 0) {
    return removed;
  }
  return sql.Execute("DELETE FROM dataset_garbage WHERE id = ?1", {garbage->id});
}

}  // namespace

Result<Dataset> DatasetStore::InitializeDataset(SqlTransaction& sql, const DatasetRid& rid,
                                                std::string_view base_uri, std::string_view by) {
  const Timestamp now = clock_.Now();
  const Result<int64_t> id =
      QueryInt(sql,
               "INSERT INTO dataset_datasets (uuid, base_uri, created_at, created_by) VALUES "
               "(?1, ?2, ?3, ?4) RETURNING id",
               {ToBlob(rid.uuid), std::string(base_uri), ToMicros(now), std::string(by)});
  if (!id.ok() && id.status().code() == ErrorCode::kAlreadyExists) {
    return Status::AlreadyExists("dataset " + rid.ToString() + " already exists");
  }
  TARN_RETURN_IF_ERROR(id);
  const CreateBranchOptions from_nothing{
      .from_branch = std::nullopt, .from_transaction = std::nullopt, .by = std::string(by)};
  TARN_RETURN_IF_ERROR(CreateBranch(sql, rid, kDefaultBranch, from_nothing));
  TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, rid));
  return row.dataset;
}

Result<Dataset> DatasetStore::GetDataset(SqlTransaction& sql, const DatasetRid& rid) {
  TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, rid));
  return row.dataset;
}

Result<Dataset> DatasetStore::GetDataset(const DatasetRid& rid) {
  return InRead(database_, [&](SqlTransaction& sql) { return GetDataset(sql, rid); });
}

Status DatasetStore::UpdateSettings(SqlTransaction& sql, const DatasetRid& rid,
                                    const DatasetSettings& settings) {
  TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, rid));
  SqlValue idle_abort;
  if (settings.idle_abort) {
    if (settings.idle_abort->count() <= 0) {
      return Status::InvalidArgument("idle abort of dataset " + rid.ToString() +
                                     " must be a second or more, found " +
                                     std::to_string(settings.idle_abort->count()));
    }
    idle_abort = static_cast<int64_t>(settings.idle_abort->count());
  }
  return StatusOf(sql.Execute(
      "UPDATE dataset_datasets SET inherit_schema = ?2, validate = ?3, idle_abort_seconds = ?4 "
      "WHERE id = ?1",
      {row.id, static_cast<int64_t>(settings.inherit_schema_on_snapshot),
       static_cast<int64_t>(settings.validate), idle_abort}));
}

Status DatasetStore::DeleteDataset(SqlTransaction& sql, const DatasetRid& rid) {
  TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, rid));
  TARN_RETURN_IF_ERROR(sql.Execute("UPDATE dataset_datasets SET deleted_at = ?2 WHERE id = ?1",
                                   {row.id, ToMicros(clock_.Now())}));
  TARN_RETURN_IF_ERROR(sql.Execute(
      "DELETE FROM dataset_reflog WHERE branch_id IN (SELECT id FROM dataset_branches WHERE "
      "dataset_id = ?1)",
      {row.id}));
  TARN_RETURN_IF_ERROR(sql.Execute("DELETE FROM dataset_branches WHERE dataset_id = ?1", {row.id}));
  TARN_RETURN_IF_ERROR(sql.Execute("DELETE FROM dataset_tags WHERE dataset_id = ?1", {row.id}));
  TARN_RETURN_IF_ERROR(
      sql.Execute("DELETE FROM dataset_checkpoint_requests WHERE dataset_id = ?1", {row.id}));
  return StatusOf(sql.Execute("INSERT INTO dataset_garbage (dataset_id) VALUES (?1)", {row.id}));
}

Result<int64_t> DatasetStore::PurgeDeleted(int64_t rows_max) {
  if (rows_max < 1) {
    return Status::InvalidArgument("rows to purge must be 1 or more, found " +
                                   std::to_string(rows_max));
  }
  // Small writes, so that commits pass between them.
  constexpr int64_t kRowsPerWrite = 500;
  int64_t total = 0;
  while (total < rows_max) {
    TARN_ASSIGN_OR_RETURN(const int64_t removed,
                          InWrite(database_, Durability::kLazy, [&](SqlTransaction& sql) {
                            return PurgeOnce(sql, std::min(rows_max - total, kRowsPerWrite));
                          }));
    if (removed == 0) {
      break;
    }
    total += removed;
  }
  return total;
}

}  // namespace tarn::dataset
