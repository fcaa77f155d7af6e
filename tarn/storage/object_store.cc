#include "tarn/storage/object_store.h"

#include <algorithm>

#include "tarn/base/quantity.h"
#include "tarn/storage/object_key.h"

namespace tarn::storage {

Result<std::string> ReadObject(ObjectStore& store, std::string_view key, uint64_t size_bytes_max,
                               std::optional<ByteRange> range) {
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<ObjectReader> reader, store.OpenReader(key));
  const uint64_t object_bytes = reader->meta().size_bytes;
  const uint64_t offset = std::min(range ? range->offset_bytes : 0, object_bytes);
  const uint64_t available = object_bytes - offset;
  const uint64_t size = range ? std::min(range->size_bytes, available) : available;
  if (size > size_bytes_max) {
    return Status(ErrorCode::kResourceExhausted,
                  "object " + QuoteKey(key) + " has " + FormatSize(size) +
                      " to read, more than the limit of " + FormatSize(size_bytes_max));
  }
  std::string bytes(size, '\0');
  TARN_ASSIGN_OR_RETURN(const size_t count, reader->ReadAt(offset, bytes.size(), bytes.data()));
  if (count != bytes.size()) {
    return Status::Corruption("object " + QuoteKey(key) + " ended after " +
                              std::to_string(offset + count) + " of " +
                              std::to_string(object_bytes) + " bytes");
  }
  return bytes;
}

Result<ObjectMeta> WriteObject(ObjectStore& store, std::string_view key, std::string_view bytes,
                               WriteMode mode) {
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<ObjectWriter> writer, store.OpenWriter(key, mode));
  const Status written = writer->Write(bytes);
  if (!written.ok()) {
    writer->Abort();
    return written;
  }
  return writer->Close();
}

std::string UriOf(const ObjectStore& store, std::string_view key) {
  return store.base_uri() + "/" + std::string(key);
}

Result<std::string> KeyOf(const ObjectStore& store, std::string_view uri) {
  std::string base = store.base_uri();
  std::string name(uri);
  if (base.starts_with("file:")) {
    TARN_ASSIGN_OR_RETURN(base, PathOfFileUri(base));
    Result<std::string> path = PathOfFileUri(uri);
    if (path.ok()) {
      name = *std::move(path);
    }
  } else if (base.starts_with("s3:") && (name.starts_with("s3a:") || name.starts_with("s3n:"))) {
    name.erase(2, 1);  // Hadoop's names of the same buckets.
  }
  base += base.ends_with('/') ? "" : "/";
  if (!name.starts_with(base)) {
    return Status::InvalidArgument(QuoteKey(uri) + " is not below " + store.base_uri());
  }
  std::string key = name.substr(base.size());
  TARN_RETURN_IF_ERROR(CheckKey(key));
  return key;
}

}  // namespace tarn::storage
