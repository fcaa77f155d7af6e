// Reading manifests and manifest lists (manifest_avro.h), by field id.
#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include "tarn/iceberg/codec/avro.h"
#include "tarn/iceberg/manifest_avro.h"

namespace tarn::iceberg {
namespace {

Status Unexpected(const AvroDecoder& decoder, int32_t field_id, const AvroSchema& schema) {
  return decoder.Error(fmt::format("field {} has Avro type number {}, which does not fit", field_id,
                                   static_cast<int>(schema.kind)));
}

// Reads one field of a record at a time; `id` is for messages.
class FieldReader {
 public:
  FieldReader(AvroDecoder& decoder, const AvroSchema& schema, int32_t id)
      : decoder_(decoder), schema_(schema), id_(id) {}

  Result<std::optional<int64_t>> OptionalLong() {
    TARN_ASSIGN_OR_RETURN(const AvroSchema* schema, decoder_.Resolve(schema_));
    if (schema->kind == AvroKind::kNull) {
      return std::optional<int64_t>();
    }
    if (schema->kind != AvroKind::kLong && schema->kind != AvroKind::kInt) {
      return Unexpected(decoder_, id_, *schema);
    }
    TARN_ASSIGN_OR_RETURN(const int64_t value, decoder_.ReadLong());
    return std::optional<int64_t>(value);
  }
  Result<std::optional<int32_t>> OptionalInt() {
    TARN_ASSIGN_OR_RETURN(const std::optional<int64_t> value, OptionalLong());
    if (value && (*value < INT32_MIN || *value > INT32_MAX)) {
      return decoder_.Error(fmt::format("field {}: {} is not a 32-bit number", id_, *value));
    }
    return value ? std::optional<int32_t>(static_cast<int32_t>(*value)) : std::nullopt;
  }
  Result<int64_t> Long() {
    TARN_ASSIGN_OR_RETURN(const std::optional<int64_t> value, OptionalLong());
    return value ? Result<int64_t>(*value) : Missing();
  }
  Result<int32_t> Int() {
    TARN_ASSIGN_OR_RETURN(const std::optional<int32_t> value, OptionalInt());
    return value ? Result<int32_t>(*value) : Missing();
  }
  Result<std::optional<bool>> OptionalBool() {
    TARN_ASSIGN_OR_RETURN(const AvroSchema* schema, decoder_.Resolve(schema_));
    if (schema->kind == AvroKind::kNull) {
      return std::optional<bool>();
    }
    if (schema->kind != AvroKind::kBoolean) {
      return Unexpected(decoder_, id_, *schema);
    }
    TARN_ASSIGN_OR_RETURN(const bool value, decoder_.ReadBoolean());
    return std::optional<bool>(value);
  }
  Result<std::optional<std::string>> OptionalBytes() {
    TARN_ASSIGN_OR_RETURN(const AvroSchema* schema, decoder_.Resolve(schema_));
    if (schema->kind == AvroKind::kNull) {
      return std::optional<std::string>();
    }
    if (schema->kind != AvroKind::kBytes && schema->kind != AvroKind::kString) {
      return Unexpected(decoder_, id_, *schema);
    }
    TARN_ASSIGN_OR_RETURN(const std::string_view value, decoder_.ReadBytes());
    return std::optional<std::string>(value);
  }
  Result<std::string> Bytes() {
    TARN_ASSIGN_OR_RETURN(std::optional<std::string> value, OptionalBytes());
    return value ? Result<std::string>(*std::move(value)) : Missing();
  }

  // Calls `read` for each item; an absent list has none.
  template <typename Read>
  Status Items(const Read& read) {
    TARN_ASSIGN_OR_RETURN(const AvroSchema* schema, decoder_.Resolve(schema_));
    if (schema->kind == AvroKind::kNull) {
      return Status::Ok();
    }
    if (schema->kind != AvroKind::kArray) {
      return Unexpected(decoder_, id_, *schema);
    }
    while (true) {
      TARN_ASSIGN_OR_RETURN(const int64_t count, decoder_.ReadBlockCount());
      if (count == 0) {
        return Status::Ok();
      }
      for (int64_t i = 0; i < count; ++i) {
        TARN_RETURN_IF_ERROR(read(*schema->children[0]));
      }
    }
  }

