// Pipeline files as requests carry them: the YAML itself, or {"yaml", "variables"}.
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/query/resource_name.h"
#include "tarn/server/native/native_api.h"
#include "tarn/server/native/task_json.h"

namespace tarn::server::native {

namespace {

using nlohmann::json;

constexpr uint64_t kFileBytesMax = 4 << 20;

// Line and column of "line 7, column 3: …" as parameters of the failure.
Status WithPlace(const Status& failure) {
  int line = 0;
  int column = 0;
  const bool placed =
      std::sscanf(failure.message().c_str(), "line %d, column %d", &line, &column) == 2;
  return placed ? failure.WithReason("InvalidPipeline",
                                     json{{"line", line}, {"column", column}}.dump())
                : failure;
}

}  // namespace

Result<task::PipelineText> ReadPipelineText(RequestContext& context) {
  task::PipelineText text;
  const std::string_view type = context.http.headers.Find("Content-Type").value_or("");
  if (!type.starts_with("application/json")) {
    TARN_ASSIGN_OR_RETURN(text.yaml, http::ReadAll(*context.http.body, kFileBytesMax));
    return text;
  }
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context, 2 * kFileBytesMax));
  TARN_ASSIGN_OR_RETURN(text.yaml, RequiredText(body, "yaml"));
  const json variables = body.value("variables", json::object());
  if (!variables.is_object()) {
    return Status::InvalidArgument("variables must be an object of texts");
  }
  for (const auto& [name, value] : variables.items()) {
    if (!value.is_string()) {
      return Status::InvalidArgument(fmt::format("the variable {} must be a text", name));
    }
    text.variables[name] = value.get<std::string>();
  }
  return text;
}

Result<pipeline::PipelineSpec> ValidateText(NativeApi& api, const task::PipelineText& text) {
  Result<pipeline::PipelineSpec> spec = api.deps.control.Validate(text);
  return spec.ok() ? std::move(spec) : Result<pipeline::PipelineSpec>(WithPlace(spec.status()));
}

Status RequireApply(NativeApi& api, const RequestContext& context, const std::string& project) {
  return api.database().Read([&](metastore::SqlTransaction& sql) -> Status {
    const Result<tree::Node> node = query::FindProject(sql, project);
    if (!node.ok() && node.status().code() == ErrorCode::kNotFound) {
      return RequireAdmin(api, sql, context)
          .WithContext(fmt::format("make the project \"{}\"", project));
    }
    return RequireProject(api, sql, context, project, access::Role::kEditor);
  });
}

}  // namespace tarn::server::native
