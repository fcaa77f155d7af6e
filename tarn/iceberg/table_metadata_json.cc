#include "tarn/iceberg/table_metadata_json.h"

#include <unordered_set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

namespace tarn::iceberg {
namespace {

constexpr size_t kUnpackedBytesMax = size_t{1} << 30;

const std::vector<std::string_view>& KnownMembers() {
  static const std::vector<std::string_view> kKnown{"format-version",
                                                    "table-uuid",
                                                    "location",
                                                    "last-sequence-number",
                                                    "last-updated-ms",
                                                    "last-column-id",
                                                    "schema",
                                                    "current-schema-id",
                                                    "schemas",
                                                    "partition-spec",
                                                    "default-spec-id",
                                                    "partition-specs",
                                                    "last-partition-id",
                                                    "default-sort-order-id",
                                                    "sort-orders",
                                                    "properties",
                                                    "current-snapshot-id",
                                                    "next-row-id",
                                                    "encryption-keys",
                                                    "refs",
                                                    "snapshots",
                                                    "statistics",
                                                    "partition-statistics",
                                                    "snapshot-log",
                                                    "metadata-log"};
  return kKnown;
}

Status ReadSchemas(const JsonObject& object, TableMetadata& metadata) {
  TARN_ASSIGN_OR_RETURN(const auto schemas, object.FindArray("schemas"));
  if (!schemas.empty()) {
    for (const Json* element : schemas) {
      TARN_ASSIGN_OR_RETURN(Schema schema, SchemaFromJson(*element));
      metadata.schemas.push_back(std::make_shared<const Schema>(std::move(schema)));
    }
    TARN_ASSIGN_OR_RETURN(metadata.current_schema_id, object.GetInt("current-schema-id"));
    return Status::Ok();
  }
  if (metadata.format_version > 1) {
    return object.Get("schemas").status();
  }
  TARN_ASSIGN_OR_RETURN(const Json* json, object.Get("schema"));
  TARN_ASSIGN_OR_RETURN(Schema schema, SchemaFromJson(*json));
  metadata.current_schema_id = schema.schema_id;
  metadata.schemas.push_back(std::make_shared<const Schema>(std::move(schema)));
  return Status::Ok();
}

Status ReadSpecs(const JsonObject& object, TableMetadata& metadata) {
  TARN_ASSIGN_OR_RETURN(const auto specs, object.FindArray("partition-specs"));
  if (!specs.empty()) {
    for (const Json* element : specs) {
      TARN_ASSIGN_OR_RETURN(PartitionSpec spec, PartitionSpecFromJson(*element));
      int32_t last = kFirstPartitionFieldId - 1;
      for (PartitionField& field : spec.fields) {
        field.field_id = field.field_id == 0 ? last + 1 : field.field_id;
        last = std::max(last, field.field_id);
      }
      metadata.partition_specs.push_back(std::move(spec));
    }
    TARN_ASSIGN_OR_RETURN(metadata.default_spec_id, object.GetInt("default-spec-id"));
  } else if (metadata.format_version > 1) {
    return object.Get("partition-specs").status();
  } else {
    TARN_ASSIGN_OR_RETURN(const Json* json, object.Get("partition-spec"));
    PartitionSpec spec;
    TARN_ASSIGN_OR_RETURN(spec.fields, PartitionFieldsFromJson(*json));
    metadata.partition_specs.push_back(std::move(spec));
  }
  TARN_ASSIGN_OR_RETURN(const auto last, object.FindInt("last-partition-id"));
  if (!last && metadata.format_version > 1) {
    return object.Get("last-partition-id").status();
  }
  metadata.last_partition_id = last.value_or(kFirstPartitionFieldId - 1);
  if (!last) {
    for (const PartitionSpec& spec : metadata.partition_specs) {
      for (const PartitionField& field : spec.fields) {
        metadata.last_partition_id = std::max(metadata.last_partition_id, field.field_id);
      }
    }
  }
  return Status::Ok();
}

Status ReadSortOrders(const JsonObject& object, TableMetadata& metadata) {
  TARN_ASSIGN_OR_RETURN(const auto orders, object.FindArray("sort-orders"));
  for (const Json* element : orders) {
    TARN_ASSIGN_OR_RETURN(SortOrder order, SortOrderFromJson(*element));
    metadata.sort_orders.push_back(std::move(order));
  }
  if (metadata.format_version > 1 || !orders.empty()) {
    TARN_RETURN_IF_ERROR(object.Get("sort-orders"));
    TARN_ASSIGN_OR_RETURN(metadata.default_sort_order_id, object.GetInt("default-sort-order-id"));
  } else {
    metadata.sort_orders.emplace_back();
  }
  return Status::Ok();
}

Status ReadSnapshots(const JsonObject& object, TableMetadata& metadata) {
  TARN_ASSIGN_OR_RETURN(metadata.current_snapshot_id, object.FindLong("current-snapshot-id"));
  if (metadata.current_snapshot_id == -1) {
    metadata.current_snapshot_id.reset();
  }
  TARN_ASSIGN_OR_RETURN(const auto snapshots, object.FindArray("snapshots"));
  metadata.snapshots.reserve(snapshots.size());
  for (const Json* element : snapshots) {
    TARN_ASSIGN_OR_RETURN(Snapshot snapshot, SnapshotFromJson(*element));
    metadata.snapshots.push_back(std::make_shared<const Snapshot>(std::move(snapshot)));
  }
  if (const Json* refs = object.Find("refs")) {
    if (!refs->is_object()) {
      return object.Error("refs", "an object", *refs);
    }
    for (const auto& [name, value] : refs->items()) {
      TARN_ASSIGN_OR_RETURN(metadata.refs[name], SnapshotRefFromJson(value));
    }
  } else if (metadata.current_snapshot_id) {
    metadata.refs[std::string(kMainBranch)] = {.snapshot_id = *metadata.current_snapshot_id};
  }
  return Status::Ok();
}

Status ReadLogs(const JsonObject& object, TableMetadata& metadata) {
  TARN_ASSIGN_OR_RETURN(const auto snapshot_log, object.FindArray("snapshot-log"));
  for (const Json* element : snapshot_log) {
    TARN_ASSIGN_OR_RETURN(const JsonObject entry, JsonObject::Of(*element, "snapshot log entry"));
    SnapshotLogEntry out;
    TARN_ASSIGN_OR_RETURN(out.snapshot_id, entry.GetLong("snapshot-id"));
    TARN_ASSIGN_OR_RETURN(out.timestamp_ms, entry.GetLong("timestamp-ms"));
    metadata.snapshot_log.push_back(out);
  }
  TARN_ASSIGN_OR_RETURN(const auto metadata_log, object.FindArray("metadata-log"));
  for (const Json* element : metadata_log) {
    TARN_ASSIGN_OR_RETURN(const JsonObject entry, JsonObject::Of(*element, "metadata log entry"));
    MetadataLogEntry out;
    TARN_ASSIGN_OR_RETURN(out.metadata_file, entry.GetString("metadata-file"));
    TARN_ASSIGN_OR_RETURN(out.timestamp_ms, entry.GetLong("timestamp-ms"));
    metadata.metadata_log.push_back(std::move(out));
  }
  return Status::Ok();
}

Status ReadHead(const JsonObject& object, TableMetadata& metadata) {
  TARN_ASSIGN_OR_RETURN(metadata.format_version, object.GetInt("format-version"));
  if (metadata.format_version < 1 || metadata.format_version > kFormatVersionMax) {
    return Status(ErrorCode::kUnimplemented,
                  fmt::format("Cannot read unsupported version {}: this server reads format "
                              "versions 1 to {}",
                              metadata.format_version, kFormatVersionMax));
  }
  TARN_ASSIGN_OR_RETURN(const auto uuid, object.FindString("table-uuid"));
  metadata.table_uuid = uuid.value_or("");
  std::transform(metadata.table_uuid.begin(), metadata.table_uuid.end(),
                 metadata.table_uuid.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  TARN_ASSIGN_OR_RETURN(metadata.location, object.GetString("location"));
  while (metadata.location.size() > 1 && metadata.location.back() == '/') {
    metadata.location.pop_back();
  }
  if (metadata.format_version > 1) {
    TARN_ASSIGN_OR_RETURN(metadata.last_sequence_number, object.GetLong("last-sequence-number"));
  }
  TARN_ASSIGN_OR_RETURN(metadata.last_updated_ms, object.GetLong("last-updated-ms"));
  TARN_ASSIGN_OR_RETURN(metadata.last_column_id, object.GetInt("last-column-id"));
  if (metadata.format_version > 2) {
    TARN_ASSIGN_OR_RETURN(metadata.next_row_id, object.GetLong("next-row-id"));
  }
  TARN_ASSIGN_OR_RETURN(metadata.properties, object.FindStringMap("properties"));
  return Status::Ok();
}

Json LogToJson(const TableMetadata& metadata) {
  Json log = Json::array();
  for (const SnapshotLogEntry& entry : metadata.snapshot_log) {
    log.push_back({{"timestamp-ms", entry.timestamp_ms}, {"snapshot-id", entry.snapshot_id}});
  }
  return log;
}

Json MetadataLogToJson(const TableMetadata& metadata) {
  Json log = Json::array();
  for (const MetadataLogEntry& entry : metadata.metadata_log) {
    log.push_back({{"timestamp-ms", entry.timestamp_ms}, {"metadata-file", entry.metadata_file}});
  }
  return log;
}

template <typename T, typename Convert>
Json ArrayOf(const std::vector<T>& values, const Convert& convert) {
  Json array = Json::array();
  for (const T& value : values) {
    array.push_back(convert(value));
  }
  return array;
}

void WriteSchemasAndSpecs(const TableMetadata& metadata, Json& json) {
  if (metadata.format_version == 1) {
    json["schema"] = SchemaToJson(metadata.CurrentSchema());
  }
  json["current-schema-id"] = metadata.current_schema_id;
  json["schemas"] =
      ArrayOf(metadata.schemas, [](const SchemaPtr& schema) { return SchemaToJson(*schema); });
  if (metadata.format_version == 1) {
    json["partition-spec"] = PartitionFieldsToJson(metadata.DefaultSpec());
  }
  json["default-spec-id"] = metadata.default_spec_id;
  json["partition-specs"] = ArrayOf(metadata.partition_specs, PartitionSpecToJson);
  json["last-partition-id"] = metadata.last_partition_id;
  json["default-sort-order-id"] = metadata.default_sort_order_id;
  json["sort-orders"] = ArrayOf(metadata.sort_orders, SortOrderToJson);
}

}  // namespace

Result<StatisticsFile> StatisticsFromJson(const Json& json) {
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "statistics file"));
  StatisticsFile file;
  TARN_ASSIGN_OR_RETURN(file.snapshot_id, object.GetLong("snapshot-id"));
  TARN_ASSIGN_OR_RETURN(file.statistics_path, object.GetString("statistics-path"));
  TARN_ASSIGN_OR_RETURN(file.file_size_bytes, object.GetLong("file-size-in-bytes"));
  TARN_ASSIGN_OR_RETURN(file.file_footer_size_bytes, object.GetLong("file-footer-size-in-bytes"));
  TARN_ASSIGN_OR_RETURN(const auto blobs, object.FindArray("blob-metadata"));
  for (const Json* element : blobs) {
    TARN_ASSIGN_OR_RETURN(const JsonObject member, JsonObject::Of(*element, "blob metadata"));
    BlobMetadata blob;
    TARN_ASSIGN_OR_RETURN(blob.type, member.GetString("type"));
    TARN_ASSIGN_OR_RETURN(blob.snapshot_id, member.GetLong("snapshot-id"));
    TARN_ASSIGN_OR_RETURN(blob.sequence_number, member.GetLong("sequence-number"));
    TARN_ASSIGN_OR_RETURN(blob.fields, member.FindInts("fields"));
    TARN_ASSIGN_OR_RETURN(blob.properties, member.FindStringMap("properties"));
    file.blob_metadata.push_back(std::move(blob));
  }
  file.unknown = object.Unknown({"snapshot-id", "statistics-path", "file-size-in-bytes",
                                 "file-footer-size-in-bytes", "blob-metadata"});
  return file;
}

