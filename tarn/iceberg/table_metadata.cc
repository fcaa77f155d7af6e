#include "tarn/iceberg/table_metadata.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <unordered_set>

#include <fmt/format.h>

#include "tarn/base/check.h"
#include "tarn/iceberg/codec/calendar.h"

namespace tarn::iceberg {
namespace {

template <typename T>
bool DeepEqual(const std::vector<std::shared_ptr<const T>>& a,
               const std::vector<std::shared_ptr<const T>>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x == y || *x == *y; });
}

// Java's writers may be this far off between their clocks.
constexpr int64_t kClockSkewMs = 60'000;

constexpr std::string_view kReservedProperties[] = {
    "format-version",      "uuid",
    "snapshot-count",      "current-snapshot-summary",
    "current-snapshot-id", "current-snapshot-timestamp-ms",
    "current-schema",      "default-partition-spec",
    "default-sort-order"};

}  // namespace

bool IsReservedProperty(std::string_view name) {
  return std::find(std::begin(kReservedProperties), std::end(kReservedProperties), name) !=
         std::end(kReservedProperties);
}

const Schema* TableMetadata::FindSchema(int32_t schema_id) const {
  for (const SchemaPtr& schema : schemas) {
    if (schema->schema_id == schema_id) {
      return schema.get();
    }
  }
  return nullptr;
}

const Schema& TableMetadata::CurrentSchema() const {
  const Schema* schema = FindSchema(current_schema_id);
  TARN_CHECK(schema != nullptr);
  return *schema;
}

const PartitionSpec* TableMetadata::FindSpec(int32_t spec_id) const {
  for (const PartitionSpec& spec : partition_specs) {
    if (spec.spec_id == spec_id) {
      return &spec;
    }
  }
  return nullptr;
}

const PartitionSpec& TableMetadata::DefaultSpec() const {
  const PartitionSpec* spec = FindSpec(default_spec_id);
  TARN_CHECK(spec != nullptr);
  return *spec;
}

const SortOrder* TableMetadata::FindSortOrder(int32_t order_id) const {
  for (const SortOrder& order : sort_orders) {
    if (order.order_id == order_id) {
      return &order;
    }
  }
  return nullptr;
}

const SortOrder& TableMetadata::DefaultSortOrder() const {
  const SortOrder* order = FindSortOrder(default_sort_order_id);
  TARN_CHECK(order != nullptr);
  return *order;
}

const Snapshot* TableMetadata::FindSnapshot(int64_t snapshot_id) const {
  // The newest is looked for most.
  for (auto at = snapshots.rbegin(); at != snapshots.rend(); ++at) {
    if ((*at)->snapshot_id == snapshot_id) {
      return at->get();
    }
  }
  return nullptr;
}

const Snapshot* TableMetadata::CurrentSnapshot() const {
  return current_snapshot_id ? FindSnapshot(*current_snapshot_id) : nullptr;
}

const Snapshot* TableMetadata::FindSnapshotOf(std::string_view ref) const {
  const auto at = refs.find(std::string(ref));
  if (at != refs.end()) {
    return FindSnapshot(at->second.snapshot_id);
  }
  return ref == kMainBranch ? CurrentSnapshot() : nullptr;
}

const Schema& TableMetadata::SchemaOf(const Snapshot& snapshot) const {
  const Schema* schema = snapshot.schema_id ? FindSchema(*snapshot.schema_id) : nullptr;
  return schema != nullptr ? *schema : CurrentSchema();
}

int64_t TableMetadata::LongProperty(std::string_view key, int64_t otherwise) const {
  const auto at = properties.find(std::string(key));
  if (at == properties.end()) {
    return otherwise;
  }
  int64_t value = 0;
  const char* end = at->second.data() + at->second.size();
  const auto [stop, error] = std::from_chars(at->second.data(), end, value);
  return error == std::errc() && stop == end ? value : otherwise;
}

bool TableMetadata::BoolProperty(std::string_view key, bool otherwise) const {
  const auto at = properties.find(std::string(key));
  if (at == properties.end()) {
    return otherwise;
  }
  std::string text = at->second;
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text == "true" ? true : (text == "false" ? false : otherwise);
}

