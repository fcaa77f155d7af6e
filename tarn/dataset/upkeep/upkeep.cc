#include "tarn/dataset/upkeep/upkeep.h"

#include <algorithm>
#include <utility>

#include "tarn/base/check.h"
#include "tarn/base/log.h"
#include "tarn/base/uuid.h"
#include "tarn/dataset/in_sql.h"
#include "tarn/dataset/rows.h"
#include "tarn/metastore/lease.h"

namespace tarn::dataset::upkeep {

using metastore::SqlTransaction;

namespace {

constexpr std::array<std::string_view, kJobCount> kNames = {"checkpoints", "purge", "idle",
                                                            "retention", "sweep"};
using SteadyTime = std::chrono::steady_clock::time_point;

int64_t MillisSince(SteadyTime begin) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                               begin)
      .count();
}

// A request that could not be served now must not keep those behind it waiting.
Status MoveToTheEnd(const retention::RetentionDeps& deps, const CheckpointRequest& request) {
  return deps.database.Write(
      [&](SqlTransaction& sql) {
        return StatusOf(sql.Execute(
            "UPDATE dataset_checkpoint_requests SET requested_at = ?3 WHERE branch_id IN (SELECT "
            "b.id FROM dataset_branches b JOIN dataset_datasets d ON d.id = b.dataset_id WHERE "
            "d.uuid = ?1 AND b.name = ?2)",
            {ToBlob(request.dataset.uuid), metastore::Blob{request.branch},
             ToMicros(deps.clock.Now())}));
      },
      metastore::Durability::kLazy);
}

}  // namespace

std::string_view JobName(Job job) { return kNames.at(static_cast<size_t>(job)); }

// The lease of one job while it runs. One owner thread.
class Upkeep::HeldLease {
 public:
  static Result<std::unique_ptr<HeldLease>> Take(const retention::RetentionDeps& deps, Job job,
                                                 const UpkeepOptions& options) {
    const std::string name = "dataset-upkeep-" + std::string(JobName(job));
    TARN_ASSIGN_OR_RETURN(
        std::optional<metastore::Lease> lease,
        InWrite(deps.database, metastore::Durability::kLazy, [&](SqlTransaction& sql) {
          return metastore::TryAcquireLease(sql, {.name = name,
                                                  .owner = options.owner,
                                                  .now = deps.clock.Now(),
                                                  .duration = options.lease});
        }));
    if (!lease) {
      return Status::Unavailable("another server is at the upkeep job " +
                                 std::string(JobName(job)) + "; its lease ends by itself")
          .WithReason("LeaseHeld");
    }
    return std::unique_ptr<HeldLease>(new HeldLease(deps, *std::move(lease), options.lease));
  }
  // Best effort: an unreleased lease expires.
  ~HeldLease() {
    const Status released = deps_.database.Write(
        [&](SqlTransaction& sql) { return metastore::ReleaseLease(sql, lease_); },
        metastore::Durability::kLazy);
    if (!released.ok()) {
      Log(LogLevel::kDebug, "dataset", "upkeep lease not given back: " + released.message());
    }
  }
  HeldLease(const HeldLease&) = delete;
  HeldLease& operator=(const HeldLease&) = delete;

  // Extends it when a third is over; false once it is lost.
  bool Keep() {
    if (MillisSince(renewed_) * 3 < duration_.count()) {
      return true;
    }
    Result<metastore::Lease> renewed =
        InWrite(deps_.database, metastore::Durability::kLazy, [&](SqlTransaction& sql) {
          return metastore::RenewLease(sql, lease_, deps_.clock.Now(), duration_);
        });
    if (!renewed.ok()) {
      return false;
    }
    lease_ = *std::move(renewed);
    renewed_ = std::chrono::steady_clock::now();
    return true;
  }

 private:
  HeldLease(const retention::RetentionDeps& deps, metastore::Lease lease,
            std::chrono::milliseconds duration)
      : deps_(deps),
        lease_(std::move(lease)),
        duration_(duration),
        renewed_(std::chrono::steady_clock::now()) {}

  const retention::RetentionDeps& deps_;
  metastore::Lease lease_;
  std::chrono::milliseconds duration_;
  SteadyTime renewed_;
};

Upkeep::Upkeep(const retention::RetentionDeps& deps, storage::ObjectStore& store,
               UpkeepOptions options)
    : deps_(deps), store_(store), options_(std::move(options)) {
  TARN_CHECK(!options_.owner.empty());
}

Upkeep::~Upkeep() { Stop(); }

void Upkeep::Start() {
  TARN_CHECK(!thread_.joinable());
  thread_ = std::thread([this] { Loop(); });
}

