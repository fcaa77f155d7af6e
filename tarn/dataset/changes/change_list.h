// Change lists: which paths a transaction wrote, a few hundred to a row. Private to the room.
//
// They answer what an index of file rows by transaction would, at a fraction of its pages. Each
// batch of new rows adds its paths, sorted; a path stands in one list of its transaction.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/dataset/lineage.h"
#include "tarn/metastore/database.h"

namespace tarn::dataset::changes {

/// A path that was written, and whether it was a put over a file of the view below.
struct WrittenPath {
  std::string path;
  bool replaces = false;
};

/// A transaction's place.
struct Place {
  LineId line = 0;
  int64_t ordinal = 0;
};

/// The paths of one list as bytes of its row: each but the first as what it shares with the one
/// before and its rest. Pure.
std::string EncodePaths(const std::vector<std::string>& sorted_paths);
/// Errors: kCorruption.
Result<std::vector<std::string>> DecodePaths(std::string_view first_path, std::string_view more);

/// Adds paths that are new to the transaction.
Status AddPaths(metastore::SqlTransaction& sql, const Place& place, std::vector<WrittenPath> paths);
/// Takes one path off its list. Errors: kCorruption when no list has it.
Status RemovePath(metastore::SqlTransaction& sql, const Place& place, const WrittenPath& path);
/// Takes the first list away and returns its paths; none = there is none left.
Result<std::vector<std::string>> TakeFirstList(metastore::SqlTransaction& sql, const Place& place);
/// Paths of the lists that have puts over files, up to `count_max` lists, by first path.
Result<std::vector<std::string>> PathsAmongReplaced(metastore::SqlTransaction& sql,
                                                    const Place& place, int64_t count_max);

}  // namespace tarn::dataset::changes