Result<PartitionStatisticsFile> PartitionStatisticsFromJson(const Json& json) {
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "partition statistics file"));
  PartitionStatisticsFile file;
  TARN_ASSIGN_OR_RETURN(file.snapshot_id, object.GetLong("snapshot-id"));
  TARN_ASSIGN_OR_RETURN(file.statistics_path, object.GetString("statistics-path"));
  TARN_ASSIGN_OR_RETURN(file.file_size_bytes, object.GetLong("file-size-in-bytes"));
  return file;
}

Json StatisticsToJson(const StatisticsFile& file) {
  Json json = {{"snapshot-id", file.snapshot_id},
               {"statistics-path", file.statistics_path},
               {"file-size-in-bytes", file.file_size_bytes},
               {"file-footer-size-in-bytes", file.file_footer_size_bytes}};
  json["blob-metadata"] = ArrayOf(file.blob_metadata, [](const BlobMetadata& blob) {
    Json member = {{"type", blob.type},
                   {"snapshot-id", blob.snapshot_id},
                   {"sequence-number", blob.sequence_number},
                   {"fields", blob.fields}};
    if (!blob.properties.empty()) {
      member["properties"] = blob.properties;
    }
    return member;
  });
  AppendUnknown(json, file.unknown);
  return json;
}

