// FileUpload: streams one new file into the object store, ready to be registered.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tarn/base/hash.h"
#include "tarn/base/uuid.h"
#include "tarn/dataset/ids.h"
#include "tarn/storage/object_store.h"

namespace tarn::dataset {

/// A file that exists in the store and is to become part of a transaction. Value.
struct StoredFile {
  std::string path;
  std::string location;  // Key in the dataset's object store, or a URI when not `managed`.
  bool managed = true;
  int64_t size_bytes = 0;
  std::optional<uint64_t> checksum;  // XXH3 of the content.
  std::string etag;                  // Of an imported object.
  std::optional<int64_t> row_count;
  std::optional<std::string> statistics;  // Opaque here; column statistics of a data file.
};

/// One upload. One owner thread. Destroyed without Finish it leaves nothing behind; memory does
/// not grow with the size.
class FileUpload {
 public:
  /// Errors: kInvalidArgument (InvalidFilePath); those of the store.
  static Result<std::unique_ptr<FileUpload>> Open(storage::ObjectStore& store, UuidGenerator& uuids,
                                                  const DatasetRid& dataset, std::string_view path);
  ~FileUpload();
  FileUpload(const FileUpload&) = delete;
  FileUpload& operator=(const FileUpload&) = delete;

  Status Write(std::string_view bytes);
  /// Makes the bytes durable. The file belongs to no transaction until it is registered.
  Result<StoredFile> Finish();

 private:
  FileUpload(std::string path, std::string location, std::unique_ptr<storage::ObjectWriter> writer);

  std::string path_;
  std::string location_;
  std::unique_ptr<storage::ObjectWriter> writer_;
  Xxh3Stream checksum_;
  int64_t size_bytes_ = 0;
};

/// Gives the next piece of a body; an empty piece ends it. The piece dies with the next call.
using BodyReader = std::function<Result<std::string_view>()>;

/// Streams `body` into a new object. On any failure nothing of it stays.
Result<StoredFile> UploadFile(storage::ObjectStore& store, UuidGenerator& uuids,
                              const DatasetRid& dataset, std::string_view path,
                              const BodyReader& body);

}  // namespace tarn::dataset
