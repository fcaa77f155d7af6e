// What the routes of pipelines and tasks share.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "tarn/server/native/native_api.h"
#include "tarn/task/task_status.h"

namespace tarn::server::native {

/// The members of `tarn status`, and counts and warnings.
nlohmann::json TaskToJson(const task::TaskStatus& task);

/// True when the caller may view the project (which may be gone: then administrators only).
Result<bool> MaySee(NativeApi& api, const RequestContext& context, const std::string& project);

/// The pipeline, on whose project the caller has `role`. Errors: kNotFound, also for pipelines of
/// projects that the caller may not see; kPermissionDenied.
Result<task::StoredPipeline> FindPipeline(NativeApi& api, const RequestContext& context,
                                          const std::string& name, access::Role role);

}  // namespace tarn::server::native
