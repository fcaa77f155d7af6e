#include "tarn/metastore/sqlite_writer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <sqlite3.h>

#include "tarn/base/crash_point.h"
#include "tarn/base/log.h"

namespace tarn::metastore {

// One call of Write, shared by its caller, who waits, and the writer thread.
struct SqliteWriter::Request {
  const SqlFunction* function;
  Durability durability;
  Status result;
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;  // Guarded by mutex.
};

SqliteWriter::SqliteWriter(std::unique_ptr<SqliteConnection> connection,
                           const SqliteOptions& options)
    : options_(options), connection_(std::move(connection)) {
  // Replaces SQLite's own checkpoint, which would run before the group is answered.
  sqlite3_wal_hook(
      connection_->handle(),
      [](void* pages, sqlite3* /*handle*/, const char* /*name*/, int count) {
        *static_cast<int*>(pages) = count;
        return SQLITE_OK;
      },
      &log_pages_);
  thread_ = std::thread([this] { Loop(); });
}

SqliteWriter::~SqliteWriter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_one();
  thread_.join();
}

Status SqliteWriter::Submit(const SqlFunction& function, Durability durability) {
  if (std::this_thread::get_id() == thread_.get_id()) {
    return Status::Internal(
        "Database::Write called inside a write function; it would wait for "
        "itself");
  }
  const auto request = std::make_shared<Request>();
  request->function = &function;
  request->durability = durability;
  {
    std::unique_lock lock(mutex_);
    if (!room_.wait_for(lock, options_.queue_wait_max,
                        [&] { return queue_.size() < options_.queue_max; })) {
      return {ErrorCode::kResourceExhausted, "metastore " + options_.path.string() + ": " +
                                                 std::to_string(options_.queue_max) +
                                                 " writes are waiting; try again later"};
    }
    queue_.push_back(request);
  }
  work_.notify_one();
  std::unique_lock lock(request->mutex);
  request->changed.wait(lock, [&] { return request->done; });
  return std::move(request->result);
}

SqliteStatistics SqliteWriter::statistics() const {
  const std::lock_guard lock(mutex_);
  return {.waiting = static_cast<int64_t>(queue_.size()),
          .requests = requests_.load(),
          .durable_groups = durable_groups_.load(),
          .lazy_groups = lazy_groups_.load(),
          .checkpoints = checkpoints_.load()};
}

void SqliteWriter::Loop() {
  Requests lazy;
  Requests durable;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      work_.wait(lock,
                 [&] { return stopping_ || !queue_.empty() || !lazy.empty() || !durable.empty(); });
      for (std::shared_ptr<Request>& request : queue_) {
        Requests& of_kind = request->durability == Durability::kLazy ? lazy : durable;
        of_kind.push_back(std::move(request));
      }
      queue_.clear();
      if (lazy.empty() && durable.empty()) {
        return;
      }
    }
    room_.notify_all();
    // Requests of one caller are never in the queue together, so the order between kinds is free:
    // the lazy ones need not wait for the fsync of the others.
    RunGroup(lazy, Durability::kLazy);
    RunGroup(durable, Durability::kDurable);
    CopyLogBack();
  }
}

void SqliteWriter::RunGroup(Requests& pending, Durability durability) {
  if (pending.empty()) {
    return;
  }
  Status begun = stopped_;
  if (begun.ok()) {
    begun = UseDurability(durability);
  }
  if (begun.ok()) {
    Result<int64_t> begin = connection_->Execute("BEGIN IMMEDIATE", {});
    begun = begin.status();
  }
  Requests members;
  if (!begun.ok()) {
    members.swap(pending);
    for (const auto& member : members) {
      member->result = begun;
    }
    Answer(members);
    return;
  }
  RunMembers(pending, members);
  Finish(members, durability);
}

// Moves requests from `pending` to `members` and runs them in the open SQL transaction.
void SqliteWriter::RunMembers(Requests& pending, Requests& members) {
  const auto start = std::chrono::steady_clock::now();
  // A request that is alone needs no savepoint: its roll back is that of the transaction.
  const bool alone = pending.size() == 1;
  while (!pending.empty() && members.size() < options_.group_requests_max) {
    if (!members.empty() && std::chrono::steady_clock::now() - start > options_.group_time_max) {
      return;
    }
    const std::shared_ptr<Request> request = pending.front();
    pending.pop_front();
    members.push_back(request);
    requests_.fetch_add(1, std::memory_order_relaxed);
    request->result =
        alone ? RunFunction(*connection_, *request->function) : RunInSavepoint(*request->function);
    if (!connection_->InTransaction()) {
      return;
    }
  }
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

// Commits the members that succeeded and answers all.
void SqliteWriter::Finish(Requests& members, Durability durability) {
  const bool any = std::any_of(members.begin(), members.end(),
                               [](const auto& member) { return member->result.ok(); });
  Status outcome;
  if (!connection_->InTransaction()) {
    // SQLite, or RunInSavepoint, gave the transaction up; the last member has the cause.
    const Status& cause = members.back()->result;
    outcome = cause.ok() ? Status::Unavailable("metastore " + options_.path.string() +
                                               ": the write was rolled back")
                         : Status::Unavailable(cause.message());
  } else if (any) {
    outcome = Commit(members);
  } else {
    Rollback();
  }
  if (any && outcome.ok()) {
    (durability == Durability::kDurable ? durable_groups_ : lazy_groups_)
        .fetch_add(1, std::memory_order_relaxed);
  }
  if (!outcome.ok()) {
    for (const auto& member : members) {
      if (member->result.ok()) {
        member->result = outcome;
      }
    }
  }
  Answer(members);
}

Status SqliteWriter::Commit(const Requests& members) {
  CrashPoint("metastore-before-commit");
  const int code = sqlite3_exec(connection_->handle(), "COMMIT", nullptr, nullptr, nullptr);
  if (code == SQLITE_OK) {
    CrashPoint("metastore-after-commit");
    return {};
  }
  Status failure =
      connection_->Failure(code, "commit of " + std::to_string(members.size()) + " requests");
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

void SqliteWriter::Answer(Requests& members) {
  for (const auto& member : members) {
    {
      const std::lock_guard lock(member->mutex);
      member->done = true;
    }
    member->changed.notify_one();
  }
  members.clear();
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
