#include "tarn/iceberg/deletes/puffin.h"

#include "tarn/storage/memory_store.h"
#include "test/support/matchers.h"

namespace tarn::iceberg {
namespace {

class PuffinTest : public ::testing::Test {
 protected:
  Result<PuffinFooter> Read(const std::string& bytes) {
    TARN_RETURN_IF_ERROR(
        WriteObject(store_, "p.puffin", bytes, storage::WriteMode::kOverwrite).status());
    return ReadPuffinFooter(store_, "memory://store/p.puffin");
  }

  ManualClock clock_{FromMillis(1)};
  storage::MemoryStore store_{clock_};
};

TEST_F(PuffinTest, AnEmptyFileHasThirtyTwoBytes) {
  EXPECT_EQ(PuffinWriter().Finish(),
            std::string("PFA1PFA1{\"blobs\":[]}\x0c\0\0\0\0\0\0\0PFA1", 32));
}

TEST_F(PuffinTest, BlobsComeBack) {
  PuffinWriter writer;
  const PuffinBlob first = writer.Add({.type = "apache-datasketches-theta-v1",
                                       .fields = {1, 2},
                                       .snapshot_id = 5,
                                       .sequence_number = 6,
                                       .compression_codec = "zstd",
                                       .properties = {{"ndv", "12"}}},
                                      "sketch");
  const PuffinBlob second =
      writer.Add({.type = std::string(kDeletionVectorBlob), .compression_codec = {}}, "");
  EXPECT_EQ(first.offset, 4);
  EXPECT_EQ(second.offset, 10);
  const std::string file = writer.Finish();
  ASSERT_OK_AND_ASSIGN(const PuffinFooter footer, ParsePuffinFooter(file));
  EXPECT_EQ(footer.blobs, (std::vector<PuffinBlob>{first, second}));
  EXPECT_THAT(Read(file), IsOkAndHolds(footer));
}

TEST_F(PuffinTest, BrokenFilesAreErrors) {
  PuffinWriter writer;
  writer.Add({.type = "x", .compression_codec = {}}, "0123456789");
  const std::string whole = writer.Finish();
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(ParsePuffinFooter(whole.substr(0, size)), Fails(ErrorCode::kCorruption)) << size;
    EXPECT_THAT(Read(whole.substr(0, size)), Fails(ErrorCode::kCorruption)) << size;
  }
  const auto with = [&](size_t from_end, std::string_view bytes) {
    std::string copy = whole;
    copy.replace(copy.size() - from_end, bytes.size(), bytes);
    EXPECT_EQ(ParsePuffinFooter(copy).status().code(), Read(copy).status().code());
    return ParsePuffinFooter(copy);
  };
  EXPECT_THAT(with(12, "\xFF\xFF\xFF\xFF"), FailsWith(ErrorCode::kCorruption, "footer of"));
  EXPECT_THAT(with(8, "\x01"), FailsWith(ErrorCode::kUnimplemented, "compressed"));
  EXPECT_THAT(with(8, "\x02"), Fails(ErrorCode::kUnimplemented));
  std::string far = whole;
  far.replace(far.find("\"length\":10"), 11, "\"length\":99");
  EXPECT_THAT(ParsePuffinFooter(far), FailsWith(ErrorCode::kCorruption, "not inside"));
  std::string text = whole;
  text.replace(text.find("{\"blobs\""), 1, "[");
  EXPECT_THAT(ParsePuffinFooter(text), Fails(ErrorCode::kCorruption));
}

}  // namespace
}  // namespace tarn::iceberg
