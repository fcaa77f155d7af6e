#include "tarn/iceberg/view_metadata.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include <fmt/format.h>

#include "tarn/base/check.h"

namespace tarn::iceberg {
namespace {

std::string LowerAscii(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

// Equal but for the id and the time.
bool SameVersion(const ViewVersion& a, const ViewVersion& b) {
  return a.schema_id == b.schema_id && a.summary == b.summary &&
         a.representations == b.representations && a.default_namespace == b.default_namespace &&
         a.default_catalog == b.default_catalog;
}

Status ValidateVersion(const ViewVersion& version) {
  if (version.representations.empty()) {
    return Status::InvalidArgument("Invalid view version: no representation");
  }
  std::set<std::string> dialects;
  for (const ViewRepresentation& representation : version.representations) {
    if (representation.type == "sql" &&
        !dialects.insert(LowerAscii(representation.dialect)).second) {
      return Status::InvalidArgument(
          fmt::format("Invalid view version: Cannot add multiple queries for dialect {}",
                      LowerAscii(representation.dialect)));
    }
  }
  return Status::Ok();
}

class ViewBuilder {
 public:
  ViewBuilder(const ViewMetadata* base, int64_t now_ms)
      : now_ms_(now_ms), is_new_(base == nullptr) {
    if (base != nullptr) {
      metadata_ = *base;
      previous_ = base->current_version_id;
    }
  }

  Status operator()(const table_update::AssignUuid& update) {
    const std::string uuid = LowerAscii(update.uuid);
    if (!metadata_.view_uuid.empty() && metadata_.view_uuid != uuid) {
      return Status::InvalidArgument("Cannot reassign uuid");
    }
    changed_ = changed_ || metadata_.view_uuid != uuid;
    metadata_.view_uuid = uuid;
    return Status::Ok();
  }
  Status operator()(const table_update::UpgradeFormatVersion& update) {
    return update.format_version == 1
               ? Status::Ok()
               : Status::InvalidArgument(
                     fmt::format("Cannot upgrade view to unsupported format version: v{}",
                                 update.format_version));
  }
  Status operator()(const table_update::AddSchema& update) {
    TARN_RETURN_IF_ERROR(ValidateSchema(update.schema, kFormatVersionMax));
    int32_t next_id = 0;
    for (const SchemaPtr& schema : metadata_.schemas) {
      if (schema->HasSameColumns(update.schema)) {
        last_schema_id_ = schema->schema_id;
        return Status::Ok();
      }
      next_id = std::max(next_id, schema->schema_id + 1);
    }
    Schema schema = update.schema;
    schema.schema_id = next_id;
    last_schema_id_ = next_id;
    metadata_.schemas.push_back(std::make_shared<const Schema>(std::move(schema)));
    changed_ = true;
    return Status::Ok();
  }
  Status operator()(const table_update::SetLocation& update) {
    changed_ = changed_ || metadata_.location != update.location;
    metadata_.location = update.location;
    return Status::Ok();
  }
  Status operator()(const table_update::SetProperties& update) {
    for (const auto& [key, value] : update.updates) {
      std::string& property = metadata_.properties[key];
      changed_ = changed_ || property != value;
      property = value;
    }
    return Status::Ok();
  }
  Status operator()(const table_update::RemoveProperties& update) {
    for (const std::string& key : update.removals) {
      changed_ = metadata_.properties.erase(key) > 0 || changed_;
    }
    return Status::Ok();
  }
  Status operator()(const view_update::AddViewVersion& update);
  Status operator()(const view_update::SetCurrentViewVersion& update);
  Result<ViewUpdateResult> Finish();

 private:
  [[nodiscard]] Status CheckDialects() const;

  int64_t now_ms_;
  bool is_new_;
  ViewMetadata metadata_;
  int32_t previous_ = 0;
  bool changed_ = false;
  std::optional<int32_t> last_schema_id_;
  std::optional<int32_t> last_version_id_;
  std::unordered_set<int32_t> added_;
};

Status ViewBuilder::operator()(const view_update::AddViewVersion& update) {
  ViewVersion version = update.version;
  TARN_RETURN_IF_ERROR(ValidateVersion(version));
  if (version.schema_id == kLastAdded) {
    if (!last_schema_id_) {
      return Status::InvalidArgument("Cannot set last added schema: no schema has been added");
    }
    version.schema_id = *last_schema_id_;
  }
  if (metadata_.FindSchema(version.schema_id) == nullptr) {
    return Status::InvalidArgument(
        fmt::format("Cannot add version with unknown schema: {}", version.schema_id));
  }
  int32_t next_id = 1;
  for (const ViewVersion& existing : metadata_.versions) {
    if (SameVersion(existing, version)) {
      last_version_id_ = existing.version_id;
      return Status::Ok();
    }
    next_id = std::max(next_id, existing.version_id + 1);
  }
  version.version_id = next_id;
  last_version_id_ = next_id;
  added_.insert(next_id);
  metadata_.versions.push_back(std::move(version));
  changed_ = true;
  return Status::Ok();
}

Status ViewBuilder::operator()(const view_update::SetCurrentViewVersion& update) {
  if (update.version_id == kLastAdded && !last_version_id_) {
    return Status::InvalidArgument(
        "Cannot set last version id: no current version id has been set");
  }
  const int32_t id = update.version_id == kLastAdded ? *last_version_id_ : update.version_id;
  const ViewVersion* version = metadata_.FindVersion(id);
  if (version == nullptr) {
    return Status::InvalidArgument(
        fmt::format("Cannot set current version to unknown version: {}", id));
  }
  if (metadata_.current_version_id == id) {
    return Status::Ok();
  }
  metadata_.current_version_id = id;
  metadata_.version_log.push_back({added_.contains(id) ? version->timestamp_ms : now_ms_, id});
  changed_ = true;
  return Status::Ok();
}

Status ViewBuilder::CheckDialects() const {
  const ViewVersion* before = metadata_.FindVersion(previous_);
  const auto allowed = metadata_.properties.find("replace.drop-dialect.allowed");
  const bool may_drop =
      allowed != metadata_.properties.end() && LowerAscii(allowed->second) == "true";
  if (is_new_ || before == nullptr || may_drop || metadata_.current_version_id == previous_) {
    return Status::Ok();
  }
  for (const ViewRepresentation& representation : before->representations) {
    if (metadata_.CurrentVersion().FindDialect(representation.dialect) == nullptr) {
      return Status::InvalidArgument(
          fmt::format("Cannot replace view due to loss of view dialects "
                      "(replace.drop-dialect.allowed=false): dialect {} is missing",
                      representation.dialect));
    }
  }
  return Status::Ok();
}

Result<ViewUpdateResult> ViewBuilder::Finish() {
  if (metadata_.versions.empty() ||
      metadata_.FindVersion(metadata_.current_version_id) == nullptr) {
    return Status::InvalidArgument("the view has no current version");
  }
  if (metadata_.location.empty() || metadata_.view_uuid.empty()) {
    return Status::InvalidArgument("a view needs a location and a uuid");
  }
  TARN_RETURN_IF_ERROR(CheckDialects());
  int64_t limit = 10;
  if (const auto at = metadata_.properties.find("version.history.num-entries");
      at != metadata_.properties.end()) {
    const int64_t given = std::strtoll(at->second.c_str(), nullptr, 10);
    limit = given > 0 ? given : limit;
  }
  const auto removable = [&](const ViewVersion& version) {
    return version.version_id != metadata_.current_version_id &&
           !added_.contains(version.version_id);
  };
  while (changed_ && metadata_.versions.size() > static_cast<size_t>(limit)) {
    const auto oldest =
        std::find_if(metadata_.versions.begin(), metadata_.versions.end(), removable);
    if (oldest == metadata_.versions.end()) {
      break;
    }
    metadata_.versions.erase(oldest);
  }
  // Log entries before a version that is gone are of no use.
  auto& log = metadata_.version_log;
  const auto last_gone = std::find_if(log.rbegin(), log.rend(), [&](const ViewLogEntry& entry) {
    return metadata_.FindVersion(entry.version_id) == nullptr;
  });
  log.erase(log.begin(), last_gone.base());
  return ViewUpdateResult{std::move(metadata_), changed_};
}

}  // namespace

const ViewRepresentation* ViewVersion::FindDialect(std::string_view dialect) const {
  for (const ViewRepresentation& representation : representations) {
    if (LowerAscii(representation.dialect) == LowerAscii(dialect)) {
      return &representation;
    }
  }
  return nullptr;
}

const ViewVersion* ViewMetadata::FindVersion(int32_t version_id) const {
  for (const ViewVersion& version : versions) {
    if (version.version_id == version_id) {
      return &version;
    }
  }
  return nullptr;
}

const ViewVersion& ViewMetadata::CurrentVersion() const {
  const ViewVersion* version = FindVersion(current_version_id);
  TARN_CHECK(version != nullptr);
  return *version;
}

const Schema* ViewMetadata::FindSchema(int32_t schema_id) const {
  for (const SchemaPtr& schema : schemas) {
    if (schema->schema_id == schema_id) {
      return schema.get();
    }
  }
  return nullptr;
}

bool operator==(const ViewMetadata& a, const ViewMetadata& b) {
  return a.view_uuid == b.view_uuid && a.format_version == b.format_version &&
         a.location == b.location &&
         std::equal(a.schemas.begin(), a.schemas.end(), b.schemas.begin(), b.schemas.end(),
                    [](const SchemaPtr& x, const SchemaPtr& y) { return *x == *y; }) &&
         a.current_version_id == b.current_version_id && a.versions == b.versions &&
         a.version_log == b.version_log && a.properties == b.properties && a.unknown == b.unknown;
}

Status CheckViewRequirements(const ViewMetadata& base,
                             const std::vector<AssertViewUuid>& requirements) {
  for (const AssertViewUuid& requirement : requirements) {
    if (LowerAscii(requirement.uuid) != LowerAscii(base.view_uuid)) {
      return Status::Conflict(
          fmt::format("Requirement failed: view UUID does not match: expected {} != {}",
                      base.view_uuid, requirement.uuid));
    }
  }
  return Status::Ok();
}

Result<ViewUpdateResult> ApplyViewUpdates(const ViewMetadata* base,
                                          const std::vector<ViewUpdate>& updates, int64_t now_ms) {
  ViewBuilder builder(base, now_ms);
  for (const ViewUpdate& update : updates) {
    TARN_RETURN_IF_ERROR(std::visit(builder, update));
  }
  return builder.Finish();
}

}  // namespace tarn::iceberg
