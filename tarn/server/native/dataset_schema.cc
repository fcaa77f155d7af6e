// POST /tarn/v1/datasets/{rid}:inferSchema: the schema that a dataset's files ask for.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/query/infer_schema.h"
#include "tarn/server/native/dataset_request.h"

namespace tarn::server::native {

namespace {

using nlohmann::json;

// A number above 0, or nothing.
Result<std::optional<int64_t>> CountIn(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) {
    return std::optional<int64_t>();
  }
  if (!found->is_number_integer() || found->get<int64_t>() < 1) {
    return Status::InvalidArgument(
        fmt::format("sample.{}: expected a number from 1, found {}", name, found->dump()));
  }
  return std::optional(found->get<int64_t>());
}

Result<query::InferenceSample> SampleIn(const json& body) {
  query::InferenceSample sample;
  const auto found = body.find("sample");
  if (found == body.end() || found->is_null()) {
    return sample;
  }
  if (!found->is_object()) {
    return Status::InvalidArgument(fmt::format(
        "sample: expected an object with files and rowsPerFile, found {}", found->dump()));
  }
  TARN_ASSIGN_OR_RETURN(sample.files, CountIn(*found, "files"));
  TARN_ASSIGN_OR_RETURN(sample.rows_per_file, CountIn(*found, "rowsPerFile"));
  return sample;
}

Result<http::Response> InferSchema(NativeApi& api, RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const dataset::DatasetRid rid,
                        DatasetOf(api, context, access::Role::kViewer));
  TARN_ASSIGN_OR_RETURN(const json body, OptionalBody(context));
  TARN_ASSIGN_OR_RETURN(const query::InferenceSample sample, SampleIn(body));
  const json branch = body.value("branch", json("master"));
  if (!branch.is_string()) {
    return Status::InvalidArgument("branch: expected a text, found " + branch.dump());
  }
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<engine::Session> session,
                        api.deps.query.engine.OpenSession());
  TARN_ASSIGN_OR_RETURN(
      const query::InferredSchema inferred,
      query::InferSchema(*session, api.deps.query.datasets, api.deps.query.catalog.deps().warehouse,
                         {.name = {},
                          .written = rid.ToString(),
                          .dataset = rid,
                          .branch = branch.get<std::string>(),
                          .point = {}},
                         sample));
  json files = json::array();
  for (const query::InferredFile& file : inferred.files) {
    files.push_back({{"path", file.path},
                     {"format", file.form ? json(query::FileFormName(*file.form)) : json()},
                     {"rows", file.rows},
                     {"problem", file.problem.empty() ? json() : json(file.problem)}});
  }
  return JsonResponse({{"schema", json::parse(query::SchemaJsonOf(inferred))},
                       {"format", query::FileFormName(inferred.form)},
                       {"files", std::move(files)}});
}

constexpr NativeRoute kRoutes[] = {
    {.method = "POST",
     .pattern = "/datasets/{rid}:inferSchema",
     .scope = access::Scope::kDatasetsRead,
     .handler = &InferSchema,
     .summary = "The schema that the files of {branch?} ask for, from all of them or from {sample: "
                "{files?, rowsPerFile?}}: {schema, format, files: [{path, format, rows, "
                "problem}]}. Stores nothing.",
     .request = "application/json",
     .effect = RouteEffect::kReadOnly},
};

}  // namespace

std::span<const NativeRoute> DatasetSchemaRoutes() { return kRoutes; }

}  // namespace tarn::server::native
