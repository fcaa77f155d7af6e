#include "tarn/iceberg/codec/avro.h"

#include <snappy-c.h>
#include <zlib.h>

#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

constexpr std::string_view kSchema =
    R"({"type":"record","name":"r","fields":[{"name":"a","type":"string","field-id":1}]})";

// A file with one block as it is given.
std::string File(std::string_view codec, int64_t count, std::string_view block) {
  const std::string sync(16, 's');
  AvroEncoder file;
  file.WriteRaw(std::string_view("Obj\x01", 4));
  file.WriteLong(2);
  file.WriteBytes("avro.schema");
  file.WriteBytes(kSchema);
  file.WriteBytes("avro.codec");
  file.WriteBytes(codec);
  file.WriteLong(0);
  file.WriteRaw(sync);
  file.WriteLong(count);
  file.WriteBytes(block);
  file.WriteRaw(sync);
  return file.bytes();
}

std::string Snappy(std::string_view bytes) {
  std::string packed(snappy_max_compressed_length(bytes.size()), '\0');
  size_t size = packed.size();
  EXPECT_EQ(snappy_compress(bytes.data(), bytes.size(), packed.data(), &size), SNAPPY_OK);
  packed.resize(size);
  const auto checksum =
      static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  for (int shift = 24; shift >= 0; shift -= 8) {
    packed += static_cast<char>(checksum >> shift);
  }
  return packed;
}

// The text of the only record.
Result<std::string> ReadOne(const std::string& bytes, AvroLimits limits = {}) {
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<AvroFileReader> file,
                        AvroFileReader::Open(bytes, limits));
  TARN_ASSIGN_OR_RETURN(const std::optional<AvroFileReader::Block> block, file->Next());
  if (!block) {
    return Status::NotFound("no block");
  }
  AvroDecoder decoder(block->bytes);
  TARN_ASSIGN_OR_RETURN(const std::string_view text, decoder.ReadBytes());
  return std::string(text);
}

TEST(AvroTest, SnappyBlocksAreUnpackedAndChecked) {
  AvroEncoder record;
  record.WriteBytes(std::string(5000, 'x'));
  const std::string packed = Snappy(record.bytes());
  EXPECT_LT(packed.size(), 1000U);
  EXPECT_THAT(ReadOne(File("snappy", 1, packed)), IsOkAndHolds(std::string(5000, 'x')));
  EXPECT_THAT(ReadOne(File("snappy", 1, packed), {.block_bytes_max = 4000}),
              Fails(ErrorCode::kCorruption));
  std::string changed = packed;
  changed.back() = static_cast<char>(changed.back() ^ 1);
  EXPECT_THAT(ReadOne(File("snappy", 1, changed)), FailsWith(ErrorCode::kCorruption, "checksum"));
  for (const size_t size : {size_t{0}, size_t{3}, packed.size() / 2}) {
    EXPECT_THAT(ReadOne(File("snappy", 1, packed.substr(0, size))), Fails(ErrorCode::kCorruption));
  }
  EXPECT_THAT(ReadOne(File("bzip2", 1, packed)), FailsWith(ErrorCode::kUnimplemented, "bzip2"));
}

}  // namespace
}  // namespace tarn::iceberg
