#include "tarn/dataset/file_scan.h"

#include <algorithm>
#include <utility>

#include "tarn/dataset/physical_name.h"
#include "tarn/dataset/rows.h"

namespace tarn::dataset {

using metastore::Blob;
using metastore::RowAction;
using metastore::SqlArguments;
using metastore::SqlRow;
using metastore::SqlTransaction;

namespace {

#define TARN_FILE_COLUMNS                                                                  \
  "path, line, ordinal, operation, size_bytes, updated_at, managed, checksum, row_count, " \
  "transaction_uuid, location, etag"

#define TARN_SCAN_FROM " FROM dataset_files WHERE root = ?1 AND path >= ?2"
#define TARN_SCAN_END " AND path < ?4"
#define TARN_SCAN_ORDER " ORDER BY path, line, ordinal LIMIT ?3"

// Rows of one path that decide nothing before its answer is sought instead.
constexpr int kPathRowsMax = 8;
constexpr size_t kChunkRowsMin = 64;
constexpr size_t kChunkRowsMax = 8192;

#define TARN_SEEK_FROM                                                                     \
  " FROM dataset_files WHERE root = ?1 AND path = ?2 AND line = ?3 AND ordinal <= ?4 AND " \
  "ordinal > ?5 ORDER BY ordinal DESC LIMIT 1"

const char* ScanSql(FileDetail detail, bool to_the_end) {
  if (detail == FileDetail::kPlain) {
    return to_the_end ? "SELECT " TARN_FILE_COLUMNS TARN_SCAN_FROM TARN_SCAN_ORDER
                      : "SELECT " TARN_FILE_COLUMNS TARN_SCAN_FROM TARN_SCAN_END TARN_SCAN_ORDER;
  }
  return to_the_end ? "SELECT " TARN_FILE_COLUMNS ", statistics" TARN_SCAN_FROM TARN_SCAN_ORDER
                    : "SELECT " TARN_FILE_COLUMNS
                      ", statistics" TARN_SCAN_FROM TARN_SCAN_END TARN_SCAN_ORDER;
}

// Fills `file` but for its path; strings keep their room.
void ReadFileInto(const SqlRow& row, FileDetail detail, File& file) {
  if (static_cast<FileOperation>(row.Int(3)) == FileOperation::kRemove) {
    file.location.clear();
    file.transaction = {.uuid = ReadUuid(row, 9)};
    return;
  }
  file.size_bytes = row.Int(4);
  file.updated_at = FromMicros(row.Int(5));
  file.managed = row.Int(6) != 0;
  file.checksum.reset();
  if (!row.IsNull(7)) {
    file.checksum = static_cast<uint64_t>(row.Int(7));
  }
  file.row_count = ReadOptionalInt(row, 8);
  file.transaction = {.uuid = ReadUuid(row, 9)};
  AssignLocation(row.Text(10), file.location);
  file.etag.assign(row.Text(11));
  if (detail == FileDetail::kWithStatistics) {
    file.statistics.assign(row.Text(12));
  }
}

}  // namespace

std::string EndOfPrefix(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && end.back() == '\xFF') {
    end.pop_back();
  }
  if (!end.empty()) {
    end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  }
  return end;
}

std::string After(std::string_view path) { return std::string(path) + '\0'; }

Result<std::optional<LocatedFile>> FindNewest(SqlTransaction& sql, const Lineage& lineage,
                                              std::string_view path, FileDetail detail) {
  std::optional<LocatedFile> found;
  const char* const seek = detail == FileDetail::kPlain ? "SELECT " TARN_FILE_COLUMNS TARN_SEEK_FROM
                                                        : "SELECT " TARN_FILE_COLUMNS
                                                          ", statistics" TARN_SEEK_FROM;
  for (auto interval = lineage.rbegin(); interval != lineage.rend() && !found; ++interval) {
    TARN_RETURN_IF_ERROR(sql.Query(seek,
                                   {interval->root, Blob{std::string(path)}, interval->line,
                                    interval->through, interval->after},
                                   [&](const SqlRow& row) -> Result<RowAction> {
                                     found.emplace();
                                     found->line = row.Int(1);
                                     found->ordinal = row.Int(2);
                                     found->file.path = path;
                                     ReadFileInto(row, detail, found->file);
                                     return RowAction::kStop;
                                   }));
  }
  return found;
}

