#include "tarn/dataset/upload.h"

#include <utility>

#include "tarn/dataset/logical_path.h"
#include "tarn/dataset/physical_name.h"

namespace tarn::dataset {

FileUpload::FileUpload(std::string path, std::string location,
                       std::unique_ptr<storage::ObjectWriter> writer)
    : path_(std::move(path)), location_(std::move(location)), writer_(std::move(writer)) {}

FileUpload::~FileUpload() {
  if (writer_ != nullptr) {
    writer_->Abort();
  }
}

Result<std::unique_ptr<FileUpload>> FileUpload::Open(storage::ObjectStore& store,
                                                     UuidGenerator& uuids,
                                                     const DatasetRid& dataset,
                                                     std::string_view path) {
  TARN_RETURN_IF_ERROR(CheckLogicalPath(path));
  std::string location = PhysicalName(dataset, uuids.NextV7(), path);
  // The name is new by construction; where the store can, it proves it.
  const storage::WriteMode mode = store.capabilities().put_if_absent
                                      ? storage::WriteMode::kPutIfAbsent
                                      : storage::WriteMode::kOverwrite;
  TARN_ASSIGN_OR_RETURN(std::unique_ptr<storage::ObjectWriter> writer,
                        store.OpenWriter(location, mode));
  return std::unique_ptr<FileUpload>(
      new FileUpload(std::string(path), std::move(location), std::move(writer)));
}

Status FileUpload::Write(std::string_view bytes) {
  TARN_CHECK(writer_ != nullptr);
  TARN_RETURN_IF_ERROR(writer_->Write(bytes));
  checksum_.Update(bytes);
  size_bytes_ += static_cast<int64_t>(bytes.size());
  return Status::Ok();
}

Result<StoredFile> FileUpload::Finish() {
  TARN_CHECK(writer_ != nullptr);
  const std::unique_ptr<storage::ObjectWriter> writer = std::move(writer_);
  TARN_ASSIGN_OR_RETURN(const storage::ObjectMeta meta, writer->Close());
  if (meta.size_bytes != static_cast<uint64_t>(size_bytes_)) {
    return Status::Corruption("upload of " + path_ + ": the store holds " +
                              std::to_string(meta.size_bytes) + " bytes of " +
                              std::to_string(size_bytes_));
  }
  return StoredFile{.path = std::move(path_),
                    .location = std::move(location_),
                    .managed = true,
                    .size_bytes = size_bytes_,
                    .checksum = checksum_.Digest(),
                    .etag = {},
                    .row_count = std::nullopt,
                    .statistics = std::nullopt};
}

Result<StoredFile> UploadFile(storage::ObjectStore& store, UuidGenerator& uuids,
                              const DatasetRid& dataset, std::string_view path,
                              const BodyReader& body) {
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<FileUpload> upload,
                        FileUpload::Open(store, uuids, dataset, path));
  while (true) {
    TARN_ASSIGN_OR_RETURN(const std::string_view piece, body());
    if (piece.empty()) {
      return upload->Finish();
    }
    TARN_RETURN_IF_ERROR(upload->Write(piece));
  }
}

}  // namespace tarn::dataset
