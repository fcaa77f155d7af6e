#include "tarn/iceberg/deletes/puffin.h"

#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/iceberg/json.h"

namespace tarn::iceberg {
namespace {

constexpr std::string_view kMagic = "PFA1";
constexpr size_t kTailBytes = 12;  // Payload size, flags, magic.
constexpr uint64_t kFooterBytesMax = 64ULL << 20;

void AppendInt32(std::string& out, uint32_t value) {
  for (int i = 0; i < 4; ++i) {
    out += static_cast<char>(value >> (8 * i));
  }
}

uint32_t ReadInt32(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) {
    value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return value;
}

Json BlobToJson(const PuffinBlob& blob) {
  Json json = {{"type", blob.type},
               {"fields", blob.fields},
               {"snapshot-id", blob.snapshot_id},
               {"sequence-number", blob.sequence_number},
               {"offset", blob.offset},
               {"length", blob.length}};
  if (blob.compression_codec) {
    json["compression-codec"] = *blob.compression_codec;
  }
  if (!blob.properties.empty()) {
    json["properties"] = blob.properties;
  }
  return json;
}

Result<PuffinBlob> BlobFromJson(const Json& json, int64_t blobs_end) {
  TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(json, "puffin blob"));
  PuffinBlob blob;
  TARN_ASSIGN_OR_RETURN(blob.type, object.GetString("type"));
  TARN_ASSIGN_OR_RETURN(blob.fields, object.FindInts("fields"));
  TARN_ASSIGN_OR_RETURN(blob.snapshot_id, object.GetLong("snapshot-id"));
  TARN_ASSIGN_OR_RETURN(blob.sequence_number, object.GetLong("sequence-number"));
  TARN_ASSIGN_OR_RETURN(blob.offset, object.GetLong("offset"));
  TARN_ASSIGN_OR_RETURN(blob.length, object.GetLong("length"));
  TARN_ASSIGN_OR_RETURN(blob.compression_codec, object.FindString("compression-codec"));
  TARN_ASSIGN_OR_RETURN(blob.properties, object.FindStringMap("properties"));
  if (blob.offset < static_cast<int64_t>(kMagic.size()) || blob.length < 0 ||
      blob.offset > blobs_end || blob.length > blobs_end - blob.offset) {
    return Status::Corruption(
        fmt::format("puffin blob of type {}: bytes {} to {} are not inside the file", blob.type,
                    blob.offset, blob.offset + blob.length));
  }
  return blob;
}

Result<PuffinFooter> ParsePayload(std::string_view payload, int64_t blobs_end) {
  const Result<Json> json = ParseJson(payload, "puffin footer");
  if (!json.ok()) {
    return Status::Corruption(json.status().message());
  }
  const auto parse = [&]() -> Result<PuffinFooter> {
    PuffinFooter footer;
    TARN_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::Of(*json, "puffin footer"));
    TARN_ASSIGN_OR_RETURN(const auto blobs, object.FindArray("blobs"));
    for (const Json* element : blobs) {
      TARN_ASSIGN_OR_RETURN(PuffinBlob blob, BlobFromJson(*element, blobs_end));
      footer.blobs.push_back(std::move(blob));
    }
    TARN_ASSIGN_OR_RETURN(footer.properties, object.FindStringMap("properties"));
    return footer;
  };
  Result<PuffinFooter> footer = parse();
  return footer.ok() ? footer : Status::Corruption(footer.status().message());
}

