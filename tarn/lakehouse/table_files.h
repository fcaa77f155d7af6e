// TableFiles: the live files of one snapshot of an internal table, by what they are for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/manifest_cache.h"
#include "tarn/iceberg/scan.h"
#include "tarn/iceberg/table_metadata.h"
#include "tarn/storage/object_store.h"

namespace tarn::lakehouse {

using iceberg::FileScanTask;

/// Files of one snapshot. Value.
struct TableFiles {
  std::vector<FileScanTask> changes;  // In the order of their identifiers.
  std::vector<FileScanTask> asset_state;
  std::vector<FileScanTask> current;
  std::vector<FileScanTask> prior;

  [[nodiscard]] int64_t change_rows() const;
  [[nodiscard]] int64_t change_bytes() const;
  /// Rows of Current, deleted positions not taken off.
  [[nodiscard]] int64_t current_rows() const;
};

/// Lists the files of a snapshot (empty = the current one; a table without snapshots has none).
/// Errors: kCorruption for a file outside the known partitions; those of the store.
Result<TableFiles> ListTableFiles(storage::ObjectStore& store, iceberg::ManifestCache& cache,
                                  const iceberg::TableMetadata& metadata,
                                  std::optional<int64_t> snapshot_id);

/// True when every row of the file has operation D or d: such rows have files of their own.
bool HoldsDeletesOnly(const iceberg::DataFile& file);

/// Bounds of hdr__change_identifier; empty when the file has none.
std::string LowestIdentifier(const iceberg::DataFile& file);

/// Deleted rows of a file over all its position delete files, ascending.
/// Errors: kUnimplemented for equality deletes, which tarn never writes.
Result<std::vector<int64_t>> DeletedPositions(storage::ObjectStore& store,
                                              const FileScanTask& task);

}  // namespace tarn::lakehouse
