// /tarn/v1/landing: what a landing task would read, and its dead letters once more.
#include <arrow/api.h>
#include <nlohmann/json.hpp>

#include "tarn/server/native/native_api.h"
#include "tarn/server/native/row_response.h"
#include "tarn/server/native/task_json.h"

namespace tarn::server::native {

namespace {

using nlohmann::json;

Result<http::Response> PreviewFiles(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const task::PipelineText text, ReadPipelineText(context));
  TARN_ASSIGN_OR_RETURN(const pipeline::PipelineSpec spec, ValidateText(api, text));
  TARN_RETURN_IF_ERROR(RequireApply(api, context, spec.project));
  TARN_ASSIGN_OR_RETURN(
      const std::vector<task::PreviewedFile> files,
      api.deps.control.PreviewFiles(text, context.query.Find("landing").value_or("")));
  json included = json::array();
  json excluded = json::array();
  for (const task::PreviewedFile& file : files) {
    if (file.excluded_because.empty()) {
      included.push_back({{"landing", file.landing},
                          {"path", file.path},
                          {"size", file.size_bytes},
                          {"date", file.date ? json(FormatTimestamp(*file.date)) : json()}});
    } else {
      excluded.push_back(
          {{"landing", file.landing}, {"path", file.path}, {"reason", file.excluded_because}});
    }
  }
  return JsonResponse({{"included", std::move(included)}, {"excluded", std::move(excluded)}});
}

Result<http::Response> SampleRows(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const task::PipelineText text, ReadPipelineText(context));
  TARN_ASSIGN_OR_RETURN(const pipeline::PipelineSpec spec, ValidateText(api, text));
  TARN_RETURN_IF_ERROR(RequireApply(api, context, spec.project));
  TARN_ASSIGN_OR_RETURN(const int64_t rows, RowsAsked(context, "rows"));
  TARN_ASSIGN_OR_RETURN(
      std::shared_ptr<arrow::RecordBatch> batch,
      api.deps.control.SampleRows(text, context.query.Find("landing").value_or(""), rows));
  return RowsResponse(context, std::move(batch));
}

Result<http::Response> ReplayRejected(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const task::PipelineText text, ReadPipelineText(context));
  TARN_ASSIGN_OR_RETURN(const pipeline::PipelineSpec spec, ValidateText(api, text));
  TARN_RETURN_IF_ERROR(RequireApply(api, context, spec.project));
  TARN_ASSIGN_OR_RETURN(
      const task::ReplayReport report,
      api.deps.control.ReplayRejected(text, context.query.Find("landing").value_or("")));
  return JsonResponse({{"name", spec.name},
                       {"replayed", report.replayed},
                       {"rows", report.rows},
                       {"rejected", report.rejected},
                       {"ofTransforms", report.of_transforms},
                       {"withoutRecord", report.without_record}});
}

constexpr NativeRoute kRoutes[] = {
    {.method = "POST",
     .pattern = "/landing:replayRejected",
     .scope = access::Scope::kPipelinesWrite,
     .handler = &ReplayRejected,
     .summary = "Takes the dead letters of the landing tasks of an applied file in once more: "
                "{replayed, rows, rejected, ofTransforms, withoutRecord}.",
     .query = "landing",
     .request = "application/yaml",
     .audit = "landing.replay"},
    {.method = "POST",
     .pattern = "/landing:preview",
     .scope = access::Scope::kPipelinesRead,
     .handler = &PreviewFiles,
     .summary = "The files that a run of the file would read, and why not the others: {included: "
                "[{path, size, date, landing}], excluded: [{path, reason, landing}]}.",
     .query = "landing",
     .request = "application/yaml",
     .effect = RouteEffect::kReadOnly},
    {.method = "POST",
     .pattern = "/landing:sample",
     .scope = access::Scope::kPipelinesRead,
     .handler = &SampleRows,
     .summary = "The first rows of the source as they would land, as application/json (an array "
                "of objects) or text/csv.",
     .query = "landing rows",
     .request = "application/yaml",
     .effect = RouteEffect::kReadOnly},
};

}  // namespace

std::span<const NativeRoute> LandingRoutes() { return kRoutes; }

}  // namespace tarn::server::native
