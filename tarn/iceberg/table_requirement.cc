#include "tarn/iceberg/table_requirement.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tarn::iceberg {
namespace {

using namespace table_requirement;  // NOLINT(google-build-using-namespace): one closed set.

Status Failed(std::string message) {
  return Status::Conflict("Requirement failed: " + std::move(message));
}

bool EqualUuid(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

struct ToJson {
  Json operator()(const AssertCreate&) const { return {{"type", "assert-create"}}; }
  Json operator()(const AssertTableUuid& r) const {
    return {{"type", "assert-table-uuid"}, {"uuid", r.uuid}};
  }
  Json operator()(const AssertRefSnapshotId& r) const {
    Json json = {{"type", "assert-ref-snapshot-id"}, {"ref", r.ref}};
    json["snapshot-id"] = r.snapshot_id ? Json(*r.snapshot_id) : Json();
    return json;
  }
  Json operator()(const AssertLastAssignedFieldId& r) const {
    return {{"type", "assert-last-assigned-field-id"},
            {"last-assigned-field-id", r.last_assigned_field_id}};
  }
  Json operator()(const AssertCurrentSchemaId& r) const {
    return {{"type", "assert-current-schema-id"}, {"current-schema-id", r.current_schema_id}};
  }
  Json operator()(const AssertLastAssignedPartitionId& r) const {
    return {{"type", "assert-last-assigned-partition-id"},
            {"last-assigned-partition-id", r.last_assigned_partition_id}};
  }
  Json operator()(const AssertDefaultSpecId& r) const {
    return {{"type", "assert-default-spec-id"}, {"default-spec-id", r.default_spec_id}};
  }
  Json operator()(const AssertDefaultSortOrderId& r) const {
    return {{"type", "assert-default-sort-order-id"},
            {"default-sort-order-id", r.default_sort_order_id}};
  }
};

Status CheckNumber(std::string_view what, int64_t expected, int64_t found) {
  return expected == found
             ? Status::Ok()
             : Failed(fmt::format("{} changed: expected id {} != {}", what, expected, found));
}

struct Check {
  const TableMetadata& base;

  Status operator()(const AssertCreate&) const { return Failed("table already exists"); }
  Status operator()(const AssertTableUuid& r) const {
    return EqualUuid(base.table_uuid, r.uuid)
               ? Status::Ok()
               : Failed(fmt::format("UUID does not match: expected {} != {}", base.table_uuid,
                                    r.uuid));
  }
  Status operator()(const AssertRefSnapshotId& r) const {
    const Snapshot* found = base.FindSnapshotOf(r.ref);
    const auto at = base.refs.find(r.ref);
    const bool tag = at != base.refs.end() && at->second.type == SnapshotRefType::kTag;
    const char* kind = tag ? "tag" : "branch";
    if (found == nullptr) {
      return r.snapshot_id ? Failed(fmt::format("branch or tag {} is missing, expected {}", r.ref,
                                                *r.snapshot_id))
                           : Status::Ok();
    }
    if (!r.snapshot_id) {
      return Failed(fmt::format("{} {} was created concurrently", kind, r.ref));
    }
    return found->snapshot_id == *r.snapshot_id
               ? Status::Ok()
               : Failed(fmt::format("{} {} has changed: expected id {} != {}", kind, r.ref,
                                    *r.snapshot_id, found->snapshot_id));
  }
  Status operator()(const AssertLastAssignedFieldId& r) const {
    return CheckNumber("last assigned field id", r.last_assigned_field_id, base.last_column_id);
  }
  Status operator()(const AssertCurrentSchemaId& r) const {
    return CheckNumber("current schema", r.current_schema_id, base.current_schema_id);
  }
  Status operator()(const AssertLastAssignedPartitionId& r) const {
    return CheckNumber("last assigned partition id", r.last_assigned_partition_id,
                       base.last_partition_id);
  }
  Status operator()(const AssertDefaultSpecId& r) const {
    return CheckNumber("default partition spec", r.default_spec_id, base.default_spec_id);
  }
  Status operator()(const AssertDefaultSortOrderId& r) const {
    return CheckNumber("default sort order", r.default_sort_order_id, base.default_sort_order_id);
  }
};

}  // namespace

Json TableRequirementToJson(const TableRequirement& requirement) {
  return std::visit(ToJson{}, requirement);
}

Result<TableRequirement> TableRequirementFromJson(const Json& json) {
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "table requirement"));
  TARN_ASSIGN_OR_RETURN(const std::string type, object.GetString("type"));
  if (type == "assert-create") {
    return TableRequirement(AssertCreate{});
  }
  if (type == "assert-table-uuid") {
    TARN_ASSIGN_OR_RETURN(std::string uuid, object.GetString("uuid"));
    return TableRequirement(AssertTableUuid{std::move(uuid)});
  }
  if (type == "assert-ref-snapshot-id") {
    AssertRefSnapshotId requirement;
    TARN_ASSIGN_OR_RETURN(requirement.ref, object.GetString("ref"));
    TARN_ASSIGN_OR_RETURN(requirement.snapshot_id, object.FindLong("snapshot-id"));
    return TableRequirement(std::move(requirement));
  }
  if (type == "assert-last-assigned-field-id") {
    TARN_ASSIGN_OR_RETURN(const int32_t id, object.GetInt("last-assigned-field-id"));
    return TableRequirement(AssertLastAssignedFieldId{id});
  }
  if (type == "assert-current-schema-id") {
    TARN_ASSIGN_OR_RETURN(const int32_t id, object.GetInt("current-schema-id"));
    return TableRequirement(AssertCurrentSchemaId{id});
  }
  if (type == "assert-last-assigned-partition-id") {
    TARN_ASSIGN_OR_RETURN(const int32_t id, object.GetInt("last-assigned-partition-id"));
    return TableRequirement(AssertLastAssignedPartitionId{id});
  }
  if (type == "assert-default-spec-id") {
    TARN_ASSIGN_OR_RETURN(const int32_t id, object.GetInt("default-spec-id"));
    return TableRequirement(AssertDefaultSpecId{id});
  }
  if (type == "assert-default-sort-order-id") {
    TARN_ASSIGN_OR_RETURN(const int32_t id, object.GetInt("default-sort-order-id"));
    return TableRequirement(AssertDefaultSortOrderId{id});
  }
  return Status::InvalidArgument(fmt::format("table requirement '{}' is not known", type));
}

