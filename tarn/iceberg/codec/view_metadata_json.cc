// The JSON forms of view_metadata.h.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/iceberg/table_metadata_json.h"
#include "tarn/iceberg/view_metadata.h"

namespace tarn::iceberg {
namespace {

Result<ViewRepresentation> RepresentationFromJson(const Json& json) {
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "view representation"));
  ViewRepresentation representation;
  TARN_ASSIGN_OR_RETURN(representation.type, object.GetString("type"));
  if (representation.type == "sql") {
    TARN_ASSIGN_OR_RETURN(representation.sql, object.GetString("sql"));
    TARN_ASSIGN_OR_RETURN(representation.dialect, object.GetString("dialect"));
  }
  representation.unknown = object.Unknown({"type", "sql", "dialect"});
  return representation;
}

Result<ViewLogEntry> LogEntryFromJson(const Json& json) {
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "view log entry"));
  ViewLogEntry entry;
  TARN_ASSIGN_OR_RETURN(entry.timestamp_ms, object.GetLong("timestamp-ms"));
  TARN_ASSIGN_OR_RETURN(entry.version_id, object.GetInt("version-id"));
  return entry;
}

}  // namespace

Json ViewVersionToJson(const ViewVersion& version) {
  Json representations = Json::array();
  for (const ViewRepresentation& representation : version.representations) {
    Json member = {{"type", representation.type}};
    if (representation.type == "sql") {
      member["sql"] = representation.sql;
      member["dialect"] = representation.dialect;
    }
    AppendUnknown(member, representation.unknown);
    representations.push_back(std::move(member));
  }
  Json json = {{"version-id", version.version_id},
               {"timestamp-ms", version.timestamp_ms},
               {"schema-id", version.schema_id},
               {"summary", version.summary}};
  if (version.default_catalog) {
    json["default-catalog"] = *version.default_catalog;
  }
  json["default-namespace"] = version.default_namespace;
  json["representations"] = std::move(representations);
  return json;
}

Result<ViewVersion> ViewVersionFromJson(const Json& json) {
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "view version"));
  ViewVersion version;
  TARN_ASSIGN_OR_RETURN(version.version_id, object.GetInt("version-id"));
  TARN_ASSIGN_OR_RETURN(version.timestamp_ms, object.GetLong("timestamp-ms"));
  TARN_ASSIGN_OR_RETURN(version.schema_id, object.GetInt("schema-id"));
  TARN_ASSIGN_OR_RETURN(version.summary, object.FindStringMap("summary"));
  TARN_ASSIGN_OR_RETURN(version.default_catalog, object.FindString("default-catalog"));
  TARN_ASSIGN_OR_RETURN(version.default_namespace, object.FindStrings("default-namespace"));
  TARN_RETURN_IF_ERROR(object.Get("representations"));
  TARN_ASSIGN_OR_RETURN(const auto representations, object.FindArray("representations"));
  for (const Json* element : representations) {
    TARN_ASSIGN_OR_RETURN(ViewRepresentation member, RepresentationFromJson(*element));
    version.representations.push_back(std::move(member));
  }
  return version;
}

Json ViewMetadataToJson(const ViewMetadata& metadata) {
  Json schemas = Json::array();
  for (const SchemaPtr& schema : metadata.schemas) {
    schemas.push_back(SchemaToJson(*schema));
  }
  Json versions = Json::array();
  for (const ViewVersion& version : metadata.versions) {
    versions.push_back(ViewVersionToJson(version));
  }
  Json log = Json::array();
  for (const ViewLogEntry& entry : metadata.version_log) {
    log.push_back({{"timestamp-ms", entry.timestamp_ms}, {"version-id", entry.version_id}});
  }
  Json json = {
      {"view-uuid", metadata.view_uuid}, {"format-version", metadata.format_version},
      {"location", metadata.location},   {"properties", metadata.properties},
      {"schemas", std::move(schemas)},   {"current-version-id", metadata.current_version_id},
      {"versions", std::move(versions)}, {"version-log", std::move(log)}};
  AppendUnknown(json, metadata.unknown);
  return json;
}

