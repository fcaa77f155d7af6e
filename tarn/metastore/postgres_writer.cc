#include "tarn/metastore/postgres_writer.h"

#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "tarn/base/clock.h"
#include "tarn/base/crash_point.h"
#include "tarn/base/hash.h"
#include "tarn/base/log.h"
#include "tarn/base/uuid.h"

namespace tarn::metastore {

namespace {

constexpr std::chrono::milliseconds kRetryWait{100};
constexpr int32_t kLockClass = 0x5441524E;  // "TARN"

std::string NewName() {
  SystemClock clock;
  return UuidGenerator(clock).NextV4().ToString();
}

// One lock per schema; PostgreSQL keeps those of databases apart.
std::string TakeTurn(const PostgresConnection& connection) {
  const auto schema = static_cast<int32_t>(static_cast<uint32_t>(Xxh3(connection.schema())));
  return fmt::format("SELECT pg_advisory_xact_lock({}, {})", kLockClass, schema);
}

PostgresConnectionOptions ConnectionOptionsOf(const PostgresOptions& options) {
  return {.url = options.url,
          .role = PostgresRole::kWriter,
          .lock_wait_max = options.turn_wait_max,
          .idle_transaction_max = options.idle_transaction_max,
          .statements_max = options.statements_max};
}

}  // namespace

PostgresWriter::PostgresWriter(std::unique_ptr<PostgresConnection> connection,
                               const PostgresOptions& options)
    : options_(options),
      name_(NewName()),
      connection_(std::move(connection)),
      groups_(*this, {.name = "metastore",
                      .queue_max = options.queue_max,
                      .queue_wait_max = options.queue_wait_max,
                      .group_requests_max = options.group_requests_max,
                      .group_time_max = options.group_time_max}) {}

PostgresStatistics PostgresWriter::statistics() const {
  return {.waiting = groups_.waiting_count(),
          .requests = groups_.request_count(),
          .groups = commits_.load(),
          .reconnects = reconnects_.load()};
}

Status PostgresWriter::Connect() {
  if (connection_ != nullptr && !connection_->IsLost()) {
    return {};
  }
  connection_.reset();
  reconnects_.fetch_add(1, std::memory_order_relaxed);
  TARN_ASSIGN_OR_RETURN(connection_, PostgresConnection::Open(ConnectionOptionsOf(options_)));
  return {};
}

Status PostgresWriter::Begin(Durability durability) {
  Status begun;
  // A connection that was closed while it was idle says so now; no function has run yet.
  for (int attempt = 0; attempt < 2; ++attempt) {
    TARN_RETURN_IF_ERROR(Connect());
    // READ COMMITTED: each statement sees what was committed before this turn began. A snapshot of
    // the whole transaction would be older than the turn, which comes after a wait.
    begun = connection_->RunScript(
        std::string("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; ") +
        (durability == Durability::kLazy ? "SET LOCAL synchronous_commit = off; " : "") +
        TakeTurn(*connection_));
    if (begun.ok() || !connection_->IsLost()) {
      break;
    }
  }
  if (!begun.ok()) {
    Rollback();
    return begun;
  }
  in_doubt_ = false;  // Whatever this process left behind has ended: it had the turn.
  connection_->TakeChanged();
  return {};
}

Status PostgresWriter::RunInSavepoint(const SqlFunction& function) {
  TARN_RETURN_IF_ERROR(connection_->RunScript("SAVEPOINT request"));
  Status status = RunFunction(*connection_, function);
  if (connection_->IsLost()) {
    return status;
  }
  const Status ended = connection_->RunScript(status.ok() ? "RELEASE SAVEPOINT request"
                                                          : "ROLLBACK TO SAVEPOINT request; "
                                                            "RELEASE SAVEPOINT request");
  // One that cannot be ended leaves the transaction failed, and the group goes with it.
  return status.ok() ? ended : status;
}

Status PostgresWriter::Commit(Durability /*durability*/, size_t /*request_count*/) {
  CrashPoint("metastore-before-commit");
  if (!connection_->TakeChanged()) {
    return connection_->RunScript("COMMIT");  // Nothing was written: nothing can be in doubt.
  }
  const int64_t number = ++group_;
  const Status committed = connection_->RunScript(
      fmt::format("INSERT INTO tarn_writers (name, group_number, written) VALUES ('{}', {}, now()) "
                  "ON CONFLICT (name) DO UPDATE SET group_number = excluded.group_number, "
                  "written = excluded.written; COMMIT",
                  name_, number));
  if (committed.ok()) {
    CrashPoint("metastore-after-commit");
    commits_.fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  if (!connection_->IsLost()) {
    Rollback();  // The server refused: a constraint that waited, a full disk.
    return committed;
  }
  in_doubt_ = true;
  Log(LogLevel::kWarning, "metastore",
      "the connection was lost inside of a commit; looking for its outcome: " +
          committed.message());
  const Result<bool> there = WasCommitted(number);
  if (!there.ok()) {
    return {ErrorCode::kCommitStateUnknown,
            committed.message() + "; its outcome could not be found: " + there.status().message()};
  }
  if (!*there) {
    return Status::Unavailable(committed.message() + "; nothing was changed, try again");
  }
  commits_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

Result<bool> PostgresWriter::WasCommitted(int64_t number) {
  const auto deadline = std::chrono::steady_clock::now() + options_.doubt_wait_max;
  while (true) {
    Status status = Begin(Durability::kDurable);
    if (status.ok()) {
      int64_t found = -1;
      status = connection_->Query("SELECT group_number FROM tarn_writers WHERE name = ?1", {name_},
                                  [&](const SqlRow& row) {
                                    found = row.Int(0);
                                    return Result<RowAction>(RowAction::kContinue);
                                  });
      Rollback();
      if (status.ok()) {
        return found == number;
      }
    }
    if (std::chrono::steady_clock::now() > deadline) {
      in_doubt_ = true;
      return status;
    }
    std::this_thread::sleep_for(kRetryWait);
  }
}

void PostgresWriter::Rollback() {
  if (connection_ == nullptr || connection_->IsLost() || !connection_->InTransaction()) {
    return;
  }
  if (!connection_->RunScript("ROLLBACK").ok()) {
    connection_.reset();  // Closing it ends its transaction, too.
  }
}

}  // namespace tarn::metastore
