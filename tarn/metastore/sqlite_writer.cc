#include "tarn/metastore/sqlite_writer.h"

#include <string>
#include <utility>

#include <sqlite3.h>

#include "tarn/base/crash_point.h"
#include "tarn/base/log.h"

namespace tarn::metastore {

SqliteWriter::SqliteWriter(std::unique_ptr<SqliteConnection> connection,
                           const SqliteOptions& options)
    : options_(options),
      connection_(std::move(connection)),
      groups_(*this, {.name = "metastore " + options.path.string(),
                      .queue_max = options.queue_max,
                      .queue_wait_max = options.queue_wait_max,
                      .group_requests_max = options.group_requests_max,
                      .group_time_max = options.group_time_max}) {
  // Replaces SQLite's own checkpoint, which would run before the group is answered.
  sqlite3_wal_hook(
      connection_->handle(),
      [](void* pages, sqlite3* /*handle*/, const char* /*name*/, int count) {
        *static_cast<int*>(pages) = count;
        return SQLITE_OK;
      },
      &log_pages_);
}

SqliteStatistics SqliteWriter::statistics() const {
  return {.waiting = groups_.waiting_count(),
          .requests = groups_.request_count(),
          .durable_groups = durable_groups_.load(),
          .lazy_groups = lazy_groups_.load(),
          .checkpoints = checkpoints_.load()};
}

Status SqliteWriter::Begin(Durability durability) {
  TARN_RETURN_IF_ERROR(stopped_);
  TARN_RETURN_IF_ERROR(UseDurability(durability));
  return connection_->Execute("BEGIN IMMEDIATE", {}).status();
}

Status SqliteWriter::RunInSavepoint(const SqlFunction& function) {
  TARN_RETURN_IF_ERROR(connection_->Execute("SAVEPOINT request", {}));
  Status status = RunFunction(*connection_, function);
  if (!connection_->InTransaction()) {
    return status;
  }
  if (!status.ok()) {
    const Result<int64_t> undone = connection_->Execute("ROLLBACK TO request", {});
    if (!undone.ok()) {
      // Its changes cannot be taken out of the group, so the group goes with them.
      Rollback();
      return status;
    }
  }
  const Result<int64_t> released = connection_->Execute("RELEASE request", {});
  if (!released.ok()) {
    Rollback();
    return released.status();
  }
  return status;
}

Status SqliteWriter::Commit(Durability durability, size_t request_count) {
  CrashPoint("metastore-before-commit");
  const int code = sqlite3_exec(connection_->handle(), "COMMIT", nullptr, nullptr, nullptr);
  if (code == SQLITE_OK) {
    CrashPoint("metastore-after-commit");
    (durability == Durability::kDurable ? durable_groups_ : lazy_groups_)
        .fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  Status failure =
      connection_->Failure(code, "commit of " + std::to_string(request_count) + " requests");
  Rollback();
  switch (code & 0xFF) {
    case SQLITE_FULL:
    case SQLITE_READONLY:
    case SQLITE_BUSY:
    case SQLITE_NOMEM:
    case SQLITE_CONSTRAINT:
      // The commit record, which is written last, is not in the log.
      return failure;
    default:
      break;
  }
  // The record may be in the log: after a restart the group counts, or not. Nor may later commits
  // follow it: a kernel drops the pages that it failed to write, and says so only once.
  StopWriting(failure);
  return {ErrorCode::kCommitStateUnknown, failure.message()};
}

void SqliteWriter::StopWriting(const Status& cause) {
  stopped_ = Status::Unavailable("metastore " + options_.path.string() +
                                 " takes no writes until the server is restarted, because an "
                                 "earlier write failed: " +
                                 cause.message());
  Log(LogLevel::kError, "metastore", stopped_.message());
}

void SqliteWriter::Rollback() {
  if (connection_->InTransaction()) {
    // A roll back that fails leaves no transaction either: SQLite has already ended it.
    sqlite3_exec(connection_->handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

// NORMAL commits to the log without fsync, FULL with it. Both sync the log before it is copied
// back, so the file itself is never ahead of the log.
Status SqliteWriter::UseDurability(Durability durability) {
  if (durability_in_use_ == durability) {
    return {};
  }
  TARN_RETURN_IF_ERROR(connection_->RunScript(durability == Durability::kDurable
                                                  ? "PRAGMA synchronous=FULL"
                                                  : "PRAGMA synchronous=NORMAL"));
  durability_in_use_ = durability;
  return {};
}

// Copies the log back into the file after the answers have left. The log starts over once all of
// it is copied and no reader is in it; steady readers can keep that from happening, so from four
// times the limit on the writer waits for them (they are short) and sends new ones to the file.
void SqliteWriter::CopyLogBack() {
  if (log_pages_ < log_pages_copied_) {
    log_pages_copied_ = 0;  // It has started over.
  }
  if (!stopped_.ok() || log_pages_ - log_pages_copied_ <= options_.log_pages_max) {
    return;
  }
  const bool overdue = log_pages_ > 4 * options_.log_pages_max;
  const int code = sqlite3_wal_checkpoint_v2(
      connection_->handle(), nullptr,
      overdue ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  checkpoints_.fetch_add(1, std::memory_order_relaxed);
  log_pages_copied_ = log_pages_;
  if (code == SQLITE_OK || (code & 0xFF) == SQLITE_BUSY) {
    return;
  }
  const Status failure = connection_->Failure(code, "copying the log back");
  if ((code & 0xFF) == SQLITE_IOERR) {
    StopWriting(failure);
  } else {
    Log(LogLevel::kWarning, "metastore", failure.message());
  }
}

}  // namespace tarn::metastore
