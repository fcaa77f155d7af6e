// tarn_is_live(deletes, file_index, file_row_number): the filter that scans put over files with
// deleted rows. Only for this room.
//
// `deletes` is a constant like '0-7,9 name': the name of the deleted rows that the session
// registered and, for each file_index in turn, which of them are the file's. They are looked up
// when a statement is bound, so the call of a row asks nobody, and a statement keeps its deletes
// until it ends. A text, since the engine makes constants anew for each chunk, lists item by item.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tarn/engine/deleted_rows.h"
#include "tarn/engine/duck_handles.h"

namespace tarn::engine {

/// Deleted rows of the files of a scan.
using DeletedRowsOfFiles = std::shared_ptr<const std::vector<DeletedRows>>;

/// The constant for files that have the deleted rows with these numbers, ascending.
std::string FormatDeletes(std::span<const size_t> numbers, std::string_view name);

/// All deleted rows of an instance, by connection. Threads: any.
class DeletedRowsRegistry {
 public:
  /// Registers the function on the instance behind `connection`.
  Status Install(duckdb_connection connection);
  /// Null forgets the name, which is compared without case.
  void Set(uint64_t connection_id, const std::string& name, DeletedRowsOfFiles files);
  void Remove(uint64_t connection_id);
  [[nodiscard]] DeletedRowsOfFiles Find(uint64_t connection_id, const std::string& name) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<uint64_t, std::string>, DeletedRowsOfFiles> sets_;
};

}  // namespace tarn::engine
