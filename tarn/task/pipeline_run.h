// PipelineRun: the threads of one started pipeline, one per task. Only for control.cc.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tarn/landing/landing_task.h"
#include "tarn/task/control.h"
#include "tarn/task/pipeline_place.h"
#include "tarn/task/source_watch.h"
#include "tarn/task/task_reporter.h"
#include "tarn/task/transform_task.h"

namespace tarn::task {

enum class RunMode : uint8_t {
  kFollow,  // Until it is stopped.
  kOnce,    // Until everything there is has landed and is applied.
};

/// What is said where another server has taken the pipelines over.
Status RunsElsewhere();

/// Start, StopTask, IsRunning and Wait by one thread at a time; RequestStop by any.
class PipelineRun {
 public:
  PipelineRun(pipeline::PipelineSpec spec, RunPlace place, RunMode mode,
              pipeline::Variables variables, const ControlDeps& deps);
  /// Stops what runs.
  ~PipelineRun();
  PipelineRun(const PipelineRun&) = delete;
  PipelineRun& operator=(const PipelineRun&) = delete;

  /// Starts those of the tasks that do not run; names that the pipeline lacks are passed over.
  /// `patient`: they ran before, so a source that is not there may come back.
  void Start(const std::vector<std::string>& tasks, bool patient);
  [[nodiscard]] bool IsRunning(const std::string& task);
  /// Stops one task at its next commit and waits for it. Not running: nothing.
  void StopTask(const std::string& task);
  /// Stops all at their next commit.
  void RequestStop();
  /// True once RequestStop was called.
  [[nodiscard]] bool was_stopped();
  /// Waits for all threads; the first failure.
  RunOutcome Wait();
  [[nodiscard]] const pipeline::PipelineSpec& spec() const { return spec_; }

 private:
  struct TaskRun;  // One task: its thread and what can be cancelled.

  void RunLanding(const landing::LandingSpec& spec, TaskRun& run);
  void RunTransform(const pipeline::TransformSpec& spec, TaskRun& run);
  /// True when another server runs what this one ran when it failed with `status`, if it did.
  [[nodiscard]] bool WasTaken(const Status& status);
  Status FollowLanding(const landing::LandingSpec& spec, TaskRun& run, TaskReporter& reporter);
  Status StepLanding(const landing::LandingSpec& spec, TaskRun& run, landing::LandingTask& task,
                     TaskReporter& reporter);
  Status WaitForPoll(TaskRun& run, const SourceWatch& watch, std::chrono::milliseconds poll);
  Status FollowTransform(const pipeline::TransformSpec& spec, TaskRun& run, TaskReporter& reporter);
  Result<bool> StepTransform(const pipeline::TransformSpec& spec, TaskRun& run, TransformTask& task,
                             TaskReporter& reporter);
  /// Runs `follow` again after failures that pass by themselves.
  void Supervise(TaskRun& run, TaskReporter& reporter, const std::function<Status()>& follow);
  Result<metastore::SqlFunction> TakeLease(TaskReporter& reporter);  // Its statuses need it, too.
  void NoteLanded(const std::string& landing, const landing::LandingProgress& progress);
  void NoteBehind(const std::string& landing, bool behind);
  Sources SourcesOf(const pipeline::TransformSpec& spec);
  void ReadLandedTimes();
  std::optional<Timestamp> LandedUntil(const pipeline::TransformSpec& spec);
  void WaitForLanded(TaskRun& run, uint64_t seen, std::chrono::milliseconds at_most);
  bool WaitForStop(TaskRun& run, std::chrono::milliseconds at_most);
  [[nodiscard]] bool IsStopping(const TaskRun& run) const;  // The caller has mutex_.
  TaskReporter::Deps ReporterDeps() const;

  const pipeline::PipelineSpec spec_;
  const RunPlace place_;
  const RunMode mode_;
  const pipeline::Variables variables_;
  const ControlDeps& deps_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::unique_ptr<TaskRun>> tasks_;  // Guarded by mutex_, as all below.
  bool stop_ = false;
  uint64_t landed_ = 0;  // Grows with every landing commit.
  size_t landings_running_ = 0;
  std::map<std::string, Timestamp> landed_until_;  // Newest source time by landing task.
  std::set<std::string> behind_;                   // Landing tasks whose sources hold much more.
  RunOutcome first_failure_;
};

}  // namespace tarn::task
