// Control: pipelines as users see them: apply, start, stop, run once, status.
//
// Runs every task of a started pipeline on a thread of its own. What is running is remembered in
// the metastore, so that it goes on after a restart; a task in ERROR keeps its message until it is
// started again.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/memory_budget.h"
#include "tarn/base/status.h"
#include "tarn/catalog/catalog.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/engine/engine.h"
#include "tarn/pipeline/pipeline_spec.h"
#include "tarn/task/task_status.h"

namespace tarn::task {

struct ControlDeps {
  metastore::Database& database;
  dataset::DatasetStore& datasets;
  catalog::Catalog& catalog;
  engine::Engine& engine;
  MemoryBudget& budget;
  /// True when `uri` may be read by file sources.
  std::function<bool(std::string_view uri)> is_source_allowed;
};

class PipelineRun;

/// Resource. Threads: any.
class Control {
 public:
  explicit Control(ControlDeps deps);
  /// Stops all tasks and waits for them.
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  /// Starts the pipelines that were running when the server ended.
  Status Resume();
  /// Stops all tasks; they are running again after Resume.
  void Shutdown();

  /// Validates and stores a pipeline file; a running pipeline goes on with the new one.
  /// Errors: kInvalidArgument with line and column; kPermissionDenied for a source that is not
  /// allowed; kAlreadyExists when a name it needs belongs to something else.
  Result<StoredPipeline> ApplyPipeline(std::string_view yaml, std::string_view by);
  /// What applying the file would change, for people.
  Result<std::vector<std::string>> PlanPipeline(std::string_view yaml);
  Result<std::vector<StoredPipeline>> ListPipelines();
  Result<StoredPipeline> GetPipeline(std::string_view name);
  /// Stops and forgets it. Datasets and tables stay.
  Status DeletePipeline(std::string_view name);

  /// Makes the datasets of a pipeline. Errors: kAlreadyExists.
  Status Prepare(std::string_view pipeline);
  Status Start(std::string_view pipeline);
  /// Waits until its tasks have stopped. With `at_stop` set, tables are applied first.
  Status Stop(std::string_view pipeline);
  /// Drains the sources, appends everything landed, applies every merge task, and returns. Tasks
  /// are STOPPED afterwards unless the pipeline was running before.
  /// Errors: the first failure of a task, naming it.
  Status RunOnce(std::string_view pipeline);
  /// Applies the unapplied changes of one transform task.
  Status ApplyTask(std::string_view pipeline, std::string_view task);
  /// All tasks of all pipelines.
  Result<std::vector<TaskStatus>> ReadStatus();

 private:
  Result<pipeline::PipelineSpec> Parse(std::string_view yaml) const;
  Result<std::shared_ptr<PipelineRun>> Open(const StoredPipeline& stored);
  std::shared_ptr<PipelineRun> TakeRun(std::string_view pipeline);
  std::shared_ptr<std::mutex> TurnOf(std::string_view pipeline);
  /// The caller has the pipeline's turn.
  Status StartLocked(const StoredPipeline& stored);

  ControlDeps deps_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<PipelineRun>, std::less<>> runs_;  // Guarded by mutex_.
  std::map<std::string, std::shared_ptr<std::mutex>, std::less<>> turns_;  // Likewise.
};

}  // namespace tarn::task
