#include "tarn/server/iceberg_rest/requests.h"

#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tarn::server::iceberg_rest {

namespace {

using iceberg::Json;
using iceberg::JsonObject;

constexpr uint64_t kBodyBytesMax = 64 << 20;
constexpr uint64_t kReportBytesMax = 4 << 20;

Result<Json> ReadBody(RequestContext& context, uint64_t bytes_max = kBodyBytesMax) {
  TARN_ASSIGN_OR_RETURN(const std::string text, http::ReadAll(*context.http.body, bytes_max));
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    return Status::InvalidArgument("the request body is empty: a JSON object is needed");
  }
  return iceberg::ParseJson(text, "request body");
}

Result<bool> FindBool(const JsonObject& object, std::string_view key) {
  return object.Find(key) == nullptr ? Result<bool>(false) : object.GetBool(key);
}

Result<std::string> GetName(const JsonObject& object) {
  TARN_ASSIGN_OR_RETURN(std::string name, object.GetString("name"));
  if (name.empty()) {
    return Status::InvalidArgument("the name is empty");
  }
  return name;
}

Status CheckLevels(const std::vector<std::string>& levels) {
  if (levels.empty()) {
    return Status::InvalidArgument("the namespace is empty");
  }
  for (const std::string& level : levels) {
    if (level.empty() || level.find('\x1f') != std::string::npos) {
      return Status::InvalidArgument(
          "a level of a namespace cannot be empty or hold the character U+001F");
    }
  }
  return Status::Ok();
}

Result<catalog::Identifier> IdentifierFromJson(const Json& json, std::string_view what) {
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, what));
  catalog::Identifier identifier;
  TARN_ASSIGN_OR_RETURN(identifier.levels, object.FindStrings("namespace"));
  TARN_ASSIGN_OR_RETURN(identifier.name, GetName(object));
  return identifier;
}

Result<TableCommitRequest> CommitFromJson(const Json& json, std::string_view what) {
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, what));
  TableCommitRequest commit;
  if (const Json* identifier = object.Find("identifier")) {
    TARN_ASSIGN_OR_RETURN(commit.identifier, IdentifierFromJson(*identifier, "identifier"));
  }
  TARN_ASSIGN_OR_RETURN(const auto requirements, object.FindArray("requirements"));
  for (const Json* element : requirements) {
    TARN_ASSIGN_OR_RETURN(iceberg::TableRequirement requirement,
                          iceberg::TableRequirementFromJson(*element));
    commit.requirements.push_back(std::move(requirement));
  }
  TARN_ASSIGN_OR_RETURN(const auto updates, object.FindArray("updates"));
  for (const Json* element : updates) {
    TARN_ASSIGN_OR_RETURN(iceberg::TableUpdate update, iceberg::TableUpdateFromJson(*element));
    commit.updates.push_back(std::move(update));
  }
  return commit;
}

}  // namespace

Result<CreateNamespaceRequest> ReadCreateNamespace(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const Json json, ReadBody(context));
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "request body"));
  CreateNamespaceRequest request;
  TARN_ASSIGN_OR_RETURN(request.levels, object.FindStrings("namespace"));
  TARN_RETURN_IF_ERROR(CheckLevels(request.levels));
  TARN_ASSIGN_OR_RETURN(request.properties, object.FindStringMap("properties"));
  return request;
}

Result<PropertiesRequest> ReadPropertiesRequest(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const Json json, ReadBody(context));
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "request body"));
  PropertiesRequest request;
  TARN_ASSIGN_OR_RETURN(request.removals, object.FindStrings("removals"));
  TARN_ASSIGN_OR_RETURN(request.updates, object.FindStringMap("updates"));
  return request;
}

Result<CreateTableRequest> ReadCreateTable(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const Json json, ReadBody(context));
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "request body"));
  CreateTableRequest request;
  TARN_ASSIGN_OR_RETURN(request.name, GetName(object));
  TARN_ASSIGN_OR_RETURN(request.location, object.FindString("location"));
  TARN_ASSIGN_OR_RETURN(const Json* schema, object.Get("schema"));
  TARN_ASSIGN_OR_RETURN(request.schema, iceberg::SchemaFromJson(*schema));
  if (const Json* spec = object.Find("partition-spec")) {
    TARN_ASSIGN_OR_RETURN(request.spec, iceberg::PartitionSpecFromJson(*spec));
  }
  if (const Json* order = object.Find("write-order")) {
    TARN_ASSIGN_OR_RETURN(request.sort_order, iceberg::SortOrderFromJson(*order));
  }
  TARN_ASSIGN_OR_RETURN(request.properties, object.FindStringMap("properties"));
  TARN_ASSIGN_OR_RETURN(request.stage, FindBool(object, "stage-create"));
  return request;
}

