// DataFile from what a file writer counted, and the metrics modes that decide what is kept.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tarn/base/status.h"
#include "tarn/format/file_statistics.h"
#include "tarn/iceberg/manifest.h"
#include "tarn/iceberg/partition_spec.h"
#include "tarn/iceberg/schema.h"

namespace tarn::iceberg {

/// How much is kept of a column's statistics.
struct MetricsMode {
  enum class Kind : uint8_t { kNone, kCounts, kTruncate, kFull };
  Kind kind = Kind::kTruncate;
  int32_t length = 16;  // Code points or bytes, for kTruncate.
  friend bool operator==(const MetricsMode&, const MetricsMode&) = default;
};
/// "none", "counts", "truncate(16)", "full".
Result<MetricsMode> ParseMetricsMode(std::string_view text);

/// Modes by column, from the properties "write.metadata.metrics.*".
struct MetricsConfig {
  MetricsMode otherwise;
  std::map<int32_t, MetricsMode> columns;
  [[nodiscard]] MetricsMode ModeOf(int32_t field_id) const;

  /// Without a default in the properties only the first 100 columns keep bounds; sort columns and
  /// identifier fields always keep at least truncate(16). Values that cannot be read are ignored.
  static MetricsConfig From(const std::map<std::string, std::string>& properties,
                            const Schema& schema, const std::vector<int32_t>& sort_column_ids);
};

struct DataFileOptions {
  std::string file_path;  // Full URI.
  DataFileContent content = DataFileContent::kData;
  int32_t spec_id = 0;
  PartitionValues partition;
  std::optional<int32_t> sort_order_id;
  MetricsConfig metrics;
};

/// Bounds are kept for leaves outside lists and maps, never NaN, a zero as -0.0 below and +0.0
/// above. Errors: kInvalidArgument when a statistic is not of its column's type.
Result<DataFile> MakeDataFile(const Schema& schema, const format::FileStatistics& statistics,
                              const DataFileOptions& options);

}  // namespace tarn::iceberg