Result<std::optional<File>> FindFile(SqlTransaction& sql, const Lineage& lineage,
                                     std::string_view path) {
  TARN_ASSIGN_OR_RETURN(std::optional<LocatedFile> found, FindNewest(sql, lineage, path));
  if (!found || found->removed()) {
    return std::optional<File>();
  }
  return std::optional<File>(std::move(found->file));
}

FileScan::FileScan(const Lineage& lineage, std::string prefix, std::string from, FileDetail detail)
    : detail_(detail), end_(EndOfPrefix(prefix)) {
  std::string begin = std::max(std::move(prefix), std::move(from));
  for (const Interval& interval : lineage) {
    if (groups_.empty() || groups_.back().root != interval.root) {
      groups_.emplace_back();
      groups_.back().root = interval.root;
      groups_.back().from = begin;
      groups_.back().ended = !end_.empty() && begin >= end_;
    }
    groups_.back().intervals.push_back(interval);
  }
}

// Turns the rows of one root into the newest of each path.
class FileScan::Filler {
 public:
  Filler(SqlTransaction& sql, Group& group, size_t files_max, FileDetail detail)
      : sql_(sql), group_(group), files_max_(files_max), detail_(detail) {}

  // Reads one chunk of rows. Sets the group's `from` to what is still unread.
  Result<int64_t> ReadChunk(const std::string& end) {
    const size_t wanted = files_max_ - group_.count;
    const size_t chunk = std::clamp(wanted + wanted / 4, kChunkRowsMin, kChunkRowsMax);
    row_count_ = 0;
    path_known_ = false;
    best_interval_ = -1;
    stuck_ = false;
    SqlArguments arguments = {group_.root, Blob{group_.from}, static_cast<int64_t>(chunk)};
    if (!end.empty()) {
      arguments.emplace_back(Blob{end});
    }
    TARN_RETURN_IF_ERROR(sql_.Query(ScanSql(detail_, end.empty()), arguments,
                                    [this](const SqlRow& row) { return Visit(row); }));
    TARN_RETURN_IF_ERROR(Finish(row_count_ < static_cast<int64_t>(chunk)));
    return row_count_;
  }

 private:
  File& Best() { return group_.files[group_.count]; }

  Result<RowAction> Visit(const SqlRow& row) {
    const std::string_view path = row.Text(0);
    ++row_count_;
    if (!path_known_ || path != path_) {
      Flush();
      if (group_.count == files_max_) {
        group_.from.assign(path);
        full_ = true;
        return RowAction::kStop;
      }
      path_.assign(path);
      path_known_ = true;
      path_rows_ = 0;
    }
    const LineId line = row.Int(1);
    const int64_t ordinal = row.Int(2);
    const int interval = IntervalOf(line, ordinal);
    if (interval >= 0 &&
        (interval > best_interval_ || (interval == best_interval_ && ordinal > best_ordinal_))) {
      if (group_.count == group_.files.size()) {
        group_.files.emplace_back();
      }
      best_interval_ = interval;
      best_ordinal_ = ordinal;
      ReadFileInto(row, detail_, Best());
    }
    if (++path_rows_ == kPathRowsMax) {
      stuck_ = true;
      return RowAction::kStop;
    }
    return RowAction::kContinue;
  }

  // The path is complete: keeps its newest row, if any is visible.
  void Flush() {
    if (best_interval_ >= 0) {
      Best().path.assign(path_);
      ++group_.count;
      best_interval_ = -1;
    }
  }

  Status Finish(bool no_more_rows) {
    if (full_) {
      return Status::Ok();
    }
    if (stuck_) {
      best_interval_ = -1;
      return SeekPath();
    }
    if (no_more_rows) {
      Flush();
      group_.ended = true;
      return Status::Ok();
    }
    // The last path may have more rows: read it again, unless it was the whole chunk.
    best_interval_ = -1;
    group_.from = path_;
    return Status::Ok();
  }

