#include "tarn/server/foundry/internal/internal_api.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "tarn/base/json_text.h"
#include "tarn/base/url.h"

namespace tarn::server::foundry::internal {

using nlohmann::json;

namespace {

struct Renamed {
  std::string_view ours;
  std::string_view catalog;
};

constexpr std::array<Renamed, 6> kNames = {{
    {"DatasetNotFound", "DatasetsNotFound"},
    {"BranchNotFound", "BranchesNotFound"},
    {"BranchAlreadyExists", "BranchesAlreadyExist"},
    {"TransactionNotFound", "TransactionsNotFound"},
    {"ResourceNameAlreadyExists", "DuplicateDatasetName"},
    {"OpenTransactionAlreadyExists", "SimultaneousOpenTransactionsNotAllowed"},
}};

/// Adds what a field lacks, in all of its depth.
void Complete(json& field) {
  if (!field.contains("customMetadata") || field["customMetadata"].is_null()) {
    field["customMetadata"] = json::object();
  }
  for (const char* member : {"userDefinedTypeClass", "arraySubtype", "precision", "scale",
                             "mapKeyType", "mapValueType", "subSchemas"}) {
    if (!field.contains(member)) {
      field[member] = nullptr;
    }
  }
  for (const char* member : {"arraySubtype", "mapKeyType", "mapValueType"}) {
    if (field[member].is_object()) {
      Complete(field[member]);
    }
  }
  if (field["subSchemas"].is_array()) {
    for (json& child : field["subSchemas"]) {
      Complete(child);
    }
  }
}

}  // namespace

Result<std::string> FormSegment(const RequestContext& context, size_t index) {
  std::string_view path = context.http.target;
  path = path.substr(0, path.find('?'));
  path.remove_prefix(std::min<size_t>(path.size(), 1));
  for (size_t i = 0; i < index; ++i) {
    const size_t slash = path.find('/');
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  }
  std::string raw(path.substr(0, path.find('/')));
  std::ranges::replace(raw, '+', ' ');
  return DecodeUrl(raw);
}

Result<bool> Flag(const RequestContext& context, std::string_view name) {
  const std::string text = context.query.Find(name).value_or("false");
  if (text == "True" || text == "true") {
    return true;
  }
  if (text == "False" || text == "false") {
    return false;
  }
  return Status::InvalidArgument("query parameter " + std::string(name) +
                                 ": True or False is needed")
      .WithReason("InvalidParameter", JsonObject({{"parameter", name}, {"found", text}}));
}

dataset::ViewSelector Reference::Select() const {
  dataset::ViewSelector selector;
  selector.branch = branch;
  selector.end = transaction;
  return selector;
}

Result<Reference> ParseReference(const std::string& text) {
  Reference reference;
  const Result<dataset::TransactionRid> transaction = dataset::TransactionRid::Parse(text);
  if (transaction.ok()) {
    reference.transaction = *transaction;
    return reference;
  }
  TARN_RETURN_IF_ERROR(dataset::CheckBranchName(text));
  reference.branch = text;
  return reference;
}

Status NamedBy(std::string_view service, const Status& failure) {
  if (failure.ok() || failure.reason().empty() || failure.reason().find(':') != std::string::npos ||
      failure.code() == ErrorCode::kUnauthenticated ||
      failure.code() == ErrorCode::kPermissionDenied) {
    return failure;
  }
  std::string name = failure.reason();
  if (service == "Catalog") {
    const auto* renamed = std::ranges::find(kNames, name, &Renamed::ours);
    name = renamed == kNames.end() ? name : std::string(renamed->catalog);
  }
  return failure.WithReason(std::string(service) + ":" + name, failure.details());
}

std::string FullSchema(const dataset::DatasetSchema& schema) {
  json full = json::parse(schema.json);
  for (json& field : full["fieldSchemaList"]) {
    Complete(field);
  }
  if (!full.contains("dataFrameReaderClass")) {
    const bool text = full.value("dataframeReader", "") == "CSV";
    full["dataFrameReaderClass"] = std::string("com.palantir.foundry.spark.input.") +
                                   (text ? "TextDataFrameReader" : "ParquetDataFrameReader");
  }
  if (!full.contains("customMetadata")) {
    full["customMetadata"] = {{"format", "parquet"}};
  }
  full.emplace("primaryKey", nullptr);
  return full.dump();
}

}  // namespace tarn::server::foundry::internal
