#include "tarn/task/pipeline_place.h"

#include <algorithm>

#include <arrow/api.h>
#include <fmt/format.h>

#include "tarn/lakehouse/target_table.h"
#include "tarn/landing/landing_schema.h"
#include "tarn/landing/landing_state.h"
#include "tarn/task/source_key.h"
#include "tarn/transform/mapping.h"
#include "tarn/tree/tree.h"

namespace tarn::task {

namespace {

using metastore::SqlTransaction;

// The project of a pipeline, made in space Default when it is missing.
Result<Rid> EnsureProject(SqlTransaction& sql, tree::Tree& tree, const std::string& name,
                          const std::string& by) {
  TARN_ASSIGN_OR_RETURN(const std::optional<Rid> known, FindProject(sql, name));
  if (known) {
    return *known;
  }
  TARN_ASSIGN_OR_RETURN(const tree::Node space, tree::GetByPath(sql, "/Default"));
  TARN_ASSIGN_OR_RETURN(const tree::Node project,
                        tree.Create(sql, {.rid = {},
                                          .parent = space.rid,
                                          .name = name,
                                          .type = tree::NodeType::kProject,
                                          .description = {},
                                          .by = by}));
  return project.rid;
}

Result<std::optional<dataset::DatasetRid>> FindDataset(SqlTransaction& sql, const Rid& folder,
                                                       const std::string& name) {
  std::optional<dataset::DatasetRid> rid;
  TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> node, tree::FindChild(sql, folder, name));
  if (!node) {
    return rid;
  }
  if (node->type != tree::NodeType::kDataset) {
    return Status::AlreadyExists(
        fmt::format("{} exists and is a {}, not a dataset", name, tree::NodeTypeName(node->type)));
  }
  TARN_ASSIGN_OR_RETURN(rid, dataset::DatasetRid::Parse(node->rid.ToString()));
  return rid;
}

Status InTrash(const std::string& path) {
  return Status::FailedPrecondition(fmt::format(
      "the dataset {} of this task is in the trash: restore it, or delete it for good to begin "
      "anew",
      path));
}

// A dataset of this name that was put into the trash is not silently followed by a new one, into
// which everything would land again.
Status RefuseTrashed(SqlTransaction& sql, const Rid& folder, const std::string& name) {
  tree::ChildrenRequest request{
      .parent = folder, .page_token = {}, .trashed = tree::Trashed::kInclude};
  do {
    TARN_ASSIGN_OR_RETURN(tree::ChildrenPage page, tree::ListChildren(sql, request));
    for (const tree::Node& node : page.nodes) {
      if (node.name == name && node.trashed && node.type == tree::NodeType::kDataset) {
        TARN_ASSIGN_OR_RETURN(const std::optional<landing::LandingState> state,
                              landing::ReadState(sql, node.rid.ToString()));
        if (state) {
          TARN_ASSIGN_OR_RETURN(const tree::LocatedNode located, tree::LocateNode(sql, node.rid));
          return InTrash(located.path);
        }
      }
    }
    request.page_token = std::move(page.next_page_token);
  } while (!request.page_token.empty());
  return Status::Ok();
}

Result<dataset::DatasetRid> EnsureDataset(SqlTransaction& sql, dataset::DatasetStore& datasets,
                                          const Rid& folder, const std::string& name,
                                          const std::string& by) {
  TARN_ASSIGN_OR_RETURN(const std::optional<dataset::DatasetRid> known,
                        FindDataset(sql, folder, name));
  if (known) {
    return *known;
  }
  TARN_RETURN_IF_ERROR(RefuseTrashed(sql, folder, name));
  TARN_ASSIGN_OR_RETURN(
      const dataset::Dataset made,
      datasets.CreateDataset(sql,
                             {.parent_folder = folder, .name = name, .base_uri = {}, .by = by}));
  return made.rid;
}

Result<std::optional<dataset::DatasetRid>> FindInSchema(SqlTransaction& sql, const Rid& project,
                                                        const std::string& schema,
                                                        const std::string& name) {
  TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> folder,
                        tree::FindChild(sql, project, schema));
  if (!folder) {
    return std::optional<dataset::DatasetRid>();
  }
  return FindDataset(sql, folder->rid, name);
}

Result<bool> HasTransactions(SqlTransaction& sql, dataset::DatasetStore& datasets,
                             const dataset::DatasetRid& dataset) {
  bool any = false;
  TARN_RETURN_IF_ERROR(datasets.VisitCommitted(
      sql, dataset, "master", [&](const dataset::Transaction&) -> Result<metastore::RowAction> {
        any = true;
        return metastore::RowAction::kStop;
      }));
  return any;
}

}  // namespace

