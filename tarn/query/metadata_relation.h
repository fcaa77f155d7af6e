// MetadataRelation: what an Iceberg table knows of itself, as rows: "orders$snapshots" and others.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/catalog/catalog.h"
#include "tarn/engine/engine.h"
#include "tarn/query/scan_filter.h"

namespace tarn::query {

enum class MetadataTable : uint8_t {
  kSnapshots,
  kHistory,
  kRefs,
  kManifests,
  kFiles,  // Data and delete files of the snapshot.
  kDataFiles,
  kDeleteFiles,
  kEntries,  // Entries of the snapshot's manifests, deleted ones too.
  kPartitions,
  kMetadataLogEntries,
  kRows,  // Rows with where they are: _file, _pos, _row_id, _last_updated_sequence_number, and
          // _snapshot_id: the snapshot that added the file.
};

/// The word after '$'; nothing for others.
std::optional<MetadataTable> FindMetadataTable(std::string_view word);

/// A name "orders$files" as "orders" and kFiles; nothing without a known word after the last '$'.
struct MetadataName {
  std::string table;
  MetadataTable part = MetadataTable::kSnapshots;
};
std::optional<MetadataName> SplitMetadataName(std::string_view name);

struct MetadataRelation {
  std::string name;  // Of the temporary view to make.
  MetadataTable part = MetadataTable::kSnapshots;
  catalog::TableMetadataPtr metadata;
  /// The state that manifests, files, entries, partitions and rows are of; null = none.
  const iceberg::Snapshot* snapshot = nullptr;
  std::vector<ScanCondition> conditions{};  // Of kRows, as in TableRelation.
};

/// Columns are named as in other engines; bounds, partitions and summaries are text.
/// Errors: those of the store. Cost: kFiles, kEntries, kPartitions: all manifests of the snapshot.
Status MakeMetadataRelation(engine::Session& session, catalog::Catalog& catalog,
                            const MetadataRelation& relation);

}  // namespace tarn::query
