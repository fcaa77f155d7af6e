// Control: pipelines as users see them: apply, start, stop, run once, status.
//
// Runs every task of a started pipeline on a thread of its own. Which tasks are wanted is
// remembered in the metastore, so that they go on after a restart; a task in ERROR keeps its
// message until it is started again.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/type_fwd.h>

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
  /// Variables of the server's environment that pipeline files may use (secrets.allow).
  pipeline::Variables secrets{};
  /// True when reading `uri` would read files of the server itself, which no rule may allow.
  std::function<bool(std::string_view uri)> is_source_own{};
  /// Of several servers with one metastore: fails with the reason LeaseLost unless this one runs
  /// the pipelines. Empty: there is no other.
  metastore::SqlFunction may_run{};
};

class PipelineRun;

/// A pipeline file and the values that its sender has for `${NAME}`.
struct PipelineText {
  std::string yaml;
  pipeline::Variables variables{};
};

/// One line of a plan.
struct PlannedChange {
  std::string object;  // The pipeline, or PIPELINE.TASK.
  std::string change;  // "create", "change", "keep" or "remove".
  std::string effect{};
  bool refused = false;  // `effect` says why.
};

/// How a run ended.
struct RunOutcome {
  Status status{};
  std::string task{};  // PIPELINE.TASK of the first failure; empty when no task is to blame.
};

/// A file that a landing task would read, or why it would not.
struct PreviewedFile {
  std::string landing;
  std::string path;
  uint64_t size_bytes = 0;
  std::optional<Timestamp> date{};
  std::string excluded_because{};
};

/// Rows as the mapping of a transform makes them.
struct MappedRows {
  std::shared_ptr<arrow::RecordBatch> rows{};  // Null: it made none.
  int64_t rejected = 0;                        // Among those looked at.
  std::string first_rejection{};               // "CODE: text".
};

/// How a table is reloaded.
struct ReloadOptions {
  std::string
      type{};  // As in pipeline files; empty = compare_and_apply, of a range without deletes.
  std::string from{};  // First and last landing transaction, both included; empty = all.
  std::string to{};
};

/// What became of dead letters that were taken in once more.
struct ReplayReport {
  int64_t replayed = 0;        // Landed, or left out by the filters of the file.
  int64_t rows = 0;            // That they gave.
  int64_t rejected = 0;        // Still not to be taken.
  int64_t of_transforms = 0;   // Left alone: their rows have landed.
  int64_t without_record = 0;  // Left alone: whole files, messages without value.
  friend bool operator==(const ReplayReport&, const ReplayReport&) = default;
};
ReplayReport Sum(const ReplayReport& a, const ReplayReport& b);

/// Resource. Threads: any.
class Control {
 public:
  explicit Control(ControlDeps deps);
  /// Stops all tasks and waits for them.
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  /// Starts the tasks that were wanted when the server ended. One that cannot be started is in
  /// ERROR. Errors: those of the metastore that may pass, after some attempts: call again.
  Status Resume();
  /// Stops all tasks, those of RunOnce too, at their next commit, and reloads before it, and starts
  /// no others; they are running again after Resume, reloads are not.
  void Shutdown();

  /// Checks a file. Errors: kInvalidArgument with line and column, or with the key of an
  /// expression that cannot be read; kPermissionDenied for a source
  /// that is not allowed or has to do with the server's own files.
  Result<pipeline::PipelineSpec> Validate(const PipelineText& text) const;
  /// Validates and stores a pipeline file; a running pipeline goes on with the new one.
  /// Errors: as Validate; kAlreadyExists when a name it needs belongs to something else;
  /// kFailedPrecondition when a dataset lands another source.
  Result<StoredPipeline> ApplyPipeline(const PipelineText& text, std::string_view by);
  /// What applying the file would do, and what stands in its way.
  Result<std::vector<PlannedChange>> PlanPipeline(const PipelineText& text);
  Result<std::vector<StoredPipeline>> ListPipelines();
  Result<StoredPipeline> GetPipeline(std::string_view name);
  /// Stops and forgets it. Datasets and tables stay.
  Status DeletePipeline(std::string_view name);

  /// Files of one landing task of the file (of all that read files when `landing` is empty).
  /// Errors: kInvalidArgument for a task over topics.
  Result<std::vector<PreviewedFile>> PreviewFiles(const PipelineText& text,
                                                  std::string_view landing);
  /// The first rows of one landing task as they would land; null when there are none.
  Result<std::shared_ptr<arrow::RecordBatch>> SampleRows(const PipelineText& text,
                                                         std::string_view landing,
                                                         int64_t rows_max);

  /// Takes the dead letters of one landing task (of all when `landing` is empty) in once more, as
  /// the file has it, which must be the one that was applied. Errors: kNotFound;
  /// kFailedPrecondition for another file; those of ReplayRejected.
  Result<ReplayReport> ReplayRejected(const PipelineText& text, std::string_view landing);

