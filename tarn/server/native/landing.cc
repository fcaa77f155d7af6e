// /tarn/v1/landing: what a landing task would read.
#include <arrow/api.h>
#include <nlohmann/json.hpp>

#include "tarn/query/result_format.h"
#include "tarn/server/native/native_api.h"
#include "tarn/server/native/task_json.h"

namespace tarn::server::native {

namespace {

using nlohmann::json;

constexpr int64_t kSampleRows = 20;
constexpr int64_t kSampleRowsMax = 10'000;

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

// One batch as the rows of a query.
class OneBatch final : public query::RunningQuery {
 public:
  explicit OneBatch(std::shared_ptr<arrow::RecordBatch> batch)
      : schema_(batch->schema()), batch_(std::move(batch)) {}
  [[nodiscard]] const std::shared_ptr<arrow::Schema>& schema() const override { return schema_; }
  Result<std::shared_ptr<arrow::RecordBatch>> Next() override {
    return std::exchange(batch_, nullptr);
  }
  void Interrupt() override {}

 private:
  const std::shared_ptr<arrow::Schema> schema_;
  std::shared_ptr<arrow::RecordBatch> batch_;
};

Result<http::Response> SampleRows(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const task::PipelineText text, ReadPipelineText(context));
  TARN_ASSIGN_OR_RETURN(const pipeline::PipelineSpec spec, ValidateText(api, text));
  TARN_RETURN_IF_ERROR(RequireApply(api, context, spec.project));
  TARN_ASSIGN_OR_RETURN(const std::optional<int64_t> asked, QueryInt(context, "rows"));
  const int64_t rows = asked.value_or(kSampleRows);
  if (rows < 1 || rows > kSampleRowsMax) {
    return Status::InvalidArgument("rows must be 1 to 10000, found " + std::to_string(rows));
  }
  TARN_ASSIGN_OR_RETURN(
      std::shared_ptr<arrow::RecordBatch> batch,
      api.deps.control.SampleRows(text, context.query.Find("landing").value_or(""), rows));
  const std::string_view accept = context.http.headers.Find("Accept").value_or("");
  const query::ResultFormat format = accept.find("text/csv") != std::string_view::npos
                                         ? query::ResultFormat::kCsv
                                         : query::ResultFormat::kJson;
  http::Response response;
  response.headers.Set("Content-Type", std::string(query::MediaTypeOf(format)));
  if (batch == nullptr) {
    response.body = format == query::ResultFormat::kCsv ? "" : "[]";
    return response;
  }
  OneBatch sample(std::move(batch));
  TARN_RETURN_IF_ERROR(query::WriteResult(sample, format, [&](std::string_view bytes) {
    response.body += bytes;
    return Status::Ok();
  }));
  return response;
}

constexpr NativeRoute kRoutes[] = {
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
