// FileStatistics: what is known of a Parquet file without reading its rows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

namespace tarn::format {

/// A leaf column (lists and maps: their elements). Bounds never hold NaN; they are missing when the
/// column has no value but NULL and NaN, or a bound of more than 4 KiB.
struct ColumnStatistics {
  int field_id = -1;  // -1: the file has none.
  std::string path;   // Dotted, as in the Parquet schema, e.g. "items.list.element.sku".
  int64_t column_size_bytes = 0;  // Compressed.
  int64_t value_count = 0;        // NULLs included; of a list: elements.
  std::optional<int64_t> null_count;
  std::optional<int64_t> nan_count;    // Float and double columns, known to the writer only.
  std::shared_ptr<arrow::Scalar> min;  // Null when unknown; in the column's Arrow type.
  std::shared_ptr<arrow::Scalar> max;
};

struct FileStatistics {
  int64_t row_count = 0;
  int64_t size_bytes = 0;
  std::vector<int64_t> split_offsets;  // First byte of each row group, ascending.
  std::vector<ColumnStatistics> columns;
};

}  // namespace tarn::format
