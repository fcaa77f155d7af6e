// The first rows of one transform as its mapping makes them. Changes nothing. Only for control.cc.
#pragma once

#include <cstdint>
#include <optional>

#include "tarn/base/status.h"
#include "tarn/pipeline/pipeline_spec.h"
#include "tarn/task/control.h"

namespace tarn::task {

/// Maps the oldest landed rows, input by input, until there are `rows_max` good ones or 5,000 rows
/// were looked at. Types are those of the mapping: a table that is there may hold wider ones.
/// Errors: kFailedPrecondition when nothing has landed; those of CompileMapping.
Result<MappedRows> PreviewTransform(const ControlDeps& deps, const std::optional<Rid>& project,
                                    const pipeline::PipelineSpec& spec,
                                    const pipeline::TransformSpec& transform, int64_t rows_max);

}  // namespace tarn::task