  Status SeekPath() {
    TARN_ASSIGN_OR_RETURN(std::optional<LocatedFile> found,
                          FindNewest(sql_, group_.intervals, path_, detail_));
    row_count_ += static_cast<int64_t>(group_.intervals.size());
    if (found) {
      if (group_.count == group_.files.size()) {
        group_.files.emplace_back();
      }
      Best() = std::move(found->file);
      ++group_.count;
    }
    group_.from = After(path_);
    return Status::Ok();
  }

  [[nodiscard]] int IntervalOf(LineId line, int64_t ordinal) const {
    for (size_t i = 0; i < group_.intervals.size(); ++i) {
      if (group_.intervals[i].Contains(line, ordinal)) {
        return static_cast<int>(i);
      }
    }
    return -1;
  }

  SqlTransaction& sql_;
  Group& group_;
  size_t files_max_;
  FileDetail detail_;
  std::string path_;
  bool path_known_ = false;
  int path_rows_ = 0;
  int best_interval_ = -1;
  int64_t best_ordinal_ = 0;
  int64_t row_count_ = 0;
  bool full_ = false;
  bool stuck_ = false;
};

Status FileScan::Fill(SqlTransaction& sql, Group& group, size_t files_max, int64_t rows_max) {
  group.count = 0;
  group.next = 0;
  Filler filler(sql, group, files_max, detail_);
  int64_t rows = 0;
  while (!group.ended && group.count < files_max && rows < rows_max) {
    TARN_ASSIGN_OR_RETURN(const int64_t examined, filler.ReadChunk(end_));
    rows += examined;
  }
  rows_examined_ += rows;
  return Status::Ok();
}

File& FileScan::Slot() {
  if (batch_count_ == batch_.size()) {
    batch_.emplace_back();
  }
  return batch_[batch_count_++];
}

// Several roots: per path the newest root that knows it decides.
Status FileScan::MergeInto(SqlTransaction& sql, size_t files_max, int64_t rows_max) {
  const int64_t rows_end = rows_examined_ + rows_max;
  while (batch_count_ < files_max && rows_examined_ < rows_end) {
    const std::string* least = nullptr;
    for (Group& group : groups_) {
      while (group.next == group.count && !group.ended) {
        TARN_RETURN_IF_ERROR(Fill(sql, group, files_max, rows_max));
      }
      if (group.next < group.count && (least == nullptr || group.files[group.next].path < *least)) {
        least = &group.files[group.next].path;
      }
    }
    if (least == nullptr) {
      return Status::Ok();
    }
    const std::string path = *least;
    File* newest = nullptr;
    for (Group& group : groups_) {
      if (group.next < group.count && group.files[group.next].path == path) {
        newest = &group.files[group.next++];
      }
    }
    if (!newest->location.empty()) {
      Slot() = *newest;
    }
  }
  return Status::Ok();
}

Result<std::span<const File>> FileScan::Next(SqlTransaction& sql, size_t files_max,
                                             int64_t rows_max) {
  batch_count_ = 0;
  if (groups_.size() > 1) {
    TARN_RETURN_IF_ERROR(MergeInto(sql, files_max, rows_max));
    return std::span<const File>(batch_.data(), batch_count_);
  }
  if (groups_.empty()) {
    return std::span<const File>();
  }
  Group& group = groups_.front();
  TARN_RETURN_IF_ERROR(Fill(sql, group, files_max, rows_max));
  // Removals hide nothing older here; drop them in place, keeping the slots' room.
  size_t kept = 0;
  for (size_t i = 0; i < group.count; ++i) {
    if (!group.files[i].location.empty()) {
      if (kept != i) {
        std::swap(group.files[kept], group.files[i]);
      }
      ++kept;
    }
  }
  group.count = kept;
  group.next = kept;
  return std::span<const File>(group.files.data(), kept);
}