std::vector<TransformInput> InputsOf(const pipeline::PipelineSpec& spec, const RunPlace& place,
                                     const pipeline::TransformSpec& transform) {
  std::vector<TransformInput> inputs;
  for (const std::string& from : transform.from) {
    const landing::LandingDatasets& datasets = place.datasets.at(from);
    inputs.push_back({.landing = spec.FindInput(from)->landing,
                      .dataset = datasets.landing,
                      .rejected = datasets.rejected});
  }
  return inputs;
}

Status CheckNotInTrash(SqlTransaction& sql, const dataset::DatasetRid& dataset) {
  TARN_ASSIGN_OR_RETURN(const Rid rid, Rid::Parse(dataset.ToString()));
  TARN_ASSIGN_OR_RETURN(const tree::LocatedNode located, tree::LocateNode(sql, rid));
  return located.trash_status == tree::TrashStatus::kNotTrashed ? Status::Ok()
                                                                : InTrash(located.path);
}

Result<std::optional<Rid>> FindProject(SqlTransaction& sql, const std::string& name) {
  const Result<tree::Node> known = tree::GetByPath(sql, "/Default/" + name);
  if (known.ok()) {
    return std::optional(known->rid);
  }
  return known.status().code() == ErrorCode::kNotFound ? Result<std::optional<Rid>>(std::nullopt)
                                                       : known.status();
}

Result<std::optional<dataset::DatasetRid>> FindLandingDataset(SqlTransaction& sql,
                                                              const Rid& project,
                                                              const landing::LandingSpec& landing) {
  return FindInSchema(sql, project, landing.schema, landing.name);
}

Result<RunPlace> EnsurePlace(SqlTransaction& sql, const ControlDeps& deps,
                             const pipeline::PipelineSpec& spec, const std::string& by) {
  tree::Tree& tree = deps.catalog.deps().tree;
  RunPlace place;
  place.by = by;
  TARN_ASSIGN_OR_RETURN(place.project, EnsureProject(sql, tree, spec.project, by));
  for (const landing::LandingSpec& landing : spec.landings) {
    TARN_ASSIGN_OR_RETURN(const tree::Node folder,
                          tree.EnsureFolder(sql, place.project, landing.schema, by));
    landing::LandingDatasets datasets;
    datasets.by = by;
    TARN_ASSIGN_OR_RETURN(datasets.landing,
                          EnsureDataset(sql, deps.datasets, folder.rid, landing.name, by));
    TARN_ASSIGN_OR_RETURN(datasets.rejected, EnsureDataset(sql, deps.datasets, folder.rid,
                                                           landing.rejected_name(), by));
    place.datasets[landing.name] = datasets;
  }
  for (const pipeline::TransformSpec& transform : spec.transforms) {
    for (const std::string& from : transform.from) {
      const std::optional<pipeline::LandingInput> input = spec.FindInput(from);
      if (input && !place.datasets.contains(from)) {
        TARN_ASSIGN_OR_RETURN(place.datasets[from],
                              EnsureTopicDataset(sql, deps, place, *input->task, from));
      }
    }
  }
  return place;
}

Result<RunPlace> MakePlace(const ControlDeps& deps, const pipeline::PipelineSpec& spec,
                           const std::string& by) {
  RunPlace place;
  TARN_RETURN_IF_ERROR(deps.database.Write([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(place, EnsurePlace(sql, deps, spec, by));
    return Status::Ok();
  }));
  return place;
}

Result<landing::LandingDatasets> EnsureTopicDataset(SqlTransaction& sql, const ControlDeps& deps,
                                                    const RunPlace& place,
                                                    const landing::LandingSpec& task,
                                                    const std::string& name) {
  tree::Tree& tree = deps.catalog.deps().tree;
  TARN_ASSIGN_OR_RETURN(const tree::Node folder,
                        tree.EnsureFolder(sql, place.project, task.schema, place.by));
  landing::LandingDatasets datasets = place.datasets.at(task.name);
  TARN_ASSIGN_OR_RETURN(datasets.landing,
                        EnsureDataset(sql, deps.datasets, folder.rid, name, place.by));
  return datasets;
}

Status CheckLandingDataset(const ControlDeps& deps, const std::optional<Rid>& project,
                           const landing::LandingSpec& landing) {
  if (!project) {
    return Status::Ok();
  }
  return deps.database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const std::optional<dataset::DatasetRid> dataset,
                          FindLandingDataset(sql, *project, landing));
    TARN_ASSIGN_OR_RETURN(const std::optional<dataset::DatasetRid> rejected,
                          FindInSchema(sql, *project, landing.schema, landing.rejected_name()));
    std::optional<landing::LandingState> state;
    if (dataset) {
      TARN_ASSIGN_OR_RETURN(state, landing::ReadState(sql, dataset->ToString()));
    }
    if (!state && rejected) {
      TARN_ASSIGN_OR_RETURN(const bool filled, HasTransactions(sql, deps.datasets, *rejected));
      if (filled) {
        return Status::AlreadyExists(fmt::format(
            "the dataset {}.{} is wanted for dead letters and holds files that no landing task "
            "wrote; use another name or schema",
            landing.schema, landing.rejected_name()));
      }
    }
    if (!dataset) {
      return Status::Ok();
    }
    if (state && state->source != landing.source_uri) {
      return Status::FailedPrecondition(fmt::format(
          "the dataset {}.{} lands another source: files of one name would be taken for each "
          "other; use another name or schema",
          landing.schema, landing.name));
    }
    TARN_ASSIGN_OR_RETURN(const bool filled, HasTransactions(sql, deps.datasets, *dataset));
    return state || !filled
               ? Status::Ok()
               : Status::AlreadyExists(fmt::format(
                     "the dataset {}.{} holds files that no landing task wrote; use another name "
                     "or schema",
                     landing.schema, landing.name));
  });
}

