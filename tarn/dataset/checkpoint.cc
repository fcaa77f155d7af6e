// DatasetStore: writing checkpoints.
#include "tarn/dataset/checkpoint.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "tarn/base/crash_point.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/dataset/file_scan.h"
#include "tarn/dataset/in_sql.h"
#include "tarn/dataset/physical_name.h"
#include "tarn/dataset/rows.h"

namespace tarn::dataset {

using metastore::Blob;
using metastore::Durability;
using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;
using metastore::SqlValue;

namespace {

constexpr size_t kSliceFilesMin = 16;
constexpr size_t kSliceFilesMax = 4096;
constexpr int64_t kSliceRowsMax = 16'384;

// What is being copied, and where to.
struct Copy {
  BranchRow branch;
  TransactionRow head;
  LineId line = 0;  // 0: there is nothing to do.
};

// Chooses the head and gives the copy a line that nobody reads yet.
Result<Copy> BeginCopy(SqlTransaction& sql, const DatasetRow& dataset, std::string_view name) {
  Copy copy;
  TARN_ASSIGN_OR_RETURN(copy.branch, LoadBranch(sql, dataset, name));
  if (!copy.branch.head_id || copy.branch.open_id) {
    return copy;
  }
  TARN_ASSIGN_OR_RETURN(copy.head, LoadTransactionById(sql, *copy.branch.head_id));
  TARN_ASSIGN_OR_RETURN(
      copy.line,
      QueryInt(sql,
               "INSERT INTO dataset_lines (dataset_id, checkpoint_of, base) VALUES (?1, ?2, ?3) "
               "RETURNING id",
               {dataset.id, copy.head.id, EncodeLineage(copy.head.lineage)}));
  return copy;
}

// Copies of other rows keep who wrote them; only root, line and ordinal are the checkpoint's.
Status WriteSlice(SqlTransaction& sql, LineId line, std::span<const File> files) {
  TARN_ASSIGN_OR_RETURN(
      const std::optional<int64_t> unpublished,
      FindInt(sql, "SELECT id FROM dataset_lines WHERE id = ?1 AND published = 0", {line}));
  if (!unpublished) {
    return Status::Conflict("another checkpoint of the branch was begun meanwhile");
  }
  for (const File& file : files) {
    TARN_RETURN_IF_ERROR(sql.Execute(
        "INSERT INTO dataset_files (root, path, line, ordinal, operation, replaces, size_bytes, "
        "updated_at, managed, checksum, row_count, transaction_uuid, location, etag, statistics) "
        "VALUES (?1, ?2, ?1, 1, 0, 0, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        {line, Blob{file.path}, file.size_bytes, ToMicros(file.updated_at),
         static_cast<int64_t>(file.managed),
         file.checksum ? SqlValue(static_cast<int64_t>(*file.checksum)) : SqlValue(),
         OrNull(file.row_count), ToBlob(file.transaction.uuid), ShortenLocation(file.location),
         file.etag.empty() ? SqlValue() : SqlValue(file.etag),
         file.statistics.empty() ? SqlValue() : SqlValue(Blob{file.statistics})}));
  }
  return Status::Ok();
}

// Makes the head and everything started later read the copy, if the head is still the same.
Status Publish(SqlTransaction& sql, const Copy& copy) {
  TARN_ASSIGN_OR_RETURN(const std::optional<BranchRow> now, FindBranchById(sql, copy.branch.id));
  if (!now || now->open_id || now->head_id != copy.head.id) {
    return Status::Conflict("the branch moved while its checkpoint was being written");
  }
  TARN_ASSIGN_OR_RETURN(
      const int64_t marked,
      sql.Execute("UPDATE dataset_lines SET published = 1 WHERE id = ?1 AND published = 0",
                  {copy.line}));
  if (marked != 1) {
    return Status::Conflict("another checkpoint of the branch was begun meanwhile");
  }
  // Compare-and-set on the lineage too: another checkpoint of the same head may have come first.
  const Lineage lineage = Extend({}, copy.line, copy.line, 1);
  TARN_ASSIGN_OR_RETURN(
      const int64_t changed,
      sql.Execute("UPDATE dataset_transactions SET lineage = ?3 WHERE id = ?1 AND lineage = ?2",
                  {copy.head.id, EncodeLineage(copy.head.lineage), EncodeLineage(lineage)}));
  if (changed != 1) {
    return Status::Conflict("another checkpoint of the head was published meanwhile");
  }
  // Every branch that stands on this head is served.
  return StatusOf(
      sql.Execute("DELETE FROM dataset_checkpoint_requests WHERE branch_id IN (SELECT id FROM "
                  "dataset_branches WHERE dataset_id = ?1 AND head_id = ?2)",
                  {copy.branch.dataset_id, copy.head.id}));
}

// A copy that will not be published: its rows go to PurgeDeleted. Nobody adds to them later, since
// slices look for the line.
Status Discard(SqlTransaction& sql, LineId line) {
  TARN_RETURN_IF_ERROR(
      sql.Execute("INSERT INTO dataset_garbage (root, line, ordinal) VALUES (?1, ?1, 1)", {line}));
  return StatusOf(sql.Execute("DELETE FROM dataset_lines WHERE id = ?1", {line}));
}

// Copies of this branch's earlier heads that a crash left behind.
Status DiscardAbandoned(SqlTransaction& sql, const DatasetRow& dataset, std::string_view name) {
  TARN_ASSIGN_OR_RETURN(const BranchRow branch, LoadBranch(sql, dataset, name));
  std::vector<LineId> lines;
  TARN_RETURN_IF_ERROR(sql.Query(
      "SELECT l.id FROM dataset_lines l JOIN dataset_transactions t ON t.id = l.checkpoint_of "
      "WHERE l.dataset_id = ?1 AND l.published = 0 AND t.branch_id = ?2",
      {dataset.id, branch.id}, [&](const SqlRow& row) -> Result<RowAction> {
        lines.push_back(row.Int(0));
        return RowAction::kContinue;
      }));
  for (const LineId line : lines) {
    TARN_RETURN_IF_ERROR(Discard(sql, line));
  }
  return Status::Ok();
}

Status CopyFiles(metastore::Database& database, const Copy& copy,
                 const CheckpointOptions& options) {
  FileScan scan(copy.head.lineage, {}, {}, FileDetail::kWithStatistics);
  const auto target = std::chrono::milliseconds(options.slice_millis_max);
  size_t slice = 256;
  while (!scan.done()) {
    std::span<const File> files;
    TARN_RETURN_IF_ERROR(database.Read([&](SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(files, scan.Next(sql, kSliceFilesMax, kSliceRowsMax));
      return Status::Ok();
    }));
    while (!files.empty()) {
      const std::span<const File> part = files.first(std::min(slice, files.size()));
      std::chrono::steady_clock::duration held{};
      const auto write = [&](SqlTransaction& sql) {
        const auto begin = std::chrono::steady_clock::now();
        Status status = WriteSlice(sql, copy.line, part);
        held = std::chrono::steady_clock::now() - begin;
        return status;
      };
      TARN_RETURN_IF_ERROR(database.Write(write, Durability::kLazy));
      // Half the target leaves room for a slower moment.
      slice = std::clamp(held * 2 > target ? slice / 2 : slice + slice / 8, kSliceFilesMin,
                         kSliceFilesMax);
      files = files.subspan(part.size());
    }
  }
  return Status::Ok();
}

}  // namespace

