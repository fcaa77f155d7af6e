#include "tarn/iceberg/codec/avro.h"

#include <cstring>
#include <functional>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#include "tarn/base/hash.h"

namespace tarn::iceberg {
namespace {

constexpr int32_t kDepthMax = 64;
constexpr size_t kBlockBytes = 64 * 1024;
constexpr std::string_view kMagic{"Obj\x01", 4};
constexpr size_t kSyncBytes = 16;

const std::unordered_map<std::string_view, AvroKind>& Primitives() {
  static const std::unordered_map<std::string_view, AvroKind> kKinds{
      {"null", AvroKind::kNull},   {"boolean", AvroKind::kBoolean}, {"int", AvroKind::kInt},
      {"long", AvroKind::kLong},   {"float", AvroKind::kFloat},     {"double", AvroKind::kDouble},
      {"bytes", AvroKind::kBytes}, {"string", AvroKind::kString}};
  return kKinds;
}

std::optional<int32_t> IntMember(const Json& json, const char* key) {
  const auto at = json.find(key);
  if (at == json.end() || !at->is_number_integer()) {
    return std::nullopt;
  }
  const auto value = at->get<int64_t>();
  return value >= INT32_MIN && value <= INT32_MAX
             ? std::optional<int32_t>(static_cast<int32_t>(value))
             : std::nullopt;
}

std::string StringMember(const Json& json, const char* key) {
  const auto at = json.find(key);
  return at == json.end() || !at->is_string() ? "" : at->get<std::string>();
}

// Resolves named types while it walks a schema.
class SchemaParser {
 public:
  Result<AvroSchemaPtr> Parse(const Json& json, int32_t depth) {
    if (depth > kDepthMax) {
      return Status::Corruption(fmt::format("avro schema nested deeper than {}", kDepthMax));
    }
    if (json.is_string()) {
      return ParseName(json.get_ref<const std::string&>());
    }
    if (json.is_array()) {
      return ParseUnion(json, depth);
    }
    if (!json.is_object() || !json.contains("type")) {
      return Status::Corruption("avro schema: expected a name, an object or an array");
    }
    const Json& type = json["type"];
    if (!type.is_string()) {
      return Parse(type, depth + 1);
    }
    return ParseObject(json, type.get_ref<const std::string&>(), depth);
  }

 private:
  Result<AvroSchemaPtr> ParseName(const std::string& name) {
    if (const auto at = Primitives().find(name); at != Primitives().end()) {
      auto schema = std::make_shared<AvroSchema>();
      schema->kind = at->second;
      return AvroSchemaPtr(std::move(schema));
    }
    if (const auto at = named_.find(name); at != named_.end()) {
      return at->second;
    }
    return Status::Corruption(fmt::format("avro schema: type '{}' is not defined", name));
  }

  Result<AvroSchemaPtr> ParseUnion(const Json& json, int32_t depth) {
    auto schema = std::make_shared<AvroSchema>();
    schema->kind = AvroKind::kUnion;
    for (const Json& branch : json) {
      TARN_ASSIGN_OR_RETURN(AvroSchemaPtr child, Parse(branch, depth + 1));
      schema->children.push_back(std::move(child));
    }
    return AvroSchemaPtr(std::move(schema));
  }

  Result<AvroSchemaPtr> ParseObject(const Json& json, const std::string& type, int32_t depth) {
    auto schema = std::make_shared<AvroSchema>();
    schema->name = StringMember(json, "name");
    schema->logical_type = StringMember(json, "logicalType");
    schema->scale = IntMember(json, "scale").value_or(0);
    if (type == "record" || type == "error") {
      TARN_RETURN_IF_ERROR(ParseFields(json, *schema, depth));
    } else if (type == "array" || type == "map") {
      const char* member = type == "array" ? "items" : "values";
      if (!json.contains(member)) {
        return Status::Corruption(fmt::format("avro schema: {} without '{}'", type, member));
      }
      schema->kind = type == "array" ? AvroKind::kArray : AvroKind::kMap;
      schema->element_id = IntMember(json, "element-id");
      TARN_ASSIGN_OR_RETURN(AvroSchemaPtr child, Parse(json[member], depth + 1));
      schema->children.push_back(std::move(child));
    } else if (type == "fixed") {
      schema->kind = AvroKind::kFixed;
      const auto size = IntMember(json, "size");
      if (!size || *size < 0 || *size > (1 << 20)) {
        return Status::Corruption(fmt::format("avro schema: fixed '{}' has no size", schema->name));
      }
      schema->size_bytes = *size;
    } else if (type == "enum") {
      schema->kind = AvroKind::kEnum;
    } else if (const auto at = Primitives().find(type); at != Primitives().end()) {
      schema->kind = at->second;
    } else {
      return ParseName(type);
    }
    AvroSchemaPtr done = std::move(schema);
    if (!done->name.empty()) {
      named_[done->name] = done;
      if (const std::string space = StringMember(json, "namespace"); !space.empty()) {
        named_[space + "." + done->name] = done;
      }
    }
    return done;
  }

