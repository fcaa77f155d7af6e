#include "tarn/iceberg/snapshot.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/base/uuid.h"

namespace tarn::iceberg {

std::string_view SnapshotOperationName(SnapshotOperation operation) {
  switch (operation) {
    case SnapshotOperation::kAppend:
      return "append";
    case SnapshotOperation::kReplace:
      return "replace";
    case SnapshotOperation::kOverwrite:
      return "overwrite";
    case SnapshotOperation::kDelete:
      return "delete";
  }
  return "overwrite";
}

Result<SnapshotOperation> ParseSnapshotOperation(std::string_view text) {
  for (const SnapshotOperation operation :
       {SnapshotOperation::kAppend, SnapshotOperation::kReplace, SnapshotOperation::kOverwrite,
        SnapshotOperation::kDelete}) {
    if (SnapshotOperationName(operation) == text) {
      return operation;
    }
  }
  return Status::InvalidArgument(fmt::format("'{}' is not a snapshot operation", text));
}

int64_t MakeSnapshotId() {
  int64_t id = 0;
  while (id == 0) {
    FillSecureRandom(reinterpret_cast<uint8_t*>(&id), sizeof(id));
    id &= INT64_MAX;
  }
  return id;
}

Json SnapshotToJson(const Snapshot& snapshot) {
  Json json = Json::object();
  if (snapshot.sequence_number > 0) {
    json["sequence-number"] = snapshot.sequence_number;
  }
  json["snapshot-id"] = snapshot.snapshot_id;
  if (snapshot.parent_snapshot_id) {
    json["parent-snapshot-id"] = *snapshot.parent_snapshot_id;
  }
  json["timestamp-ms"] = snapshot.timestamp_ms;
  Json summary = {{"operation", SnapshotOperationName(snapshot.operation)}};
  for (const auto& [key, value] : snapshot.summary) {
    summary[key] = value;
  }
  json["summary"] = std::move(summary);
  if (!snapshot.manifest_list.empty()) {
    json["manifest-list"] = snapshot.manifest_list;
  } else {
    json["manifests"] = snapshot.manifests;
  }
  if (snapshot.schema_id) {
    json["schema-id"] = *snapshot.schema_id;
  }
  if (snapshot.first_row_id) {
    json["first-row-id"] = *snapshot.first_row_id;
  }
  if (snapshot.added_rows) {
    json["added-rows"] = *snapshot.added_rows;
  }
  AppendUnknown(json, snapshot.unknown);
  return json;
}

Result<Snapshot> SnapshotFromJson(const Json& json) {
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "snapshot"));
  Snapshot snapshot;
  TARN_ASSIGN_OR_RETURN(snapshot.snapshot_id, object.GetLong("snapshot-id"));
  TARN_ASSIGN_OR_RETURN(snapshot.parent_snapshot_id, object.FindLong("parent-snapshot-id"));
  if (snapshot.parent_snapshot_id == -1) {
    snapshot.parent_snapshot_id.reset();
  }
  TARN_ASSIGN_OR_RETURN(const auto sequence, object.FindLong("sequence-number"));
  snapshot.sequence_number = sequence.value_or(0);
  TARN_ASSIGN_OR_RETURN(snapshot.timestamp_ms, object.GetLong("timestamp-ms"));
  TARN_ASSIGN_OR_RETURN(const auto manifest_list, object.FindString("manifest-list"));
  snapshot.manifest_list = manifest_list.value_or("");
  TARN_ASSIGN_OR_RETURN(snapshot.manifests, object.FindStrings("manifests"));
  TARN_ASSIGN_OR_RETURN(snapshot.summary, object.FindStringMap("summary"));
  if (const auto operation = snapshot.summary.find("operation");
      operation != snapshot.summary.end()) {
    TARN_ASSIGN_OR_RETURN(snapshot.operation, ParseSnapshotOperation(operation->second));
    snapshot.summary.erase(operation);
  }
  TARN_ASSIGN_OR_RETURN(snapshot.schema_id, object.FindInt("schema-id"));
  TARN_ASSIGN_OR_RETURN(snapshot.first_row_id, object.FindLong("first-row-id"));
  TARN_ASSIGN_OR_RETURN(snapshot.added_rows, object.FindLong("added-rows"));
  snapshot.unknown = object.Unknown({"sequence-number", "snapshot-id", "parent-snapshot-id",
                                     "timestamp-ms", "summary", "manifest-list", "manifests",
                                     "schema-id", "first-row-id", "added-rows"});
  return snapshot;
}

Json SnapshotRefToJson(const SnapshotRef& ref) {
  Json json = {{"snapshot-id", ref.snapshot_id},
               {"type", ref.type == SnapshotRefType::kBranch ? "branch" : "tag"}};
  if (ref.min_snapshots_to_keep) {
    json["min-snapshots-to-keep"] = *ref.min_snapshots_to_keep;
  }
  if (ref.max_snapshot_age_ms) {
    json["max-snapshot-age-ms"] = *ref.max_snapshot_age_ms;
  }
  if (ref.max_ref_age_ms) {
    json["max-ref-age-ms"] = *ref.max_ref_age_ms;
  }
  return json;
}

Result<SnapshotRef> SnapshotRefFromJson(const Json& json) {
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "snapshot reference"));
  SnapshotRef ref;
  TARN_ASSIGN_OR_RETURN(ref.snapshot_id, object.GetLong("snapshot-id"));
  TARN_ASSIGN_OR_RETURN(const std::string type, object.GetString("type"));
  if (type != "branch" && type != "tag") {
    return object.Error("type", "branch or tag", Json(type));
  }
  ref.type = type == "branch" ? SnapshotRefType::kBranch : SnapshotRefType::kTag;
  TARN_ASSIGN_OR_RETURN(ref.min_snapshots_to_keep, object.FindInt("min-snapshots-to-keep"));
  TARN_ASSIGN_OR_RETURN(ref.max_snapshot_age_ms, object.FindLong("max-snapshot-age-ms"));
  TARN_ASSIGN_OR_RETURN(ref.max_ref_age_ms, object.FindLong("max-ref-age-ms"));
  if (ref.type == SnapshotRefType::kTag && (ref.min_snapshots_to_keep || ref.max_snapshot_age_ms)) {
    return Status::InvalidArgument("snapshot reference: tags do not keep older snapshots");
  }
  if (ref.min_snapshots_to_keep.value_or(1) < 1 || ref.max_snapshot_age_ms.value_or(1) < 1 ||
      ref.max_ref_age_ms.value_or(1) < 1) {
    return Status::InvalidArgument("snapshot reference: counts and ages must be positive");
  }
  return ref;
}

}  // namespace tarn::iceberg
