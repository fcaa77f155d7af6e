#include "cmd/tarn/pipeline_turn.h"

#include <unistd.h>

#include <chrono>

#include <fmt/format.h>

#include "tarn/base/log.h"

namespace tarn {

namespace {

using metastore::Durability;
using metastore::SqlTransaction;

constexpr const char* kName = "pipelines";
constexpr std::chrono::seconds kLease{10};
constexpr std::chrono::seconds kPeriod{2};

// Requests that act on the runs of this process, or ask about them.
bool IsForHolder(std::string_view method, std::string_view target) {
  const std::string_view path = target.substr(0, target.find('?'));
  if (method == "GET") {
    return path.starts_with("/tarn/v1/runs/");
  }
  return path == "/tarn/v1/pipelines" || path.starts_with("/tarn/v1/pipelines/") ||
         path.starts_with("/tarn/v1/tasks/") || path == "/tarn/v1/landing:replayRejected";
}

}  // namespace

std::string AddressFor(const std::string& host, int port) {
  char name[256] = "";
  const bool every = host == "0.0.0.0" || host == "::" || host == "[::]";
  if (every && ::gethostname(name, sizeof name - 1) == 0) {
    return fmt::format("http://{}:{}", name, port);
  }
  return fmt::format("http://{}:{}", host, port);
}

PipelineTurn::PipelineTurn(metastore::Database& database, task::Control& control,
                           const Clock& clock, const std::string& address, const std::string& id)
    : database_(database), control_(control), clock_(clock), owner_(address + " " + id) {}

PipelineTurn::~PipelineTurn() { Stop(); }

Status PipelineTurn::Start() {
  if (const Status tried = Try(); IsRetryable(tried.code())) {
    Log(LogLevel::kWarning, "serve", "pipelines: tries again: " + tried.message());
  } else {
    TARN_RETURN_IF_ERROR(tried);
  }
  thread_ = std::thread([this] { Loop(); });
  return Status::Ok();
}

void PipelineTurn::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
  GiveUp();
}

void PipelineTurn::Loop() {
  while (true) {
    bool holds = false;
    {
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, kPeriod, [&] { return stopping_; })) {
        return;
      }
      holds = lease_.has_value();
    }
    if (holds) {
      Renew();
    } else if (const Status tried = Try(); !tried.ok()) {
      Log(LogLevel::kWarning, "serve", "pipelines: " + tried.message());
    }
  }
}

Status PipelineTurn::Try() {
  std::optional<metastore::Lease> taken;
  TARN_RETURN_IF_ERROR(database_.Write([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(
        taken, metastore::TryAcquireLease(
                   sql, {.name = kName, .owner = owner_, .now = clock_.Now(), .duration = kLease}));
    return Status::Ok();
  }));
  if (!taken) {
    return Status::Ok();
  }
  {
    const std::lock_guard lock(mutex_);
    lease_ = taken;
  }
  Log(LogLevel::kNotice, "serve", "this server runs the pipelines");
  const Status resumed = control_.Resume();
  if (!resumed.ok()) {
    GiveUp();
  }
  return resumed;
}

void PipelineTurn::Renew() {
  Result<metastore::Lease> renewed = Status::Unavailable("not asked yet");
  const Status written = database_.Write(
      [&](SqlTransaction& sql) -> Status {
        renewed = metastore::RenewLease(sql, *lease_, clock_.Now(), kLease);
        return renewed.status();
      },
      Durability::kLazy);
  if (written.ok()) {
    const std::lock_guard lock(mutex_);
    lease_ = *renewed;
    return;
  }
  // While the metastore is away nobody can take the lease, but it may be away for this server only.
  if (written.reason() == "LeaseLost" || lease_->expires <= clock_.Now()) {
    Log(LogLevel::kWarning, "serve",
        "this server does not run the pipelines any more: " + written.message());
    GiveUp();
  }
}

void PipelineTurn::GiveUp() {
  if (!lease_) {
    return;
  }
  control_.Shutdown();
  const Status released =
      database_.Write([&](SqlTransaction& sql) { return metastore::ReleaseLease(sql, *lease_); });
  (void)released;  // It ends by itself.
  const std::lock_guard lock(mutex_);
  lease_.reset();
}

Status PipelineTurn::CheckHolder(SqlTransaction& sql) {
  std::optional<metastore::Lease> held;
  {
    const std::lock_guard lock(mutex_);
    held = lease_;
  }
  if (!held) {
    return Status::FailedPrecondition("this server does not run the pipelines")
        .WithReason("LeaseLost");
  }
  return metastore::CheckEpoch(sql, kName, held->epoch);
}

Status PipelineTurn::CheckRequest(std::string_view method, std::string_view target) {
  if (!IsForHolder(method, target)) {
    return Status::Ok();
  }
  {
    const std::lock_guard lock(mutex_);
    if (lease_) {
      return Status::Ok();
    }
  }
  std::optional<metastore::Lease> holder;
  TARN_RETURN_IF_ERROR(database_.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(holder, metastore::FindLease(sql, kName, clock_.Now()));
    return Status::Ok();
  }));
  return Status::Unavailable(
      holder ? fmt::format("pipelines run on the server {}: ask that one",
                           holder->owner.substr(0, holder->owner.find(' ')))
             : "pipelines are about to be taken over by a server: try again in some seconds");
}

}  // namespace tarn