bool operator==(const TableMetadata& a, const TableMetadata& b) {
  return a.format_version == b.format_version && a.table_uuid == b.table_uuid &&
         a.location == b.location && a.last_sequence_number == b.last_sequence_number &&
         a.last_updated_ms == b.last_updated_ms && a.last_column_id == b.last_column_id &&
         DeepEqual(a.schemas, b.schemas) && a.current_schema_id == b.current_schema_id &&
         a.partition_specs == b.partition_specs && a.default_spec_id == b.default_spec_id &&
         a.last_partition_id == b.last_partition_id && a.sort_orders == b.sort_orders &&
         a.default_sort_order_id == b.default_sort_order_id && a.properties == b.properties &&
         a.current_snapshot_id == b.current_snapshot_id && DeepEqual(a.snapshots, b.snapshots) &&
         a.snapshot_log == b.snapshot_log && a.metadata_log == b.metadata_log && a.refs == b.refs &&
         a.statistics == b.statistics && a.partition_statistics == b.partition_statistics &&
         a.next_row_id == b.next_row_id && a.encryption_keys == b.encryption_keys &&
         a.unknown == b.unknown;
}

std::vector<int64_t> AncestorsOf(const TableMetadata& metadata, int64_t snapshot_id) {
  std::unordered_map<int64_t, const Snapshot*> by_id;
  for (const SnapshotPtr& snapshot : metadata.snapshots) {
    by_id.emplace(snapshot->snapshot_id, snapshot.get());
  }
  std::vector<int64_t> ancestors;
  for (auto at = by_id.find(snapshot_id); at != by_id.end();) {
    ancestors.push_back(at->first);
    if (!at->second->parent_snapshot_id || ancestors.size() > by_id.size()) {
      break;
    }
    at = by_id.find(*at->second->parent_snapshot_id);
  }
  return ancestors;
}

bool IsAncestorOf(const TableMetadata& metadata, int64_t ancestor, int64_t snapshot_id) {
  const std::vector<int64_t> ancestors = AncestorsOf(metadata, snapshot_id);
  return std::find(ancestors.begin(), ancestors.end(), ancestor) != ancestors.end();
}

Result<int64_t> SnapshotIdAsOf(const TableMetadata& metadata, int64_t timestamp_ms) {
  const SnapshotLogEntry* found = nullptr;
  for (const SnapshotLogEntry& entry : metadata.snapshot_log) {
    if (entry.timestamp_ms <= timestamp_ms) {
      found = &entry;
    }
  }
  if (found != nullptr && metadata.FindSnapshot(found->snapshot_id) != nullptr) {
    return found->snapshot_id;
  }
  if (metadata.snapshot_log.empty()) {
    return Status::NotFound("the table has no snapshot yet");
  }
  return Status::NotFound(
      fmt::format("there is no snapshot of {}: the oldest one kept is of {}",
                  FormatDateTime(timestamp_ms * 1000, false, true),
                  FormatDateTime(metadata.snapshot_log.front().timestamp_ms * 1000, false, true)));
}

namespace {

Result<int32_t> ChooseFormatVersion(const std::map<std::string, std::string>& properties) {
  const auto at = properties.find("format-version");
  if (at == properties.end()) {
    return kFormatVersionDefault;
  }
  for (int32_t version = 1; version <= kFormatVersionMax; ++version) {
    if (at->second == std::to_string(version)) {
      return version;
    }
  }
  return Status::InvalidArgument(fmt::format("property format-version must be 1 to {}, found '{}'",
                                             kFormatVersionMax, at->second));
}

// The id that a field of `from` has in `to`, by name.
int32_t MapId(const Schema& from, const Schema& to, int32_t id) {
  const std::optional<std::string> name = from.NameOf(id);
  const SchemaField* field = name ? to.FindField(*name) : nullptr;
  return field != nullptr ? field->id : -1;
}

}  // namespace

