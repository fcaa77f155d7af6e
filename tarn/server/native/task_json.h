// What the routes of pipelines and tasks share.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "tarn/server/native/native_api.h"
#include "tarn/task/control.h"

namespace tarn::server::native {

/// The members of `tarn status`, and counts and warnings.
nlohmann::json TaskToJson(const task::TaskStatus& task, Timestamp now);

/// The pipeline file of a request. Errors: kInvalidArgument.
Result<task::PipelineText> ReadPipelineText(RequestContext& context);
/// Errors: as Control::Validate, with line and column as parameters.
Result<pipeline::PipelineSpec> ValidateText(NativeApi& api, const task::PipelineText& text);
/// May the caller apply a pipeline there? A project that is missing will be made.
Status RequireApply(NativeApi& api, const RequestContext& context, const std::string& project);

/// True when the caller may view the project (which may be gone: then administrators only).
Result<bool> MaySee(NativeApi& api, const RequestContext& context, const std::string& project);

/// The pipeline, on whose project the caller has `role`. Errors: kNotFound, also for pipelines of
/// projects that the caller may not see; kPermissionDenied.
Result<task::StoredPipeline> FindPipeline(NativeApi& api, const RequestContext& context,
                                          const std::string& name, access::Role role);

}  // namespace tarn::server::native