Result<ViewMetadata> ViewMetadataFromJson(const Json& json) {
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "view metadata"));
  ViewMetadata metadata;
  TARN_ASSIGN_OR_RETURN(metadata.format_version, object.GetInt("format-version"));
  if (metadata.format_version != 1) {
    return Status(ErrorCode::kUnimplemented,
                  fmt::format("view metadata of format version {} cannot be read here",
                              metadata.format_version));
  }
  TARN_ASSIGN_OR_RETURN(metadata.view_uuid, object.GetString("view-uuid"));
  TARN_ASSIGN_OR_RETURN(metadata.location, object.GetString("location"));
  TARN_ASSIGN_OR_RETURN(metadata.properties, object.FindStringMap("properties"));
  TARN_ASSIGN_OR_RETURN(metadata.current_version_id, object.GetInt("current-version-id"));
  TARN_ASSIGN_OR_RETURN(const auto schemas, object.FindArray("schemas"));
  for (const Json* element : schemas) {
    TARN_ASSIGN_OR_RETURN(Schema schema, SchemaFromJson(*element));
    metadata.schemas.push_back(std::make_shared<const Schema>(std::move(schema)));
  }
  TARN_ASSIGN_OR_RETURN(const auto versions, object.FindArray("versions"));
  for (const Json* element : versions) {
    TARN_ASSIGN_OR_RETURN(ViewVersion version, ViewVersionFromJson(*element));
    metadata.versions.push_back(std::move(version));
  }
  TARN_ASSIGN_OR_RETURN(const auto log, object.FindArray("version-log"));
  for (const Json* element : log) {
    TARN_ASSIGN_OR_RETURN(const ViewLogEntry entry, LogEntryFromJson(*element));
    metadata.version_log.push_back(entry);
  }
  metadata.unknown = object.Unknown({"view-uuid", "format-version", "location", "properties",
                                     "schemas", "current-version-id", "versions", "version-log"});
  if (metadata.FindVersion(metadata.current_version_id) == nullptr) {
    return Status::InvalidArgument(
        fmt::format("view metadata: Cannot find current version {} in view versions",
                    metadata.current_version_id));
  }
  return metadata;
}

Result<ViewMetadata> ParseViewMetadata(std::string_view text) {
  std::string unpacked;
  if (text.size() > 2 && text[0] == '\x1f' && text[1] == '\x8b') {
    TARN_ASSIGN_OR_RETURN(unpacked, GunzipBounded(text, size_t{256} << 20));
    text = unpacked;
  }
  TARN_ASSIGN_OR_RETURN(const Json json, ParseJson(text, "view metadata"));
  return ViewMetadataFromJson(json);
}

std::string FormatViewMetadata(const ViewMetadata& metadata) {
  return DumpJson(ViewMetadataToJson(metadata));
}

Json ViewUpdateToJson(const ViewUpdate& update) {
  if (const auto* add = std::get_if<view_update::AddViewVersion>(&update)) {
    return {{"action", "add-view-version"}, {"view-version", ViewVersionToJson(add->version)}};
  }
  if (const auto* set = std::get_if<view_update::SetCurrentViewVersion>(&update)) {
    return {{"action", "set-current-view-version"}, {"view-version-id", set->version_id}};
  }
  return std::visit(
      [](const auto& one) -> Json {
        if constexpr (std::is_constructible_v<TableUpdate, decltype(one)>) {
          return TableUpdateToJson(TableUpdate(one));
        } else {
          return Json();
        }
      },
      update);
}

Result<ViewUpdate> ViewUpdateFromJson(const Json& json) {
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "view update"));
  TARN_ASSIGN_OR_RETURN(const std::string action, object.GetString("action"));
  if (action == "add-view-version") {
    TARN_ASSIGN_OR_RETURN(const Json* member, object.Get("view-version"));
    TARN_ASSIGN_OR_RETURN(ViewVersion version, ViewVersionFromJson(*member));
    return ViewUpdate(view_update::AddViewVersion{std::move(version)});
  }
  if (action == "set-current-view-version") {
    TARN_ASSIGN_OR_RETURN(const int32_t id, object.GetInt("view-version-id"));
    return ViewUpdate(view_update::SetCurrentViewVersion{id});
  }
  TARN_ASSIGN_OR_RETURN(TableUpdate update, TableUpdateFromJson(json));
  return std::visit(
      [&](auto&& one) -> Result<ViewUpdate> {
        if constexpr (std::is_constructible_v<ViewUpdate, decltype(one)>) {
          return ViewUpdate(std::forward<decltype(one)>(one));
        } else {
          return Status::InvalidArgument(
              fmt::format("update '{}' does not apply to views", action));
        }
      },
      std::move(update));
}

Result<AssertViewUuid> ViewRequirementFromJson(const Json& json) {
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "view requirement"));
  TARN_ASSIGN_OR_RETURN(const std::string type, object.GetString("type"));
  if (type != "assert-view-uuid") {
    return Status::InvalidArgument(fmt::format("view requirement '{}' is not known", type));
  }
  AssertViewUuid requirement;
  TARN_ASSIGN_OR_RETURN(requirement.uuid, object.GetString("uuid"));
  return requirement;
}

}  // namespace tarn::iceberg
