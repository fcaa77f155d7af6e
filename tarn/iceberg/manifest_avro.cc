// Writing (manifest_avro.h); reading is in manifest_decode.cc.
#include "tarn/iceberg/manifest_avro.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/iceberg/codec/avro.h"
#include "tarn/iceberg/codec/manifest_schema.h"

namespace tarn::iceberg {
namespace {

void WriteOptionalLong(AvroEncoder& out, std::optional<int64_t> value) {
  out.WriteLong(value ? 1 : 0);
  if (value) {
    out.WriteLong(*value);
  }
}

void WriteOptionalBytes(AvroEncoder& out, const std::optional<std::string>& value) {
  out.WriteLong(value ? 1 : 0);
  if (value) {
    out.WriteBytes(*value);
  }
}

void WriteMap(AvroEncoder& out, const FieldMap<int64_t>& map) {
  out.WriteLong(map.empty() ? 0 : 1);
  if (map.empty()) {
    return;
  }
  out.WriteLong(static_cast<int64_t>(map.size()));
  for (const auto& [id, value] : map) {
    out.WriteLong(id);
    out.WriteLong(value);
  }
  out.WriteLong(0);
}

void WriteMap(AvroEncoder& out, const FieldMap<std::string>& map) {
  out.WriteLong(map.empty() ? 0 : 1);
  if (map.empty()) {
    return;
  }
  out.WriteLong(static_cast<int64_t>(map.size()));
  for (const auto& [id, value] : map) {
    out.WriteLong(id);
    out.WriteBytes(value);
  }
  out.WriteLong(0);
}

template <typename Int>
void WriteList(AvroEncoder& out, const std::vector<Int>& values) {
  out.WriteLong(values.empty() ? 0 : 1);
  if (values.empty()) {
    return;
  }
  out.WriteLong(static_cast<int64_t>(values.size()));
  for (const Int value : values) {
    out.WriteLong(value);
  }
  out.WriteLong(0);
}

void WritePartitionValue(AvroEncoder& out, const Type& type, const Literal& value) {
  out.WriteLong(value.is_null() ? 0 : 1);
  if (const auto* v = std::get_if<bool>(&value.value)) {
    out.WriteBoolean(*v);
  } else if (const auto* i = std::get_if<int64_t>(&value.value)) {
    out.WriteLong(*i);
  } else if (const auto* d = std::get_if<double>(&value.value)) {
    if (type.id == TypeId::kFloat) {
      out.WriteFloat(static_cast<float>(*d));
    } else {
      out.WriteDouble(*d);
    }
  } else if (const auto* u = std::get_if<Int128>(&value.value)) {
    out.WriteRaw(EncodeDecimalFixed(*u, DecimalSizeBytes(type.precision)));
  } else if (const auto* s = std::get_if<std::string>(&value.value)) {
    if (type.id == TypeId::kUuid || type.id == TypeId::kFixed) {
      out.WriteRaw(*s);
    } else {
      out.WriteBytes(*s);
    }
  }
}

void WriteDataFile(AvroEncoder& out, const DataFile& file, const std::vector<Type>& types,
                   int32_t format_version) {
  out.WriteLong(static_cast<int64_t>(file.content));
  out.WriteBytes(file.file_path);
  out.WriteBytes(file.file_format);
  for (size_t i = 0; i < types.size(); ++i) {
    WritePartitionValue(out, types[i], file.partition[i]);
  }
  out.WriteLong(file.record_count);
  out.WriteLong(file.file_size_bytes);
  WriteMap(out, file.column_sizes);
  WriteMap(out, file.value_counts);
  WriteMap(out, file.null_value_counts);
  WriteMap(out, file.nan_value_counts);
  WriteMap(out, file.lower_bounds);
  WriteMap(out, file.upper_bounds);
  WriteOptionalBytes(out, file.key_metadata);
  WriteList(out, file.split_offsets);
  WriteList(out, file.equality_ids);
  WriteOptionalLong(out, file.sort_order_id);
  if (format_version >= 3) {
    WriteOptionalLong(out, file.first_row_id);
  }
  WriteOptionalBytes(out, file.referenced_data_file);
  if (format_version >= 3) {
    WriteOptionalLong(out, file.content_offset);
    WriteOptionalLong(out, file.content_size_bytes);
  }
}

// Bounds of the partition values of one field, as the manifest list shows them.
class SummaryBuilder {
 public:
  explicit SummaryBuilder(Type type) : type_(std::move(type)) {}

