// DatasetStore: the files of an OPEN transaction.
//
// The view below an OPEN transaction cannot move: a branch has one OPEN transaction and is not
// re-pointed meanwhile. So whether a path overwrites one is decided when it is registered, and the
// commit only looks at a counter.
#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include "tarn/base/json_text.h"
#include "tarn/dataset/branching/merge_rows.h"
#include "tarn/dataset/changes/change_list.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/dataset/errors.h"
#include "tarn/dataset/file_scan.h"
#include "tarn/dataset/in_sql.h"
#include "tarn/dataset/logical_path.h"
#include "tarn/dataset/physical_name.h"
#include "tarn/dataset/rows.h"

namespace tarn::dataset {

using metastore::Blob;
using metastore::Durability;
using metastore::RowAction;
using metastore::SqlArguments;
using metastore::SqlRow;
using metastore::SqlTransaction;
using metastore::SqlValue;

namespace {

// A few milliseconds of write lock.
constexpr size_t kBatchFiles = 1024;
// So many files of the view are read at least when a batch looks ahead; fewer puts do not.
constexpr size_t kLookAheadMin = 64;
constexpr size_t kIntervalsInSqlMax = 128;
constexpr size_t kFirstIntervalArgument = 14;

// What a batch changes in the counters of its transaction.
struct Counters {
  int64_t file_count = 0;
  int64_t overwritten_count = 0;
  int64_t removed_count = 0;
  int64_t size_bytes = 0;
};

Status SaveCounters(SqlTransaction& sql, const TransactionRow& row, const Counters& counters,
                    Timestamp now) {
  TARN_ASSIGN_OR_RETURN(
      const int64_t changed,
      sql.Execute("UPDATE dataset_transactions SET file_count = file_count + ?2, "
                  "overwritten_count = overwritten_count + ?3, removed_count = removed_count + "
                  "?4, size_bytes = size_bytes + ?5, touched_at = ?6 WHERE id = ?1 AND state = 0",
                  {row.id, counters.file_count, counters.overwritten_count, counters.removed_count,
                   counters.size_bytes, ToMicros(now)}));
  if (changed != 1) {
    return Status::Conflict("transaction " + row.rid.ToString() +
                            " was closed while files were being registered");
  }
  return Status::Ok();
}

// INSERT of one row of which it is known whether it replaces a file.
constexpr const char* kPlainInsert =
    "INSERT INTO dataset_files (root, path, line, ordinal, operation, size_bytes, updated_at, "
    "managed, checksum, row_count, transaction_uuid, location, etag, statistics, replaces) VALUES "
    "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15) ON CONFLICT (root, path, "
    "line, ordinal) DO NOTHING";

// Arguments of one COALESCE; SQLite takes at most 127.
constexpr size_t kCoalesceArgumentsMax = 100;

// INSERT of one row. `replaces` is decided by the newest row of the path in `interval_count`
// intervals, newest first; 1 where it is a file.
std::string InsertSql(size_t interval_count) {
  std::string replaces = "0";
  if (interval_count > 0) {
    replaces = "CASE WHEN COALESCE(";
    for (size_t i = 0; i < interval_count; ++i) {
      if (i > 0 && i % kCoalesceArgumentsMax == 0) {
        replaces += "COALESCE(";  // The rest is one argument of this one.
      }
      const size_t first = kFirstIntervalArgument + 1 + 3 * i;
      replaces +=
          "(SELECT operation FROM dataset_files WHERE root = ?1 AND path = ?2 AND line = ?" +
          std::to_string(first) + " AND ordinal <= ?" + std::to_string(first + 1) +
          " AND ordinal > ?" + std::to_string(first + 2) + " ORDER BY ordinal DESC LIMIT 1), ";
    }
    const size_t nested = (interval_count - 1) / kCoalesceArgumentsMax;
    replaces += "1" + std::string(nested, ')') + ", 1) = 0 THEN 1 ELSE 0 END";
  }
  return "INSERT INTO dataset_files (root, path, line, ordinal, operation, size_bytes, "
         "updated_at, managed, checksum, row_count, transaction_uuid, location, etag, statistics, "
         "replaces) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, " +
         replaces + ") ON CONFLICT (root, path, line, ordinal) DO NOTHING RETURNING replaces";
}

// Writes the rows of one transaction. One owner thread; lives inside one SQL transaction.
class RowWriter {
 public:
  RowWriter(SqlTransaction& sql, const TransactionRow& row, Timestamp now)
      : sql_(sql), row_(row), now_(now), base_(row.Base()) {
    // Few different statements: the intervals are filled up with empty ones to a power of two.
    size_t padded = base_.empty() ? 0 : 1;
    while (padded < base_.size()) {
      padded *= 2;
    }
    in_sql_ = padded <= kIntervalsInSqlMax;
    const size_t intervals = in_sql_ ? padded : 0;
    insert_ = InsertSql(intervals);
    arguments_.resize(kFirstIntervalArgument + 3 * intervals, int64_t{0});
    arguments_[0] = row.root;
    arguments_[2] = row.line;
    arguments_[3] = row.ordinal;
    arguments_[6] = ToMicros(now);
    arguments_[10] = ToBlob(row.rid.uuid);
    if (in_sql_) {
      for (size_t i = 0; i < base_.size(); ++i) {
        const Interval& interval = base_[base_.size() - 1 - i];
        const size_t first = kFirstIntervalArgument + 3 * i;
        arguments_[first] = interval.line;
        arguments_[first + 1] = interval.through;
        arguments_[first + 2] = interval.after;
      }
    }
  }