Status CheckRequirements(const TableMetadata* base,
                         const std::vector<TableRequirement>& requirements) {
  for (const TableRequirement& requirement : requirements) {
    if (base != nullptr) {
      TARN_RETURN_IF_ERROR(std::visit(Check{*base}, requirement));
      continue;
    }
    if (std::holds_alternative<AssertCreate>(requirement)) {
      continue;
    }
    const auto* ref = std::get_if<AssertRefSnapshotId>(&requirement);
    if (ref == nullptr || ref->snapshot_id) {
      return Failed("current table metadata is missing");
    }
  }
  return Status::Ok();
}

std::vector<TableRequirement> RequirementsFor(const TableMetadata* base,
                                              const std::vector<TableUpdate>& updates) {
  if (base == nullptr) {
    return {AssertCreate{}};
  }
  std::vector<TableRequirement> requirements{AssertTableUuid{base->table_uuid}};
  const auto add = [&](TableRequirement requirement) {
    if (std::find(requirements.begin(), requirements.end(), requirement) == requirements.end()) {
      requirements.push_back(std::move(requirement));
    }
  };
  const auto add_ref = [&](const std::string& name) {
    const auto at = base->refs.find(name);
    add(AssertRefSnapshotId{name, at == base->refs.end()
                                      ? std::optional<int64_t>()
                                      : std::optional<int64_t>(at->second.snapshot_id)});
  };
  for (const TableUpdate& update : updates) {
    if (const auto* ref = std::get_if<table_update::SetSnapshotRef>(&update)) {
      add_ref(ref->name);
    } else if (std::holds_alternative<table_update::AddSchema>(update)) {
      add(AssertLastAssignedFieldId{base->last_column_id});
    } else if (std::holds_alternative<table_update::SetCurrentSchema>(update)) {
      add(AssertCurrentSchemaId{base->current_schema_id});
    } else if (std::holds_alternative<table_update::AddSpec>(update)) {
      add(AssertLastAssignedPartitionId{base->last_partition_id});
    } else if (std::holds_alternative<table_update::SetDefaultSpec>(update)) {
      add(AssertDefaultSpecId{base->default_spec_id});
    } else if (std::holds_alternative<table_update::SetDefaultSortOrder>(update)) {
      add(AssertDefaultSortOrderId{base->default_sort_order_id});
    } else if (std::holds_alternative<table_update::RemovePartitionSpecs>(update) ||
               std::holds_alternative<table_update::RemoveSchemas>(update)) {
      add(AssertDefaultSpecId{base->default_spec_id});
      add(AssertCurrentSchemaId{base->current_schema_id});
      for (const auto& [name, branch] : base->refs) {
        if (branch.type == SnapshotRefType::kBranch && name != kMainBranch) {
          add_ref(name);
        }
      }
    }
  }
  return requirements;
}

}  // namespace tarn::iceberg
