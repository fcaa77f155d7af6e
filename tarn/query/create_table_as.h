// CreateTableAs: a new Iceberg table with the rows of a SELECT.
#pragma once

#include <memory>
#include <stop_token>

#include "tarn/access/principal.h"
#include "tarn/base/status.h"
#include "tarn/query/change_statement.h"
#include "tarn/query/run_change.h"
#include "tarn/query/run_sql.h"

namespace tarn::query {

/// Who changes something, and until when. References.
struct ChangeContext {
  const QueryRequest& request;
  const access::Principal& principal;
  const QueryDeps& deps;
  const std::stop_token& stop;

  /// Starts a statement for the caller.
  [[nodiscard]] Result<std::unique_ptr<RunningQuery>> Start(const QueryRequest& statement) const;
  /// kCancelled when the caller has left: nothing is committed then.
  [[nodiscard]] Status CheckNotStopped() const;
};

/// Writes the rows and then makes the table with all of them in its first snapshot, in one step: it
/// is there whole or not at all. Without rows the table has no snapshot. With IF NOT EXISTS a table
/// of that name is left as it is, and nothing is changed. With OR REPLACE it becomes this one in
/// one step, with its snapshots, tags and other branches as history; its pipeline's table never
/// does. The SELECT may read it: where others changed it meanwhile the statement runs again, up to
/// three times.
///
/// The caller must be Editor of the folder (and of the table to be replaced), which is there
/// already, and Viewer of all that the SELECT reads. Errors: those of RunSql; kAlreadyExists;
/// kNotFound for the folder; kPermissionDenied; kInvalidArgument for columns without a name of
/// their own or without a type of the table format, and for partitioning that does not fit;
/// kCommitStateUnknown. On all but the last nothing is left. Crash: files that nothing refers to,
/// for orphan clean-up.
Result<ChangeResult> CreateTableAs(const CreateTableStatement& statement,
                                   const ChangeContext& context);

}  // namespace tarn::query