  /// Reads once which of the paths from `first` to `last` the view has, when those are about as few
  /// as the `count` that will be put; each put then needs no look of its own.
  Status LookAhead(const std::string& first, const std::string& last, size_t count) {
    FileScan scan(base_, {}, first);
    bool whole = base_.empty();
    if (!whole) {
      TARN_ASSIGN_OR_RETURN(
          const std::span<const File> files,
          scan.Next(sql_, count + kLookAheadMin, static_cast<int64_t>(2 * count + kLookAheadMin)));
      whole = scan.done() || scan.position() > last;
      for (size_t i = 0; whole && i < files.size() && files[i].path <= last; ++i) {
        present_.insert(files[i].path);
      }
    }
    if (whole) {
      looked_ahead_ = true;
      insert_ = kPlainInsert;
      arguments_.resize(kFirstIntervalArgument + 1);
    }
    return Status::Ok();
  }

  Status Put(const StoredFile& file) {
    if (looked_ahead_) {
      arguments_[kFirstIntervalArgument] = int64_t{present_.contains(file.path) ? 1 : 0};
    }
    arguments_[1] = Blob{file.path};
    arguments_[4] = static_cast<int64_t>(FileOperation::kPut);
    arguments_[5] = file.size_bytes;
    arguments_[7] = static_cast<int64_t>(file.managed);
    arguments_[8] = file.checksum ? SqlValue(static_cast<int64_t>(*file.checksum)) : SqlValue();
    arguments_[9] = OrNull(file.row_count);
    arguments_[11] = ShortenLocation(file.location);
    arguments_[12] = file.etag.empty() ? SqlValue() : SqlValue(file.etag);
    arguments_[13] = file.statistics ? SqlValue(Blob{*file.statistics}) : SqlValue();
    TARN_ASSIGN_OR_RETURN(const std::optional<bool> replaces, Insert(file.path));
    if (!replaces) {
      return Overwrite(file);
    }
    written_.push_back({.path = file.path, .replaces = *replaces});
    counters_.file_count += 1;
    counters_.overwritten_count += *replaces ? 1 : 0;
    counters_.size_bytes += file.size_bytes;
    return Status::Ok();
  }

  /// The caller knows that the view has the path.
  Status Remove(const std::string& path) {
    arguments_[1] = Blob{path};
    arguments_[4] = static_cast<int64_t>(FileOperation::kRemove);
    arguments_[5] = int64_t{0};
    arguments_[7] = int64_t{1};
    for (const size_t unset : {8U, 9U, 12U, 13U}) {
      arguments_[unset] = SqlValue();
    }
    arguments_[11] = std::string();
    TARN_ASSIGN_OR_RETURN(const std::optional<bool> replaces, Insert(path));
    if (replaces) {
      written_.push_back({.path = path, .replaces = false});
      counters_.file_count += 1;
      counters_.removed_count += 1;
    }
    return Status::Ok();
  }

  /// Adds what was written to the transaction's lists and counters. Once, at the end.
  Status Finish() {
    TARN_RETURN_IF_ERROR(
        changes::AddPaths(sql_, {.line = row_.line, .ordinal = row_.ordinal}, std::move(written_)));
    return SaveCounters(sql_, row_, counters_, now_);
  }

