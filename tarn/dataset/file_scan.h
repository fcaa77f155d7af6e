// File scans: reading the file rows of a lineage. Private to the room.
//
// Listing is a loose index scan: rows of a root come in path order; after a few rows of one path
// that decide nothing, the answer is sought directly, one seek per interval, and the scan goes on
// behind the path. Intervals of several roots (a range that begins before a checkpoint) are merged.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/dataset/changes/change_list.h"
#include "tarn/dataset/file_view.h"
#include "tarn/dataset/lineage.h"
#include "tarn/metastore/database.h"

namespace tarn::dataset {

enum class FileOperation : uint8_t { kPut = 0, kRemove = 1 };

/// A file row and where it stands. A removal has an empty location.
struct LocatedFile {
  File file;
  LineId line = 0;
  int64_t ordinal = 0;

  [[nodiscard]] bool removed() const { return file.location.empty(); }
};

/// The newest row of `path` in `lineage`, a removal included. Cost: one seek per interval.
Result<std::optional<LocatedFile>> FindNewest(metastore::SqlTransaction& sql,
                                              const Lineage& lineage, std::string_view path,
                                              FileDetail detail = FileDetail::kPlain);
/// The file at `path` in the view of `lineage`.
Result<std::optional<File>> FindFile(metastore::SqlTransaction& sql, const Lineage& lineage,
                                     std::string_view path);

/// Rows in path order, buffers reused from batch to batch. One owner thread.
class FileScan {
 public:
  /// Reads what `lineage` makes visible with paths >= `from` that begin with `prefix`.
  FileScan(const Lineage& lineage, std::string prefix, std::string from,
           FileDetail detail = FileDetail::kPlain);

  /// Reads up to `files_max` more files, fewer only at the end or when about `rows_max` rows were
  /// examined. The span dies with the next call. SQL transactions may change between calls.
  Result<std::span<const File>> Next(metastore::SqlTransaction& sql, size_t files_max,
                                     int64_t rows_max);
  [[nodiscard]] bool done() const;
  /// Where another scan would go on: the `from` that follows all files given so far.
  [[nodiscard]] std::string position() const;
  [[nodiscard]] int64_t rows_examined() const { return rows_examined_; }

 private:
  // One root's rows, newest per path, removals kept; files_[next_] is its first not yet given.
  struct Group {
    LineId root = 0;
    std::vector<Interval> intervals;
    std::string from;  // Not yet read: paths >= this.
    bool ended = false;
    std::vector<File> files;  // Slots are reused; the first `count` are filled.
    size_t count = 0;
    size_t next = 0;
  };
  class Filler;

  Status Fill(metastore::SqlTransaction& sql, Group& group, size_t files_max, int64_t rows_max);
  Status MergeInto(metastore::SqlTransaction& sql, size_t files_max, int64_t rows_max);
  File& Slot();

  std::vector<Group> groups_;  // Oldest first.
  FileDetail detail_;
  std::string end_;          // Exclusive bound of the prefix; empty = none.
  std::vector<File> batch_;  // Merged files, when there is more than one group.
  size_t batch_count_ = 0;
  int64_t rows_examined_ = 0;
};

/// The first byte string after all that begin with `prefix`; empty = there is none.
std::string EndOfPrefix(std::string_view prefix);
/// The first path after `path`: no path contains a NUL.
std::string After(std::string_view path);

/// Paths that the transactions of a lineage wrote, in commit order, then list by list.
class ChangedPaths {
 public:
  struct Position {
    size_t interval = 0;
    int64_t ordinal = 0;  // 0 = before the interval's first.
    std::string path;     // List and place in it; empty = before the transaction's first.
  };

  ChangedPaths(const Lineage& changes, Position position)
      : changes_(changes), position_(std::move(position)) {}

  struct Change {
    std::string path;
    LineId line = 0;
    int64_t ordinal = 0;
  };
  /// Up to `count_max` more; none = done.
  Result<std::vector<Change>> Next(metastore::SqlTransaction& sql, size_t count_max);
  [[nodiscard]] const Position& position() const { return position_; }

 private:
  // Adds the paths of a list that follow `after` (empty: all) until there are `count_max`.
  void AddList(const changes::Place& place, const std::vector<std::string>& list,
               std::string_view after, size_t count_max, std::vector<Change>& changes);
  // Reads the rest of the list it stopped in.
  Status FinishList(metastore::SqlTransaction& sql, const Interval& interval, size_t count_max,
                    std::vector<Change>& changes);

  const Lineage& changes_;
  Position position_;
};

}  // namespace tarn::dataset
