// Footer metadata of Parquet files as FileStatistics; shared by ParquetWriter and ParquetReader.
#pragma once

#include <cstdint>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/format/file_statistics.h"

namespace parquet {
class FileMetaData;
}

namespace tarn::format {

/// Errors: kCorruption when the metadata contradicts itself.
Result<FileStatistics> StatisticsOf(const parquet::FileMetaData& metadata, int64_t size_bytes);

}  // namespace tarn::format
