// DatasetRelation: the files of a dataset's view as a relation of an engine session.
#pragma once

#include <optional>
#include <string>

#include "tarn/base/status.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/engine/engine.h"
#include "tarn/format/field_type.h"
#include "tarn/query/point_in_time.h"
#include "tarn/storage/object_store.h"

namespace tarn::query {

struct DatasetRelation {
  std::string name;     // Of the temporary view to make.
  std::string written;  // The dataset as the reader calls it, for messages.
  dataset::DatasetRid dataset;
  std::string branch;
  PointInTime point;
  std::optional<dataset::TransactionRid> start{};  // Only what came from this transaction on.
};

/// Columns of a dataset schema, which was checked when it was put.
std::vector<format::Field> FieldsOf(const dataset::DatasetSchema& schema);

/// Makes the view: all Parquet files of the file view, columns by name in the types of the stored
/// schema, or without one in the widest types of the files; text files where the schema says so
/// (text_relation.h). Hidden files (a name that begins with '_' or '.') are left out.
///
/// `store` outlives the session. Errors: kInvalidArgument naming a file that is not Parquet, and
/// for a snapshot id; kUnimplemented for files outside of the store; kNotFound for the branch or
/// transaction; kFailedPrecondition for a dataset without schema and without files.
/// Cost: reads the footer of every file.
Status MakeDatasetRelation(engine::Session& session, dataset::DatasetStore& datasets,
                           storage::ObjectStore& store, const DatasetRelation& relation);

}  // namespace tarn::query