  Status ParseFields(const Json& json, AvroSchema& schema, int32_t depth) {
    schema.kind = AvroKind::kRecord;
    const auto fields = json.find("fields");
    if (fields == json.end() || !fields->is_array()) {
      return Status::Corruption(fmt::format("avro schema: record '{}' has no fields", schema.name));
    }
    for (const Json& member : *fields) {
      if (!member.is_object() || !member.contains("type")) {
        return Status::Corruption(
            fmt::format("avro schema: record '{}' has a field without a type", schema.name));
      }
      AvroField field;
      field.name = StringMember(member, "name");
      field.field_id = IntMember(member, "field-id");
      TARN_ASSIGN_OR_RETURN(field.schema, Parse(member["type"], depth + 1));
      schema.fields.push_back(std::move(field));
    }
    return Status::Ok();
  }

  std::unordered_map<std::string, AvroSchemaPtr> named_;
};

// Values that take no bytes could be claimed without end.
bool MayBeEmpty(const AvroSchema& schema) {
  switch (schema.kind) {
    case AvroKind::kNull:
      return true;
    case AvroKind::kFixed:
      return schema.size_bytes == 0;
    case AvroKind::kRecord:
      return std::all_of(schema.fields.begin(), schema.fields.end(),
                         [](const AvroField& field) { return MayBeEmpty(*field.schema); });
    default:
      return false;
  }
}

}  // namespace

Result<AvroSchemaPtr> ParseAvroSchema(std::string_view text) {
  Result<Json> json = ParseJson(text, "avro schema");
  if (!json.ok()) {
    return Status::Corruption(json.status().message());
  }
  return SchemaParser().Parse(*json, 0);
}

Status AvroDecoder::Error(std::string_view what) const {
  return Status::Corruption(fmt::format("avro block, byte {}: {}", offset_, what));
}

Result<int64_t> AvroDecoder::ReadLong() {
  uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (offset_ >= bytes_.size()) {
      return Error("the data ends inside a number");
    }
    const auto byte = static_cast<unsigned char>(bytes_[offset_++]);
    if (shift == 63 && byte > 1) {
      return Error("a number of more than 64 bits");
    }
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) {
      return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
    }
  }
  return Error("a number of more than 64 bits");
}

Result<int32_t> AvroDecoder::ReadInt() {
  TARN_ASSIGN_OR_RETURN(const int64_t value, ReadLong());
  if (value < INT32_MIN || value > INT32_MAX) {
    return Error(fmt::format("{} is not a 32-bit number", value));
  }
  return static_cast<int32_t>(value);
}

Result<bool> AvroDecoder::ReadBoolean() {
  TARN_ASSIGN_OR_RETURN(const std::string_view byte, ReadFixed(1));
  if (byte[0] != 0 && byte[0] != 1) {
    return Error("a boolean that is neither 0 nor 1");
  }
  return byte[0] == 1;
}

