// PipelineTurn: which of the servers of one metastore runs the pipelines.
//
// The holder of the lease "pipelines" runs all that is wanted; the others serve everything else and
// say who it is. It renews the lease every two seconds; when it stops, it gives the lease up, and
// when it dies or is cut off, another server takes it ten seconds later and goes on. The leases of
// tasks, whose epochs every commit checks, keep out what an old holder still tries.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"
#include "tarn/metastore/database.h"
#include "tarn/metastore/lease.h"
#include "tarn/task/control.h"

namespace tarn {

/// "http://HOST:PORT" by which others reach a server that listens on `host`: of one that listens on
/// every address, the name of the machine.
std::string AddressFor(const std::string& host, int port);

/// Threads: CheckRequest and CheckHolder from any, the rest from one.
class PipelineTurn {
 public:
  /// `address` is what other servers say to their clients; `id` is unique per process. All
  /// references outlive this.
  PipelineTurn(metastore::Database& database, task::Control& control, const Clock& clock,
               const std::string& address, const std::string& id);
  ~PipelineTurn();
  PipelineTurn(const PipelineTurn&) = delete;
  PipelineTurn& operator=(const PipelineTurn&) = delete;

  /// Tries once, then goes on in a thread. Errors: those of the metastore, and of Control::Resume,
  /// that do not pass.
  Status Start();
  /// Ends the pipelines if they run here, and lets another server have them.
  void Stop();
  /// For ControlDeps::may_run. Threads: any. Errors: kFailedPrecondition, reason LeaseLost, unless
  /// this server runs the pipelines.
  Status CheckHolder(metastore::SqlTransaction& sql);
  /// Errors: kUnavailable naming the holder when only it can answer the request.
  Status CheckRequest(std::string_view method, std::string_view target);

 private:
  void Loop();
  Status Try();
  void Renew();
  void GiveUp();

  metastore::Database& database_;
  task::Control& control_;
  const Clock& clock_;
  const std::string owner_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;                  // Guarded by mutex_, as the next.
  std::optional<metastore::Lease> lease_;  // Changed by one thread at a time.
  std::thread thread_;
};

}  // namespace tarn
