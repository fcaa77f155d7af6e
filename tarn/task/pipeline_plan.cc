#include "tarn/task/pipeline_plan.h"

#include <map>

#include <fmt/format.h>

#include "tarn/task/pipeline_place.h"

namespace tarn::task {

namespace {

using Texts = std::map<std::string, std::string>;

// One plan under way.
struct Planner {
  const ControlDeps& deps;
  const PlanRequest& request;
  std::optional<Rid> project;
  Texts before;  // Of the tasks of the pipeline as it is.
  Texts after;
  std::vector<PlannedChange> changes{};

  [[nodiscard]] std::string NameOf(const std::string& task) const {
    return request.spec.name + "." + task;
  }
  // "create", "change" or "keep".
  [[nodiscard]] std::string ChangeOf(const std::string& key) const {
    const auto known = before.find(key);
    if (known == before.end()) {
      return "create";
    }
    return known->second == after.at(key) ? "keep" : "change";
  }
  // A change, or the first of `checks` that stands in its way.
  void Add(PlannedChange change, const std::vector<Status>& checks) {
    for (const Status& check : checks) {
      if (!check.ok() && !change.refused) {
        change.refused = true;
        change.effect = "refused: " + check.message();
      }
    }
    changes.push_back(std::move(change));
  }
  void PlanLanding(const landing::LandingSpec& landing);
  void PlanTransform(const pipeline::TransformSpec& transform);
  void PlanRemovals();
};

void Planner::PlanLanding(const landing::LandingSpec& landing) {
  PlannedChange change{.object = NameOf(landing.name),
                       .change = ChangeOf("landing." + landing.name)};
  if (change.change == "create") {
    change.effect = fmt::format("lands in the datasets {}.{} and {}.{}", landing.schema,
                                landing.name, landing.schema, landing.rejected_name());
    for (const auto& [key, text] : before) {
      if (key.starts_with("landing.") && !after.contains(key)) {
        change.effect += fmt::format(
            "; it has no positions yet, so what {} has landed is landed again", key.substr(8));
      }
    }
  } else if (change.change == "change") {
    change.effect = "holds for what lands from now on";
  }
  Add(std::move(change), {CheckLandingDataset(deps, project, landing)});
}

void Planner::PlanTransform(const pipeline::TransformSpec& transform) {
  const lakehouse::TableSpec& table = transform.table;
  PlannedChange change{.object = NameOf(transform.name),
                       .change = ChangeOf("transform." + transform.name)};
  if (change.change == "create") {
    change.effect = fmt::format("makes the table {}.{} and the view {}.{} with the first rows",
                                table.internal_schema, table.internal_name(), table.external_schema,
                                table.name);
  } else if (change.change == "change") {
    const bool merge = table.mode == lakehouse::Mode::kMerge;
    change.effect = fmt::format("holds for future rows only; task {} evaluates all again",
                                merge ? "reload" : "recreate");
  }
  const Status target = project ? CheckTarget(deps, *project, transform) : Status::Ok();
  const bool names_recreate = target.message().find("task recreate") != std::string::npos;
  const Status remade =
      target.code() == ErrorCode::kFailedPrecondition && !names_recreate
          ? Status::FailedPrecondition(
                fmt::format("{}, or `tarn task recreate {}`", target.message(), change.object))
          : target;
  Add(std::move(change), {remade, CheckMapping(deps, project, request.spec, transform)});
}

void Planner::PlanRemovals() {
  for (const auto& [key, text] : before) {
    if (!after.contains(key)) {
      const std::string task = key.substr(key.find('.') + 1);
      Add({.object = NameOf(task),
           .change = "remove",
           .effect = "the task is forgotten; its datasets, tables and views stay"},
          {});
    }
  }
}

}  // namespace

Result<std::vector<PlannedChange>> PlanPipeline(const ControlDeps& deps,
                                                const PlanRequest& request) {
  Planner planner{.deps = deps, .request = request, .project = {}, .before = {}, .after = {}};
  TARN_ASSIGN_OR_RETURN(planner.after, pipeline::DescribeTasks(request.yaml));
  if (request.before) {
    TARN_ASSIGN_OR_RETURN(planner.before, pipeline::DescribeTasks(request.before->yaml));
  }
  TARN_RETURN_IF_ERROR(deps.database.Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(planner.project, FindProject(sql, request.spec.project));
    return Status::Ok();
  }));
  PlannedChange pipeline{.object = request.spec.name, .change = "keep"};
  if (!request.before) {
    pipeline.change = "create";
    pipeline.effect =
        fmt::format("{} project {}", planner.project ? "in" : "makes the", request.spec.project);
  }
  planner.Add(std::move(pipeline), {CheckOtherPipelines(request.spec, request.others)});
  for (const landing::LandingSpec& landing : request.spec.landings) {
    planner.PlanLanding(landing);
  }
  for (const pipeline::TransformSpec& transform : request.spec.transforms) {
    planner.PlanTransform(transform);
  }
  planner.PlanRemovals();
  return std::move(planner.changes);
}

}  // namespace tarn::task
