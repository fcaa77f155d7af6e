// Work of Control on one task beside its run: apply, reload, recreate, dead letters.
#include <fmt/format.h>

#include "tarn/base/log.h"
#include "tarn/lakehouse/target_table.h"
#include "tarn/task/control.h"
#include "tarn/task/pipeline_place.h"
#include "tarn/task/pipeline_run.h"
#include "tarn/task/replay_rejected.h"
#include "tarn/task/table_reload.h"
#include "tarn/task/target_removal.h"
#include "tarn/task/task_lease.h"
#include "tarn/task/task_reporter.h"
#include "tarn/task/transform_failure.h"

namespace tarn::task {

namespace {

using metastore::SqlTransaction;

// Adds rows that dead letters gave to the numbers of a landing task.
Status CountReplayed(SqlTransaction& sql, const std::string& pipeline, const std::string& task,
                     const ReplayReport& done) {
  TARN_ASSIGN_OR_RETURN(const std::vector<TaskStatus> known, ReadTaskStatuses(sql, pipeline));
  for (TaskStatus status : known) {
    if (status.task == task) {
      status.totals.rows_out += done.rows;
      status.totals.counts["replayed"] += done.replayed;
      TARN_RETURN_IF_ERROR(WriteTaskTotals(sql, status));
    }
  }
  return Status::Ok();
}

}  // namespace

Result<ReplayReport> Control::ReplayRejected(const PipelineText& text, std::string_view landing) {
  TARN_ASSIGN_OR_RETURN(const pipeline::PipelineSpec sent, Validate(text));
  const std::shared_ptr<std::mutex> turn = TurnOf(sent.name);
  const std::lock_guard lock(*turn);
  TARN_ASSIGN_OR_RETURN(const StoredPipeline stored, GetPipeline(sent.name));
  if (stored.yaml != text.yaml) {
    return Status::FailedPrecondition(
        fmt::format("the file is not the one that pipeline {} has: apply it first", sent.name));
  }
  TARN_ASSIGN_OR_RETURN(const pipeline::PipelineSpec spec, Parse(stored));
  if (!landing.empty() && spec.FindLanding(landing) == nullptr) {
    return Status::NotFound(fmt::format("the file has no landing task {}", landing));
  }
  TARN_ASSIGN_OR_RETURN(const RunPlace place, MakePlace(deps_, spec, stored.by));
  ReplayReport report;
  for (const landing::LandingSpec& one : spec.landings) {
    if (!landing.empty() && one.name != landing) {
      continue;
    }
    const Status replayed = WithoutTask(stored, one.name, [&]() -> Status {
      const std::string name = stored.name + "." + one.name;
      TARN_ASSIGN_OR_RETURN(
          const metastore::SqlFunction fence,
          TakeTaskLease(deps_.database, name, deps_.catalog.deps().clock.Now(), deps_.may_run));
      const auto commit = [&](SqlTransaction& sql, const ReplayReport& done) -> Status {
        TARN_RETURN_IF_ERROR(fence(sql));
        return CountReplayed(sql, stored.name, one.name, done);
      };
      TARN_ASSIGN_OR_RETURN(
          const ReplayReport done,
          task::ReplayRejected(deps_, {one, place.datasets.at(one.name), commit}));
      report = Sum(report, done);
      return Status::Ok();
    });
    TARN_RETURN_IF_ERROR(replayed.WithContext("landing " + one.name));
  }
  return report;
}

Status Control::WithoutTask(const StoredPipeline& stored, std::string_view task,
                            const std::function<Status()>& work) {
  const std::shared_ptr<PipelineRun> run = FindRun(stored.name);
  const bool running = run != nullptr && run->IsRunning(std::string(task));
  if (running) {
    run->StopTask(std::string(task));
  }
  const Status worked = work();
  if (running) {
    const Status started = StartLocked(stored, {std::string(task)}, /*patient=*/true);
    return worked.ok() ? started : worked;
  }
  return worked;
}

Status Control::ApplyTask(std::string_view pipeline, std::string_view task) {
  const std::shared_ptr<std::mutex> turn = TurnOf(pipeline);
  const std::lock_guard lock(*turn);
  TARN_ASSIGN_OR_RETURN(const StoredPipeline stored, GetPipeline(pipeline));
  TARN_ASSIGN_OR_RETURN(const pipeline::PipelineSpec spec, Parse(stored));
  TARN_ASSIGN_OR_RETURN(const pipeline::TransformSpec* transform, FindTransform(spec, task));
  return WithoutTask(stored, task, [&]() -> Status {
    TARN_ASSIGN_OR_RETURN(const RunPlace place, MakePlace(deps_, spec, stored.by));
    TARN_ASSIGN_OR_RETURN(
        const std::unique_ptr<lakehouse::TargetTable> table,
        lakehouse::TargetTable::Open(transform->table, {.project = place.project, .by = place.by},
                                     deps_.catalog));
    if (!table->exists()) {
      return Status::Ok();  // Nothing has been appended.
    }
    const Timestamp now = deps_.catalog.deps().clock.Now();
    TARN_ASSIGN_OR_RETURN(
        const metastore::SqlFunction fence,
        TakeTaskLease(deps_.database, stored.name + "." + transform->name, now, deps_.may_run));
    const pipeline::Variables variables = VariablesOf(stored.variables);
    const TaskReporter reporter(stored.name, transform->name, TaskKind::kTransform,
                                {deps_.database, deps_.catalog.deps().clock, variables});
    TARN_ASSIGN_OR_RETURN(
        const std::optional<lakehouse::CommittedApply> applied,
        table->Apply(now, [&](SqlTransaction& sql, const lakehouse::ApplyCounts& done) -> Status {
          TARN_RETURN_IF_ERROR(fence(sql));
          TransformCounts counted;
          counted.applies = 1;
          counted.noop_deletes = done.noop_deletes;
          return reporter.OnCommit(sql, counted);
        }));
    TARN_ASSIGN_OR_RETURN(const lakehouse::UnappliedWork left, table->ReadUnapplied());
    return deps_.database.Write([&](SqlTransaction& sql) -> Status {
      TARN_RETURN_IF_ERROR(fence(sql));
      TARN_ASSIGN_OR_RETURN(const std::vector<TaskStatus> known, ReadTaskStatuses(sql, pipeline));
      for (TaskStatus status : known) {
        if (status.task == task) {
          status.unapplied = left.rows;
          if (applied) {
            status.last_apply = now;
          }
          TARN_RETURN_IF_ERROR(WriteTaskStatus(sql, status));
        }
      }
      return Status::Ok();
    });
  });
}

Status Control::RunReload(std::string_view pipeline, std::string_view task,
                          const std::function<Status(const std::stop_token&)>& reload) {
  std::stop_token stop;
  {
    const std::lock_guard lock(mutex_);
    if (closing_) {
      return Status::Unavailable("the server is stopping: try again when it is back");
    }
    const Reload& running =
        reloads_.insert_or_assign(std::string(pipeline), Reload{.task = std::string(task)})
            .first->second;
    stop = running.stop.get_token();
  }
  const Status done = reload(stop);
  {
    const std::lock_guard lock(mutex_);
    reloads_.erase(reloads_.find(pipeline));
  }
  if (done.code() != ErrorCode::kCancelled) {
    return done;
  }
  TARN_RETURN_IF_ERROR(RequireOpen());
  return Status(ErrorCode::kCancelled,
                fmt::format("the reload of {}.{} was stopped before its end: the table is as it "
                            "was but for what landed before",
                            pipeline, task));
}

Status Control::ReloadTask(std::string_view pipeline, std::string_view task,
                           const ReloadOptions& options) {
  const ReloadRange range{.from = options.from, .to = options.to};
  ReloadType wanted =
      range.whole() ? ReloadType::kCompareAndApply : ReloadType::kCompareAndApplyWithoutDeletes;
  if (!options.type.empty()) {
    TARN_ASSIGN_OR_RETURN(wanted, ParseReloadType(options.type));
  }
  const std::shared_ptr<std::mutex> turn = TurnOf(pipeline);
  const std::lock_guard lock(*turn);
  TARN_ASSIGN_OR_RETURN(const StoredPipeline stored, GetPipeline(pipeline));
  TARN_ASSIGN_OR_RETURN(const pipeline::PipelineSpec spec, Parse(stored));
  TARN_ASSIGN_OR_RETURN(const pipeline::TransformSpec* transform, FindTransform(spec, task));
  return WithoutTask(stored, task, [&]() -> Status {
    TARN_ASSIGN_OR_RETURN(const RunPlace place, MakePlace(deps_, spec, stored.by));
    const std::string name = stored.name + "." + transform->name;
    const Timestamp now = deps_.catalog.deps().clock.Now();
    TARN_ASSIGN_OR_RETURN(metastore::SqlFunction fence,
                          TakeTaskLease(deps_.database, name, now, deps_.may_run));
    const pipeline::Variables variables = VariablesOf(stored.variables);
    const TaskReporter reporter(stored.name, transform->name, TaskKind::kTransform,
                                {deps_.database, deps_.catalog.deps().clock, variables});
    Result<ReloadCounts> done = ReloadCounts();
    TARN_RETURN_IF_ERROR(
        RunReload(stored.name, transform->name, [&](const std::stop_token& stop) -> Status {
          done = ReloadTable(
              {.spec = *transform,
               .inputs = InputsOf(spec, place, *transform),
               .place = {.project = place.project, .by = place.by},
               .type = wanted,
               .range = range,
               .stop = stop},
              {deps_.database, deps_.datasets, deps_.catalog, deps_.engine, std::move(fence),
               [&](SqlTransaction& sql, const TransformCounts& counted) {
                 return reporter.OnCommit(sql, counted);
               }});
          return OfTransform(transform->name, done.status());
        }));
    Log(LogLevel::kNotice, "task",
        fmt::format("{}: reloaded: {} rows inserted, {} updated, {} deleted, {} loaded", name,
                    done->inserted, done->updated, done->deleted, done->loaded));
    return Status::Ok();
  });
}

Status Control::RecreateTask(std::string_view pipeline, std::string_view task) {
  const std::shared_ptr<std::mutex> turn = TurnOf(pipeline);
  const std::lock_guard lock(*turn);
  TARN_ASSIGN_OR_RETURN(const StoredPipeline stored, GetPipeline(pipeline));
  TARN_ASSIGN_OR_RETURN(const pipeline::PipelineSpec spec, Parse(stored));
  TARN_ASSIGN_OR_RETURN(const pipeline::TransformSpec* transform, FindTransform(spec, task));
  return WithoutTask(stored, task, [&]() -> Status {
    TARN_RETURN_IF_ERROR(deps_.database.Write([&](SqlTransaction& sql) -> Status {
      // An attempt that was given up can make nothing of the old table any more.
      TARN_RETURN_IF_ERROR(TakeTaskLease(sql, stored.name + "." + transform->name,
                                         deps_.catalog.deps().clock.Now(), deps_.may_run));
      TARN_ASSIGN_OR_RETURN(const std::optional<Rid> project, FindProject(sql, spec.project));
      if (project) {
        TARN_RETURN_IF_ERROR(
            RemoveTarget(sql, deps_.catalog, *project, transform->table, stored.by));
      }
      TARN_ASSIGN_OR_RETURN(const std::vector<TaskStatus> known, ReadTaskStatuses(sql, pipeline));
      for (const TaskStatus& status : known) {
        if (status.task == task) {
          TARN_RETURN_IF_ERROR(WriteTaskStatus(sql, {.pipeline = status.pipeline,
                                                     .task = status.task,
                                                     .kind = status.kind,
                                                     .state = TaskState::kStopped}));
        }
      }
      return Status::Ok();
    }));
    const Result<int64_t> purged = deps_.catalog.FinishPurges();
    (void)purged;  // What failed is logged and stays due.
    return Status::Ok();
  });
}

}  // namespace tarn::task
