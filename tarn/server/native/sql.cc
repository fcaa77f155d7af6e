// POST /tarn/v1/sql.
#include <stop_token>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/query/result_format.h"
#include "tarn/query/stoppable_sql.h"
#include "tarn/server/native/native_api.h"

namespace tarn::server::native {

namespace {

using nlohmann::json;
using query::ResultFormat;

// By Accept; JSON where anything will do.
Result<ResultFormat> FormatOf(const http::Headers& headers) {
  const std::string_view accept = headers.Find("Accept").value_or("*/*");
  if (accept.find("application/vnd.apache.arrow.stream") != std::string_view::npos) {
    return ResultFormat::kArrow;
  }
  if (accept.find("text/csv") != std::string_view::npos) {
    return ResultFormat::kCsv;
  }
  if (accept.find("application/json") != std::string_view::npos ||
      accept.find("*/*") != std::string_view::npos ||
      accept.find("application/*") != std::string_view::npos || accept.empty()) {
    return ResultFormat::kJson;
  }
  return Status::InvalidArgument(
             fmt::format("Accept: {}: rows come as application/json, text/csv or "
                         "application/vnd.apache.arrow.stream",
                         accept))
      .WithReason("NotAcceptable");
}

Result<query::QueryRequest> ReadRequest(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  query::QueryRequest request;
  TARN_ASSIGN_OR_RETURN(request.sql, RequiredText(body, "query"));
  TARN_ASSIGN_OR_RETURN(request.at, TextMember(body, "at"));
  TARN_ASSIGN_OR_RETURN(const std::string branch, TextMember(body, "branch"));
  TARN_ASSIGN_OR_RETURN(const std::string project, TextMember(body, "project"));
  if (!branch.empty()) {
    request.branch = branch;
  }
  if (!project.empty()) {
    request.project = project;
  }
  return request;
}

Result<http::Response> RunQuery(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const ResultFormat format, FormatOf(context.http.headers));
  TARN_ASSIGN_OR_RETURN(const query::QueryRequest request, ReadRequest(context));
  TARN_ASSIGN_OR_RETURN(
      std::unique_ptr<query::RunningQuery> started,
      query::RunStoppableSql(request, context.principal, api.deps.query, context.http.stop));
  const std::shared_ptr<query::RunningQuery> query = std::move(started);
  http::Response response;
  response.headers.Set("Content-Type", std::string(query::MediaTypeOf(format)));
  response.producer = [query, format, stop = context.http.stop](http::BodySink& sink) {
    const std::stop_callback interrupt(stop, [&query] { query->Interrupt(); });
    return query::WriteResult(*query, format,
                              [&sink](std::string_view bytes) { return sink.Write(bytes); });
  };
  return response;
}

Result<http::Response> ChangeRows(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const query::QueryRequest request, ReadRequest(context));
  TARN_ASSIGN_OR_RETURN(
      const query::ChangeResult result,
      query::RunStoppableChange(request, context.principal, api.deps.query, context.http.stop));
  return JsonResponse({{"changedRows", result.changed_rows},
                       {"snapshotId", result.snapshot_id ? json(*result.snapshot_id) : json()}});
}

// An answer that breaks off cannot say why: its client asks here.
Result<http::Response> GetFailure(NativeApi& api, RequestContext& context) {
  const std::string& request = context.Path("requestId");
  const std::optional<Status> failure =
      api.failed_answers->Find(request, context.principal.user_id);
  if (!failure) {
    return Status::NotFound(
               fmt::format(
                   "this server knows of no answer to request {} of yours that it broke off",
                   request))
        .WithReason("FailureNotFound");
  }
  return *failure;
}

constexpr NativeRoute kRoutes[] = {
    {.method = "GET",
     .pattern = "/failures/{requestId}",
     .scope = access::Scope::kSqlQueriesExecute,
     .handler = &GetFailure,
     .summary = "Why an answer was broken off after its first bytes, by its X-Request-Id: answers "
                "as the failure itself would have been."},
    {.method = "POST",
     .pattern = "/sql:change",
     .scope = access::Scope::kIcebergWrite,
     .handler = &ChangeRows,
     .summary = "Runs one DELETE, UPDATE, INSERT or MERGE on an Iceberg table of no pipeline, "
                "CREATE TABLE AS, CREATE SCHEMA, or DROP TABLE, VIEW or SCHEMA: {query, project?}.",
     .request = "application/json"},
    {.method = "POST",
     .pattern = "/sql",
     .scope = access::Scope::kSqlQueriesExecute,
     .handler = &RunQuery,
     .summary = "Runs one SELECT over tables, views and datasets: {query, project?, branch?, at?}. "
                "Rows as application/json, text/csv or application/vnd.apache.arrow.stream.",
     .request = "application/json",
     .effect = RouteEffect::kReadOnly},
};

}  // namespace

std::span<const NativeRoute> SqlRoutes() { return kRoutes; }

}  // namespace tarn::server::native
