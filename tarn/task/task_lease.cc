#include "tarn/task/task_lease.h"

#include <optional>

#include <fmt/format.h>

#include "tarn/metastore/lease.h"

namespace tarn::task {

namespace {

constexpr std::chrono::hours kLeaseDuration{24};

}  // namespace

// Whoever may run the pipelines is one process, by the lock of its home or by `may_run`, so the
// owner is always the same and a restart takes over at once; the epoch fences an attempt that was
// given up, here or by a server that ran them before.
Result<metastore::SqlFunction> TakeTaskLease(metastore::SqlTransaction& sql,
                                             const std::string& full_name, Timestamp now,
                                             const metastore::SqlFunction& may_run) {
  if (may_run) {
    TARN_RETURN_IF_ERROR(may_run(sql));
  }
  const std::string name = "task/" + full_name;
  TARN_ASSIGN_OR_RETURN(
      const std::optional<metastore::Lease> lease,
      metastore::TryAcquireLease(
          sql, {.name = name, .owner = "home", .now = now, .duration = kLeaseDuration}));
  if (!lease) {
    return Status::Unavailable(fmt::format("{} is run by another server", name));
  }
  return metastore::SqlFunction([name, epoch = lease->epoch](metastore::SqlTransaction& later) {
    return metastore::CheckEpoch(later, name, epoch);
  });
}

Result<metastore::SqlFunction> TakeTaskLease(metastore::Database& database,
                                             const std::string& full_name, Timestamp now,
                                             const metastore::SqlFunction& may_run) {
  metastore::SqlFunction fence;
  TARN_RETURN_IF_ERROR(database.Write([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(fence, TakeTaskLease(sql, full_name, now, may_run));
    return Status::Ok();
  }));
  return fence;
}

}  // namespace tarn::task