Json PartitionStatisticsToJson(const PartitionStatisticsFile& file) {
  return {{"snapshot-id", file.snapshot_id},
          {"statistics-path", file.statistics_path},
          {"file-size-in-bytes", file.file_size_bytes}};
}

Result<TableMetadata> TableMetadataFromJson(const Json& json) {
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "table metadata"));
  TableMetadata metadata;
  TARN_RETURN_IF_ERROR(ReadHead(object, metadata));
  TARN_RETURN_IF_ERROR(ReadSchemas(object, metadata));
  TARN_RETURN_IF_ERROR(ReadSpecs(object, metadata));
  TARN_RETURN_IF_ERROR(ReadSortOrders(object, metadata));
  TARN_RETURN_IF_ERROR(ReadSnapshots(object, metadata));
  TARN_RETURN_IF_ERROR(ReadLogs(object, metadata));
  TARN_ASSIGN_OR_RETURN(const auto statistics, object.FindArray("statistics"));
  for (const Json* element : statistics) {
    TARN_ASSIGN_OR_RETURN(StatisticsFile file, StatisticsFromJson(*element));
    metadata.statistics.push_back(std::move(file));
  }
  TARN_ASSIGN_OR_RETURN(const auto partition_statistics, object.FindArray("partition-statistics"));
  for (const Json* element : partition_statistics) {
    TARN_ASSIGN_OR_RETURN(PartitionStatisticsFile file, PartitionStatisticsFromJson(*element));
    metadata.partition_statistics.push_back(std::move(file));
  }
  if (const Json* keys = object.Find("encryption-keys")) {
    metadata.encryption_keys = DumpJson(*keys);
  }
  metadata.unknown = object.Unknown(KnownMembers());
  TARN_RETURN_IF_ERROR(ValidateTableMetadata(metadata));
  return metadata;
}

