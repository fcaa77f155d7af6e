// Row deletes: positions to delete in data files, as delete files of the form that a table's format
// version asks for.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/base/uuid.h"
#include "tarn/iceberg/manifest.h"
#include "tarn/iceberg/position_delete.h"
#include "tarn/iceberg/scan.h"
#include "tarn/iceberg/table_metadata.h"
#include "tarn/storage/object_store.h"

namespace tarn::iceberg {

/// Rows of one data file to delete. Value.
struct RowDeletion {
  FileScanTask task;    // As planned: the file and the deletes that apply to it already.
  Positions positions;  // Any order; those that are deleted already do not count.
};

/// What a commit adds and removes for row deletions.
struct WrittenRowDeletes {
  std::vector<DataFile> added;
  std::vector<DataFile> removed;        // Delete files of one data file that `added` takes in.
  std::vector<std::string> data_files;  // That the deletes refer to: they must stay live.
  int64_t deleted_rows = 0;             // That were live before.
};

/// Writes one delete file per data file: a deletion vector (all in one Puffin file) from format
/// version 3 on, a position delete file before. Each takes in what earlier delete files of the same
/// data file alone hold, so that a data file has one of them, whatever the number of commits.
///
/// A data file without a live row left among `deletions` is written all the same; callers that know
/// better remove it. Deletions that delete nothing new write nothing.
/// Errors: kInvalidArgument for positions outside a file; those of the store. What was written
/// before an error is removed again.
Result<WrittenRowDeletes> WriteRowDeletes(storage::ObjectStore& store,
                                          const TableMetadata& metadata, UuidGenerator& uuids,
                                          const std::vector<RowDeletion>& deletions);

/// Positions of a data file that are deleted by its position deletes and vectors.
/// Equality deletes are not looked at. Errors: those of the store; kCorruption.
Result<Positions> ReadDeletedPositions(storage::ObjectStore& store, const FileScanTask& task);

/// ReadDeletedPositions for many data files: calls visit(i, positions) for each of `tasks` that has
/// such deletes, in their order. A delete file that covers several of them is read once.
/// Memory: the positions of one data file, and all those of delete files that cover several.
/// Errors: as above; those of `visit`.
Status VisitDeletedPositions(storage::ObjectStore& store, std::span<const FileScanTask> tasks,
                             const std::function<Status(size_t, const Positions&)>& visit);

}  // namespace tarn::iceberg
