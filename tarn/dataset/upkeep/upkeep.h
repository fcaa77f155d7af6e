// Upkeep: the work on datasets that nobody asks for. Checkpoints that reads asked for, rows of what
// was deleted or aborted, transactions left idle, retention and sweeping.
//
// One server at a time does each kind, under a lease. Losing the lease, stopping, a crash or a
// failure loses nothing: every job can be cut off anywhere and done again, here or elsewhere.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "tarn/base/clock.h"
#include "tarn/dataset/retention/sweep.h"

namespace tarn::dataset::upkeep {

enum class Job : uint8_t { kCheckpoints, kPurge, kIdle, kRetention, kSweep };
inline constexpr size_t kJobCount = 5;

/// "checkpoints", "purge", "idle", "retention", "sweep".
std::string_view JobName(Job job);

struct UpkeepOptions {
  std::string owner;  // Unique per process start; not empty.
  /// Between the end of a job and its next start, ± a fifth so that servers do not march in step.
  std::array<std::chrono::milliseconds, kJobCount> periods = {
      std::chrono::seconds(5), std::chrono::seconds(30), std::chrono::minutes(1),
      std::chrono::hours(1), std::chrono::hours(6)};
  std::chrono::milliseconds lease = std::chrono::minutes(2);
  int checkpoints_max = 20;          // Per run.
  int64_t purged_rows_max = 50'000;  // Per run.
  retention::SweepOptions sweep;
};

/// What a job did since the start. Read by metrics.
struct JobCounters {
  std::atomic<int64_t> runs{0};
  std::atomic<int64_t> failures{0};
  std::atomic<int64_t> skipped{0};      // Another server held the lease.
  std::atomic<int64_t> done{0};         // Checkpoints, rows, transactions, marks or objects.
  std::atomic<int64_t> last_millis{0};  // How long the last run took.
};

/// Threads: any; the jobs run on one thread of its own. Destruction stops and waits.
class Upkeep {
 public:
  Upkeep(const retention::RetentionDeps& deps, storage::ObjectStore& store, UpkeepOptions options);
  ~Upkeep();
  Upkeep(const Upkeep&) = delete;
  Upkeep& operator=(const Upkeep&) = delete;

  /// Starts the thread; the first runs come within a period each.
  void Start();
  /// Ends the running job at its next page and the thread; returns when both are over.
  void Stop();

  /// Runs one job now, on the caller's thread, if no other server does it. Returns what it did.
  /// Errors: kUnavailable (reason LeaseHeld) when another server is at it; those of the job.
  Result<int64_t> RunNow(Job job);

  [[nodiscard]] const JobCounters& counters(Job job) const {
    return counters_[static_cast<size_t>(job)];
  }

 private:
  class HeldLease;

  void Loop();
  Result<int64_t> Do(Job job, const std::function<bool()>& stop);
  Result<int64_t> WriteCheckpoints(const std::function<bool()>& stop);
  [[nodiscard]] std::chrono::milliseconds Jittered(Job job) const;
  [[nodiscard]] bool stopping() const { return stopping_.load(std::memory_order_relaxed); }

  const retention::RetentionDeps deps_;
  storage::ObjectStore& store_;
  const UpkeepOptions options_;
  std::array<JobCounters, kJobCount> counters_;
  std::array<std::mutex, kJobCount> running_;  // One run of a job in this process.
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace tarn::dataset::upkeep