Result<float> AvroDecoder::ReadFloat() {
  TARN_ASSIGN_OR_RETURN(const std::string_view bytes, ReadFixed(4));
  float value = 0;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

Result<double> AvroDecoder::ReadDouble() {
  TARN_ASSIGN_OR_RETURN(const std::string_view bytes, ReadFixed(8));
  double value = 0;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

Result<std::string_view> AvroDecoder::ReadBytes() {
  TARN_ASSIGN_OR_RETURN(const int64_t size, ReadLong());
  if (size < 0 || static_cast<uint64_t>(size) > bytes_.size() - offset_) {
    return Error(fmt::format("{} bytes announced, {} left", size, bytes_.size() - offset_));
  }
  const std::string_view value = bytes_.substr(offset_, static_cast<size_t>(size));
  offset_ += static_cast<size_t>(size);
  return value;
}

Result<std::string_view> AvroDecoder::ReadFixed(int32_t size_bytes) {
  const auto size = static_cast<size_t>(size_bytes);
  if (size > bytes_.size() - offset_) {
    return Error(fmt::format("{} bytes expected, {} left", size, bytes_.size() - offset_));
  }
  const std::string_view value = bytes_.substr(offset_, size);
  offset_ += size;
  return value;
}

Result<const AvroSchema*> AvroDecoder::Resolve(const AvroSchema& schema) {
  const AvroSchema* resolved = &schema;
  for (int32_t depth = 0; resolved->kind == AvroKind::kUnion; ++depth) {
    TARN_ASSIGN_OR_RETURN(const int64_t branch, ReadLong());
    if (branch < 0 || static_cast<size_t>(branch) >= resolved->children.size() ||
        depth > kDepthMax) {
      return Error(fmt::format("branch {} of a union of {}", branch, resolved->children.size()));
    }
    resolved = resolved->children[static_cast<size_t>(branch)].get();
  }
  return resolved;
}

Result<int64_t> AvroDecoder::ReadBlockCount() {
  TARN_ASSIGN_OR_RETURN(int64_t count, ReadLong());
  if (count < 0) {
    if (count == INT64_MIN) {
      return Error("a block count out of range");
    }
    count = -count;
    TARN_RETURN_IF_ERROR(ReadLong());  // Size of the block in bytes.
  }
  // Items of maps and arrays in manifests take a byte at least.
  if (static_cast<uint64_t>(count) > bytes_.size() - offset_) {
    return Error(fmt::format("{} items announced, {} bytes left", count, bytes_.size() - offset_));
  }
  return count;
}

Status AvroDecoder::Skip(const AvroSchema& schema, int32_t depth) {
  if (depth > kDepthMax) {
    return Error(fmt::format("values nested deeper than {}", kDepthMax));
  }
  switch (schema.kind) {
    case AvroKind::kNull:
      return Status::Ok();
    case AvroKind::kBoolean:
      return ReadFixed(1).status();
    case AvroKind::kInt:
    case AvroKind::kLong:
    case AvroKind::kEnum:
      return ReadLong().status();
    case AvroKind::kFloat:
      return ReadFixed(4).status();
    case AvroKind::kDouble:
      return ReadFixed(8).status();
    case AvroKind::kBytes:
    case AvroKind::kString:
      return ReadBytes().status();
    case AvroKind::kFixed:
      return ReadFixed(schema.size_bytes).status();
    case AvroKind::kUnion: {
      TARN_ASSIGN_OR_RETURN(const AvroSchema* branch, Resolve(schema));
      return Skip(*branch, depth + 1);
    }
    case AvroKind::kRecord:
      for (const AvroField& field : schema.fields) {
        TARN_RETURN_IF_ERROR(Skip(*field.schema, depth + 1));
      }
      return Status::Ok();
    case AvroKind::kArray:
    case AvroKind::kMap:
      break;
  }
  if (schema.kind == AvroKind::kArray && MayBeEmpty(*schema.children[0])) {
    return Error("an array of values without bytes");
  }
  while (true) {
    TARN_ASSIGN_OR_RETURN(const int64_t count, ReadBlockCount());
    if (count == 0) {
      return Status::Ok();
    }
    for (int64_t i = 0; i < count; ++i) {
      if (schema.kind == AvroKind::kMap) {
        TARN_RETURN_IF_ERROR(ReadBytes());
      }
      TARN_RETURN_IF_ERROR(Skip(*schema.children[0], depth + 1));
    }
  }
}

Result<std::unique_ptr<AvroFileReader>> AvroFileReader::Open(std::string_view bytes,
                                                             AvroLimits limits) {
  std::unique_ptr<AvroFileReader> reader(new AvroFileReader(bytes, limits));
  TARN_RETURN_IF_ERROR(reader->ReadHeader());
  return reader;
}

Status AvroFileReader::ReadHeader() {
  if (!bytes_.starts_with(kMagic)) {
    return Status::Corruption("not an Avro file: the magic is missing");
  }
  AvroDecoder decoder(bytes_.substr(kMagic.size()));
  while (true) {
    TARN_ASSIGN_OR_RETURN(const int64_t count, decoder.ReadBlockCount());
    if (count == 0) {
      break;
    }
    for (int64_t i = 0; i < count; ++i) {
      TARN_ASSIGN_OR_RETURN(const std::string_view key, decoder.ReadBytes());
      TARN_ASSIGN_OR_RETURN(const std::string_view value, decoder.ReadBytes());
      metadata_[std::string(key)] = std::string(value);
      if (decoder.offset() > limits_.header_bytes_max) {
        return Status::Corruption("avro header larger than the limit");
      }
    }
  }
  TARN_ASSIGN_OR_RETURN(const std::string_view sync, decoder.ReadFixed(kSyncBytes));
  sync_ = std::string(sync);
  offset_ = kMagic.size() + decoder.offset();
  const auto codec = metadata_.find("avro.codec");
  codec_ = codec == metadata_.end() || codec->second.empty() ? "null" : codec->second;
  if (codec_ != "null" && codec_ != "deflate" && codec_ != "zstandard" && codec_ != "snappy") {
    return Status(ErrorCode::kUnimplemented,
                  fmt::format("avro codec '{}' cannot be read here", codec_));
  }
  const auto schema = metadata_.find("avro.schema");
  if (schema == metadata_.end()) {
    return Status::Corruption("avro header without a schema");
  }
  TARN_ASSIGN_OR_RETURN(schema_, ParseAvroSchema(schema->second));
  return Status::Ok();
}

namespace {

Status Inflate(std::string_view packed, uint64_t size_max, std::string& out) {
  z_stream stream{};
  if (inflateInit2(&stream, -15) != Z_OK) {
    return Status::Internal("zlib could not start");
  }
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  out.clear();
  int code = Z_OK;
  while (code == Z_OK && out.size() <= size_max) {
    const size_t before = out.size();
    out.resize(before + std::max<size_t>(packed.size() * 4, 4096));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream.avail_out = static_cast<uInt>(out.size() - before);
    code = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
    if (code == Z_OK && out.size() == before) {
      break;
    }
  }
  inflateEnd(&stream);
  if (code != Z_STREAM_END || out.size() > size_max) {
    return Status::Corruption("avro block: the deflate data is broken, cut or too large");
  }
  return Status::Ok();
}

// Raw snappy data with a CRC-32 of the unpacked bytes behind it, big endian.
Status Unsnappy(std::string_view packed, uint64_t size_max, std::string& out) {
  const auto broken = [] {
    return Status::Corruption("avro block: the snappy data is broken, cut or too large");
  };
  if (packed.size() < 4) {
    return broken();
  }
  const std::string_view body = packed.substr(0, packed.size() - 4);
  size_t size = 0;
  if (snappy_uncompressed_length(body.data(), body.size(), &size) != SNAPPY_OK || size > size_max) {
    return broken();
  }
  out.resize(size);
  if (snappy_uncompress(body.data(), body.size(), out.data(), &size) != SNAPPY_OK) {
    return broken();
  }
  out.resize(size);
  uint32_t wanted = 0;
  for (const char c : packed.substr(body.size())) {
    wanted = wanted << 8 | static_cast<unsigned char>(c);
  }
  const uLong found = crc32_z(0, reinterpret_cast<const Bytef*>(out.data()), out.size());
  return wanted == static_cast<uint32_t>(found)
             ? Status::Ok()
             : Status::Corruption("avro block: the checksum of the snappy data does not match");
}

Status Unzstd(std::string_view packed, uint64_t size_max, std::string& out) {
  out.clear();
  ZSTD_DStream* stream = ZSTD_createDStream();
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  size_t left = 1;
  while (in.pos < in.size && out.size() <= size_max) {
    const size_t before = out.size();
    out.resize(before + std::max<size_t>(packed.size() * 4, 4096));
    ZSTD_outBuffer chunk{out.data() + before, out.size() - before, 0};
    left = ZSTD_decompressStream(stream, &chunk, &in);
    out.resize(before + chunk.pos);
    if (ZSTD_isError(left) != 0) {
      break;
    }
  }
  // What is buffered inside after the last input byte.
  while (ZSTD_isError(left) == 0 && left != 0 && out.size() <= size_max) {
    const size_t before = out.size();
    out.resize(before + 65536);
    ZSTD_outBuffer chunk{out.data() + before, out.size() - before, 0};
    left = ZSTD_decompressStream(stream, &chunk, &in);
    out.resize(before + chunk.pos);
    if (chunk.pos == 0) {
      break;
    }
  }
  ZSTD_freeDStream(stream);
  if (left != 0 || out.size() > size_max) {
    return Status::Corruption("avro block: the zstandard data is broken, cut or too large");
  }
  return Status::Ok();
}

}  // namespace

Result<std::string_view> AvroFileReader::Unpack(std::string_view packed) {
  if (codec_ == "null") {
    return packed;
  }
  const auto unpack = codec_ == "deflate" ? &Inflate : codec_ == "snappy" ? &Unsnappy : &Unzstd;
  TARN_RETURN_IF_ERROR(unpack(packed, limits_.block_bytes_max, unpacked_));
  return std::string_view(unpacked_);
}

Result<std::optional<AvroFileReader::Block>> AvroFileReader::Next() {
  if (offset_ == bytes_.size()) {
    return std::optional<Block>();
  }
  AvroDecoder decoder(bytes_.substr(offset_));
  TARN_ASSIGN_OR_RETURN(const int64_t count, decoder.ReadLong());
  TARN_ASSIGN_OR_RETURN(const std::string_view packed, decoder.ReadBytes());
  TARN_ASSIGN_OR_RETURN(const std::string_view sync, decoder.ReadFixed(kSyncBytes));
  if (sync != sync_) {
    return Status::Corruption(
        fmt::format("avro file: the sync marker after byte {} is wrong", offset_));
  }
  offset_ += decoder.offset();
  TARN_ASSIGN_OR_RETURN(const std::string_view bytes, Unpack(packed));
  if (count < 0 || (static_cast<uint64_t>(count) > bytes.size() && !MayBeEmpty(*schema_))) {
    return Status::Corruption(
        fmt::format("avro block: {} records in {} bytes", count, bytes.size()));
  }
  return std::optional<Block>(Block{count, bytes});
}

void AvroEncoder::WriteLong(int64_t value) {
  uint64_t zigzag = (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
  while (zigzag >= 0x80) {
    bytes_.push_back(static_cast<char>(zigzag | 0x80));
    zigzag >>= 7;
  }
  bytes_.push_back(static_cast<char>(zigzag));
}

void AvroEncoder::WriteBoolean(bool value) { bytes_.push_back(value ? '\1' : '\0'); }
void AvroEncoder::WriteFloat(float value) {
  bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
}
void AvroEncoder::WriteDouble(double value) {
  bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
}
void AvroEncoder::WriteBytes(std::string_view bytes) {
  WriteLong(static_cast<int64_t>(bytes.size()));
  bytes_.append(bytes);
}
void AvroEncoder::WriteRaw(std::string_view bytes) { bytes_.append(bytes); }

AvroFileWriter::AvroFileWriter(std::string_view schema_json,
                               const std::map<std::string, std::string>& metadata, AvroCodec codec)
    : codec_(codec) {
  std::map<std::string, std::string> all = metadata;
  all["avro.schema"] = std::string(schema_json);
  all["avro.codec"] = codec == AvroCodec::kDeflate ? "deflate" : "null";
  AvroEncoder header;
  header.WriteRaw(kMagic);
  header.WriteLong(static_cast<int64_t>(all.size()));
  for (const auto& [key, value] : all) {
    header.WriteBytes(key);
    header.WriteBytes(value);
  }
  header.WriteLong(0);
  sync_ = Sha256(header.bytes()).substr(0, kSyncBytes);
  file_ = header.bytes() + sync_;
}

void AvroFileWriter::EndRecord() {
  ++block_records_;
  ++record_count_;
  if (encoder_.bytes().size() >= kBlockBytes) {
    FlushBlock();
  }
}

void AvroFileWriter::FlushBlock() {
  if (block_records_ == 0) {
    return;
  }
  AvroEncoder block;
  block.WriteLong(block_records_);
  if (codec_ == AvroCodec::kDeflate) {
    const std::string& bytes = encoder_.bytes();
    z_stream stream{};
    TARN_CHECK(deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    std::string packed(deflateBound(&stream, static_cast<uLong>(bytes.size())), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_out = static_cast<uInt>(packed.size());
    TARN_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    packed.resize(packed.size() - stream.avail_out);
    deflateEnd(&stream);
    block.WriteBytes(packed);
  } else {
    block.WriteBytes(encoder_.bytes());
  }
  block.WriteRaw(sync_);
  file_ += block.bytes();
  encoder_.Clear();
  block_records_ = 0;
}

std::string AvroFileWriter::Finish() {
  FlushBlock();
  return std::move(file_);
}

std::string SanitizeAvroName(std::string_view name) {
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    const bool digit = c >= '0' && c <= '9';
    if (letter || (digit && i > 0)) {
      out.push_back(c);
    } else if (digit) {
      out += fmt::format("_{}", c);
    } else {
      out += fmt::format("_x{:X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace tarn::iceberg