  void Add(const Literal& value) {
    if (value.is_null()) {
      contains_null_ = true;
    } else if (value.is_nan()) {
      contains_nan_ = true;
    } else {
      if (lower_.is_null() || CompareLiterals(value, lower_) < 0) {
        lower_ = value;
      }
      if (upper_.is_null() || CompareLiterals(value, upper_) > 0) {
        upper_ = value;
      }
    }
  }

  [[nodiscard]] Result<PartitionFieldSummary> Build() const {
    PartitionFieldSummary summary{.contains_null = contains_null_, .contains_nan = contains_nan_};
    if (!lower_.is_null()) {
      TARN_ASSIGN_OR_RETURN(summary.lower_bound, EncodeLiteral(type_, lower_));
      TARN_ASSIGN_OR_RETURN(summary.upper_bound, EncodeLiteral(type_, upper_));
    }
    return summary;
  }

 private:
  Type type_;
  bool contains_null_ = false;
  bool contains_nan_ = false;
  Literal lower_;
  Literal upper_;
};

Status CheckEntry(const ManifestEntry& entry, const ManifestHeader& header,
                  const std::vector<Type>& types) {
  const DataFile& file = entry.data_file;
  const auto fail = [&](std::string_view why) {
    return Status::InvalidArgument(fmt::format("file {}: {}", file.file_path, why));
  };
  const bool is_data = file.content == DataFileContent::kData;
  if (is_data != (header.content == ManifestContent::kData)) {
    return fail("data and delete files go into different manifests");
  }
  if (file.file_path.empty()) {
    return fail("the path is empty");
  }
  if (file.record_count < 0 || file.file_size_bytes < 0) {
    return fail("row count and size cannot be negative");
  }
  if (file.partition.size() != types.size()) {
    return fail(fmt::format("{} partition values for spec {} with {} fields", file.partition.size(),
                            header.spec.spec_id, types.size()));
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (!IsLiteralOf(types[i], file.partition[i])) {
      return fail(fmt::format("the value of partition field '{}' is not of type {}",
                              header.spec.fields[i].name, FormatType(types[i])));
    }
  }
  if (entry.status != ManifestStatus::kAdded &&
      (!entry.snapshot_id || !entry.sequence_number || !entry.file_sequence_number)) {
    return fail("an entry that is not new needs its snapshot id and sequence numbers");
  }
  return Status::Ok();
}

void Count(const ManifestEntry& entry, ManifestFile& file) {
  const int64_t rows = entry.data_file.record_count;
  switch (entry.status) {
    case ManifestStatus::kAdded:
      file.added_files_count = *file.added_files_count + 1;
      file.added_rows_count = *file.added_rows_count + rows;
      break;
    case ManifestStatus::kExisting:
      file.existing_files_count = *file.existing_files_count + 1;
      file.existing_rows_count = *file.existing_rows_count + rows;
      break;
    case ManifestStatus::kDeleted:
      file.deleted_files_count = *file.deleted_files_count + 1;
      file.deleted_rows_count = *file.deleted_rows_count + rows;
      break;
  }
  if (entry.is_live() && entry.sequence_number &&
      (file.min_sequence_number == kUnassignedSequenceNumber ||
       *entry.sequence_number < file.min_sequence_number)) {
    file.min_sequence_number = *entry.sequence_number;
  }
}

}  // namespace

Result<EncodedManifest> EncodeManifest(const ManifestHeader& header, int64_t snapshot_id,
                                       const std::vector<ManifestEntry>& entries) {
  TARN_ASSIGN_OR_RETURN(const std::string schema_json,
                        ManifestEntrySchema(header.spec, header.schema, header.format_version));
  const std::vector<Type> types = PartitionTypes(header.spec, header.schema);
  AvroFileWriter writer(
      schema_json,
      {{"schema", FormatSchema(header.schema)},
       {"schema-id", std::to_string(header.schema.schema_id)},
       {"partition-spec", DumpJson(PartitionFieldsToJson(header.spec))},
       {"partition-spec-id", std::to_string(header.spec.spec_id)},
       {"format-version", std::to_string(header.format_version)},
       {"content", header.content == ManifestContent::kData ? "data" : "deletes"}},
      AvroCodec::kDeflate);
  EncodedManifest out;
  out.file = {.partition_spec_id = header.spec.spec_id,
              .content = header.content,
              .sequence_number = kUnassignedSequenceNumber,
              .min_sequence_number = kUnassignedSequenceNumber,
              .added_snapshot_id = snapshot_id,
              .added_files_count = 0,
              .existing_files_count = 0,
              .deleted_files_count = 0,
              .added_rows_count = 0,
              .existing_rows_count = 0,
              .deleted_rows_count = 0};
  std::vector<SummaryBuilder> summaries;
  for (const Type& type : types) {
    summaries.emplace_back(type);
  }
  for (const ManifestEntry& entry : entries) {
    TARN_RETURN_IF_ERROR(CheckEntry(entry, header, types));
    AvroEncoder& encoder = writer.encoder();
    encoder.WriteLong(static_cast<int64_t>(entry.status));
    WriteOptionalLong(encoder, entry.snapshot_id);
    WriteOptionalLong(encoder, entry.sequence_number);
    WriteOptionalLong(encoder, entry.file_sequence_number);
    WriteDataFile(encoder, entry.data_file, types, header.format_version);
    writer.EndRecord();
    Count(entry, out.file);
    for (size_t i = 0; i < summaries.size(); ++i) {
      summaries[i].Add(entry.data_file.partition[i]);
    }
  }
  for (const SummaryBuilder& summary : summaries) {
    TARN_ASSIGN_OR_RETURN(PartitionFieldSummary built, summary.Build());
    out.file.partitions.push_back(std::move(built));
  }
  out.bytes = writer.Finish();
  out.file.manifest_length = static_cast<int64_t>(out.bytes.size());
  return out;
}

std::string EncodeManifestList(const ManifestListHeader& header,
                               const std::vector<ManifestFile>& manifests) {
  std::map<std::string, std::string> metadata{
      {"snapshot-id", std::to_string(header.snapshot_id)},
      {"parent-snapshot-id",
       header.parent_snapshot_id ? std::to_string(*header.parent_snapshot_id) : "null"},
      {"sequence-number", std::to_string(header.sequence_number)},
      {"format-version", std::to_string(header.format_version)}};
  if (header.format_version >= 3) {
    metadata["first-row-id"] = std::to_string(header.first_row_id.value_or(0));
  }
  AvroFileWriter writer(ManifestFileSchema(header.format_version), metadata, AvroCodec::kDeflate);
  const auto assigned = [&](int64_t number) {
    return number == kUnassignedSequenceNumber ? header.sequence_number : number;
  };
  for (const ManifestFile& file : manifests) {
    AvroEncoder& out = writer.encoder();
    out.WriteBytes(file.manifest_path);
    out.WriteLong(file.manifest_length);
    out.WriteLong(file.partition_spec_id);
    out.WriteLong(static_cast<int64_t>(file.content));
    out.WriteLong(assigned(file.sequence_number));
    out.WriteLong(assigned(file.min_sequence_number));
    out.WriteLong(file.added_snapshot_id);
    out.WriteLong(file.added_files_count.value_or(0));
    out.WriteLong(file.existing_files_count.value_or(0));
    out.WriteLong(file.deleted_files_count.value_or(0));
    out.WriteLong(file.added_rows_count.value_or(0));
    out.WriteLong(file.existing_rows_count.value_or(0));
    out.WriteLong(file.deleted_rows_count.value_or(0));
    out.WriteLong(1);
    if (!file.partitions.empty()) {
      out.WriteLong(static_cast<int64_t>(file.partitions.size()));
      for (const PartitionFieldSummary& summary : file.partitions) {
        out.WriteBoolean(summary.contains_null);
        out.WriteLong(summary.contains_nan ? 1 : 0);
        if (summary.contains_nan) {
          out.WriteBoolean(*summary.contains_nan);
        }
        WriteOptionalBytes(out, summary.lower_bound);
        WriteOptionalBytes(out, summary.upper_bound);
      }
    }
    out.WriteLong(0);
    WriteOptionalBytes(out, file.key_metadata);
    if (header.format_version >= 3) {
      WriteOptionalLong(out, file.first_row_id);
    }
    writer.EndRecord();
  }
  return writer.Finish();
}

}  // namespace tarn::iceberg
