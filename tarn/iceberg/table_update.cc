#include "tarn/iceberg/table_update.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/iceberg/table_metadata_json.h"

namespace tarn::iceberg {
namespace {

using namespace table_update;  // NOLINT(google-build-using-namespace): the alternatives of one set.

struct ToJson {
  Json operator()(const AssignUuid& u) const {
    return {{"action", "assign-uuid"}, {"uuid", u.uuid}};
  }
  Json operator()(const UpgradeFormatVersion& u) const {
    return {{"action", "upgrade-format-version"}, {"format-version", u.format_version}};
  }
  Json operator()(const AddSchema& u) const {
    Json json = {{"action", "add-schema"}, {"schema", SchemaToJson(u.schema)}};
    if (u.last_column_id) {
      json["last-column-id"] = *u.last_column_id;
    }
    return json;
  }
  Json operator()(const SetCurrentSchema& u) const {
    return {{"action", "set-current-schema"}, {"schema-id", u.schema_id}};
  }
  Json operator()(const AddSpec& u) const {
    return {{"action", "add-spec"}, {"spec", PartitionSpecToJson(u.spec)}};
  }
  Json operator()(const SetDefaultSpec& u) const {
    return {{"action", "set-default-spec"}, {"spec-id", u.spec_id}};
  }
  Json operator()(const AddSortOrder& u) const {
    return {{"action", "add-sort-order"}, {"sort-order", SortOrderToJson(u.order)}};
  }
  Json operator()(const SetDefaultSortOrder& u) const {
    return {{"action", "set-default-sort-order"}, {"sort-order-id", u.order_id}};
  }
  Json operator()(const AddSnapshot& u) const {
    return {{"action", "add-snapshot"}, {"snapshot", SnapshotToJson(u.snapshot)}};
  }
  Json operator()(const SetSnapshotRef& u) const {
    Json json = {{"action", "set-snapshot-ref"}, {"ref-name", u.name}};
    json.update(SnapshotRefToJson(u.ref));
    return json;
  }
  Json operator()(const RemoveSnapshots& u) const {
    return {{"action", "remove-snapshots"}, {"snapshot-ids", u.snapshot_ids}};
  }
  Json operator()(const RemoveSnapshotRef& u) const {
    return {{"action", "remove-snapshot-ref"}, {"ref-name", u.name}};
  }
  Json operator()(const SetLocation& u) const {
    return {{"action", "set-location"}, {"location", u.location}};
  }
  Json operator()(const SetProperties& u) const {
    return {{"action", "set-properties"}, {"updates", u.updates}};
  }
  Json operator()(const RemoveProperties& u) const {
    return {{"action", "remove-properties"}, {"removals", u.removals}};
  }
  Json operator()(const SetStatistics& u) const {
    return {{"action", "set-statistics"},
            {"snapshot-id", u.statistics.snapshot_id},
            {"statistics", StatisticsToJson(u.statistics)}};
  }
  Json operator()(const RemoveStatistics& u) const {
    return {{"action", "remove-statistics"}, {"snapshot-id", u.snapshot_id}};
  }
  Json operator()(const SetPartitionStatistics& u) const {
    return {{"action", "set-partition-statistics"},
            {"partition-statistics", PartitionStatisticsToJson(u.statistics)}};
  }
  Json operator()(const RemovePartitionStatistics& u) const {
    return {{"action", "remove-partition-statistics"}, {"snapshot-id", u.snapshot_id}};
  }
  Json operator()(const RemovePartitionSpecs& u) const {
    return {{"action", "remove-partition-specs"}, {"spec-ids", u.spec_ids}};
  }
  Json operator()(const RemoveSchemas& u) const {
    return {{"action", "remove-schemas"}, {"schema-ids", u.schema_ids}};
  }
  Json operator()(const AddEncryptionKey& u) const {
    return {{"action", "add-encryption-key"},
            {"encryption-key", Json::parse(u.key_json, nullptr, false)}};
  }
  Json operator()(const RemoveEncryptionKey& u) const {
    return {{"action", "remove-encryption-key"}, {"key-id", u.key_id}};
  }
};

Result<TableUpdate> SchemaUpdateFromJson(const JsonObject& object, std::string_view action) {
  if (action == "add-schema") {
    TARN_ASSIGN_OR_RETURN(const Json* json, object.Get("schema"));
    AddSchema update;
    TARN_ASSIGN_OR_RETURN(update.schema, SchemaFromJson(*json));
    TARN_ASSIGN_OR_RETURN(update.last_column_id, object.FindInt("last-column-id"));
    return TableUpdate(std::move(update));
  }
  if (action == "set-current-schema") {
    TARN_ASSIGN_OR_RETURN(const int32_t id, object.GetInt("schema-id"));
    return TableUpdate(SetCurrentSchema{id});
  }
  if (action == "remove-schemas") {
    TARN_ASSIGN_OR_RETURN(auto ids, object.FindInts("schema-ids"));
    return TableUpdate(RemoveSchemas{std::move(ids)});
  }
  if (action == "add-spec") {
    TARN_ASSIGN_OR_RETURN(const Json* json, object.Get("spec"));
    TARN_ASSIGN_OR_RETURN(PartitionSpec spec, PartitionSpecFromJson(*json));
    return TableUpdate(AddSpec{std::move(spec)});
  }
  if (action == "set-default-spec") {
    TARN_ASSIGN_OR_RETURN(const int32_t id, object.GetInt("spec-id"));
    return TableUpdate(SetDefaultSpec{id});
  }
  if (action == "remove-partition-specs") {
    TARN_ASSIGN_OR_RETURN(auto ids, object.FindInts("spec-ids"));
    return TableUpdate(RemovePartitionSpecs{std::move(ids)});
  }
  if (action == "add-sort-order") {
    TARN_ASSIGN_OR_RETURN(const Json* json, object.Get("sort-order"));
    TARN_ASSIGN_OR_RETURN(SortOrder order, SortOrderFromJson(*json));
    return TableUpdate(AddSortOrder{std::move(order)});
  }
  if (action == "set-default-sort-order") {
    TARN_ASSIGN_OR_RETURN(const int32_t id, object.GetInt("sort-order-id"));
    return TableUpdate(SetDefaultSortOrder{id});
  }
  return Status::InvalidArgument(fmt::format("table update '{}' is not known", action));
}

Result<TableUpdate> SnapshotUpdateFromJson(const Json& json, const JsonObject& object,
                                           std::string_view action) {
  if (action == "add-snapshot") {
    TARN_ASSIGN_OR_RETURN(const Json* member, object.Get("snapshot"));
    TARN_ASSIGN_OR_RETURN(Snapshot snapshot, SnapshotFromJson(*member));
    return TableUpdate(AddSnapshot{std::move(snapshot)});
  }
  if (action == "set-snapshot-ref") {
    SetSnapshotRef update;
    TARN_ASSIGN_OR_RETURN(update.name, object.GetString("ref-name"));
    TARN_ASSIGN_OR_RETURN(update.ref, SnapshotRefFromJson(json));
    return TableUpdate(std::move(update));
  }
  if (action == "remove-snapshots") {
    TARN_ASSIGN_OR_RETURN(auto ids, object.FindLongs("snapshot-ids"));
    return TableUpdate(RemoveSnapshots{std::move(ids)});
  }
  if (action == "remove-snapshot-ref") {
    TARN_ASSIGN_OR_RETURN(std::string name, object.GetString("ref-name"));
    return TableUpdate(RemoveSnapshotRef{std::move(name)});
  }
  if (action == "set-statistics") {
    TARN_ASSIGN_OR_RETURN(const Json* member, object.Get("statistics"));
    TARN_ASSIGN_OR_RETURN(StatisticsFile file, StatisticsFromJson(*member));
    return TableUpdate(SetStatistics{std::move(file)});
  }
  if (action == "set-partition-statistics") {
    TARN_ASSIGN_OR_RETURN(const Json* member, object.Get("partition-statistics"));
    TARN_ASSIGN_OR_RETURN(PartitionStatisticsFile file, PartitionStatisticsFromJson(*member));
    return TableUpdate(SetPartitionStatistics{std::move(file)});
  }
  if (action == "remove-statistics" || action == "remove-partition-statistics") {
    TARN_ASSIGN_OR_RETURN(const int64_t id, object.GetLong("snapshot-id"));
    return action == "remove-statistics" ? TableUpdate(RemoveStatistics{id})
                                         : TableUpdate(RemovePartitionStatistics{id});
  }
  return SchemaUpdateFromJson(object, action);
}

}  // namespace

Json TableUpdateToJson(const TableUpdate& update) { return std::visit(ToJson{}, update); }

Result<TableUpdate> TableUpdateFromJson(const Json& json) {
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "table update"));
  TARN_ASSIGN_OR_RETURN(const std::string action, object.GetString("action"));
  if (action == "assign-uuid") {
    TARN_ASSIGN_OR_RETURN(std::string uuid, object.GetString("uuid"));
    return TableUpdate(AssignUuid{std::move(uuid)});
  }
  if (action == "upgrade-format-version") {
    TARN_ASSIGN_OR_RETURN(const int32_t version, object.GetInt("format-version"));
    return TableUpdate(UpgradeFormatVersion{version});
  }
  if (action == "set-location") {
    TARN_ASSIGN_OR_RETURN(std::string location, object.GetString("location"));
    return TableUpdate(SetLocation{std::move(location)});
  }
  if (action == "set-properties") {
    const char* key = object.Find("updates") == nullptr ? "updated" : "updates";
    TARN_RETURN_IF_ERROR(object.Find(key) == nullptr ? object.Get("updates").status()
                                                     : Status::Ok());
    TARN_ASSIGN_OR_RETURN(auto updates, object.FindStringMap(key));
    return TableUpdate(SetProperties{std::move(updates)});
  }
  if (action == "remove-properties") {
    const char* key = object.Find("removals") == nullptr ? "removed" : "removals";
    TARN_RETURN_IF_ERROR(object.Find(key) == nullptr ? object.Get("removals").status()
                                                     : Status::Ok());
    TARN_ASSIGN_OR_RETURN(auto removals, object.FindStrings(key));
    return TableUpdate(RemoveProperties{std::move(removals)});
  }
  if (action == "add-encryption-key") {
    TARN_ASSIGN_OR_RETURN(const Json* key, object.Get("encryption-key"));
    TARN_ASSIGN_OR_RETURN(const JsonObject member, JsonObject::Of(*key, "encryption key"));
    TARN_ASSIGN_OR_RETURN(std::string id, member.GetString("key-id"));
    return TableUpdate(AddEncryptionKey{std::move(id), DumpJson(*key)});
  }
  if (action == "remove-encryption-key") {
    TARN_ASSIGN_OR_RETURN(std::string id, object.GetString("key-id"));
    return TableUpdate(RemoveEncryptionKey{std::move(id)});
  }
  return SnapshotUpdateFromJson(json, object, action);
}

}  // namespace tarn::iceberg