Result<TableMetadata> MakeTableMetadata(const TableDefinition& table, int64_t now_ms) {
  TableMetadata metadata;
  TARN_ASSIGN_OR_RETURN(metadata.format_version, ChooseFormatVersion(table.properties));
  metadata.table_uuid = table.table_uuid;
  metadata.location = table.location;
  while (metadata.location.size() > 1 && metadata.location.back() == '/') {
    metadata.location.pop_back();
  }
  metadata.last_updated_ms = now_ms;
  // Found by dotted name afterwards, so names must be unique first.
  Schema given = table.schema;
  {
    Schema checked = given;
    int32_t last = 0;
    checked = AssignFreshIds(checked, last);
    TARN_RETURN_IF_ERROR(ValidateSchema(checked, metadata.format_version));
  }
  Schema schema = AssignFreshIds(given, metadata.last_column_id);
  schema.schema_id = 0;
  PartitionSpec spec = table.spec;
  spec.spec_id = 0;
  for (PartitionField& field : spec.fields) {
    field.source_id = MapId(given, schema, field.source_id);
    field.field_id = ++metadata.last_partition_id;
  }
  TARN_RETURN_IF_ERROR(ValidatePartitionSpec(spec, schema));
  SortOrder order = table.sort_order;
  order.order_id = order.fields.empty() ? 0 : 1;
  for (SortField& field : order.fields) {
    field.source_id = MapId(given, schema, field.source_id);
  }
  TARN_RETURN_IF_ERROR(ValidateSortOrder(order, schema));
  metadata.schemas.push_back(std::make_shared<const Schema>(std::move(schema)));
  metadata.partition_specs.push_back(std::move(spec));
  metadata.default_sort_order_id = order.order_id;
  metadata.sort_orders.push_back(std::move(order));
  metadata.properties = table.properties;
  for (const std::string_view reserved : kReservedProperties) {
    metadata.properties.erase(std::string(reserved));
  }
  TARN_RETURN_IF_ERROR(ValidateTableMetadata(metadata));
  return metadata;
}

