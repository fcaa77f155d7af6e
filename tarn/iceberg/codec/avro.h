// Avro object container files, as far as manifests need them: a schema that keeps field ids, a
// bounds-checked decoder that walks any writer schema, and a writer.
//
// Reading treats every byte as hostile: lengths, counts and depth are checked before use.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/json.h"

namespace tarn::iceberg {

enum class AvroKind : uint8_t {
  kNull,
  kBoolean,
  kInt,
  kLong,
  kFloat,
  kDouble,
  kBytes,
  kString,
  kFixed,
  kEnum,
  kRecord,
  kArray,
  kMap,
  kUnion,
};

struct AvroSchema;

/// Schemas are shared since a named type may be used twice.
using AvroSchemaPtr = std::shared_ptr<const AvroSchema>;

struct AvroField {
  std::string name;
  std::optional<int32_t> field_id;
  AvroSchemaPtr schema;
};

/// One node of a parsed schema.
struct AvroSchema {
  AvroKind kind = AvroKind::kNull;
  std::string name;                     // Records, enums and fixed.
  std::string logical_type;             // "decimal", "date", "map", …
  int32_t scale = 0;                    // Decimals.
  int32_t size_bytes = 0;               // Fixed.
  std::optional<int32_t> element_id;    // Arrays.
  std::vector<AvroField> fields;        // Records.
  std::vector<AvroSchemaPtr> children;  // Array items, map values, union branches.
};

/// Errors: kCorruption, also for types that contain themselves and beyond 64 levels.
Result<AvroSchemaPtr> ParseAvroSchema(std::string_view json);

/// Cursor over one block of a file. Errors of all calls: kCorruption at the byte offset. Not shared
/// between threads.
class AvroDecoder {
 public:
  explicit AvroDecoder(std::string_view bytes) : bytes_(bytes) {}

  [[nodiscard]] bool at_end() const { return offset_ == bytes_.size(); }
  [[nodiscard]] size_t offset() const { return offset_; }
  Result<int64_t> ReadLong();
  Result<int32_t> ReadInt();
  Result<bool> ReadBoolean();
  Result<float> ReadFloat();
  Result<double> ReadDouble();
  /// Bytes or string; valid as long as the block.
  Result<std::string_view> ReadBytes();
  Result<std::string_view> ReadFixed(int32_t size_bytes);
  /// For unions: the chosen branch; other schemas: the schema itself.
  Result<const AvroSchema*> Resolve(const AvroSchema& schema);
  /// Count of items in the next block of an array or map, 0 at its end. Items are taken to need a
  /// byte each, which bounds what a count can claim.
  Result<int64_t> ReadBlockCount();
  /// Passes over one value.
  Status Skip(const AvroSchema& schema, int32_t depth = 0);
  [[nodiscard]] Status Error(std::string_view what) const;

 private:
  std::string_view bytes_;
  size_t offset_ = 0;
};

struct AvroLimits {
  uint64_t block_bytes_max = 256ULL << 20;  // Unpacked.
  uint64_t header_bytes_max = 64ULL << 20;
};

/// A file in memory, block by block. Codecs: null, deflate, snappy, zstandard.
class AvroFileReader {
 public:
  /// Errors: kCorruption; kUnimplemented naming another codec.
  static Result<std::unique_ptr<AvroFileReader>> Open(std::string_view bytes,
                                                      AvroLimits limits = {});

  [[nodiscard]] const std::map<std::string, std::string>& metadata() const { return metadata_; }
  [[nodiscard]] const AvroSchema& schema() const { return *schema_; }

  struct Block {
    int64_t record_count = 0;
    std::string_view bytes;  // Valid until the next call.
  };
  /// Nothing at the end of the file. Errors: kCorruption.
  Result<std::optional<Block>> Next();

 private:
  AvroFileReader(std::string_view bytes, AvroLimits limits) : bytes_(bytes), limits_(limits) {}
  Status ReadHeader();
  Result<std::string_view> Unpack(std::string_view packed);

  std::string_view bytes_;
  AvroLimits limits_;
  size_t offset_ = 0;
  std::map<std::string, std::string> metadata_;
  AvroSchemaPtr schema_;
  std::string codec_;
  std::string sync_;
  std::string unpacked_;
};

/// Appends values in Avro's binary form to a string. Cannot fail.
class AvroEncoder {
 public:
  void WriteLong(int64_t value);
  void WriteBoolean(bool value);
  void WriteFloat(float value);
  void WriteDouble(double value);
  /// Length and bytes: string and bytes.
  void WriteBytes(std::string_view bytes);
  /// Bytes alone: fixed.
  void WriteRaw(std::string_view bytes);

  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  void Clear() { bytes_.clear(); }

 private:
  std::string bytes_;
};

enum class AvroCodec : uint8_t { kNull, kDeflate };

/// Builds a file in memory; a block is cut at 64 KiB. One owner thread.
class AvroFileWriter {
 public:
  /// The marker of block ends is taken from a digest of the metadata, so that equal content gives
  /// equal files.
  AvroFileWriter(std::string_view schema_json, const std::map<std::string, std::string>& metadata,
                 AvroCodec codec);

  /// Encode one record into this, then call EndRecord.
  AvroEncoder& encoder() { return encoder_; }
  void EndRecord();
  [[nodiscard]] int64_t record_count() const { return record_count_; }
  /// The whole file.
  std::string Finish();

 private:
  void FlushBlock();

  AvroCodec codec_;
  AvroEncoder encoder_;
  std::string file_;
  std::string sync_;
  int64_t block_records_ = 0;
  int64_t record_count_ = 0;
};

/// A name that Avro allows: other characters become "_x<HEX>", a leading digit "_<d>".
std::string SanitizeAvroName(std::string_view name);

}  // namespace tarn::iceberg