  [[nodiscard]] const Counters& counters() const { return counters_; }

 private:
  // Whether the new row replaces a file of the view; nothing when the transaction has the path.
  Result<std::optional<bool>> Insert(const std::string& path) {
    if (looked_ahead_) {
      TARN_ASSIGN_OR_RETURN(const int64_t inserted_count, sql_.Execute(insert_, arguments_));
      return inserted_count == 1 ? std::optional<bool>(present_.contains(path))
                                 : std::optional<bool>();
    }
    TARN_ASSIGN_OR_RETURN(const std::optional<int64_t> inserted,
                          FindInt(sql_, insert_, arguments_));
    if (!inserted) {
      return std::optional<bool>();
    }
    if (in_sql_) {
      return std::optional<bool>(*inserted != 0);
    }
    TARN_ASSIGN_OR_RETURN(const std::optional<File> below, FindFile(sql_, base_, path));
    if (below) {
      TARN_RETURN_IF_ERROR(sql_.Execute(
          "UPDATE dataset_files SET replaces = 1 WHERE root = ?1 AND path = ?2 AND line = ?3 AND "
          "ordinal = ?4",
          {row_.root, Blob{path}, row_.line, row_.ordinal}));
    }
    return std::optional<bool>(below.has_value());
  }

  // The newest upload of a path in one transaction wins.
  Status Overwrite(const StoredFile& file) {
    TARN_ASSIGN_OR_RETURN(const int64_t size_before,
                          QueryInt(sql_,
                                   "SELECT size_bytes FROM dataset_files WHERE root = ?1 AND "
                                   "path = ?2 AND "
                                   "line = ?3 AND ordinal = ?4",
                                   {row_.root, Blob{file.path}, row_.line, row_.ordinal}));
    TARN_RETURN_IF_ERROR(
        sql_.Execute("UPDATE dataset_files SET size_bytes = ?5, updated_at = ?6, managed = "
                     "?7, checksum = ?8, "
                     "row_count = ?9, location = ?10, etag = ?11, statistics = ?12 WHERE "
                     "root = ?1 AND "
                     "path = ?2 AND line = ?3 AND ordinal = ?4",
                     {row_.root, Blob{file.path}, row_.line, row_.ordinal, file.size_bytes,
                      ToMicros(now_), arguments_[7], arguments_[8], arguments_[9], arguments_[11],
                      arguments_[12], arguments_[13]}));
    counters_.size_bytes += file.size_bytes - size_before;
    return Status::Ok();
  }

