// RunChange: one DELETE, UPDATE, INSERT or MERGE of a person on an Iceberg table that belongs to no
// pipeline, one that is made from a SELECT, or one that is dropped.
//
// Deleted rows get position deletes (format version 2) or deletion vectors (3), new versions of
// rows are appended, and both are one snapshot. A file without a row left is removed. DELETE
// without WHERE removes the files and reads no row, unless equality deletes apply to one of them.
#pragma once

#include <cstdint>
#include <optional>

#include "tarn/access/principal.h"
#include "tarn/base/status.h"
#include "tarn/query/run_sql.h"

namespace tarn::query {

struct ChangeResult {
  int64_t changed_rows = 0;
  std::optional<int64_t> snapshot_id;  // Empty when nothing changed.
};

/// Reads the branch main as it is now; `at` and another branch are refused. The caller must be
/// Editor of the table and Viewer of all else that the statement reads. A statement that loses to a
/// concurrent commit is run again on the new state, up to three times; what is checked depends on
/// write.<operation>.isolation-level. The commit and its record in the audit log are one; a denial
/// is recorded, too.
///
/// Errors: those of RunSql; kPermissionDenied, also for tables of pipelines; kUnimplemented for
/// tables of format version 1; kInvalidArgument for values that do not fit their columns and for a
/// MERGE that changes a row twice; kConflict after the last try; kCommitStateUnknown. On all but
/// the last the table is as it was. CREATE TABLE: create_table_as.h. CREATE SCHEMA and DROP:
/// object_statement.h; they change no rows and make no snapshot.
Result<ChangeResult> RunChange(const QueryRequest& request, const access::Principal& principal,
                               const QueryDeps& deps);

}  // namespace tarn::query