// Size of the JSON payload, from the last bytes of a file.
Result<uint64_t> PayloadSize(std::string_view tail, uint64_t file_size) {
  if (tail.size() < kTailBytes || tail.substr(tail.size() - kMagic.size()) != kMagic) {
    return Status::Corruption("puffin file: it does not end with PFA1");
  }
  const std::string_view fields = tail.substr(tail.size() - kTailBytes);
  const auto size = static_cast<uint64_t>(ReadInt32(fields));
  if (size > file_size || file_size - size < kTailBytes + 2 * kMagic.size()) {
    return Status::Corruption(
        fmt::format("puffin file: a footer of {} bytes in a file of {}", size, file_size));
  }
  const uint32_t flags = ReadInt32(fields.substr(4));
  if (flags == 1) {
    return Status::Unimplemented("puffin file: its footer is compressed");
  }
  if (flags != 0) {
    return Status::Unimplemented(fmt::format("puffin file: its footer has the flags {:x}", flags));
  }
  return size;
}

}  // namespace

PuffinWriter::PuffinWriter() : file_(kMagic) {}

const PuffinBlob& PuffinWriter::Add(PuffinBlob blob, std::string_view bytes) {
  blob.offset = size_bytes();
  blob.length = static_cast<int64_t>(bytes.size());
  file_ += bytes;
  return blobs_.emplace_back(std::move(blob));
}

std::string PuffinWriter::Finish() {
  Json blobs = Json::array();
  for (const PuffinBlob& blob : blobs_) {
    blobs.push_back(BlobToJson(blob));
  }
  Json footer = {{"blobs", std::move(blobs)}};
  if (!blobs_.empty()) {
    footer["properties"] = {{"created-by", "tarn"}};
  }
  const std::string payload = DumpJson(footer);
  file_ += kMagic;
  file_ += payload;
  AppendInt32(file_, static_cast<uint32_t>(payload.size()));
  AppendInt32(file_, 0);
  file_ += kMagic;
  return std::move(file_);
}

Result<PuffinFooter> ParsePuffinFooter(std::string_view file) {
  if (!file.starts_with(kMagic)) {
    return Status::Corruption("puffin file: it does not begin with PFA1");
  }
  TARN_ASSIGN_OR_RETURN(const uint64_t size, PayloadSize(file, file.size()));
  const size_t payload_at = file.size() - kTailBytes - size;
  const size_t footer_at = payload_at - kMagic.size();
  if (file.substr(footer_at, kMagic.size()) != kMagic) {
    return Status::Corruption("puffin file: its footer does not begin with PFA1");
  }
  return ParsePayload(file.substr(payload_at, size), static_cast<int64_t>(footer_at));
}

Result<PuffinFooter> ReadPuffinFooter(storage::ObjectStore& store, const std::string& uri) {
  TARN_ASSIGN_OR_RETURN(const std::string key, KeyOf(store, uri));
  const auto read = [&]() -> Result<PuffinFooter> {
    TARN_ASSIGN_OR_RETURN(const storage::ObjectMeta meta, store.Head(key));
    if (meta.size_bytes < kTailBytes + 2 * kMagic.size()) {
      return Status::Corruption(fmt::format("puffin file: {} bytes are too few", meta.size_bytes));
    }
    TARN_ASSIGN_OR_RETURN(
        const std::string tail,
        storage::ReadObject(store, key, kFooterBytesMax,
                            storage::ByteRange{meta.size_bytes - kTailBytes, kTailBytes}));
    TARN_ASSIGN_OR_RETURN(const uint64_t size, PayloadSize(tail, meta.size_bytes));
    const uint64_t footer_size = size + kTailBytes + kMagic.size();
    TARN_ASSIGN_OR_RETURN(
        const std::string footer,
        storage::ReadObject(store, key, kFooterBytesMax,
                            storage::ByteRange{meta.size_bytes - footer_size, footer_size}));
    if (!footer.starts_with(kMagic)) {
      return Status::Corruption("puffin file: its footer does not begin with PFA1");
    }
    return ParsePayload(std::string_view(footer).substr(kMagic.size(), size),
                        static_cast<int64_t>(meta.size_bytes - footer_size));
  };
  Result<PuffinFooter> footer = read();
  return footer.ok() ? footer : footer.status().WithContext(uri);
}

}  // namespace tarn::iceberg