  SqlTransaction& sql_;
  const TransactionRow& row_;
  Timestamp now_;
  Lineage base_;
  bool in_sql_ = true;
  bool looked_ahead_ = false;
  std::unordered_set<std::string> present_;  // Once looked ahead.
  std::string insert_;
  SqlArguments arguments_;
  std::vector<changes::WrittenPath> written_;
  Counters counters_;
};

Status CheckFiles(std::span<const StoredFile> files) {
  for (const StoredFile& file : files) {
    TARN_RETURN_IF_ERROR(CheckLogicalPath(file.path));
    if (file.location.empty() || file.size_bytes < 0) {
      return Status::InvalidArgument("file " + JsonString(file.path) +
                                     " needs a location and a size of 0 or more, found location " +
                                     JsonString(file.location) + " and size " +
                                     std::to_string(file.size_bytes));
    }
  }
  return Status::Ok();
}

// The OPEN transaction that files may go into, or out of.
Result<TransactionRow> LoadForFiles(SqlTransaction& sql, const DatasetRow& dataset,
                                    const TransactionRid& rid, bool removing) {
  TARN_ASSIGN_OR_RETURN(TransactionRow row, LoadTransaction(sql, dataset, rid));
  if (row.state != TransactionState::kOpen) {
    return TransactionNotOpen(dataset.dataset.rid, rid, row.state);
  }
  if (removing != (row.type == TransactionType::kDelete)) {
    return InvalidTransactionType(dataset.dataset.rid, rid, row.type,
                                  removing ? "only a DELETE transaction removes files"
                                           : "a DELETE transaction takes no files");
  }
  return row;
}

Status FileNotFound(SqlTransaction& sql, const DatasetRow& dataset, const TransactionRow& row,
                    std::string_view path) {
  TARN_ASSIGN_OR_RETURN(const std::optional<BranchRow> branch, FindBranchById(sql, row.branch_id));
  const std::string name = branch ? branch->name : std::string();
  return Status::NotFound("branch " + JsonString(name) + " of dataset " +
                          dataset.dataset.rid.ToString() + " has no file " + JsonString(path))
      .WithReason("FileNotFoundOnBranch",
                  JsonObject({{"datasetRid", dataset.dataset.rid.ToString()},
                              {"branchName", name},
                              {"path", path}}));
}

// The paths that the view below the transaction has. Errors: FileNotFoundOnBranch with kRefuse.
Result<std::vector<std::string>> PresentPaths(SqlTransaction& sql, const DatasetRow& dataset,
                                              const TransactionRow& row,
                                              std::span<const std::string> paths,
                                              MissingPath missing) {
  const Lineage base = row.Base();
  std::vector<std::string> present;
  for (const std::string& path : paths) {
    TARN_ASSIGN_OR_RETURN(const std::optional<File> file, FindFile(sql, base, path));
    if (file) {
      present.push_back(path);
    } else if (missing == MissingPath::kRefuse) {
      return FileNotFound(sql, dataset, row, path);
    }
  }
  return present;
}

// In the order of the table, so that a batch touches few pages. Stable: the newest of one path
// stays the last.
std::vector<const StoredFile*> SortedByPath(std::span<const StoredFile> files) {
  std::vector<const StoredFile*> sorted;
  sorted.reserve(files.size());
  for (const StoredFile& file : files) {
    sorted.push_back(&file);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const StoredFile* a, const StoredFile* b) { return a->path < b->path; });
  return sorted;
}

struct Batch {
  std::vector<const StoredFile*> files;
  Timestamp now{};
};

Status PutFiles(SqlTransaction& sql, const DatasetRid& dataset, const TransactionRid& rid,
                const Batch& batch) {
  TARN_ASSIGN_OR_RETURN(const DatasetRow dataset_row, LoadDataset(sql, dataset));
  TARN_ASSIGN_OR_RETURN(const TransactionRow row,
                        LoadForFiles(sql, dataset_row, rid, /*removing=*/false));
  RowWriter writer(sql, row, batch.now);
  if (batch.files.size() >= kLookAheadMin) {
    TARN_RETURN_IF_ERROR(
        writer.LookAhead(batch.files.front()->path, batch.files.back()->path, batch.files.size()));
  }
  for (const StoredFile* file : batch.files) {
    TARN_RETURN_IF_ERROR(writer.Put(*file));
  }
  return writer.Finish();
}

}  // namespace

Status WriteMergeRows(SqlTransaction& sql, const DatasetRid& dataset, const TransactionRid& rid,
                      const MergeRows& rows) {
  TARN_ASSIGN_OR_RETURN(const DatasetRow dataset_row, LoadDataset(sql, dataset));
  TARN_ASSIGN_OR_RETURN(const TransactionRow row,
                        LoadForFiles(sql, dataset_row, rid, /*removing=*/false));
  RowWriter writer(sql, row, rows.now);
  for (const StoredFile& file : rows.puts) {
    TARN_RETURN_IF_ERROR(writer.Put(file));
  }
  for (const std::string& path : rows.removals) {
    TARN_RETURN_IF_ERROR(writer.Remove(path));
  }
  return writer.Finish();
}

Status DatasetStore::RegisterFiles(SqlTransaction& sql, const DatasetRid& dataset,
                                   const TransactionRid& rid, std::span<const StoredFile> files) {
  TARN_RETURN_IF_ERROR(CheckFiles(files));
  return PutFiles(sql, dataset, rid, {SortedByPath(files), clock_.Now()});
}

Status DatasetStore::RegisterFiles(const DatasetRid& dataset, const TransactionRid& rid,
                                   std::span<const StoredFile> files) {
  TARN_RETURN_IF_ERROR(CheckFiles(files));
  const std::vector<const StoredFile*> sorted = SortedByPath(files);
  size_t begin = 0;
  do {
    const size_t end = std::min(sorted.size(), begin + kBatchFiles);
    const Batch batch{.files = {sorted.begin() + static_cast<std::ptrdiff_t>(begin),
                                sorted.begin() + static_cast<std::ptrdiff_t>(end)},
                      .now = clock_.Now()};
    TARN_RETURN_IF_ERROR(
        database_.Write([&](SqlTransaction& sql) { return PutFiles(sql, dataset, rid, batch); },
                        Durability::kLazy));
    begin = end;
  } while (begin < sorted.size());
  return Status::Ok();
}

