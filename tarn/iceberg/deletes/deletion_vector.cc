#include "tarn/iceberg/deletes/deletion_vector.h"

#include <algorithm>

#include <fmt/format.h>
#include <zlib.h>

#include "tarn/iceberg/codec/roaring.h"
#include "tarn/iceberg/deletes/puffin.h"

namespace tarn::iceberg {
namespace {

constexpr std::string_view kMagic = "\xD1\xD3\x39\x64";
constexpr size_t kFrameBytes = 12;  // Length, magic, checksum.
constexpr uint64_t kBlobBytesMax = 1ULL << 30;
// Reserved id of the row position, which vectors are about.
constexpr int32_t kRowPositionId = 2147483645;

void AppendBigEndian(std::string& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    out += static_cast<char>(value >> shift);
  }
}

uint32_t ReadBigEndian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

uint32_t Checksum(std::string_view bytes) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()),
                                       static_cast<z_size_t>(bytes.size())));
}

}  // namespace

std::string EncodeDeletionVector(const Positions& positions) {
  std::string body(kMagic);
  body += EncodeRoaring64(positions);
  std::string blob;
  AppendBigEndian(blob, static_cast<uint32_t>(body.size()));
  blob += body;
  AppendBigEndian(blob, Checksum(body));
  return blob;
}

Result<Positions> DecodeDeletionVector(std::string_view blob, uint64_t count_max) {
  if (blob.size() < kFrameBytes || ReadBigEndian(blob) != blob.size() - 8) {
    return Status::Corruption(
        fmt::format("deletion vector: the {} bytes do not have the length they say", blob.size()));
  }
  const std::string_view body = blob.substr(4, blob.size() - 8);
  if (!body.starts_with(kMagic)) {
    return Status::Corruption("deletion vector: it does not begin with its magic number");
  }
  if (ReadBigEndian(blob.substr(blob.size() - 4)) != Checksum(body)) {
    return Status::Corruption("deletion vector: the checksum does not match");
  }
  return DecodeRoaring64(body.substr(kMagic.size()), count_max);
}

Result<std::vector<DataFile>> WriteDeletionVectors(storage::ObjectStore& store,
                                                   const std::string& file_path,
                                                   const std::vector<DeletionVector>& vectors) {
  if (vectors.empty()) {
    return Status::InvalidArgument("there is no deletion vector to write");
  }
  PuffinWriter writer;
  std::vector<DataFile> files;
  for (const DeletionVector& vector : vectors) {
    Positions positions = vector.positions;
    std::sort(positions.begin(), positions.end());
    positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
    if (positions.empty() || positions.front() < 0) {
      return Status::InvalidArgument(
          fmt::format("deletes of {}: there must be at least one position, none negative",
                      vector.data_file_path));
    }
    const auto count = static_cast<int64_t>(positions.size());
    const PuffinBlob& blob =
        writer.Add({.type = std::string(kDeletionVectorBlob),
                    .fields = {kRowPositionId},
                    .compression_codec = {},
                    .properties = {{"referenced-data-file", vector.data_file_path},
                                   {"cardinality", std::to_string(count)}}},
                   EncodeDeletionVector(positions));
    DataFile file;
    file.content = DataFileContent::kPositionDeletes;
    file.file_path = file_path;
    file.file_format = "PUFFIN";
    file.spec_id = vector.spec_id;
    file.partition = vector.partition;
    file.record_count = count;
    file.referenced_data_file = vector.data_file_path;
    file.content_offset = blob.offset;
    file.content_size_bytes = blob.length;
    files.push_back(std::move(file));
  }
  const std::string bytes = writer.Finish();
  TARN_ASSIGN_OR_RETURN(const std::string key, KeyOf(store, file_path));
  const Status status = WriteObject(store, key, bytes, storage::WriteMode::kOverwrite).status();
  if (!status.ok()) {
    // Nothing refers to the file yet, so an unknown outcome is only a failed write.
    return status.code() == ErrorCode::kCommitStateUnknown ? Status::Unavailable(status.message())
                                                           : status;
  }
  for (DataFile& file : files) {
    file.file_size_bytes = static_cast<int64_t>(bytes.size());
  }
  return files;
}

Result<Positions> ReadDeletionVector(storage::ObjectStore& store, const DataFile& vector) {
  const auto read = [&]() -> Result<Positions> {
    const int64_t offset = vector.content_offset.value_or(-1);
    const int64_t size = vector.content_size_bytes.value_or(-1);
    if (offset < 0 || size < static_cast<int64_t>(kFrameBytes)) {
      return Status::Corruption(
          fmt::format("a deletion vector of {} bytes at offset {}", size, offset));
    }
    TARN_ASSIGN_OR_RETURN(const std::string key, KeyOf(store, vector.file_path));
    TARN_ASSIGN_OR_RETURN(const std::string blob,
                          storage::ReadObject(store, key, kBlobBytesMax,
                                              storage::ByteRange{static_cast<uint64_t>(offset),
                                                                 static_cast<uint64_t>(size)}));
    TARN_ASSIGN_OR_RETURN(Positions positions,
                          DecodeDeletionVector(blob, static_cast<uint64_t>(vector.record_count)));
    if (static_cast<int64_t>(positions.size()) != vector.record_count) {
      return Status::Corruption(fmt::format("the deletion vector has {} rows, its entry says {}",
                                            positions.size(), vector.record_count));
    }
    return positions;
  };
  Result<Positions> positions = read();
  return positions.ok()
             ? positions
             : positions.status().WithContext(fmt::format("delete file {}", vector.file_path));
}

}  // namespace tarn::iceberg
