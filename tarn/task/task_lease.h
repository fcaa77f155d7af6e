// The lease of a task: whoever works for a task takes it, and each of its commits checks that
// nobody took it since. Only for this room.
#pragma once

#include <string>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"
#include "tarn/metastore/database.h"

namespace tarn::task {

/// Takes the lease of "PIPELINE.TASK" from whoever had it, and gives the check that belongs into
/// the SQL transaction of every commit (kFailedPrecondition, reason LeaseLost). `may_run`, unless
/// it is empty, fails where this process may not run pipelines: see ControlDeps. Errors: those of
/// `may_run`; kUnavailable while another server has it.
Result<metastore::SqlFunction> TakeTaskLease(metastore::SqlTransaction& sql,
                                             const std::string& full_name, Timestamp now,
                                             const metastore::SqlFunction& may_run);
/// The same in a SQL transaction of its own.
Result<metastore::SqlFunction> TakeTaskLease(metastore::Database& database,
                                             const std::string& full_name, Timestamp now,
                                             const metastore::SqlFunction& may_run);

}  // namespace tarn::task
