// ViewMetadata: a stored query and its earlier versions, as the view specification lays it down.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/json.h"
#include "tarn/iceberg/schema.h"
#include "tarn/iceberg/table_metadata.h"
#include "tarn/iceberg/table_update.h"

namespace tarn::iceberg {

/// The query in the words of one engine.
struct ViewRepresentation {
  std::string type = "sql";
  std::string sql;
  std::string dialect;  // "spark", "trino", "duckdb", …; compared without case.
  UnknownMembers unknown;
  friend bool operator==(const ViewRepresentation&, const ViewRepresentation&) = default;
};

struct ViewVersion {
  int32_t version_id = 1;
  int32_t schema_id = 0;
  int64_t timestamp_ms = 0;
  std::map<std::string, std::string> summary;
  std::vector<ViewRepresentation> representations;
  std::vector<std::string> default_namespace;
  std::optional<std::string> default_catalog;

  [[nodiscard]] const ViewRepresentation* FindDialect(std::string_view dialect) const;
  friend bool operator==(const ViewVersion&, const ViewVersion&) = default;
};

struct ViewLogEntry {
  int64_t timestamp_ms = 0;
  int32_t version_id = 0;
  friend bool operator==(const ViewLogEntry&, const ViewLogEntry&) = default;
};

struct ViewMetadata {
  std::string view_uuid;
  int32_t format_version = 1;
  std::string location;
  std::vector<SchemaPtr> schemas;
  int32_t current_version_id = 0;
  std::vector<ViewVersion> versions;
  std::vector<ViewLogEntry> version_log;
  std::map<std::string, std::string> properties;
  UnknownMembers unknown;

  [[nodiscard]] const ViewVersion& CurrentVersion() const;
  [[nodiscard]] const ViewVersion* FindVersion(int32_t version_id) const;
  [[nodiscard]] const Schema* FindSchema(int32_t schema_id) const;
  friend bool operator==(const ViewMetadata& a, const ViewMetadata& b);
};

namespace view_update {
struct AddViewVersion {
  ViewVersion version;  // schema_id -1 = the schema added last.
  friend bool operator==(const AddViewVersion&, const AddViewVersion&) = default;
};
struct SetCurrentViewVersion {
  int32_t version_id = kLastAdded;
  friend bool operator==(const SetCurrentViewVersion&, const SetCurrentViewVersion&) = default;
};
}  // namespace view_update

using ViewUpdate = std::variant<table_update::AssignUuid, table_update::UpgradeFormatVersion,
                                table_update::AddSchema, table_update::SetLocation,
                                table_update::SetProperties, table_update::RemoveProperties,
                                view_update::AddViewVersion, view_update::SetCurrentViewVersion>;

/// {"type":"assert-view-uuid","uuid":…}, the only requirement of views.
struct AssertViewUuid {
  std::string uuid;
  friend bool operator==(const AssertViewUuid&, const AssertViewUuid&) = default;
};

Json ViewVersionToJson(const ViewVersion& version);
Result<ViewVersion> ViewVersionFromJson(const Json& json);
Json ViewMetadataToJson(const ViewMetadata& metadata);
Result<ViewMetadata> ViewMetadataFromJson(const Json& json);
Result<ViewMetadata> ParseViewMetadata(std::string_view text);
std::string FormatViewMetadata(const ViewMetadata& metadata);
Json ViewUpdateToJson(const ViewUpdate& update);
Result<ViewUpdate> ViewUpdateFromJson(const Json& json);
Result<AssertViewUuid> ViewRequirementFromJson(const Json& json);
/// Errors: kConflict "Requirement failed: view UUID does not match: …".
Status CheckViewRequirements(const ViewMetadata& base,
                             const std::vector<AssertViewUuid>& requirements);

struct ViewUpdateResult {
  ViewMetadata metadata;
  bool changed = false;
};
/// Applies in order; null base makes a new view. Versions beyond "version.history.num-entries" (10)
/// go, the current one and those added now never. Errors: kInvalidArgument, also for a version that
/// drops a dialect unless "replace.drop-dialect.allowed" is true.
Result<ViewUpdateResult> ApplyViewUpdates(const ViewMetadata* base,
                                          const std::vector<ViewUpdate>& updates, int64_t now_ms);

}  // namespace tarn::iceberg
