// SnapshotRelation: files of an Iceberg snapshot as a relation of an engine session.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/engine/engine.h"
#include "tarn/iceberg/scan.h"
#include "tarn/iceberg/schema.h"
#include "tarn/iceberg/table_metadata.h"
#include "tarn/storage/object_store.h"

namespace tarn::lakehouse {

// Columns that may come after those of the table.
inline constexpr std::string_view kFileIndexColumn = "tarn_file";
inline constexpr std::string_view kPositionColumn = "tarn_pos";
inline constexpr std::string_view kRowIdColumn = "_row_id";
inline constexpr std::string_view kRowSequenceColumn = "_last_updated_sequence_number";
// Reserved ids of the last two in files whose rows were in other files before.
inline constexpr int32_t kRowIdFieldId = 2147483540;
inline constexpr int32_t kRowSequenceFieldId = 2147483539;

struct SnapshotRelation {
  std::string name;  // Of the temporary view to make; more may be made beside it.
  const iceberg::TableMetadata* metadata = nullptr;  // Former schemas, specs, name mapping.
  std::vector<iceberg::SchemaField> columns;         // Top-level columns, of any schema.
  std::span<const iceberg::FileScanTask> files;
  /// Adds tarn_file BIGINT (index in `files`) and tarn_pos BIGINT (row in the file, from 0).
  bool with_position = false;
  /// Adds _row_id and _last_updated_sequence_number (BIGINT, NULL where the file has none).
  bool with_lineage = false;
};

/// Makes a temporary view of the session with the rows of `files` that are not deleted: by position
/// delete files, deletion vectors or equality deletes. Columns are found by field id at any depth,
/// or by the table's name mapping in files without ids; missing ones have the value of their
/// identity partition field, their initial default, or NULL.
///
/// Errors: kUnimplemented, naming the file, for files that are not Parquet or are encrypted, and
/// for equality deletes on members of structs; those of the store. Cost: reads the position deletes
/// and vectors of the files at once; equality deletes when the view is read.
Status MakeSnapshotRelation(engine::Session& session, storage::ObjectStore& store,
                            const SnapshotRelation& relation);

}  // namespace tarn::lakehouse
