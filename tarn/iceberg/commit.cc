#include "tarn/iceberg/commit.h"

#include <charconv>

#include <fmt/format.h>

#include "tarn/iceberg/snapshot_update.h"
#include "tarn/iceberg/table_metadata_json.h"

namespace tarn::iceberg {

std::string MetadataFileName(int64_t version, const Uuid& uuid) {
  return fmt::format("{:05}-{}.metadata.json", version, uuid.ToString());
}

int64_t MetadataVersionOf(std::string_view location) {
  const size_t slash = location.rfind('/');
  std::string_view name = slash == std::string_view::npos ? location : location.substr(slash + 1);
  if (!name.empty() && name[0] == 'v') {
    name.remove_prefix(1);
  }
  int64_t version = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), version);
  const bool delimited = end != name.data() + name.size() && (*end == '-' || *end == '.');
  return error == std::errc() && delimited && version >= 0 ? version : -1;
}

namespace {

// A new file under a name of its own: while no pointer names it, an unknown outcome is a failure.
Result<std::string> WriteNew(storage::ObjectStore& store, const std::string& folder,
                             std::string_view previous_location, UuidGenerator& uuids,
                             std::string_view bytes) {
  const int64_t version = previous_location.empty() ? 0 : MetadataVersionOf(previous_location) + 1;
  const std::string uri = folder + "/" + MetadataFileName(version, uuids.NextV4());
  TARN_ASSIGN_OR_RETURN(const std::string key, KeyOf(store, uri));
  const Result<storage::ObjectMeta> written =
      WriteObject(store, key, bytes, storage::WriteMode::kOverwrite);
  if (!written.ok()) {
    return written.status().code() == ErrorCode::kCommitStateUnknown
               ? Status::Unavailable(written.status().message())
               : written.status();
  }
  return uri;
}

Result<std::string> ReadMetadataFile(storage::ObjectStore& store, const std::string& location) {
  TARN_ASSIGN_OR_RETURN(const std::string key, KeyOf(store, location));
  Result<std::string> text = storage::ReadObject(store, key);
  if (!text.ok() && text.status().code() == ErrorCode::kNotFound) {
    return Status::NotFound(fmt::format("Failed to open input stream for file: {}", location));
  }
  return text;
}

}  // namespace

Result<std::string> WriteMetadata(storage::ObjectStore& store, const TableMetadata& metadata,
                                  std::string_view previous_location, UuidGenerator& uuids) {
  return WriteNew(store, MetadataFolder(metadata), previous_location, uuids,
                  FormatTableMetadata(metadata));
}

Result<std::string> WriteMetadata(storage::ObjectStore& store, const ViewMetadata& metadata,
                                  std::string_view previous_location, UuidGenerator& uuids) {
  return WriteNew(store, metadata.location + "/metadata", previous_location, uuids,
                  FormatViewMetadata(metadata));
}

Result<TableMetadata> ReadTableMetadata(storage::ObjectStore& store, const std::string& location) {
  TARN_ASSIGN_OR_RETURN(const std::string text, ReadMetadataFile(store, location));
  Result<TableMetadata> metadata = ParseTableMetadata(text);
  if (!metadata.ok()) {
    return metadata.status().WithContext(location);
  }
  return metadata;
}

Result<ViewMetadata> ReadViewMetadata(storage::ObjectStore& store, const std::string& location) {
  TARN_ASSIGN_OR_RETURN(const std::string text, ReadMetadataFile(store, location));
  Result<ViewMetadata> metadata = ParseViewMetadata(text);
  if (!metadata.ok()) {
    return metadata.status().WithContext(location);
  }
  return metadata;
}

}  // namespace tarn::iceberg