Result<std::vector<CheckpointRequest>> DatasetStore::ListCheckpointRequests(int limit) {
  return InRead(database_, [&](SqlTransaction& sql) -> Result<std::vector<CheckpointRequest>> {
    std::vector<CheckpointRequest> requests;
    TARN_RETURN_IF_ERROR(
        sql.Query("SELECT d.uuid, b.name FROM dataset_checkpoint_requests r "
                  "JOIN dataset_branches b ON b.id = r.branch_id "
                  "JOIN dataset_datasets d ON d.id = r.dataset_id "
                  "ORDER BY r.requested_at, r.branch_id LIMIT ?1",
                  {int64_t{limit}}, [&](const SqlRow& row) -> Result<RowAction> {
                    requests.push_back({.dataset = {.uuid = ReadUuid(row, 0)},
                                        .branch = std::string(row.Text(1))});
                    return RowAction::kContinue;
                  }));
    return requests;
  });
}

Result<CheckpointOutcome> DatasetStore::WriteCheckpoint(const DatasetRid& dataset,
                                                        std::string_view branch,
                                                        const CheckpointOptions& options) {
  TARN_ASSIGN_OR_RETURN(
      const Copy copy,
      InWrite(database_, Durability::kLazy, [&](SqlTransaction& sql) -> Result<Copy> {
        TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, dataset));
        TARN_RETURN_IF_ERROR(DiscardAbandoned(sql, row, branch));
        return BeginCopy(sql, row, branch);
      }));
  if (copy.line == 0) {
    return copy.branch.head_id ? CheckpointOutcome::kHeadMoved : CheckpointOutcome::kNotNeeded;
  }
  const Status copied = CopyFiles(database_, copy, options);
  CrashPoint("dataset-checkpoint-copied");
  Status published = copied;
  if (copied.ok()) {
    published = database_.Write([&](SqlTransaction& sql) { return Publish(sql, copy); });
  }
  if (published.ok() || published.code() == ErrorCode::kCommitStateUnknown) {
    TARN_RETURN_IF_ERROR(published);
    return CheckpointOutcome::kPublished;
  }
  TARN_RETURN_IF_ERROR(database_.Write([&](SqlTransaction& sql) { return Discard(sql, copy.line); },
                                       Durability::kLazy));
  if (published.code() != ErrorCode::kConflict) {
    return published;
  }
  return CheckpointOutcome::kHeadMoved;
}

}  // namespace tarn::dataset