  // A map with int keys: an array of records of a key and a value.
  template <typename T, typename Read>
  Status Map(FieldMap<T>& out, const Read& read) {
    return Items([&](const AvroSchema& item) -> Status {
      if (item.kind != AvroKind::kRecord || item.fields.size() != 2) {
        return Unexpected(decoder_, id_, item);
      }
      TARN_ASSIGN_OR_RETURN(const int32_t key,
                            FieldReader(decoder_, *item.fields[0].schema, id_).Int());
      FieldReader value(decoder_, *item.fields[1].schema, id_);
      TARN_ASSIGN_OR_RETURN(auto read_value, read(value));
      if (read_value) {
        out.Set(key, *std::move(read_value));
      }
      return Status::Ok();
    });
  }
  Status LongMap(FieldMap<int64_t>& out) {
    return Map(out, [](FieldReader& value) { return value.OptionalLong(); });
  }
  Status BytesMap(FieldMap<std::string>& out) {
    return Map(out, [](FieldReader& value) { return value.OptionalBytes(); });
  }

 private:
  Status Missing() const { return decoder_.Error(fmt::format("required field {} is null", id_)); }

  AvroDecoder& decoder_;
  const AvroSchema& schema_;
  int32_t id_;
};

Result<Literal> ReadPartitionValue(AvroDecoder& decoder, const AvroSchema& field) {
  TARN_ASSIGN_OR_RETURN(const AvroSchema* schema, decoder.Resolve(field));
  const bool decimal = schema->logical_type == "decimal";
  switch (schema->kind) {
    case AvroKind::kNull:
      return Literal::Null();
    case AvroKind::kBoolean: {
      TARN_ASSIGN_OR_RETURN(const bool value, decoder.ReadBoolean());
      return Literal::Boolean(value);
    }
    case AvroKind::kInt:
    case AvroKind::kLong: {
      TARN_ASSIGN_OR_RETURN(const int64_t value, decoder.ReadLong());
      return Literal::Long(value);
    }
    case AvroKind::kFloat: {
      TARN_ASSIGN_OR_RETURN(const float value, decoder.ReadFloat());
      return Literal::Double(value);
    }
    case AvroKind::kDouble: {
      TARN_ASSIGN_OR_RETURN(const double value, decoder.ReadDouble());
      return Literal::Double(value);
    }
    case AvroKind::kString:
    case AvroKind::kBytes:
    case AvroKind::kFixed: {
      TARN_ASSIGN_OR_RETURN(const std::string_view value,
                            schema->kind == AvroKind::kFixed ? decoder.ReadFixed(schema->size_bytes)
                                                             : decoder.ReadBytes());
      if (!decimal) {
        return Literal::String(std::string(value));
      }
      TARN_ASSIGN_OR_RETURN(const Int128 unscaled, DecodeDecimal(value));
      return Literal::Decimal(unscaled);
    }
    default:
      return decoder.Error("a partition value of a nested type");
  }
}

Status ReadPartition(AvroDecoder& decoder, const AvroSchema& field, const PartitionSpec& spec,
                     PartitionValues& out) {
  TARN_ASSIGN_OR_RETURN(const AvroSchema* schema, decoder.Resolve(field));
  out.assign(spec.fields.size(), Literal::Null());
  if (schema->kind == AvroKind::kNull) {
    return Status::Ok();
  }
  if (schema->kind != AvroKind::kRecord) {
    return Unexpected(decoder, 102, *schema);
  }
  for (const AvroField& member : schema->fields) {
    size_t position = spec.fields.size();
    for (size_t i = 0; i < spec.fields.size(); ++i) {
      const bool same = member.field_id ? *member.field_id == spec.fields[i].field_id
                                        : member.name == SanitizeAvroName(spec.fields[i].name);
      position = same ? i : position;
    }
    if (position == spec.fields.size()) {
      TARN_RETURN_IF_ERROR(decoder.Skip(*member.schema));
      continue;
    }
    TARN_ASSIGN_OR_RETURN(out[position], ReadPartitionValue(decoder, *member.schema));
  }
  return Status::Ok();
}

Result<DataFileContent> ToContent(const AvroDecoder& decoder, int64_t value) {
  if (value < 0 || value > 2) {
    return decoder.Error(fmt::format("file content {} is not known", value));
  }
  return static_cast<DataFileContent>(value);
}

// The fields of a file that came after version 1 of the format.
Status ReadLaterFileField(AvroDecoder& decoder, const AvroField& field, DataFile& file) {
  const int32_t id = *field.field_id;
  FieldReader reader(decoder, *field.schema, id);
  switch (id) {
    case 140: {
      TARN_ASSIGN_OR_RETURN(file.sort_order_id, reader.OptionalInt());
      return Status::Ok();
    }
    case 142: {
      TARN_ASSIGN_OR_RETURN(file.first_row_id, reader.OptionalLong());
      return Status::Ok();
    }
    case 143: {
      TARN_ASSIGN_OR_RETURN(file.referenced_data_file, reader.OptionalBytes());
      return Status::Ok();
    }
    case 144: {
      TARN_ASSIGN_OR_RETURN(file.content_offset, reader.OptionalLong());
      return Status::Ok();
    }
    case 145: {
      TARN_ASSIGN_OR_RETURN(file.content_size_bytes, reader.OptionalLong());
      return Status::Ok();
    }
    default:
      return decoder.Skip(*field.schema);
  }
}

Status ReadFileField(AvroDecoder& decoder, const AvroField& field, const PartitionSpec& spec,
                     DataFile& file) {
  const int32_t id = *field.field_id;
  FieldReader reader(decoder, *field.schema, id);
  switch (id) {
    case 134: {
      TARN_ASSIGN_OR_RETURN(const std::optional<int64_t> value, reader.OptionalLong());
      TARN_ASSIGN_OR_RETURN(file.content, ToContent(decoder, value.value_or(0)));
      return Status::Ok();
    }
    case 100: {
      TARN_ASSIGN_OR_RETURN(file.file_path, reader.Bytes());
      return Status::Ok();
    }
    case 101: {
      TARN_ASSIGN_OR_RETURN(file.file_format, reader.Bytes());
      return Status::Ok();
    }
    case 102:
      return ReadPartition(decoder, *field.schema, spec, file.partition);
    case 103: {
      TARN_ASSIGN_OR_RETURN(file.record_count, reader.Long());
      return file.record_count < 0 ? decoder.Error("a negative row count") : Status::Ok();
    }
    case 104: {
      TARN_ASSIGN_OR_RETURN(file.file_size_bytes, reader.Long());
      return file.file_size_bytes < 0 ? decoder.Error("a negative file size") : Status::Ok();
    }
    case 108:
      return reader.LongMap(file.column_sizes);
    case 109:
      return reader.LongMap(file.value_counts);
    case 110:
      return reader.LongMap(file.null_value_counts);
    case 137:
      return reader.LongMap(file.nan_value_counts);
    case 125:
      return reader.BytesMap(file.lower_bounds);
    case 128:
      return reader.BytesMap(file.upper_bounds);
    case 131: {
      TARN_ASSIGN_OR_RETURN(file.key_metadata, reader.OptionalBytes());
      return Status::Ok();
    }
    case 132:
      return reader.Items([&](const AvroSchema& item) -> Status {
        TARN_ASSIGN_OR_RETURN(const int64_t value, FieldReader(decoder, item, 133).Long());
        file.split_offsets.push_back(value);
        return Status::Ok();
      });
    case 135:
      return reader.Items([&](const AvroSchema& item) -> Status {
        TARN_ASSIGN_OR_RETURN(const int32_t value, FieldReader(decoder, item, 136).Int());
        file.equality_ids.push_back(value);
        return Status::Ok();
      });
    default:
      return ReadLaterFileField(decoder, field, file);
  }
}

Status ReadDataFile(AvroDecoder& decoder, const AvroSchema& field, const PartitionSpec& spec,
                    DataFile& file) {
  TARN_ASSIGN_OR_RETURN(const AvroSchema* schema, decoder.Resolve(field));
  if (schema->kind != AvroKind::kRecord) {
    return Unexpected(decoder, 2, *schema);
  }
  file.spec_id = spec.spec_id;
  file.partition.assign(spec.fields.size(), Literal::Null());
  for (const AvroField& member : schema->fields) {
    TARN_RETURN_IF_ERROR(member.field_id ? ReadFileField(decoder, member, spec, file)
                                         : decoder.Skip(*member.schema));
  }
  return Status::Ok();
}

Status ReadEntry(AvroDecoder& decoder, const AvroSchema& root, const PartitionSpec& spec,
                 ManifestEntry& entry) {
  for (const AvroField& field : root.fields) {
    const int32_t id = field.field_id.value_or(-1);
    FieldReader reader(decoder, *field.schema, id);
    switch (id) {
      case 0: {
        TARN_ASSIGN_OR_RETURN(const int64_t status, reader.Long());
        if (status < 0 || status > 2) {
          return decoder.Error(fmt::format("entry status {} is not known", status));
        }
        entry.status = static_cast<ManifestStatus>(status);
        break;
      }
      case 1: {
        TARN_ASSIGN_OR_RETURN(entry.snapshot_id, reader.OptionalLong());
        break;
      }
      case 3: {
        TARN_ASSIGN_OR_RETURN(entry.sequence_number, reader.OptionalLong());
        break;
      }
      case 4: {
        TARN_ASSIGN_OR_RETURN(entry.file_sequence_number, reader.OptionalLong());
        break;
      }
      case 2:
        TARN_RETURN_IF_ERROR(ReadDataFile(decoder, *field.schema, spec, entry.data_file));
        break;
      default:
        TARN_RETURN_IF_ERROR(decoder.Skip(*field.schema));
    }
  }
  return entry.data_file.file_path.empty() ? decoder.Error("an entry without a file path")
                                           : Status::Ok();
}

// Every record of a file. Errors: kCorruption also when bytes are left over in a block.
template <typename Read>
Status ForEachRecord(AvroFileReader& file, const Read& read) {
  const AvroSchema& root = file.schema();
  if (root.kind != AvroKind::kRecord) {
    return Status::Corruption("avro file: the records are not of type record");
  }
  while (true) {
    TARN_ASSIGN_OR_RETURN(const std::optional<AvroFileReader::Block> block, file.Next());
    if (!block) {
      return Status::Ok();
    }
    AvroDecoder decoder(block->bytes);
    for (int64_t i = 0; i < block->record_count; ++i) {
      TARN_RETURN_IF_ERROR(read(decoder, root));
    }
    if (!decoder.at_end()) {
      return decoder.Error("bytes are left over after the last record");
    }
  }
}

Result<int32_t> FormatVersionOf(const std::map<std::string, std::string>& metadata) {
  const auto at = metadata.find("format-version");
  if (at == metadata.end()) {
    return 1;
  }
  int32_t version = 0;
  const char* end = at->second.data() + at->second.size();
  const auto [stop, error] = std::from_chars(at->second.data(), end, version);
  if (error != std::errc() || stop != end || version < 1) {
    return Status::Corruption(fmt::format("manifest: format-version '{}'", at->second));
  }
  if (version > 3) {
    return Status(ErrorCode::kUnimplemented,
                  fmt::format("manifest of format version {} cannot be read here", version));
  }
  return version;
}

Status ReadSummaryField(AvroDecoder& decoder, const AvroField& field,
                        PartitionFieldSummary& summary) {
  FieldReader reader(decoder, *field.schema, field.field_id.value_or(-1));
  switch (field.field_id.value_or(-1)) {
    case 509: {
      TARN_ASSIGN_OR_RETURN(const std::optional<bool> value, reader.OptionalBool());
      summary.contains_null = value.value_or(true);
      return Status::Ok();
    }
    case 518: {
      TARN_ASSIGN_OR_RETURN(summary.contains_nan, reader.OptionalBool());
      return Status::Ok();
    }
    case 510: {
      TARN_ASSIGN_OR_RETURN(summary.lower_bound, reader.OptionalBytes());
      return Status::Ok();
    }
    case 511: {
      TARN_ASSIGN_OR_RETURN(summary.upper_bound, reader.OptionalBytes());
      return Status::Ok();
    }
    default:
      return decoder.Skip(*field.schema);
  }
}

Status ReadSummary(AvroDecoder& decoder, const AvroSchema& item, ManifestFile& file) {
  if (item.kind != AvroKind::kRecord) {
    return Unexpected(decoder, 508, item);
  }
  PartitionFieldSummary summary;
  for (const AvroField& field : item.fields) {
    TARN_RETURN_IF_ERROR(ReadSummaryField(decoder, field, summary));
  }
  file.partitions.push_back(std::move(summary));
  return Status::Ok();
}

// The counts of a manifest, by id; false for other fields.
Result<bool> ReadCount(FieldReader& reader, int32_t id, ManifestFile& file) {
  std::optional<int32_t>* files = id == 504   ? &file.added_files_count
                                  : id == 505 ? &file.existing_files_count
                                  : id == 506 ? &file.deleted_files_count
                                              : nullptr;
  std::optional<int64_t>* rows = id == 512   ? &file.added_rows_count
                                 : id == 513 ? &file.existing_rows_count
                                 : id == 514 ? &file.deleted_rows_count
                                             : nullptr;
  if (files != nullptr) {
    TARN_ASSIGN_OR_RETURN(*files, reader.OptionalInt());
  } else if (rows != nullptr) {
    TARN_ASSIGN_OR_RETURN(*rows, reader.OptionalLong());
  }
  return files != nullptr || rows != nullptr;
}

Status ReadManifestFileField(AvroDecoder& decoder, const AvroField& field, ManifestFile& file) {
  const int32_t id = field.field_id.value_or(-1);
  FieldReader reader(decoder, *field.schema, id);
  const auto number = [&]() -> Result<int64_t> {
    TARN_ASSIGN_OR_RETURN(const std::optional<int64_t> value, reader.OptionalLong());
    return value.value_or(0);
  };
  switch (id) {
    case 500: {
      TARN_ASSIGN_OR_RETURN(file.manifest_path, reader.Bytes());
      return Status::Ok();
    }
    case 501: {
      TARN_ASSIGN_OR_RETURN(file.manifest_length, reader.Long());
      return Status::Ok();
    }
    case 502: {
      TARN_ASSIGN_OR_RETURN(file.partition_spec_id, reader.Int());
      return Status::Ok();
    }
    case 517: {
      TARN_ASSIGN_OR_RETURN(const int64_t content, number());
      if (content < 0 || content > 1) {
        return decoder.Error(fmt::format("manifest content {} is not known", content));
      }
      file.content = static_cast<ManifestContent>(content);
      return Status::Ok();
    }
    case 515: {
      TARN_ASSIGN_OR_RETURN(file.sequence_number, number());
      return Status::Ok();
    }
    case 516: {
      TARN_ASSIGN_OR_RETURN(file.min_sequence_number, number());
      return Status::Ok();
    }
    case 503: {
      TARN_ASSIGN_OR_RETURN(file.added_snapshot_id, number());
      return Status::Ok();
    }
    case 507:
      return reader.Items([&](const AvroSchema& item) { return ReadSummary(decoder, item, file); });
    case 519: {
      TARN_ASSIGN_OR_RETURN(file.key_metadata, reader.OptionalBytes());
      return Status::Ok();
    }
    case 520: {
      TARN_ASSIGN_OR_RETURN(file.first_row_id, reader.OptionalLong());
      return Status::Ok();
    }
    default:
      break;
  }
  TARN_ASSIGN_OR_RETURN(const bool counted, ReadCount(reader, id, file));
  return counted ? Status::Ok() : decoder.Skip(*field.schema);
}

}  // namespace

Result<DecodedManifest> DecodeManifest(std::string_view bytes, const PartitionSpec& spec) {
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<AvroFileReader> file, AvroFileReader::Open(bytes));
  DecodedManifest out;
  TARN_ASSIGN_OR_RETURN(out.format_version, FormatVersionOf(file->metadata()));
  const auto content = file->metadata().find("content");
  if (content != file->metadata().end() && content->second == "deletes") {
    out.content = ManifestContent::kDeletes;
  }
  TARN_RETURN_IF_ERROR(ForEachRecord(*file, [&](AvroDecoder& decoder, const AvroSchema& root) {
    ManifestEntry entry;
    Status status = ReadEntry(decoder, root, spec, entry);
    out.entries.push_back(std::move(entry));
    return status;
  }));
  return out;
}

