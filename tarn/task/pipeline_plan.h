// PipelinePlan: what applying a pipeline file would do, object by object, and what stands in its
// way. Changes nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/pipeline/pipeline_spec.h"
#include "tarn/task/control.h"
#include "tarn/task/task_status.h"

namespace tarn::task {

struct PlanRequest {
  std::string_view yaml;
  const pipeline::PipelineSpec& spec;  // Of `yaml`.
  std::optional<StoredPipeline> before;
  std::vector<pipeline::PipelineSpec> others;  // All other pipelines.
};

/// The pipeline, its landing tasks, its transforms, then the tasks that would go.
Result<std::vector<PlannedChange>> PlanPipeline(const ControlDeps& deps,
                                                const PlanRequest& request);

}  // namespace tarn::task