Result<int64_t> DatasetStore::RemoveFiles(SqlTransaction& sql, const DatasetRid& dataset,
                                          const TransactionRid& rid,
                                          std::span<const std::string> paths, MissingPath missing) {
  TARN_ASSIGN_OR_RETURN(const DatasetRow dataset_row, LoadDataset(sql, dataset));
  TARN_ASSIGN_OR_RETURN(const TransactionRow row,
                        LoadForFiles(sql, dataset_row, rid, /*removing=*/true));
  TARN_ASSIGN_OR_RETURN(const std::vector<std::string> present,
                        PresentPaths(sql, dataset_row, row, paths, missing));
  const Timestamp now = clock_.Now();
  RowWriter writer(sql, row, now);
  for (const std::string& path : present) {
    TARN_RETURN_IF_ERROR(writer.Remove(path));
  }
  TARN_RETURN_IF_ERROR(writer.Finish());
  return writer.counters().removed_count;
}

Result<int64_t> DatasetStore::RemoveFiles(const DatasetRid& dataset, const TransactionRid& rid,
                                          std::span<const std::string> paths, MissingPath missing) {
  if (missing == MissingPath::kRefuse && paths.size() > kBatchFiles) {
    // What is refused must be known before the first batch is written; the view cannot move.
    for (size_t begin = 0; begin < paths.size(); begin += kBatchFiles) {
      TARN_RETURN_IF_ERROR(database_.Read([&](SqlTransaction& sql) -> Status {
        TARN_ASSIGN_OR_RETURN(const DatasetRow row, LoadDataset(sql, dataset));
        TARN_ASSIGN_OR_RETURN(const TransactionRow open, LoadForFiles(sql, row, rid, true));
        return StatusOf(PresentPaths(
            sql, row, open, paths.subspan(begin, std::min(kBatchFiles, paths.size() - begin)),
            missing));
      }));
    }
  }
  int64_t total = 0;
  do {
    const std::span<const std::string> batch = paths.first(std::min(paths.size(), kBatchFiles));
    TARN_ASSIGN_OR_RETURN(const int64_t removed,
                          InWrite(database_, Durability::kLazy, [&](SqlTransaction& sql) {
                            return RemoveFiles(sql, dataset, rid, batch, missing);
                          }));
    total += removed;
    paths = paths.subspan(batch.size());
  } while (!paths.empty());
  return total;
}

Result<int64_t> DatasetStore::UnregisterFiles(SqlTransaction& sql, const DatasetRid& dataset,
                                              const TransactionRid& rid,
                                              std::span<const std::string> paths) {
  TARN_ASSIGN_OR_RETURN(const DatasetRow dataset_row, LoadDataset(sql, dataset));
  TARN_ASSIGN_OR_RETURN(const TransactionRow row, LoadTransaction(sql, dataset_row, rid));
  if (row.state != TransactionState::kOpen) {
    return TransactionNotOpen(dataset, rid, row.state);
  }
  Counters counters;
  for (const std::string& path : paths) {
    std::optional<changes::WrittenPath> gone;
    TARN_RETURN_IF_ERROR(sql.Query(
        "DELETE FROM dataset_files WHERE root = ?1 AND path = ?2 AND line = ?3 AND ordinal = ?4 "
        "RETURNING operation, replaces, size_bytes",
        {row.root, Blob{path}, row.line, row.ordinal},
        [&](const SqlRow& removed) -> Result<RowAction> {
          const bool removal = static_cast<FileOperation>(removed.Int(0)) == FileOperation::kRemove;
          gone = {.path = path, .replaces = !removal && removed.Int(1) != 0};
          counters.file_count -= 1;
          counters.removed_count -= removal ? 1 : 0;
          counters.overwritten_count -= gone->replaces ? 1 : 0;
          counters.size_bytes -= removed.Int(2);
          return RowAction::kContinue;
        }));
    if (gone) {
      TARN_RETURN_IF_ERROR(
          changes::RemovePath(sql, {.line = row.line, .ordinal = row.ordinal}, *gone));
    }
  }
  TARN_RETURN_IF_ERROR(SaveCounters(sql, row, counters, clock_.Now()));
  return -counters.file_count;
}

}  // namespace tarn::dataset