namespace {

Status Invalid(std::string message) { return Status::InvalidArgument(std::move(message)); }

Status ValidateIds(const TableMetadata& metadata) {
  std::set<int32_t> ids;
  for (const SchemaPtr& schema : metadata.schemas) {
    if (!ids.insert(schema->schema_id).second) {
      return Invalid(fmt::format("schema {} is there twice", schema->schema_id));
    }
  }
  if (metadata.FindSchema(metadata.current_schema_id) == nullptr) {
    return Invalid(fmt::format("Cannot find schema with current-schema-id={} from schemas",
                               metadata.current_schema_id));
  }
  ids.clear();
  for (const PartitionSpec& spec : metadata.partition_specs) {
    if (!ids.insert(spec.spec_id).second) {
      return Invalid(fmt::format("partition spec {} is there twice", spec.spec_id));
    }
  }
  if (metadata.FindSpec(metadata.default_spec_id) == nullptr) {
    return Invalid(fmt::format("there is no partition spec {}, the default-spec-id",
                               metadata.default_spec_id));
  }
  ids.clear();
  for (const SortOrder& order : metadata.sort_orders) {
    if (!ids.insert(order.order_id).second) {
      return Invalid(fmt::format("sort order {} is there twice", order.order_id));
    }
  }
  if (metadata.FindSortOrder(metadata.default_sort_order_id) == nullptr) {
    return Invalid(fmt::format("there is no sort order {}, the default-sort-order-id",
                               metadata.default_sort_order_id));
  }
  return Status::Ok();
}

Status ValidateSnapshots(const TableMetadata& metadata) {
  std::unordered_set<int64_t> ids;
  for (const SnapshotPtr& snapshot : metadata.snapshots) {
    if (!ids.insert(snapshot->snapshot_id).second) {
      return Invalid(fmt::format("snapshot {} is there twice", snapshot->snapshot_id));
    }
    if (metadata.format_version > 1 && snapshot->sequence_number > metadata.last_sequence_number) {
      return Invalid(fmt::format(
          "Invalid snapshot with id {} and sequence number {} greater than last sequence number {}",
          snapshot->snapshot_id, snapshot->sequence_number, metadata.last_sequence_number));
    }
    if (metadata.format_version > 1 && snapshot->manifest_list.empty()) {
      return Invalid(fmt::format("snapshot {} has no manifest list", snapshot->snapshot_id));
    }
  }
  if (metadata.current_snapshot_id && !ids.contains(*metadata.current_snapshot_id)) {
    return Invalid(fmt::format("there is no snapshot {}, the current-snapshot-id",
                               *metadata.current_snapshot_id));
  }
  for (const auto& [name, ref] : metadata.refs) {
    if (!ids.contains(ref.snapshot_id)) {
      return Invalid(
          fmt::format("Snapshot for reference {} does not exist in the existing "
                      "snapshots list",
                      name));
    }
  }
  const auto main = metadata.refs.find(std::string(kMainBranch));
  if (main != metadata.refs.end()) {
    if (main->second.type != SnapshotRefType::kBranch) {
      return Invalid("main must be a branch");
    }
    if (metadata.current_snapshot_id != main->second.snapshot_id) {
      return Invalid(fmt::format("Current snapshot ID does not match main branch ({} != {})",
                                 metadata.current_snapshot_id.value_or(-1),
                                 main->second.snapshot_id));
    }
  } else if (metadata.current_snapshot_id && !metadata.refs.empty()) {
    return Invalid(fmt::format("Current snapshot is {}, but main branch does not exist",
                               *metadata.current_snapshot_id));
  }
  return Status::Ok();
}

template <typename Entry>
Status ValidateLog(const std::vector<Entry>& log, int64_t last_updated_ms, std::string_view what) {
  for (size_t i = 1; i < log.size(); ++i) {
    if (log[i].timestamp_ms < log[i - 1].timestamp_ms - kClockSkewMs) {
      return Invalid(fmt::format("the {} is not in order of time", what));
    }
  }
  if (!log.empty() && last_updated_ms < log.back().timestamp_ms - kClockSkewMs) {
    return Invalid(fmt::format("Invalid update timestamp {}: before last {} entry at {}",
                               last_updated_ms, what, log.back().timestamp_ms));
  }
  return Status::Ok();
}

// Sums of numbers in this range cannot overflow.
bool IsSane(int64_t number) { return number >= 0 && number < (int64_t{1} << 62); }

Status ValidateNumbers(const TableMetadata& metadata) {
  bool sane = IsSane(metadata.last_updated_ms) && IsSane(metadata.last_sequence_number) &&
              IsSane(metadata.next_row_id) && metadata.last_column_id >= 0 &&
              metadata.last_partition_id >= 0 && metadata.last_column_id < INT32_MAX / 2 &&
              metadata.last_partition_id < INT32_MAX / 2;
  for (const SnapshotPtr& snapshot : metadata.snapshots) {
    sane = sane && IsSane(snapshot->timestamp_ms) && IsSane(snapshot->sequence_number);
  }
  for (const SnapshotLogEntry& entry : metadata.snapshot_log) {
    sane = sane && IsSane(entry.timestamp_ms);
  }
  for (const MetadataLogEntry& entry : metadata.metadata_log) {
    sane = sane && IsSane(entry.timestamp_ms);
  }
  return sane ? Status::Ok() : Invalid("a time, sequence number or id is out of range");
}

}  // namespace

Status ValidateTableMetadata(const TableMetadata& metadata) {
  if (metadata.format_version < 1 || metadata.format_version > kFormatVersionMax) {
    return Status(ErrorCode::kUnimplemented,
                  fmt::format("Cannot read unsupported version {}", metadata.format_version));
  }
  if (metadata.format_version > 1 && metadata.table_uuid.empty()) {
    return Invalid(fmt::format("UUID is required in format v{}", metadata.format_version));
  }
  if (metadata.format_version == 1 && metadata.last_sequence_number != 0) {
    return Invalid("sequence numbers must be 0 in format version 1");
  }
  if (metadata.location.empty()) {
    return Invalid("the location is empty");
  }
  TARN_RETURN_IF_ERROR(ValidateNumbers(metadata));
  TARN_RETURN_IF_ERROR(ValidateIds(metadata));
  TARN_RETURN_IF_ERROR(ValidateSnapshots(metadata));
  TARN_RETURN_IF_ERROR(
      ValidateLog(metadata.snapshot_log, metadata.last_updated_ms, "snapshot log"));
  return ValidateLog(metadata.metadata_log, metadata.last_updated_ms, "metadata log");
}

}  // namespace tarn::iceberg
