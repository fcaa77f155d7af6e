#include <nlohmann/json.hpp>

#include "tarn/base/json_text.h"
#include "tarn/dataset/errors.h"
#include "tarn/server/foundry/foundry_api.h"

namespace tarn::server::foundry {

using dataset::DatasetRid;
using nlohmann::json;

namespace {

constexpr size_t kBatchMax = 1000;

json SchemaJson(const dataset::StoredSchema& stored) {
  return {{"branchName", stored.branch},
          {"endTransactionRid", stored.end_transaction.ToString()},
          {"schema", json::parse(stored.schema.json)},
          {"versionId", stored.version.ToString()}};
}

/// Selects the schema that the three texts name.
Result<dataset::GetSchemaOptions> SchemaOptions(const DatasetRid& dataset,
                                                const std::optional<std::string>& branch,
                                                const std::optional<std::string>& end,
                                                const std::optional<std::string>& version) {
  dataset::GetSchemaOptions options;
  if (branch) {
    TARN_RETURN_IF_ERROR(dataset::CheckBranchName(*branch));
    options.branch = *branch;
  }
  if (end) {
    TARN_ASSIGN_OR_RETURN(options.end, TransactionOf(dataset, *end));
  }
  if (version) {
    const Result<Uuid> parsed = Uuid::Parse(*version);
    if (!parsed.ok()) {
      return Status::InvalidArgument("versionId: " + parsed.status().message())
          .WithReason("InvalidParameter",
                      JsonObject({{"parameter", "versionId"}, {"found", *version}}));
    }
    options.version = *parsed;
  }
  return options;
}

Result<http::Response> GetSchema(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_RETURN_IF_ERROR(RequireViewer(deps, context, rid,
                                     {.name = "GetDatasetSchemaPermissionDenied",
                                      .parameters = {{"datasetRid", rid.ToString()}}}));
  TARN_ASSIGN_OR_RETURN(
      const dataset::GetSchemaOptions options,
      SchemaOptions(rid, context.query.Find("branchName"), context.query.Find("endTransactionRid"),
                    context.query.Find("versionId")));
  TARN_ASSIGN_OR_RETURN(const dataset::StoredSchema stored, deps.datasets.GetSchema(rid, options));
  return JsonResponse(SchemaJson(stored));
}

/// One entry of a batch; empty where the dataset or its schema is missing or hidden.
Result<std::optional<json>> GetOneOfBatch(const FoundryDeps& deps, const RequestContext& context,
                                          const json& entry, const DatasetRid& rid) {
  const Status visible = RequireViewer(
      deps, context, rid,
      {.name = "GetDatasetSchemaPermissionDenied", .parameters = {{"datasetRid", rid.ToString()}}});
  if (visible.code() == ErrorCode::kNotFound || visible.code() == ErrorCode::kPermissionDenied) {
    return std::optional<json>();
  }
  TARN_RETURN_IF_ERROR(visible);
  TARN_ASSIGN_OR_RETURN(const auto branch, OptionalText(entry, "branchName"));
  TARN_ASSIGN_OR_RETURN(const auto end, OptionalText(entry, "endTransactionRid"));
  TARN_ASSIGN_OR_RETURN(const auto version, OptionalText(entry, "versionId"));
  const Result<dataset::GetSchemaOptions> options = SchemaOptions(rid, branch, end, version);
  if (!options.ok()) {
    return options.status().code() == ErrorCode::kNotFound
               ? Result<std::optional<json>>(std::optional<json>())
               : Result<std::optional<json>>(options.status());
  }
  const Result<dataset::StoredSchema> stored = deps.datasets.GetSchema(rid, *options);
  if (stored.status().code() == ErrorCode::kNotFound) {
    return std::optional<json>();
  }
  TARN_RETURN_IF_ERROR(StatusOf(stored));
  return std::optional<json>(SchemaJson(*stored));
}

Result<http::Response> GetSchemaBatch(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const json body, ReadBatch(context, kBatchMax));
  json data = json::object();
  for (const json& entry : body) {
    TARN_ASSIGN_OR_RETURN(const std::string text, RequiredText(entry, "datasetRid"));
    const Result<DatasetRid> rid = DatasetRid::Parse(text);
    if (!rid.ok()) {
      continue;
    }
    TARN_ASSIGN_OR_RETURN(const std::optional<json> one, GetOneOfBatch(deps, context, entry, *rid));
    if (one) {
      data[text] = *one;
    }
  }
  return JsonResponse({{"data", std::move(data)}});
}

/// The schema object as it will be kept, with the reader that the request names beside it.
Result<std::string> SchemaText(const json& body) {
  const auto schema = body.find("schema");
  if (!body.is_object() || schema == body.end() || !schema->is_object()) {
    return Status::InvalidArgument("read the request body: \"schema\" must be an object")
        .WithReason("InvalidBody", JsonObject({{"member", "schema"}}));
  }
  return schema->dump();
}

Result<http::Response> PutSchema(const FoundryDeps& deps, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const DatasetRid rid, DatasetOf(context));
  TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context));
  TARN_ASSIGN_OR_RETURN(const std::string schema, SchemaText(body));
  TARN_ASSIGN_OR_RETURN(const auto branch, OptionalText(body, "branchName"));
  TARN_ASSIGN_OR_RETURN(const auto end, OptionalText(body, "endTransactionRid"));
  TARN_ASSIGN_OR_RETURN(const auto reader, OptionalText(body, "dataframeReader"));
  if (reader && *reader != "AVRO" && *reader != "CSV" && *reader != "PARQUET" &&
      *reader != "DATASOURCE") {
    return Status::InvalidArgument("dataframeReader must be AVRO, CSV, PARQUET or DATASOURCE")
        .WithReason("InvalidBody", JsonObject({{"member", "dataframeReader"}, {"found", *reader}}));
  }
  json stored_json = json::parse(schema);
  if (reader) {
    stored_json["dataframeReader"] = *reader;
  }
  std::optional<dataset::StoredSchema> stored;
  TARN_RETURN_IF_ERROR(Mutate(
      deps, context, rid,
      {.name = "PutDatasetSchemaPermissionDenied", .parameters = {{"datasetRid", rid.ToString()}}},
      "schema.put", metastore::Durability::kDurable, [&](metastore::SqlTransaction& sql) -> Status {
        dataset::PutSchemaOptions options;
        options.branch = branch.value_or(std::string(dataset::kDefaultBranch));
        options.by = context.principal.user_id;
        TARN_RETURN_IF_ERROR(dataset::CheckBranchName(options.branch));
        if (end) {
          TARN_ASSIGN_OR_RETURN(options.end, TransactionOf(rid, *end));
        }
        TARN_ASSIGN_OR_RETURN(stored,
                              deps.datasets.PutSchema(sql, rid, stored_json.dump(), options));
        return Status::Ok();
      }));
  return JsonResponse(SchemaJson(*stored));
}

constexpr access::Scope kRead = access::Scope::kDatasetsRead;
constexpr access::Scope kWrite = access::Scope::kDatasetsWrite;

constexpr FoundryRoute kRoutes[] = {
    {"GET", "/datasets/{datasetRid}/getSchema", kRead, GetSchema},
    {"PUT", "/datasets/{datasetRid}/putSchema", kWrite, PutSchema},
    {"POST", "/datasets/getSchemaBatch", kRead, GetSchemaBatch, Stability::kStable,
     RouteEffect::kReadOnly},
};

}  // namespace

std::span<const FoundryRoute> SchemaRoutes() { return kRoutes; }

}  // namespace tarn::server::foundry
