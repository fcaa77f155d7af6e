#include "tarn/iceberg/deletes/deletion_vector.h"

#include "tarn/iceberg/deletes/puffin.h"
#include "tarn/storage/memory_store.h"
#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

constexpr std::string_view kHex =
    "00000026d1d339640100000000000000000000003a300000010000000000020010000000010005000900";

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

class DeletionVectorTest : public ::testing::Test {
 protected:
  ManualClock clock_{FromMillis(1)};
  storage::MemoryStore store_{clock_};
};

TEST_F(DeletionVectorTest, TheBlobHasLengthMagicBitmapAndChecksum) {
  const std::string blob = EncodeDeletionVector({1, 5, 9});
  EXPECT_EQ(blob.substr(0, blob.size() - 4), FromHex(kHex));
  EXPECT_EQ(blob.substr(blob.size() - 4), FromHex("d3404de9"));
  EXPECT_THAT(DecodeDeletionVector(blob, 3), IsOkAndHolds(Positions{1, 5, 9}));
}

TEST_F(DeletionVectorTest, BrokenBlobsAreErrors) {
  const std::string blob = EncodeDeletionVector({1, 5, 9});
  for (size_t i = 0; i < blob.size(); ++i) {
    std::string broken = blob;
    broken[i] = static_cast<char>(broken[i] ^ 0x10);
    EXPECT_THAT(DecodeDeletionVector(broken, 100), Fails(ErrorCode::kCorruption)) << i;
    EXPECT_THAT(DecodeDeletionVector(blob.substr(0, i), 100), Fails(ErrorCode::kCorruption)) << i;
  }
  EXPECT_THAT(DecodeDeletionVector(blob, 2), Fails(ErrorCode::kResourceExhausted));
}

TEST_F(DeletionVectorTest, VectorsShareAFile) {
  ASSERT_OK_AND_ASSIGN(
      const std::vector<DataFile> files,
      WriteDeletionVectors(store_, "memory://store/d.puffin",
                           {{.data_file_path = "memory://store/a", .positions = {9, 1, 1}},
                            {.data_file_path = "memory://store/b",
                             .spec_id = 2,
                             .partition = {Literal::Long(4)},
                             .positions = {1LL << 33}}}));
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].file_format, "PUFFIN");
  EXPECT_EQ(files[0].record_count, 2);
  EXPECT_EQ(files[0].referenced_data_file, "memory://store/a");
  EXPECT_EQ(files[1].partition, (PartitionValues{Literal::Long(4)}));
  EXPECT_EQ(files[1].spec_id, 2);
  EXPECT_THAT(ReadDeletionVector(store_, files[0]), IsOkAndHolds(Positions{1, 9}));
  EXPECT_THAT(ReadDeletionVector(store_, files[1]), IsOkAndHolds(Positions{1LL << 33}));
  ASSERT_OK_AND_ASSIGN(const storage::ObjectMeta meta, store_.Head("d.puffin"));
  EXPECT_EQ(files[0].file_size_bytes, static_cast<int64_t>(meta.size_bytes));
  ASSERT_OK_AND_ASSIGN(const PuffinFooter footer,
                       ReadPuffinFooter(store_, "memory://store/d.puffin"));
  ASSERT_EQ(footer.blobs.size(), 2U);
  EXPECT_EQ(footer.blobs[1].offset, files[1].content_offset);
  EXPECT_EQ(footer.blobs[1].length, files[1].content_size_bytes);
  EXPECT_EQ(footer.blobs[1].fields, std::vector<int32_t>{2147483645});
  EXPECT_EQ(footer.blobs[1].properties.at("cardinality"), "1");
  EXPECT_EQ(footer.blobs[1].properties.at("referenced-data-file"), "memory://store/b");
}

TEST_F(DeletionVectorTest, EntriesThatDoNotFitTheirVectorAreErrors) {
  EXPECT_THAT(WriteDeletionVectors(store_, "memory://store/d", {}),
              Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(WriteDeletionVectors(store_, "memory://store/d", {{.data_file_path = "a"}}),
              Fails(ErrorCode::kInvalidArgument));
  EXPECT_THAT(WriteDeletionVectors(store_, "memory://store/d",
                                   {{.data_file_path = "a", .positions = {-1}}}),
              Fails(ErrorCode::kInvalidArgument));
  ASSERT_OK_AND_ASSIGN(const std::vector<DataFile> files,
                       WriteDeletionVectors(store_, "memory://store/d.puffin",
                                            {{.data_file_path = "a", .positions = {1, 2}}}));
  DataFile file = files[0];
  file.record_count = 3;
  EXPECT_THAT(ReadDeletionVector(store_, file), FailsWith(ErrorCode::kCorruption, "d.puffin"));
  file.record_count = 1;
  EXPECT_THAT(ReadDeletionVector(store_, file), Fails(ErrorCode::kResourceExhausted));
  file = files[0];
  file.content_offset = 5;
  EXPECT_THAT(ReadDeletionVector(store_, file), Fails(ErrorCode::kCorruption));
  file.content_size_bytes = -1;
  EXPECT_THAT(ReadDeletionVector(store_, file), Fails(ErrorCode::kCorruption));
  file = files[0];
  file.file_path = "memory://store/none";
  EXPECT_THAT(ReadDeletionVector(store_, file), Fails(ErrorCode::kNotFound));
}

}  // namespace
}  // namespace tarn::iceberg