Status InheritFrom(const ManifestFile& manifest, int32_t format_version,
                   std::vector<ManifestEntry>& entries) {
  std::optional<int64_t> row_id =
      manifest.content == ManifestContent::kData ? manifest.first_row_id : std::nullopt;
  for (ManifestEntry& entry : entries) {
    entry.snapshot_id = entry.snapshot_id.value_or(manifest.added_snapshot_id);
    if (format_version == 1) {
      entry.sequence_number = 0;
      entry.file_sequence_number = 0;
    }
    const bool inherits = entry.status == ManifestStatus::kAdded || manifest.sequence_number == 0;
    if (inherits) {
      entry.sequence_number = entry.sequence_number.value_or(manifest.sequence_number);
      entry.file_sequence_number = entry.file_sequence_number.value_or(manifest.sequence_number);
    }
    if (!entry.sequence_number) {
      return Status::Corruption(
          fmt::format("manifest {}: file {} is not new and has no sequence number",
                      manifest.manifest_path, entry.data_file.file_path));
    }
    // Some writers leave this one out; the data sequence number is the best that is known.
    entry.file_sequence_number = entry.file_sequence_number.value_or(*entry.sequence_number);
    if (row_id && entry.is_live() && !entry.data_file.first_row_id) {
      entry.data_file.first_row_id = *row_id;
      if (entry.data_file.record_count > INT64_MAX - *row_id) {
        return Status::Corruption(fmt::format("manifest {}: the row ids of file {} are too large",
                                              manifest.manifest_path, entry.data_file.file_path));
      }
      *row_id += entry.data_file.record_count;
    }
  }
  return Status::Ok();
}

Result<std::vector<ManifestFile>> DecodeManifestList(std::string_view bytes) {
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<AvroFileReader> file, AvroFileReader::Open(bytes));
  std::vector<ManifestFile> manifests;
  TARN_RETURN_IF_ERROR(
      ForEachRecord(*file, [&](AvroDecoder& decoder, const AvroSchema& root) -> Status {
        ManifestFile manifest;
        for (const AvroField& field : root.fields) {
          TARN_RETURN_IF_ERROR(ReadManifestFileField(decoder, field, manifest));
        }
        if (manifest.manifest_path.empty()) {
          return decoder.Error("a manifest without a path");
        }
        manifests.push_back(std::move(manifest));
        return Status::Ok();
      }));
  return manifests;
}

}  // namespace tarn::iceberg