Json TableMetadataToJson(const TableMetadata& metadata) {
  Json json = {{"format-version", metadata.format_version}};
  if (!metadata.table_uuid.empty()) {
    json["table-uuid"] = metadata.table_uuid;
  }
  json["location"] = metadata.location;
  if (metadata.format_version > 1) {
    json["last-sequence-number"] = metadata.last_sequence_number;
  }
  json["last-updated-ms"] = metadata.last_updated_ms;
  json["last-column-id"] = metadata.last_column_id;
  WriteSchemasAndSpecs(metadata, json);
  json["properties"] = metadata.properties;
  if (metadata.current_snapshot_id) {
    json["current-snapshot-id"] = *metadata.current_snapshot_id;
  } else {
    json["current-snapshot-id"] = metadata.format_version > 2 ? Json() : Json(-1);
  }
  if (metadata.format_version > 2) {
    json["next-row-id"] = metadata.next_row_id;
    if (metadata.encryption_keys) {
      json["encryption-keys"] = Json::parse(*metadata.encryption_keys, nullptr, false);
    }
  }
  Json refs = Json::object();
  for (const auto& [name, ref] : metadata.refs) {
    refs[name] = SnapshotRefToJson(ref);
  }
  json["refs"] = std::move(refs);
  json["snapshots"] = ArrayOf(
      metadata.snapshots, [](const SnapshotPtr& snapshot) { return SnapshotToJson(*snapshot); });
  json["statistics"] = ArrayOf(metadata.statistics, StatisticsToJson);
  json["partition-statistics"] = ArrayOf(metadata.partition_statistics, PartitionStatisticsToJson);
  json["snapshot-log"] = LogToJson(metadata);
  json["metadata-log"] = MetadataLogToJson(metadata);
  AppendUnknown(json, metadata.unknown);
  return json;
}

std::string FormatTableMetadata(const TableMetadata& metadata) {
  return DumpJson(TableMetadataToJson(metadata));
}

std::string FormatTableMetadataRefsOnly(const TableMetadata& metadata) {
  TableMetadata subset = metadata;
  std::unordered_set<int64_t> referenced;
  for (const auto& [name, ref] : metadata.refs) {
    referenced.insert(ref.snapshot_id);
  }
  std::erase_if(subset.snapshots, [&](const SnapshotPtr& snapshot) {
    return !referenced.contains(snapshot->snapshot_id);
  });
  return FormatTableMetadata(subset);
}

Result<std::string> GunzipBounded(std::string_view bytes, size_t size_bytes_max) {
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 32) != Z_OK) {
    return Status::Internal("zlib could not start");
  }
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  int code = Z_OK;
  while (code == Z_OK) {
    const size_t before = out.size();
    out.resize(before + std::max<size_t>(bytes.size() * 4, 64 * 1024));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream.avail_out = static_cast<uInt>(out.size() - before);
    code = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
    if (out.size() > size_bytes_max || (code == Z_OK && out.size() == before)) {
      break;
    }
  }
  inflateEnd(&stream);
  if (code != Z_STREAM_END || out.size() > size_bytes_max) {
    return Status::InvalidArgument("table metadata: the gzip data is broken, cut or too large");
  }
  return out;
}

Result<TableMetadata> ParseTableMetadata(std::string_view text) {
  std::string unpacked;
  if (text.size() > 2 && text[0] == '\x1f' && text[1] == '\x8b') {
    TARN_ASSIGN_OR_RETURN(unpacked, GunzipBounded(text, kUnpackedBytesMax));
    text = unpacked;
  }
  TARN_ASSIGN_OR_RETURN(const Json json, ParseJson(text, "table metadata"));
  return TableMetadataFromJson(json);
}

}  // namespace tarn::iceberg