  /// Makes the datasets of a pipeline, and checks its targets and, where columns are known, its
  /// mappings. Errors: kAlreadyExists; kFailedPrecondition for a table that was made otherwise;
  /// kInvalidArgument for a mapping.
  Status Prepare(std::string_view pipeline);
  /// Starts all tasks that do not run.
  Status Start(std::string_view pipeline);
  /// Waits until its tasks have stopped, also those of a RunOnce and reloads. With `at_stop` set,
  /// tables are applied first.
  Status Stop(std::string_view pipeline);
  /// The same for one task. Errors: kNotFound.
  Status StartTask(std::string_view pipeline, std::string_view task);
  Status StopTask(std::string_view pipeline, std::string_view task);
  /// Drains the sources, appends everything landed, applies every merge task, and returns. Tasks
  /// are STOPPED afterwards unless they were running before. Errors: the first failure of a task;
  /// kUnavailable when Shutdown came before the end, kCancelled when Stop did.
  RunOutcome RunOnce(std::string_view pipeline);
  /// Applies the unapplied changes of one transform task.
  Status ApplyTask(std::string_view pipeline, std::string_view task);
  /// Compares the table of one transform task with what has landed, mapped as the file has it now,
  /// and makes it equal in one commit; see ReloadOptions.
  /// Errors: kNotFound; kInvalidArgument for the type; kFailedPrecondition in append mode;
  /// kUnavailable when Shutdown came before the end, kCancelled when Stop or StopTask did: the
  /// table is as it was but for what was taken in and applied.
  Status ReloadTask(std::string_view pipeline, std::string_view task, const ReloadOptions& options);
  /// Drops the table and the views of one transform task; it makes them again from everything that
  /// has landed. Errors: kNotFound; kAlreadyExists when they belong to another task.
  Status RecreateTask(std::string_view pipeline, std::string_view task);
  /// The first landed rows as the mapping of one transform task makes them. Errors: kNotFound;
  /// kFailedPrecondition when nothing has landed; those of the mapping.
  Result<MappedRows> PreviewTask(std::string_view pipeline, std::string_view task,
                                 int64_t rows_max);
  /// All tasks of all pipelines, with the lag of transforms as it is now.
  Result<std::vector<TaskStatus>> ReadStatus();

 private:
  using TaskNames = std::vector<std::string>;

  [[nodiscard]] pipeline::Variables VariablesOf(const pipeline::Variables& sent) const;
  Result<pipeline::PipelineSpec> Parse(const StoredPipeline& stored) const;
  Result<std::vector<pipeline::PipelineSpec>> ParseOthers(std::string_view name);
  Result<const pipeline::TransformSpec*> FindTransform(const pipeline::PipelineSpec& spec,
                                                       std::string_view task) const;
  Status StoreApplied(const pipeline::PipelineSpec& spec, StoredPipeline& stored);
  Result<TaskNames> ListWanted(std::string_view pipeline);
  Result<std::shared_ptr<PipelineRun>> Open(const StoredPipeline& stored, bool once);
  std::shared_ptr<PipelineRun> FindRun(std::string_view pipeline);
  std::shared_ptr<PipelineRun> TakeRun(std::string_view pipeline);
  std::shared_ptr<std::mutex> TurnOf(std::string_view pipeline);
  /// The callers of what follows have the pipeline's turn.
  Status StartLocked(const StoredPipeline& stored, const TaskNames& tasks, bool patient);
  /// Stops one task, calls `work`, and starts the task again if it was running.
  Status WithoutTask(const StoredPipeline& stored, std::string_view task,
                     const std::function<Status()>& work);
  Status RequireOpen();
  Status ResumeWanted();
  Status RequireHere(metastore::SqlTransaction& sql) const;
  void StopOnce(std::string_view pipeline);
  /// A reload of one task of the pipeline, of any when `task` is empty.
  void StopReload(std::string_view pipeline, std::string_view task);
  /// Calls `reload` with what stops it.
  Status RunReload(std::string_view pipeline, std::string_view task,
                   const std::function<Status(const std::stop_token&)>& reload);

  ControlDeps deps_;
  std::mutex mutex_;
  bool closing_ = false;  // Guarded by mutex_, as all below.
  std::map<std::string, std::shared_ptr<PipelineRun>, std::less<>> runs_;
  std::map<std::string, std::shared_ptr<PipelineRun>, std::less<>> once_;  // Of RunOnce.
  struct Reload {
    std::string task;
    std::stop_source stop;
  };
  std::map<std::string, Reload, std::less<>> reloads_;  // By pipeline, whose turn it has.
  std::map<std::string, std::shared_ptr<std::mutex>, std::less<>> turns_;
};

}  // namespace tarn::task
