// The SQL text that reads a pinned list of Parquet files as one relation. Pure.
//
// Columns are found by Iceberg field id or, in files without ids, by name; files that have deleted
// rows are read with a filter over the number of the row, clean ones without. The deleted rows are
// registered by the caller: Session::RegisterDeletedRows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tarn/base/status.h"

namespace tarn::engine {

/// One column of the result.
struct ScanColumn {
  std::string name;
  std::string type;      // SQL type, e.g. DECIMAL(10,2), STRUCT("a" BIGINT).
  int32_t field_id = 0;  // For ScanMatch::kFieldId.
  // Name inside the files, for ScanMatch::kName; empty = `name`.
  std::string file_name{};
  std::optional<std::string>
      default_text{};  // Value where a file lacks the column, cast to `type`.
  friend bool operator==(const ScanColumn&, const ScanColumn&) = default;
};

enum class ScanMatch { kFieldId, kName };

/// A column that is the same in every row of a file and replaces what the file holds.
struct ScanConstant {
  std::string column;                 // Name of a ScanColumn.
  std::optional<std::string> text{};  // Cast to the column's type; none = NULL.
  friend auto operator<=>(const ScanConstant&, const ScanConstant&) = default;
};

struct ScanFile {
  std::string path;  // Local path, file: URI or an URL the engine can read; never a pattern.
  bool has_deletes = false;
  std::vector<ScanConstant> constants{};
  friend bool operator==(const ScanFile&, const ScanFile&) = default;
};

struct ScanRequest {
  std::vector<ScanColumn> columns;
  ScanMatch match = ScanMatch::kFieldId;
  std::vector<ScanFile> files{};
  // Name of the registered deleted rows, one for each of `files`; needed when a file has deletes.
  std::string deleted_rows{};
  // Adds tarn_file BIGINT (index in `files`) and tarn_pos BIGINT after the columns.
  bool with_position = false;
  std::string where{};  // Condition over the columns, already checked; empty = none.
};

/// "SELECT … FROM …": a statement that can also stand in brackets as a relation.
///
/// Errors: kInvalidArgument on no column, a repeated column name or field id, a constant for an
/// unknown column, a file: URI that is no local path, or deletes without `deleted_rows`.
/// Cost: O(files + columns) text.
Result<std::string> BuildScan(const ScanRequest& request);

}  // namespace tarn::engine
