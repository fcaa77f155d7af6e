#include "tarn/iceberg/metadata_builder.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tarn::iceberg {
namespace {

using namespace table_update;  // NOLINT(google-build-using-namespace): one closed set.

constexpr int64_t kClockSkewMs = 60'000;

std::string LowerAscii(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// State of one list of updates. Each operator() applies one of them to `metadata`.
class Builder {
 public:
  Builder(const TableMetadata* base, int64_t now_ms) : now_ms_(now_ms), is_new_(base == nullptr) {
    if (base != nullptr) {
      metadata_ = *base;
    } else {
      metadata_.partition_specs.clear();
      metadata_.sort_orders.clear();
      metadata_.current_schema_id = -1;
      metadata_.default_spec_id = -1;
      metadata_.default_sort_order_id = -1;
    }
  }

  Status operator()(const AssignUuid& update);
  Status operator()(const UpgradeFormatVersion& update);
  Status operator()(const AddSchema& update);
  Status operator()(const SetCurrentSchema& update);
  Status operator()(const AddSpec& update);
  Status operator()(const SetDefaultSpec& update);
  Status operator()(const AddSortOrder& update);
  Status operator()(const SetDefaultSortOrder& update);
  Status operator()(const AddSnapshot& update);
  Status operator()(const SetSnapshotRef& update);
  Status operator()(const RemoveSnapshots& update);
  Status operator()(const RemoveSnapshotRef& update);
  Status operator()(const SetLocation& update);
  Status operator()(const SetProperties& update);
  Status operator()(const RemoveProperties& update);
  Status operator()(const SetStatistics& update);
  Status operator()(const RemoveStatistics& update);
  Status operator()(const SetPartitionStatistics& update);
  Status operator()(const RemovePartitionStatistics& update);
  Status operator()(const RemovePartitionSpecs& update);
  Status operator()(const RemoveSchemas& update);
  Status operator()(const AddEncryptionKey& update);
  Status operator()(const RemoveEncryptionKey& update);

  Result<UpdateResult> Finish();

 private:
  [[nodiscard]] Status CheckDefaults() const;
  void DropIntermediateLogEntries();
  void DropExpiredLogEntries(const std::unordered_set<int64_t>& removed);

  int64_t now_ms_;
  bool is_new_;
  TableMetadata metadata_;
  bool changed_ = false;
  std::optional<int64_t> updated_ms_;
  std::optional<int32_t> last_schema_id_;
  std::optional<int32_t> last_spec_id_;
  std::optional<int32_t> last_order_id_;
  std::unordered_set<int64_t> added_snapshots_;
  std::vector<int64_t> mains_;  // Values main had during this list.
};

Status Builder::operator()(const AssignUuid& update) {
  if (update.uuid.empty()) {
    return Status::InvalidArgument("Cannot set uuid to null");
  }
  const std::string uuid = LowerAscii(update.uuid);
  if (metadata_.table_uuid == uuid) {
    return Status::Ok();
  }
  if (!metadata_.table_uuid.empty() && !is_new_) {
    return Status::InvalidArgument(
        fmt::format("Cannot reassign uuid: the table is {}, found {}", metadata_.table_uuid, uuid));
  }
  metadata_.table_uuid = uuid;
  changed_ = true;
  return Status::Ok();
}

Status Builder::operator()(const UpgradeFormatVersion& update) {
  if (update.format_version < 1 || update.format_version > kFormatVersionMax) {
    return Status::InvalidArgument(
        fmt::format("Cannot upgrade table to unsupported format version: v{} (supported: v{})",
                    update.format_version, kFormatVersionMax));
  }
  if (update.format_version == metadata_.format_version) {
    return Status::Ok();
  }
  if (update.format_version < metadata_.format_version && !is_new_) {
    return Status::InvalidArgument(fmt::format("Cannot downgrade v{} table to v{}",
                                               metadata_.format_version, update.format_version));
  }
  metadata_.format_version = update.format_version;
  changed_ = true;
  return Status::Ok();
}

Status Builder::operator()(const AddSchema& update) {
  TARN_RETURN_IF_ERROR(ValidateSchema(update.schema, metadata_.format_version));
  const int32_t highest = std::max(update.schema.HighestFieldId(), metadata_.last_column_id);
  if (highest != metadata_.last_column_id) {
    metadata_.last_column_id = highest;
    changed_ = true;
  }
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

Status Builder::operator()(const SetCurrentSchema& update) {
  if (update.schema_id == kLastAdded && !last_schema_id_) {
    return Status::InvalidArgument("Cannot set last added schema: no schema has been added");
  }
  const int32_t id = update.schema_id == kLastAdded ? *last_schema_id_ : update.schema_id;
  if (id == metadata_.current_schema_id) {
    return Status::Ok();
  }
  const Schema* schema = metadata_.FindSchema(id);
  if (schema == nullptr) {
    return Status::InvalidArgument(
        fmt::format("Cannot set current schema to unknown schema: {}", id));
  }
  metadata_.current_schema_id = id;
  changed_ = true;
  return Status::Ok();
}

Status Builder::operator()(const AddSpec& update) {
  PartitionSpec spec = update.spec;
  int32_t next_id = 0;
  for (const PartitionSpec& existing : metadata_.partition_specs) {
    if (existing.IsCompatibleWith(spec)) {
      last_spec_id_ = existing.spec_id;
      return Status::Ok();
    }
    next_id = std::max(next_id, existing.spec_id + 1);
  }
  const Schema* schema = metadata_.FindSchema(metadata_.current_schema_id);
  if (schema == nullptr && !metadata_.schemas.empty()) {
    schema = metadata_.schemas.back().get();
  }
  if (schema == nullptr) {
    return Status::InvalidArgument("Cannot add a partition spec before a schema");
  }
  TARN_RETURN_IF_ERROR(ValidatePartitionSpec(spec, *schema));
  std::unordered_set<int32_t> used;
  for (PartitionField& field : spec.fields) {
    // An id is that of the same source and transform in an older spec, else a new one.
    int32_t reused = 0;
    for (const PartitionSpec& existing : metadata_.partition_specs) {
      for (const PartitionField& other : existing.fields) {
        if (other.source_id == field.source_id && other.transform == field.transform) {
          reused = other.field_id;
        } else if (field.field_id != 0 && other.field_id == field.field_id) {
          return Status::InvalidArgument(fmt::format(
              "partition field '{}': id {} belongs to another field", field.name, field.field_id));
        }
      }
    }
    if (field.field_id == 0) {
      field.field_id = reused != 0 ? reused : metadata_.last_partition_id + 1;
    }
    if (!used.insert(field.field_id).second) {
      return Status::InvalidArgument(
          fmt::format("partition field '{}': id {} is used twice", field.name, field.field_id));
    }
    metadata_.last_partition_id = std::max(metadata_.last_partition_id, field.field_id);
  }
  spec.spec_id = next_id;
  last_spec_id_ = next_id;
  metadata_.partition_specs.push_back(std::move(spec));
  changed_ = true;
  return Status::Ok();
}

Status Builder::operator()(const SetDefaultSpec& update) {
  if (update.spec_id == kLastAdded && !last_spec_id_) {
    return Status::InvalidArgument("Cannot set last added spec: no spec has been added");
  }
  const int32_t id = update.spec_id == kLastAdded ? *last_spec_id_ : update.spec_id;
  if (id == metadata_.default_spec_id) {
    return Status::Ok();
  }
  if (metadata_.FindSpec(id) == nullptr) {
    return Status::InvalidArgument(fmt::format("Cannot set default spec to unknown spec: {}", id));
  }
  metadata_.default_spec_id = id;
  changed_ = true;
  return Status::Ok();
}

Status Builder::operator()(const AddSortOrder& update) {
  SortOrder order = update.order;
  int32_t next_id = 1;
  for (const SortOrder& existing : metadata_.sort_orders) {
    if (existing.fields == order.fields) {
      last_order_id_ = existing.order_id;
      return Status::Ok();
    }
    next_id = std::max(next_id, existing.order_id + 1);
  }
  order.order_id = order.fields.empty() ? 0 : next_id;
  const Schema* schema = metadata_.FindSchema(metadata_.current_schema_id);
  if (schema == nullptr && !metadata_.schemas.empty()) {
    schema = metadata_.schemas.back().get();
  }
  if (schema == nullptr && !order.fields.empty()) {
    return Status::InvalidArgument("Cannot add a sort order before a schema");
  }
  if (schema != nullptr) {
    TARN_RETURN_IF_ERROR(ValidateSortOrder(order, *schema));
  }
  last_order_id_ = order.order_id;
  metadata_.sort_orders.push_back(std::move(order));
  changed_ = true;
  return Status::Ok();
}

Status Builder::operator()(const SetDefaultSortOrder& update) {
  if (update.order_id == kLastAdded && !last_order_id_) {
    return Status::InvalidArgument(
        "Cannot set last added sort order: no sort order has been added");
  }
  const int32_t id = update.order_id == kLastAdded ? *last_order_id_ : update.order_id;
  if (id == metadata_.default_sort_order_id) {
    return Status::Ok();
  }
  if (metadata_.FindSortOrder(id) == nullptr) {
    return Status::InvalidArgument(
        fmt::format("Cannot set default sort order to unknown sort order: {}", id));
  }
  metadata_.default_sort_order_id = id;
  changed_ = true;
  return Status::Ok();
}

Status Builder::operator()(const AddSnapshot& update) {
  const Snapshot& snapshot = update.snapshot;
  if (metadata_.FindSnapshot(snapshot.snapshot_id) != nullptr) {
    return Status::InvalidArgument(
        fmt::format("Snapshot already exists for id: {}", snapshot.snapshot_id));
  }
  if (snapshot.timestamp_ms < 0 || snapshot.sequence_number < 0) {
    return Status::InvalidArgument(
        fmt::format("snapshot {}: negative time or sequence number", snapshot.snapshot_id));
  }
  if (metadata_.schemas.empty() || metadata_.partition_specs.empty() ||
      metadata_.sort_orders.empty()) {
    return Status::InvalidArgument(
        "Attempting to add a snapshot before a schema, a partition spec and a sort order");
  }
  if (metadata_.format_version > 1) {
    if (snapshot.manifest_list.empty()) {
      return Status::InvalidArgument(
          fmt::format("snapshot {} has no manifest-list", snapshot.snapshot_id));
    }
    if (snapshot.sequence_number <= metadata_.last_sequence_number && snapshot.parent_snapshot_id) {
      return Status::Conflict(fmt::format(
          "Cannot add snapshot with sequence number {} older than last sequence number {}",
          snapshot.sequence_number, metadata_.last_sequence_number));
    }
  }
  if (snapshot.schema_id && metadata_.FindSchema(*snapshot.schema_id) == nullptr) {
    return Status::InvalidArgument(
        fmt::format("snapshot {} refers to schema {}, which is not there", snapshot.snapshot_id,
                    *snapshot.schema_id));
  }
  if (!metadata_.snapshot_log.empty() &&
      snapshot.timestamp_ms < metadata_.snapshot_log.back().timestamp_ms - kClockSkewMs) {
    return Status::InvalidArgument(
        fmt::format("Invalid snapshot timestamp {}: before last snapshot timestamp {}",
                    snapshot.timestamp_ms, metadata_.snapshot_log.back().timestamp_ms));
  }
  if (metadata_.format_version >= 3) {
    if (!snapshot.first_row_id) {
      return Status::InvalidArgument("Cannot add a snapshot: first-row-id is null");
    }
    if (*snapshot.first_row_id < metadata_.next_row_id) {
      return Status::Conflict(
          fmt::format("Cannot add a snapshot, first-row-id is behind table next-row-id: {} < {}",
                      *snapshot.first_row_id, metadata_.next_row_id));
    }
    constexpr int64_t kRowsMax = int64_t{1} << 60;
    const int64_t added_rows = snapshot.added_rows.value_or(0);
    if (added_rows < 0 || added_rows > kRowsMax || *snapshot.first_row_id > kRowsMax) {
      return Status::InvalidArgument("Cannot add a snapshot: first-row-id or added-rows is wrong");
    }
    metadata_.next_row_id = *snapshot.first_row_id + added_rows;
  }
  metadata_.last_sequence_number =
      std::max(metadata_.last_sequence_number, snapshot.sequence_number);
  updated_ms_ = std::max(snapshot.timestamp_ms, updated_ms_.value_or(snapshot.timestamp_ms));
  added_snapshots_.insert(snapshot.snapshot_id);
  metadata_.snapshots.push_back(std::make_shared<const Snapshot>(snapshot));
  changed_ = true;
  return Status::Ok();
}

Status Builder::operator()(const SetSnapshotRef& update) {
  if (update.name.empty()) {
    return Status::InvalidArgument("the name of a branch or tag cannot be empty");
  }
  const bool is_main = update.name == kMainBranch;
  if (is_main && update.ref.type != SnapshotRefType::kBranch) {
    return Status::InvalidArgument("main must be a branch");
  }
  const auto at = metadata_.refs.find(update.name);
  if (at != metadata_.refs.end() && at->second == update.ref) {
    return Status::Ok();
  }
  const Snapshot* snapshot = metadata_.FindSnapshot(update.ref.snapshot_id);
  if (snapshot == nullptr) {
    return Status::InvalidArgument(
        fmt::format("Cannot set {} to unknown snapshot: {}", update.name, update.ref.snapshot_id));
  }
  const bool is_added = added_snapshots_.contains(update.ref.snapshot_id);
  if (is_main && metadata_.current_snapshot_id != update.ref.snapshot_id) {
    metadata_.current_snapshot_id = update.ref.snapshot_id;
    const int64_t at_ms =
        is_added ? snapshot->timestamp_ms : std::max(now_ms_, metadata_.last_updated_ms);
    updated_ms_ = std::max(at_ms, updated_ms_.value_or(at_ms));
    metadata_.snapshot_log.push_back({update.ref.snapshot_id, at_ms});
    mains_.push_back(update.ref.snapshot_id);
  }
  metadata_.refs[update.name] = update.ref;
  changed_ = true;
  return Status::Ok();
}

Status Builder::operator()(const RemoveSnapshots& update) {
  const std::unordered_set<int64_t> ids(update.snapshot_ids.begin(), update.snapshot_ids.end());
  const size_t before = metadata_.snapshots.size();
  std::erase_if(metadata_.snapshots,
                [&](const SnapshotPtr& snapshot) { return ids.contains(snapshot->snapshot_id); });
  if (metadata_.snapshots.size() == before) {
    return Status::Ok();
  }
  std::erase_if(metadata_.refs,
                [&](const auto& ref) { return ids.contains(ref.second.snapshot_id); });
  std::erase_if(metadata_.statistics,
                [&](const StatisticsFile& file) { return ids.contains(file.snapshot_id); });
  std::erase_if(metadata_.partition_statistics, [&](const PartitionStatisticsFile& file) {
    return ids.contains(file.snapshot_id);
  });
  if (metadata_.current_snapshot_id && ids.contains(*metadata_.current_snapshot_id)) {
    metadata_.current_snapshot_id.reset();
  }
  DropExpiredLogEntries(ids);
  changed_ = true;
  return Status::Ok();
}

Status Builder::operator()(const RemoveSnapshotRef& update) {
  const bool was_there = metadata_.refs.erase(update.name) > 0;
  if (update.name == kMainBranch && metadata_.current_snapshot_id) {
    // The log stays: a replaced table can be read as it was.
    metadata_.current_snapshot_id.reset();
    changed_ = true;
  }
  changed_ = changed_ || was_there;
  return Status::Ok();
}

Status Builder::operator()(const SetLocation& update) {
  std::string location = update.location;
  while (location.size() > 1 && location.back() == '/') {
    location.pop_back();
  }
  if (location.empty()) {
    return Status::InvalidArgument("the location of a table cannot be empty");
  }
  changed_ = changed_ || metadata_.location != location;
  metadata_.location = std::move(location);
  return Status::Ok();
}

Status Builder::operator()(const SetProperties& update) {
  for (const auto& [key, value] : update.updates) {
    if (key == "format-version") {
      int32_t version = 0;
      const char* const end = value.data() + value.size();
      const auto [stop, error] = std::from_chars(value.data(), end, version);
      if (error != std::errc() || stop != end) {
        return Status::InvalidArgument("format-version must be a number, found " + value);
      }
      TARN_RETURN_IF_ERROR((*this)(UpgradeFormatVersion{version}));
      continue;
    }
    if (IsReservedProperty(key)) {
      continue;
    }
    const auto at = metadata_.properties.find(key);
    if (at == metadata_.properties.end() || at->second != value) {
      metadata_.properties[key] = value;
      changed_ = true;
    }
  }
  return Status::Ok();
}

Status Builder::operator()(const RemoveProperties& update) {
  for (const std::string& key : update.removals) {
    changed_ = metadata_.properties.erase(key) > 0 || changed_;
  }
  return Status::Ok();
}

Status Builder::operator()(const SetStatistics& update) {
  if (metadata_.FindSnapshot(update.statistics.snapshot_id) == nullptr) {
    return Status::InvalidArgument(fmt::format("statistics for snapshot {}, which is not there",
                                               update.statistics.snapshot_id));
  }
  auto& files = metadata_.statistics;
  if (std::find(files.begin(), files.end(), update.statistics) != files.end()) {
    return Status::Ok();
  }
  std::erase_if(files, [&](const StatisticsFile& file) {
    return file.snapshot_id == update.statistics.snapshot_id;
  });
  files.push_back(update.statistics);
  changed_ = true;
  return Status::Ok();
}

Status Builder::operator()(const RemoveStatistics& update) {
  changed_ = std::erase_if(metadata_.statistics,
                           [&](const StatisticsFile& file) {
                             return file.snapshot_id == update.snapshot_id;
                           }) > 0 ||
             changed_;
  return Status::Ok();
}

Status Builder::operator()(const SetPartitionStatistics& update) {
  if (metadata_.FindSnapshot(update.statistics.snapshot_id) == nullptr) {
    return Status::InvalidArgument(fmt::format(
        "partition statistics for snapshot {}, which is not there", update.statistics.snapshot_id));
  }
  auto& files = metadata_.partition_statistics;
  if (std::find(files.begin(), files.end(), update.statistics) != files.end()) {
    return Status::Ok();
  }
  std::erase_if(files, [&](const PartitionStatisticsFile& file) {
    return file.snapshot_id == update.statistics.snapshot_id;
  });
  files.push_back(update.statistics);
  changed_ = true;
  return Status::Ok();
}

Status Builder::operator()(const RemovePartitionStatistics& update) {
  changed_ = std::erase_if(metadata_.partition_statistics,
                           [&](const PartitionStatisticsFile& file) {
                             return file.snapshot_id == update.snapshot_id;
                           }) > 0 ||
             changed_;
  return Status::Ok();
}

Status Builder::operator()(const RemovePartitionSpecs& update) {
  for (const int32_t id : update.spec_ids) {
    if (id == metadata_.default_spec_id) {
      return Status::InvalidArgument("Cannot remove the default partition spec");
    }
    changed_ = std::erase_if(metadata_.partition_specs,
                             [&](const PartitionSpec& spec) { return spec.spec_id == id; }) > 0 ||
               changed_;
  }
  return Status::Ok();
}

Status Builder::operator()(const RemoveSchemas& update) {
  for (const int32_t id : update.schema_ids) {
    if (id == metadata_.current_schema_id) {
      return Status::InvalidArgument("Cannot remove the current schema");
    }
    changed_ =
        std::erase_if(metadata_.schemas,
                      [&](const SchemaPtr& schema) { return schema->schema_id == id; }) > 0 ||
        changed_;
  }
  return Status::Ok();
}

Status Builder::operator()(const AddEncryptionKey& update) {
  Json keys = Json::parse(metadata_.encryption_keys.value_or("[]"), nullptr, false);
  Json key = Json::parse(update.key_json, nullptr, false);
  if (!keys.is_array() || !key.is_object()) {
    return Status::InvalidArgument("an encryption key must be a JSON object");
  }
  for (const Json& existing : keys) {
    if (existing.is_object() && existing.value("key-id", "") == update.key_id) {
      return Status::Ok();
    }
  }
  keys.push_back(std::move(key));
  metadata_.encryption_keys = DumpJson(keys);
  changed_ = true;
  return Status::Ok();
}

Status Builder::operator()(const RemoveEncryptionKey& update) {
  Json keys = Json::parse(metadata_.encryption_keys.value_or("[]"), nullptr, false);
  Json kept = Json::array();
  for (Json& key : keys) {
    if (!key.is_object() || key.value("key-id", "") != update.key_id) {
      kept.push_back(std::move(key));
    }
  }
  if (kept.size() != keys.size()) {
    metadata_.encryption_keys = DumpJson(kept);
    changed_ = true;
  }
  return Status::Ok();
}

void Builder::DropExpiredLogEntries(const std::unordered_set<int64_t>& removed) {
  auto& log = metadata_.snapshot_log;
  // What came before a removed entry cannot be answered for any more either.
  const auto last = std::find_if(log.rbegin(), log.rend(), [&](const SnapshotLogEntry& entry) {
    return removed.contains(entry.snapshot_id);
  });
  log.erase(log.begin(), last.base());
}

// Snapshots that main passed through within one list of updates were never visible.
void Builder::DropIntermediateLogEntries() {
  if (mains_.size() < 2) {
    return;
  }
  std::unordered_set<int64_t> passed(mains_.begin(), mains_.end() - 1);
  passed.erase(mains_.back());
  std::erase_if(metadata_.snapshot_log, [&](const SnapshotLogEntry& entry) {
    return passed.contains(entry.snapshot_id) && added_snapshots_.contains(entry.snapshot_id);
  });
}

// The default spec and order must fit the current schema in the end; between the updates of one
// list (a replaced table) they need not.
Status Builder::CheckDefaults() const {
  const Schema* schema = metadata_.FindSchema(metadata_.current_schema_id);
  const std::string context =
      fmt::format("Cannot set current schema to {}", metadata_.current_schema_id);
  if (schema == nullptr) {
    return Status::Ok();
  }
  if (const SortOrder* order = metadata_.FindSortOrder(metadata_.default_sort_order_id)) {
    for (const SortField& field : order->fields) {
      if (schema->FindField(field.source_id) == nullptr) {
        return Status::InvalidArgument(
            fmt::format("{}: the sort order needs column {}", context, field.source_id));
      }
    }
  }
  if (const PartitionSpec* spec = metadata_.FindSpec(metadata_.default_spec_id)) {
    return ValidatePartitionSpec(*spec, *schema).WithContext(context);
  }
  return Status::Ok();
}

Result<UpdateResult> Builder::Finish() {
  DropIntermediateLogEntries();
  if (metadata_.schemas.empty() || metadata_.current_schema_id < 0) {
    return Status::InvalidArgument("the table has no current schema");
  }
  if (metadata_.partition_specs.empty()) {
    metadata_.partition_specs.emplace_back();
    metadata_.default_spec_id = 0;
  }
  if (metadata_.sort_orders.empty()) {
    metadata_.sort_orders.emplace_back();
    metadata_.default_sort_order_id = 0;
  }
  if (changed_) {
    TARN_RETURN_IF_ERROR(CheckDefaults());
    metadata_.last_updated_ms = std::max(updated_ms_.value_or(now_ms_), metadata_.last_updated_ms);
  }
  TARN_RETURN_IF_ERROR(ValidateTableMetadata(metadata_));
  return UpdateResult{std::move(metadata_), changed_};
}

}  // namespace

Result<UpdateResult> ApplyUpdates(const TableMetadata* base,
                                  const std::vector<TableUpdate>& updates, int64_t now_ms) {
  Builder builder(base, now_ms);
  for (const TableUpdate& update : updates) {
    TARN_RETURN_IF_ERROR(std::visit(builder, update));
  }
  return builder.Finish();
}

std::vector<std::string> LogPreviousMetadata(const TableMetadata& base,
                                             const std::string& base_location,
                                             TableMetadata& next) {
  std::vector<std::string> dropped;
  next.metadata_log = base.metadata_log;
  next.metadata_log.push_back({base_location, base.last_updated_ms});
  const auto limit = static_cast<size_t>(
      std::max<int64_t>(1, next.LongProperty("write.metadata.previous-versions-max", 100)));
  while (next.metadata_log.size() > limit) {
    dropped.push_back(next.metadata_log.front().metadata_file);
    next.metadata_log.erase(next.metadata_log.begin());
  }
  return dropped;
}

}  // namespace tarn::iceberg