Result<RegisterRequest> ReadRegister(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const Json json, ReadBody(context));
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "request body"));
  RegisterRequest request;
  TARN_ASSIGN_OR_RETURN(request.name, GetName(object));
  TARN_ASSIGN_OR_RETURN(request.metadata_location, object.GetString("metadata-location"));
  TARN_ASSIGN_OR_RETURN(request.overwrite, FindBool(object, "overwrite"));
  return request;
}

Result<TableCommitRequest> ReadTableCommit(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const Json json, ReadBody(context));
  return CommitFromJson(json, "request body");
}

Result<std::vector<TableCommitRequest>> ReadTransaction(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const Json json, ReadBody(context));
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "request body"));
  TARN_RETURN_IF_ERROR(object.Get("table-changes"));
  TARN_ASSIGN_OR_RETURN(const auto elements, object.FindArray("table-changes"));
  if (elements.empty()) {
    return Status::InvalidArgument("table-changes is empty: a commit changes at least one table");
  }
  std::vector<TableCommitRequest> changes;
  std::set<std::pair<std::vector<std::string>, std::string>> names;
  for (const Json* element : elements) {
    TARN_ASSIGN_OR_RETURN(TableCommitRequest change, CommitFromJson(*element, "table change"));
    if (!change.identifier) {
      return Status::InvalidArgument("table change: member 'identifier' is missing");
    }
    if (!names.emplace(change.identifier->levels, change.identifier->name).second) {
      return Status::InvalidArgument(
          fmt::format("table {} is changed twice in one commit: put its updates into one change",
                      change.identifier->ToString()));
    }
    changes.push_back(std::move(change));
  }
  return changes;
}

Result<RenameRequest> ReadRename(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const Json json, ReadBody(context));
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "request body"));
  RenameRequest request;
  TARN_ASSIGN_OR_RETURN(const Json* source, object.Get("source"));
  TARN_ASSIGN_OR_RETURN(request.source, IdentifierFromJson(*source, "source"));
  TARN_ASSIGN_OR_RETURN(const Json* destination, object.Get("destination"));
  TARN_ASSIGN_OR_RETURN(request.destination, IdentifierFromJson(*destination, "destination"));
  return request;
}

Result<CreateViewRequest> ReadCreateView(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const Json json, ReadBody(context));
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "request body"));
  CreateViewRequest request;
  TARN_ASSIGN_OR_RETURN(request.name, GetName(object));
  TARN_ASSIGN_OR_RETURN(request.location, object.FindString("location"));
  TARN_ASSIGN_OR_RETURN(const Json* schema, object.Get("schema"));
  TARN_ASSIGN_OR_RETURN(request.schema, iceberg::SchemaFromJson(*schema));
  TARN_ASSIGN_OR_RETURN(const Json* version, object.Get("view-version"));
  TARN_ASSIGN_OR_RETURN(request.version, iceberg::ViewVersionFromJson(*version));
  TARN_ASSIGN_OR_RETURN(request.properties, object.FindStringMap("properties"));
  return request;
}

Result<ViewCommitRequest> ReadViewCommit(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const Json json, ReadBody(context));
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "request body"));
  ViewCommitRequest commit;
  TARN_ASSIGN_OR_RETURN(const auto requirements, object.FindArray("requirements"));
  for (const Json* element : requirements) {
    TARN_ASSIGN_OR_RETURN(iceberg::AssertViewUuid requirement,
                          iceberg::ViewRequirementFromJson(*element));
    commit.requirements.push_back(std::move(requirement));
  }
  TARN_ASSIGN_OR_RETURN(const auto updates, object.FindArray("updates"));
  for (const Json* element : updates) {
    TARN_ASSIGN_OR_RETURN(iceberg::ViewUpdate update, iceberg::ViewUpdateFromJson(*element));
    commit.updates.push_back(std::move(update));
  }
  return commit;
}

Status CheckMetricsReport(RequestContext& context) {
  TARN_ASSIGN_OR_RETURN(const Json json, ReadBody(context, kReportBytesMax));
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "metrics report"));
  return StatusOf(object.GetString("report-type"));
}

}  // namespace tarn::server::iceberg_rest
