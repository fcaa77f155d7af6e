// Position delete files: rows of data files that are deleted, by file and row number.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/manifest.h"
#include "tarn/iceberg/partition_spec.h"
#include "tarn/storage/object_store.h"

namespace tarn::iceberg {

/// Row numbers of one data file, ascending, each once.
using Positions = std::vector<int64_t>;

struct PositionDeleteOptions {
  std::string file_path;       // URI of the new delete file, inside the store.
  std::string data_file_path;  // As the manifest of the data file spells it.
  int32_t spec_id = 0;         // Spec and partition of the data file.
  PartitionValues partition;
};

/// Writes the deletes of one data file (file granularity: bounds of file_path are the full path and
/// referenced_data_file is set). `positions` need no order; doubles are dropped.
/// Errors: kInvalidArgument when empty or negative; those of the store.
Result<DataFile> WritePositionDeletes(storage::ObjectStore& store,
                                      const PositionDeleteOptions& options, Positions positions);

/// Deletes of a file, by data file. Files of other writers may cover many data files and need not
/// be sorted. Errors: kCorruption naming the file; kUnimplemented for formats other than Parquet.
Result<std::map<std::string, Positions>> ReadPositionDeletes(storage::ObjectStore& store,
                                                             const DataFile& delete_file);

/// Deleted rows of one data file over all its position delete files and deletion vectors.
/// Cost: reads every file whole; row groups of other data files are passed over by statistics.
Result<Positions> ReadPositionDeletesOf(storage::ObjectStore& store,
                                        const std::vector<DataFile>& delete_files,
                                        const std::string& data_file_path);

/// Union of two ascending lists.
Positions MergePositions(const Positions& a, const Positions& b);

}  // namespace tarn::iceberg
