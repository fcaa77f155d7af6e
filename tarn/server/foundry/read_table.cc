#include <algorithm>

#include <nlohmann/json.hpp>

#include "tarn/base/json_text.h"
#include "tarn/dataset/errors.h"
#include "tarn/query/read_dataset.h"
#include "tarn/query/result_format.h"
#include "tarn/server/foundry/buffered_rows.h"
#include "tarn/server/foundry/file_access.h"
#include "tarn/server/foundry/foundry_api.h"

namespace tarn::server::foundry {

using dataset::DatasetRid;
using nlohmann::json;

namespace {

Result<query::ResultFormat> FormatOf(const RequestContext& context) {
  const std::string text = context.query.Find("format").value_or("");
  if (text == "ARROW") {
    return query::ResultFormat::kArrow;
  }
  if (text == "CSV") {
    return query::ResultFormat::kCsv;
  }
  return Status::InvalidArgument("query parameter format: ARROW or CSV is needed, found " +
                                 JsonString(text))
      .WithReason("InvalidParameter", JsonObject({{"parameter", "format"}, {"found", text}}));
}

/// The repeated key, or once a JSON list.
Result<std::vector<std::string>> ColumnsOf(const RequestContext& context) {
  std::vector<std::string> columns = context.query.FindAll("columns");
  if (columns.size() != 1 || !columns[0].starts_with('[')) {
    return columns;
  }
  const json list = json::parse(columns[0], nullptr, false);
  return TextList(json{{"columns", list.is_array() ? list : json(columns)}}, "columns");
}

Result<std::optional<int64_t>> RowLimitOf(const RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const std::optional<int64_t> limit, QueryInt(context, "rowLimit"));
  if (limit && *limit < 0) {
    return Status::InvalidArgument("rowLimit must not be negative")
        .WithReason("InvalidParameter",
                    JsonObject({{"parameter", "rowLimit"}, {"found", std::to_string(*limit)}}));
  }
  return limit;
}

/// Where a view has no schema, in the words that this operation declares.
Status RequireSchema(const FoundryDeps& deps, const DatasetRid& rid,
                     const dataset::ViewSelector& selector) {
  bool is_view = false;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(is_view, query::IsUnionView(sql, rid));
    return Status::Ok();
  }));
  if (is_view) {
    return Status::Ok();  // Its datasets have the schemas.
  }
  const Result<dataset::StoredSchema> stored =
      deps.datasets.GetSchema(rid, {.branch = selector.branch, .end = selector.end, .version = {}});
  if (stored.status().reason() != "DatasetViewNotFound") {
    return StatusOf(stored);
  }
  return Status::NotFound("branch " + JsonString(selector.branch) + " of " + rid.ToString() +
                          " has no transaction yet, so it has no schema")
      .WithReason("SchemaNotFound",
                  JsonObject({{"datasetRid", rid.ToString()}, {"branchName", selector.branch}}));
}

/// Whatever is wrong with the files is a failed read; what is wrong with the request stays.
Status AsReadError(const Status& status, const DatasetRid& rid) {
  const ErrorCode code = status.code();
  if (status.ok() || code == ErrorCode::kNotFound || code == ErrorCode::kPermissionDenied ||
      code == ErrorCode::kCancelled || code == ErrorCode::kUnavailable ||
      code == ErrorCode::kResourceExhausted || status.reason() == "ColumnNotFound") {
    return status;
  }
  return Status::Internal(status.message())
      .WithReason("ReadTableError",
                  JsonObject({{"datasetRid", rid.ToString()}, {"message", status.message()}}));
}

Result<http::Response> ReadTable(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_ASSIGN_OR_RETURN(const dataset::ViewSelector selector,
                        AuthorizeTableRead(deps, context, rid,
                                           {.name = "ReadTableDatasetPermissionDenied",
                                            .parameters = {{"datasetRid", rid.ToString()}}}));
  TARN_ASSIGN_OR_RETURN(const query::ResultFormat format, FormatOf(context));
  query::ReadRequest request;
  TARN_ASSIGN_OR_RETURN(request.columns, ColumnsOf(context));
  TARN_ASSIGN_OR_RETURN(request.row_limit, RowLimitOf(context));
  request.memory_watch = deps.memory_watch;
  request.stop = context.http.stop;
  TARN_RETURN_IF_ERROR(RequireSchema(deps, rid, selector));
  request.relation = {.name = {},
                      .written = rid.ToString(),
                      .dataset = rid,
                      .branch = selector.branch,
                      .point = {},
                      .start = selector.start};
  if (selector.end) {
    request.relation.point = *selector.end;
  }
  Result<std::unique_ptr<query::RunningQuery>> rows =
      query::ReadDataset(request, context.principal, deps.engine,
                         {deps.database, deps.authorizer, deps.datasets, deps.store});
  if (rows.status().code() == ErrorCode::kPermissionDenied) {
    return Denied({.name = "ReadTableDatasetPermissionDenied",
                   .parameters = {{"datasetRid", rid.ToString()}}},
                  rows.status());
  }
  if (!rows.ok()) {
    return AsReadError(rows.status(), rid);
  }
  return RowsResponse(std::move(rows).value(), format, context,
                      [rid](const Status& status) { return AsReadError(status, rid); });
}

constexpr FoundryRoute kRoutes[] = {
    {"GET", "/datasets/{datasetRid}/readTable", access::Scope::kDatasetsRead, ReadTable},
};

}  // namespace

std::span<const FoundryRoute> ReadTableRoutes() { return kRoutes; }

}  // namespace tarn::server::foundry
