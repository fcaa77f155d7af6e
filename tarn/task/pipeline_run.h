// PipelineRun: the threads of one started pipeline. Only for control.cc.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tarn/landing/landing_task.h"
#include "tarn/task/control.h"
#include "tarn/task/task_status.h"
#include "tarn/task/transform_task.h"

namespace tarn::task {

enum class RunMode : uint8_t {
  kFollow,  // Until it is stopped.
  kOnce,    // Until everything there is has landed and is applied.
};

/// What a run needs besides its specification.
struct RunPlace {
  Rid project;
  std::string by;
  std::map<std::string, landing::LandingDatasets> datasets;  // By landing task.
};

/// Start once, then Wait; RequestStop from any thread.
class PipelineRun {
 public:
  PipelineRun(pipeline::PipelineSpec spec, RunPlace place, RunMode mode, const ControlDeps& deps);
  ~PipelineRun();
  PipelineRun(const PipelineRun&) = delete;
  PipelineRun& operator=(const PipelineRun&) = delete;

  void Start();
  void RequestStop();
  /// Waits for all threads; the first failure, naming its task.
  Status Wait();
  [[nodiscard]] const pipeline::PipelineSpec& spec() const { return spec_; }

 private:
  struct Reporter;  // The status of one task on its way to the metastore.

  void RunLanding(const landing::LandingSpec& spec);
  void RunTransform(const pipeline::TransformSpec& spec);
  Status FollowLanding(const landing::LandingSpec& spec, Reporter& reporter);
  Status FollowTransform(const pipeline::TransformSpec& spec, Reporter& reporter);
  Result<bool> StepTransform(TransformTask& task, Reporter& reporter);
  /// Runs `follow` again after failures that pass by themselves.
  void Supervise(Reporter& reporter, const std::function<Status()>& follow);
  Result<metastore::SqlFunction> TakeLease(const std::string& task);
  void NotifyLanded();
  void WaitForLanded(uint64_t seen, std::chrono::milliseconds at_most);
  bool WaitForStop(std::chrono::milliseconds at_most);
  void Fail(const Status& status);

  const pipeline::PipelineSpec spec_;
  const RunPlace place_;
  const RunMode mode_;
  const ControlDeps& deps_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;    // Guarded by mutex_, as all below.
  uint64_t landed_ = 0;  // Grows with every landing commit.
  size_t landings_running_ = 0;
  Status first_failure_;
  std::vector<landing::LandingTask*> open_landings_;
  std::vector<TransformTask*> open_transforms_;
};

}  // namespace tarn::task
