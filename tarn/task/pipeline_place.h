// Where the things of a pipeline live in the tree, and what stands in their way. Only for this
// room.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/dataset/dataset_store.h"
#include "tarn/landing/landing_task.h"
#include "tarn/metastore/database.h"
#include "tarn/pipeline/pipeline_spec.h"
#include "tarn/task/control.h"
#include "tarn/task/transform_task.h"

namespace tarn::task {

/// What a run needs besides its specification.
struct RunPlace {
  Rid project;
  std::string by;
  /// By landing task, and by dataset of a topic that a transform reads.
  std::map<std::string, landing::LandingDatasets> datasets;
};

/// Makes the project, the schemas and the datasets of a pipeline where they are missing.
/// Errors: kAlreadyExists when something else has the name; kFailedPrecondition when a dataset that
/// a task landed into is in the trash.
Result<RunPlace> EnsurePlace(metastore::SqlTransaction& sql, const ControlDeps& deps,
                             const pipeline::PipelineSpec& spec, const std::string& by);
/// The same in a SQL transaction of its own.
Result<RunPlace> MakePlace(const ControlDeps& deps, const pipeline::PipelineSpec& spec,
                           const std::string& by);

/// Makes the dataset of a topic, in the schema of its task, where it is missing; dead letters are
/// the task's. Errors: as EnsurePlace.
Result<landing::LandingDatasets> EnsureTopicDataset(metastore::SqlTransaction& sql,
                                                    const ControlDeps& deps, const RunPlace& place,
                                                    const landing::LandingSpec& task,
                                                    const std::string& name);

/// What a transform reads, of a place that has all its datasets.
std::vector<TransformInput> InputsOf(const pipeline::PipelineSpec& spec, const RunPlace& place,
                                     const pipeline::TransformSpec& transform);

/// kFailedPrecondition when a dataset is in the trash, itself or with a folder: nothing may land
/// there. Belongs into the SQL transaction of each commit.
Status CheckNotInTrash(metastore::SqlTransaction& sql, const dataset::DatasetRid& dataset);

/// The project, when it is there.
Result<std::optional<Rid>> FindProject(metastore::SqlTransaction& sql, const std::string& name);
/// The landing dataset of a task, when it is there. Errors: kAlreadyExists when something else has
/// its name.
Result<std::optional<dataset::DatasetRid>> FindLandingDataset(metastore::SqlTransaction& sql,
                                                              const Rid& project,
                                                              const landing::LandingSpec& landing);

/// A landing dataset that lands another source, or that holds what no landing task wrote, cannot
/// be used: kFailedPrecondition, kAlreadyExists. `project` may be missing.
Status CheckLandingDataset(const ControlDeps& deps, const std::optional<Rid>& project,
                           const landing::LandingSpec& landing);
/// kAlreadyExists when a task of one of `others` needs a name that `spec` needs, too.
Status CheckOtherPipelines(const pipeline::PipelineSpec& spec,
                           const std::vector<pipeline::PipelineSpec>& others);
/// What stands in the way of the target table: errors of TargetTable::Open; kAlreadyExists when it
/// belongs to another task.
Status CheckTarget(const ControlDeps& deps, const Rid& project,
                   const pipeline::TransformSpec& transform);
/// Compiles the mapping of a transform against the columns that its inputs have landed so far;
/// without any, nothing is known. Errors: those of CompileMapping.
Status CheckMapping(const ControlDeps& deps, const std::optional<Rid>& project,
                    const pipeline::PipelineSpec& spec, const pipeline::TransformSpec& transform);

}  // namespace tarn::task
