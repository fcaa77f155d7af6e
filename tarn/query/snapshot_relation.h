// SnapshotRelation: files of an Iceberg snapshot as a relation of an engine session.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/engine/engine.h"
#include "tarn/iceberg/scan.h"
#include "tarn/iceberg/schema.h"
#include "tarn/storage/object_store.h"

namespace tarn::query {

/// The engine's type of a column, e.g. DECIMAL(10,2), STRUCT("a" BIGINT)[].
/// Errors: kUnimplemented for variant, geometry and geography.
Result<std::string> SqlTypeOf(const iceberg::Type& type);

struct SnapshotRelation {
  std::string name;  // Of the temporary view to make.
  std::vector<iceberg::SchemaField> columns;
  std::span<const iceberg::FileScanTask> files;
};

/// Makes a temporary view of the session with the rows of `files` that are not deleted. Columns are
/// found by field id. Errors: kUnimplemented for equality deletes and files that are not Parquet;
/// those of the store. Cost: reads all position deletes of the files.
Status MakeSnapshotRelation(engine::Session& session, storage::ObjectStore& store,
                            const SnapshotRelation& relation);

}  // namespace tarn::query
