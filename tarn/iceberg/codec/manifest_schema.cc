#include "tarn/iceberg/codec/manifest_schema.h"

#include <set>

#include <fmt/format.h>

#include "tarn/base/json_text.h"
#include "tarn/iceberg/codec/avro.h"

namespace tarn::iceberg {
namespace {

std::string Required(std::string_view name, std::string_view type, int32_t id) {
  return fmt::format(R"({{"name":"{}","type":{},"field-id":{}}})", name, type, id);
}

std::string Optional(std::string_view name, std::string_view type, int32_t id) {
  return fmt::format(R"({{"name":"{}","type":["null",{}],"default":null,"field-id":{}}})", name,
                     type, id);
}

// A map with int keys, as Avro has only string keys.
std::string IntMap(int32_t key_id, int32_t value_id, std::string_view value_type) {
  return fmt::format(R"({{"type":"array","items":{{"type":"record","name":"k{0}_v{1}","fields":[)"
                     R"({{"name":"key","type":"int","field-id":{0}}},)"
                     R"({{"name":"value","type":{2},"field-id":{1}}}]}},"logicalType":"map"}})",
                     key_id, value_id, value_type);
}

std::string List(int32_t element_id, std::string_view type) {
  return fmt::format(R"({{"type":"array","items":{},"element-id":{}}})", type, element_id);
}

// Types with a name are defined once and referred to by name afterwards.
std::string Named(const std::string& name, const std::string& definition,
                  std::set<std::string>& defined) {
  return defined.insert(name).second ? definition : '"' + name + '"';
}

Result<std::string> PartitionAvroType(const Type& type, std::set<std::string>& defined) {
  const auto timestamp = [](std::string_view unit, bool utc) {
    return fmt::format(R"({{"type":"long","logicalType":"timestamp-{}","adjust-to-utc":{}}})", unit,
                       utc);
  };
  switch (type.id) {
    case TypeId::kBoolean:
      return std::string(R"("boolean")");
    case TypeId::kInt:
      return std::string(R"("int")");
    case TypeId::kLong:
      return std::string(R"("long")");
    case TypeId::kFloat:
      return std::string(R"("float")");
    case TypeId::kDouble:
      return std::string(R"("double")");
    case TypeId::kDate:
      return std::string(R"({"type":"int","logicalType":"date"})");
    case TypeId::kTime:
      return std::string(R"({"type":"long","logicalType":"time-micros"})");
    case TypeId::kTimestamp:
      return timestamp("micros", false);
    case TypeId::kTimestampTz:
      return timestamp("micros", true);
    case TypeId::kTimestampNs:
      return timestamp("nanos", false);
    case TypeId::kTimestampTzNs:
      return timestamp("nanos", true);
    case TypeId::kString:
      return std::string(R"("string")");
    case TypeId::kBinary:
      return std::string(R"("bytes")");
    case TypeId::kUuid:
      return Named("uuid_fixed",
                   R"({"type":"fixed","name":"uuid_fixed","size":16,"logicalType":"uuid"})",
                   defined);
    case TypeId::kFixed: {
      const std::string name = fmt::format("fixed_{}", type.length);
      return Named(name,
                   fmt::format(R"({{"type":"fixed","name":"{}","size":{}}})", name, type.length),
                   defined);
    }
    case TypeId::kDecimal: {
      const std::string name = fmt::format("decimal_{}_{}", type.precision, type.scale);
      return Named(name,
                   fmt::format(R"({{"type":"fixed","name":"{}","size":{},)"
                               R"("logicalType":"decimal","precision":{},"scale":{}}})",
                               name, DecimalSizeBytes(type.precision), type.precision, type.scale),
                   defined);
    }
    default:
      return Status::InvalidArgument(
          fmt::format("a partition value of type {} cannot be written", FormatType(type)));
  }
}

Result<std::string> PartitionRecord(const PartitionSpec& spec, const Schema& schema) {
  const std::vector<Type> types = PartitionTypes(spec, schema);
  std::set<std::string> defined;
  std::string fields;
  for (size_t i = 0; i < spec.fields.size(); ++i) {
    const PartitionField& field = spec.fields[i];
    Result<std::string> type = PartitionAvroType(types[i], defined);
    if (!type.ok()) {
      return type.status().WithContext(fmt::format("partition field '{}'", field.name));
    }
    const std::string name = SanitizeAvroName(field.name);
    fields +=
        fmt::format(R"({}{{"name":"{}","type":["null",{}],"default":null,"field-id":{}{}}})",
                    fields.empty() ? "" : ",", name, *type, field.field_id,
                    name == field.name ? "" : ",\"iceberg-field-name\":" + JsonString(field.name));
  }
  return fmt::format(R"({{"type":"record","name":"r102","fields":[{}]}})", fields);
}

}  // namespace

Result<std::string> ManifestEntrySchema(const PartitionSpec& spec, const Schema& schema,
                                        int32_t format_version) {
  TARN_ASSIGN_OR_RETURN(const std::string partition, PartitionRecord(spec, schema));
  std::vector<std::string> file{Required("content", R"("int")", 134),
                                Required("file_path", R"("string")", 100),
                                Required("file_format", R"("string")", 101),
                                Required("partition", partition, 102),
                                Required("record_count", R"("long")", 103),
                                Required("file_size_in_bytes", R"("long")", 104),
                                Optional("column_sizes", IntMap(117, 118, R"("long")"), 108),
                                Optional("value_counts", IntMap(119, 120, R"("long")"), 109),
                                Optional("null_value_counts", IntMap(121, 122, R"("long")"), 110),
                                Optional("nan_value_counts", IntMap(138, 139, R"("long")"), 137),
                                Optional("lower_bounds", IntMap(126, 127, R"("bytes")"), 125),
                                Optional("upper_bounds", IntMap(129, 130, R"("bytes")"), 128),
                                Optional("key_metadata", R"("bytes")", 131),
                                Optional("split_offsets", List(133, R"("long")"), 132),
                                Optional("equality_ids", List(136, R"("int")"), 135),
                                Optional("sort_order_id", R"("int")", 140)};
  if (format_version >= 3) {
    file.push_back(Optional("first_row_id", R"("long")", 142));
  }
  file.push_back(Optional("referenced_data_file", R"("string")", 143));
  if (format_version >= 3) {
    file.push_back(Optional("content_offset", R"("long")", 144));
    file.push_back(Optional("content_size_in_bytes", R"("long")", 145));
  }
  std::string fields;
  for (const std::string& field : file) {
    fields += (fields.empty() ? "" : ",") + field;
  }
  return fmt::format(R"({{"type":"record","name":"manifest_entry","fields":[{},{},{},{},)"
                     R"({{"name":"data_file","type":{{"type":"record","name":"r2",)"
                     R"("fields":[{}]}},"field-id":2}}]}})",
                     Required("status", R"("int")", 0), Optional("snapshot_id", R"("long")", 1),
                     Optional("sequence_number", R"("long")", 3),
                     Optional("file_sequence_number", R"("long")", 4), fields);
}

std::string ManifestFileSchema(int32_t format_version) {
  const std::string summary =
      R"({"type":"array","items":{"type":"record","name":"r508","fields":[)" +
      Required("contains_null", R"("boolean")", 509) + "," +
      Optional("contains_nan", R"("boolean")", 518) + "," +
      Optional("lower_bound", R"("bytes")", 510) + "," +
      Optional("upper_bound", R"("bytes")", 511) + R"(]},"element-id":508})";
  std::string text = R"({"type":"record","name":"manifest_file","fields":[)";
  text += Required("manifest_path", R"("string")", 500);
  static constexpr struct {
    const char* name;
    const char* type;
    int32_t id;
  } kNumbers[] = {{"manifest_length", R"("long")", 501},
                  {"partition_spec_id", R"("int")", 502},
                  {"content", R"("int")", 517},
                  {"sequence_number", R"("long")", 515},
                  {"min_sequence_number", R"("long")", 516},
                  {"added_snapshot_id", R"("long")", 503},
                  {"added_files_count", R"("int")", 504},
                  {"existing_files_count", R"("int")", 505},
                  {"deleted_files_count", R"("int")", 506},
                  {"added_rows_count", R"("long")", 512},
                  {"existing_rows_count", R"("long")", 513},
                  {"deleted_rows_count", R"("long")", 514}};
  for (const auto& number : kNumbers) {
    text += "," + Required(number.name, number.type, number.id);
  }
  text += "," + Optional("partitions", summary, 507);
  text += "," + Optional("key_metadata", R"("bytes")", 519);
  if (format_version >= 3) {
    text += "," + Optional("first_row_id", R"("long")", 520);
  }
  return text + "]}";
}

}  // namespace tarn::iceberg