Status CheckOtherPipelines(const pipeline::PipelineSpec& spec,
                           const std::vector<pipeline::PipelineSpec>& others) {
  std::map<std::string, std::string> taken;
  for (const pipeline::PipelineSpec& other : others) {
    if (other.name == spec.name || other.project != spec.project) {
      continue;
    }
    for (const pipeline::ClaimedName& claim : pipeline::ListClaims(other)) {
      taken.emplace(claim.schema + "." + claim.name, other.name + ": " + claim.task);
    }
  }
  for (const pipeline::ClaimedName& claim : pipeline::ListClaims(spec)) {
    const auto found = taken.find(claim.schema + "." + claim.name);
    if (found != taken.end()) {
      return Status::AlreadyExists(
          fmt::format("{} needs the name {}.{}, which belongs to pipeline {}: use another schema "
                      "or prefix",
                      claim.task, claim.schema, claim.name, found->second));
    }
  }
  return Status::Ok();
}

Status CheckTarget(const ControlDeps& deps, const Rid& project,
                   const pipeline::TransformSpec& transform) {
  const lakehouse::TableSpec& table = transform.table;
  std::optional<catalog::CatalogObject> internal;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> folder,
                          tree::FindChild(sql, project, table.internal_schema));
    if (folder) {
      TARN_ASSIGN_OR_RETURN(internal, catalog::FindObject(sql, folder->rid, table.internal_name()));
    }
    return Status::Ok();
  }));
  if (internal && internal->kind == catalog::ObjectKind::kTable) {
    TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable loaded, deps.catalog.LoadTable(internal->rid));
    const auto owner = loaded.metadata->properties.find("tarn.owner");
    const std::string known = owner == loaded.metadata->properties.end() ? "" : owner->second;
    if (known != table.owner) {
      return Status::AlreadyExists(fmt::format(
          "table {}.{} belongs to {}: use another schema or prefix", table.internal_schema,
          table.internal_name(), known.empty() ? "no task of a pipeline" : "task " + known));
    }
  }
  return StatusOf(
      lakehouse::TargetTable::Open(table, {.project = project, .by = {}}, deps.catalog));
}

Status CheckMapping(const ControlDeps& deps, const std::optional<Rid>& project,
                    const pipeline::PipelineSpec& spec, const pipeline::TransformSpec& transform) {
  for (const std::string& from : transform.from) {
    const std::optional<pipeline::LandingInput> input = spec.FindInput(from);
    if (!project || !input) {
      continue;
    }
    const landing::LandingSpec* landing = &input->landing;
    format::ColumnSet columns;
    landing::SourceKeys keys;
    TARN_RETURN_IF_ERROR(deps.database.Read([&](SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(const std::optional<dataset::DatasetRid> dataset,
                            FindLandingDataset(sql, *project, *landing));
      if (dataset) {
        TARN_ASSIGN_OR_RETURN(columns, landing::ReadColumns(sql, dataset->ToString()));
        TARN_ASSIGN_OR_RETURN(keys, landing::ReadKeys(sql, dataset->ToString()));
      }
      return Status::Ok();
    }));
    const std::vector<format::Field> fields = landing::LandingFields(*landing, columns);
    const bool untyped = std::any_of(fields.begin(), fields.end(), [](const format::Field& field) {
      return field.type.detail == format::FieldDetail::kUntyped;
    });
    if (columns.columns.empty() || untyped) {
      continue;  // What may still come is not known.
    }
    transform::MappingSpec mapping = transform.mapping;
    if (TakesSourceKey(mapping)) {
      TARN_ASSIGN_OR_RETURN(mapping.key, SourceKeyOf(keys, mapping));
    }
    TARN_ASSIGN_OR_RETURN(const std::unique_ptr<engine::Session> session,
                          deps.engine.OpenSession());
    TARN_RETURN_IF_ERROR(
        transform::CompileMapping(*session, mapping, *format::ToArrowSchema(fields)));
  }
  return Status::Ok();
}

}  // namespace tarn::task