bool FileScan::done() const {
  return std::all_of(groups_.begin(), groups_.end(),
                     [](const Group& group) { return group.ended && group.next == group.count; });
}

std::string FileScan::position() const {
  std::optional<std::string> least;
  for (const Group& group : groups_) {
    if (group.next < group.count || !group.ended) {
      const std::string& at = group.next < group.count ? group.files[group.next].path : group.from;
      least = least ? std::min(*least, at) : at;
    }
  }
  return least.value_or("");
}

namespace {

// A place in a list: its first path, and the last path that was given out. No path has a NUL.
std::string ListPosition(std::string_view first_path, std::string_view last_path) {
  return std::string(first_path) + '\0' + std::string(last_path);
}

}  // namespace

void ChangedPaths::AddList(const changes::Place& place, const std::vector<std::string>& list,
                           std::string_view after, size_t count_max, std::vector<Change>& changes) {
  size_t next = 0;
  if (!after.empty()) {
    next = static_cast<size_t>(std::upper_bound(list.begin(), list.end(), after) - list.begin());
  }
  for (; next < list.size() && changes.size() < count_max; ++next) {
    changes.push_back({.path = list[next], .line = place.line, .ordinal = place.ordinal});
    position_.ordinal = place.ordinal;
    position_.path = ListPosition(list.front(), list[next]);
  }
}

Status ChangedPaths::FinishList(SqlTransaction& sql, const Interval& interval, size_t count_max,
                                std::vector<Change>& changes) {
  const std::string position = position_.path;
  const size_t middle = std::min(position.find('\0'), position.size());
  const std::string first_path = position.substr(0, middle);
  const std::string last_path = position.substr(std::min(middle + 1, position.size()));
  return sql.Query(
      "SELECT more FROM dataset_changes WHERE line = ?1 AND ordinal = ?2 AND first_path = ?3",
      {interval.line, position_.ordinal, Blob{first_path}},
      [&](const SqlRow& row) -> Result<RowAction> {
        TARN_ASSIGN_OR_RETURN(const std::vector<std::string> list,
                              changes::DecodePaths(first_path, row.Text(0)));
        AddList({.line = interval.line, .ordinal = position_.ordinal}, list, last_path, count_max,
                changes);
        return RowAction::kStop;
      });
}

Result<std::vector<ChangedPaths::Change>> ChangedPaths::Next(SqlTransaction& sql,
                                                             size_t count_max) {
  std::vector<Change> changes;
  while (position_.interval < changes_.size() && changes.size() < count_max) {
    const Interval& interval = changes_[position_.interval];
    position_.ordinal = std::max(position_.ordinal, interval.after);
    if (!position_.path.empty()) {
      TARN_RETURN_IF_ERROR(FinishList(sql, interval, count_max, changes));
      if (changes.size() == count_max) {
        break;
      }
    }
    // No path begins with 0xFF: without a list nothing more of that transaction is wanted.
    const std::string behind = position_.path.empty()
                                   ? std::string(1, '\xFF')
                                   : position_.path.substr(0, position_.path.find('\0'));
    TARN_RETURN_IF_ERROR(sql.Query(
        "SELECT ordinal, first_path, more FROM dataset_changes WHERE line = ?1 AND (ordinal, "
        "first_path) > (?2, ?3) AND ordinal <= ?4 ORDER BY ordinal, first_path",
        {interval.line, position_.ordinal, Blob{behind}, interval.through},
        [&](const SqlRow& row) -> Result<RowAction> {
          TARN_ASSIGN_OR_RETURN(const std::vector<std::string> list,
                                changes::DecodePaths(row.Text(1), row.Text(2)));
          AddList({.line = interval.line, .ordinal = row.Int(0)}, list, {}, count_max, changes);
          return changes.size() < count_max ? RowAction::kContinue : RowAction::kStop;
        }));
    if (changes.size() < count_max) {
      ++position_.interval;
      position_.ordinal = 0;
      position_.path.clear();
    }
  }
  return changes;
}

}  // namespace tarn::dataset
