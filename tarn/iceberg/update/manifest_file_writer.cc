#include "tarn/iceberg/update/manifest_file_writer.h"

#include <fmt/format.h>

#include "tarn/iceberg/manifest_avro.h"
#include "tarn/iceberg/snapshot_update.h"

namespace tarn::iceberg {
namespace {

// The schema that has the sources of a spec: the current one, else the newest that has them all.
const Schema& SchemaForSpec(const TableMetadata& metadata, const PartitionSpec& spec) {
  const auto has_sources = [&](const Schema& schema) {
    return std::all_of(spec.fields.begin(), spec.fields.end(), [&](const PartitionField& field) {
      return schema.FindField(field.source_id) != nullptr;
    });
  };
  if (has_sources(metadata.CurrentSchema())) {
    return metadata.CurrentSchema();
  }
  for (auto at = metadata.schemas.rbegin(); at != metadata.schemas.rend(); ++at) {
    if (has_sources(**at)) {
      return **at;
    }
  }
  return metadata.CurrentSchema();
}

}  // namespace

Status ManifestFileWriter::Put(const std::string& uri, std::string_view bytes) {
  TARN_ASSIGN_OR_RETURN(const std::string key, KeyOf(store_, uri));
  written_.push_back(uri);
  const Status status = WriteObject(store_, key, bytes, storage::WriteMode::kOverwrite).status();
  // Nothing refers to the file yet, so an unknown outcome is only a failed write.
  return status.code() == ErrorCode::kCommitStateUnknown ? Status::Unavailable(status.message())
                                                         : status;
}

const ManifestFile* ManifestFileWriter::Find(const std::string& reuse_key) const {
  const auto at = by_key_.find(reuse_key);
  return at == by_key_.end() ? nullptr : &at->second;
}

Result<ManifestFile> ManifestFileWriter::Write(const TableMetadata& base, ManifestContent content,
                                               int32_t spec_id,
                                               const std::vector<ManifestEntry>& entries,
                                               const std::string& reuse_key) {
  if (const ManifestFile* found = Find(reuse_key); found != nullptr && !reuse_key.empty()) {
    return *found;
  }
  const PartitionSpec* spec = base.FindSpec(spec_id);
  if (spec == nullptr) {
    return Status::InvalidArgument(fmt::format("the table has no partition spec {}", spec_id));
  }
  TARN_ASSIGN_OR_RETURN(EncodedManifest encoded,
                        EncodeManifest({.format_version = base.format_version,
                                        .content = content,
                                        .schema = SchemaForSpec(base, *spec),
                                        .spec = *spec},
                                       snapshot_id_, entries));
  encoded.file.manifest_path =
      fmt::format("{}/{}-m{}.avro", MetadataFolder(base), commit_uuid_, count_++);
  TARN_RETURN_IF_ERROR(Put(encoded.file.manifest_path, encoded.bytes));
  if (!reuse_key.empty()) {
    by_key_[reuse_key] = encoded.file;
  }
  return encoded.file;
}

Result<std::string> ManifestFileWriter::WriteList(const TableMetadata& base,
                                                  const Snapshot& snapshot, int attempt,
                                                  const std::vector<ManifestFile>& manifests) {
  const std::string uri = fmt::format("{}/snap-{}-{}-{}.avro", MetadataFolder(base), snapshot_id_,
                                      attempt, commit_uuid_);
  TARN_RETURN_IF_ERROR(
      Put(uri, EncodeManifestList({.format_version = base.format_version,
                                   .snapshot_id = snapshot.snapshot_id,
                                   .parent_snapshot_id = snapshot.parent_snapshot_id,
                                   .sequence_number = snapshot.sequence_number,
                                   .first_row_id = snapshot.first_row_id},
                                  manifests)));
  return uri;
}

}  // namespace tarn::iceberg