void Upkeep::Stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_.store(true, std::memory_order_relaxed);
  }
  wake_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

std::chrono::milliseconds Upkeep::Jittered(Job job) const {
  uint32_t random = 0;
  FillSecureRandom(reinterpret_cast<uint8_t*>(&random), sizeof random);
  const int64_t period = options_.periods[static_cast<size_t>(job)].count();
  const int64_t fifth = period / 5;
  return std::chrono::milliseconds(period - fifth + static_cast<int64_t>(random) % (2 * fifth + 1));
}

void Upkeep::Loop() {
  std::array<SteadyTime, kJobCount> due;
  for (size_t i = 0; i < kJobCount; ++i) {
    due[i] = std::chrono::steady_clock::now() + Jittered(static_cast<Job>(i));
  }
  std::unique_lock lock(mutex_);
  while (!stopping()) {
    const auto next = std::min_element(due.begin(), due.end());
    if (wake_.wait_until(lock, *next, [this] { return stopping(); })) {
      return;
    }
    const Job job = static_cast<Job>(next - due.begin());
    lock.unlock();
    const Result<int64_t> done = RunNow(job);
    if (!done.ok() && done.status().reason() != "LeaseHeld") {
      Log(LogLevel::kWarning, "dataset",
          "upkeep job " + std::string(JobName(job)) +
              " will be tried again: " + done.status().ToString());
    }
    *next = std::chrono::steady_clock::now() + Jittered(job);
    lock.lock();
  }
}

Result<int64_t> Upkeep::RunNow(Job job) {
  const auto index = static_cast<size_t>(job);
  JobCounters& counters = counters_[index];
  const std::scoped_lock one_at_a_time(running_[index]);
  const Result<std::unique_ptr<HeldLease>> lease = HeldLease::Take(deps_, job, options_);
  if (!lease.ok()) {
    counters.skipped += lease.status().reason() == "LeaseHeld" ? 1 : 0;
    return lease.status();
  }
  const SteadyTime begin = std::chrono::steady_clock::now();
  const Result<int64_t> done = Do(job, [this, &lease] { return stopping() || !(*lease)->Keep(); });
  counters.last_millis = MillisSince(begin);
  counters.runs += 1;
  counters.failures += done.ok() ? 0 : 1;
  counters.done += done.ok() ? *done : 0;
  return done;
}

Result<int64_t> Upkeep::Do(Job job, const std::function<bool()>& stop) {
  switch (job) {
    case Job::kCheckpoints:
      return WriteCheckpoints(stop);
    case Job::kPurge:
      return deps_.datasets.PurgeDeleted(options_.purged_rows_max);
    case Job::kIdle:
      return deps_.datasets.AbortIdleTransactions();
    case Job::kRetention: {
      retention::RunOptions options;
      options.stop = stop;
      TARN_ASSIGN_OR_RETURN(const retention::RetentionReport report,
                            retention::RunRetention(deps_, options));
      return report.marked + report.unmarked + report.files_removed;
    }
    case Job::kSweep: {
      retention::SweepOptions options = options_.sweep;
      options.stop = stop;
      TARN_ASSIGN_OR_RETURN(const retention::SweepReport report,
                            retention::RunSweep(deps_, store_, options));
      return report.removed;
    }
  }
  return Status::Internal("there is no such upkeep job");
}

Result<int64_t> Upkeep::WriteCheckpoints(const std::function<bool()>& stop) {
  TARN_ASSIGN_OR_RETURN(const std::vector<CheckpointRequest> requests,
                        deps_.datasets.ListCheckpointRequests(options_.checkpoints_max));
  int64_t written = 0;
  Status first_failure;
  for (const CheckpointRequest& request : requests) {
    if (stop()) {
      break;
    }
    const Result<CheckpointOutcome> outcome =
        deps_.datasets.WriteCheckpoint(request.dataset, request.branch);
    // One dataset's failure must not hold up the others; deleted ones are no failure.
    if (!outcome.ok() && outcome.status().code() != ErrorCode::kNotFound && first_failure.ok()) {
      first_failure = outcome.status().WithContext("checkpoint of branch " + request.branch +
                                                   " of dataset " + request.dataset.ToString());
    }
    if (outcome.ok() && *outcome == CheckpointOutcome::kPublished) {
      ++written;
    } else {
      TARN_RETURN_IF_ERROR(MoveToTheEnd(deps_, request));
    }
  }
  TARN_RETURN_IF_ERROR(first_failure);
  return written;
}

}  // namespace tarn::dataset::upkeep
