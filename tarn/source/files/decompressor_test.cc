#include "tarn/source/files/decompressor.h"

#include <algorithm>
#include <string>

#include "test/support/compressed_text.h"
#include "test/support/matchers.h"

namespace tarn::source::files {
namespace {

struct Form {
  Compression compression;
  arrow::Compression::type type;
};

class DecompressorTest : public ::testing::TestWithParam<Form> {
 protected:
  static std::string Pack(std::string_view text) { return Compress(GetParam().type, text); }

  // Feeds `bytes` in steps and reads through a small window.
  static Result<std::string> Unpack(std::string_view bytes, size_t step, size_t window = 1000) {
    TARN_ASSIGN_OR_RETURN(const std::unique_ptr<Decompressor> decompressor,
                          Decompressor::Make(GetParam().compression));
    std::string text;
    std::string out(window, '\0');
    while (true) {
      TARN_ASSIGN_OR_RETURN(const size_t count, decompressor->Read(out.data(), out.size()));
      text.append(out, 0, count);
      if (count > 0) {
        continue;
      }
      if (bytes.empty()) {
        break;
      }
      decompressor->Feed(std::string(bytes.substr(0, step)));
      bytes.remove_prefix(std::min(step, bytes.size()));
    }
    TARN_RETURN_IF_ERROR(decompressor->Finish());
    return text;
  }

  static std::string Text(int lines) {
    std::string text;
    for (int i = 0; i < lines; ++i) {
      text += "{\"id\": " + std::to_string(i * 7919) + "}\n";
    }
    return text;
  }
};

TEST_P(DecompressorTest, ReadsWhatWasPackedInAnySteps) {
  const std::string text = Text(5000);
  const std::string packed = Pack(text);
  for (const size_t step : {size_t{1}, size_t{7}, size_t{4096}, packed.size()}) {
    EXPECT_THAT(Unpack(packed, step), IsOkAndHolds(text));
  }
  EXPECT_THAT(Unpack(packed, 4096, 1), IsOkAndHolds(text));
  EXPECT_THAT(Unpack(Pack(""), 3), IsOkAndHolds(std::string()));
}

TEST_P(DecompressorTest, ReadsAllMembersAndIgnoresPadding) {
  const std::string packed = Pack("one\n") + Pack("") + Pack("two\n");
  EXPECT_THAT(Unpack(packed, 5), IsOkAndHolds(std::string("one\ntwo\n")));
  EXPECT_THAT(Unpack(packed + std::string(700, '\0'), 64), IsOkAndHolds(std::string("one\ntwo\n")));
}

TEST_P(DecompressorTest, ACutFileIsNoWholeFile) {
  const std::string packed = Pack(Text(300));
  for (size_t size = 1; size < packed.size(); size += size < 40 ? 1 : 97) {
    EXPECT_THAT(Unpack(packed.substr(0, size), 50), FailsWith(ErrorCode::kCorruption, "ends"))
        << size;
  }
  EXPECT_THAT(Unpack(packed + packed.substr(0, packed.size() - 10), 50),
              FailsWith(ErrorCode::kCorruption, "ends"));
}

TEST_P(DecompressorTest, DamageIsToldAndStays) {
  const std::string packed = Pack("one\n");
  EXPECT_THAT(Unpack(packed + "no member", 50), FailsWith(ErrorCode::kCorruption, "damaged"));
  EXPECT_THAT(Unpack(packed + std::string(3, '\0') + packed, 50),
              FailsWith(ErrorCode::kCorruption, "damaged"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Decompressor> decompressor,
                       Decompressor::Make(GetParam().compression));
  decompressor->Feed("these are no such bytes at all, however long one reads on in them");
  char out[16];
  EXPECT_THAT(decompressor->Read(out, sizeof out), FailsWith(ErrorCode::kCorruption, "damaged"));
  EXPECT_THAT(decompressor->Read(out, sizeof out), FailsWith(ErrorCode::kCorruption, "damaged"));
  EXPECT_THAT(decompressor->Finish(), FailsWith(ErrorCode::kCorruption, "damaged"));
}

// No byte may be changed unseen where the form has check sums of its content, as gzip has.
TEST_P(DecompressorTest, ChangedBytesNeverCrash) {
  const std::string text = Text(100);
  const std::string packed = Pack(text);
  for (size_t at = 0; at < packed.size(); at += 3) {
    std::string changed = packed;
    changed[at] = static_cast<char>(changed[at] ^ 0x55);
    const Result<std::string> read = Unpack(changed, 64);
    if (GetParam().compression == Compression::kBzip2) {
      EXPECT_TRUE(!read.ok() || *read == text) << at;
    }
    EXPECT_TRUE(read.ok() || read.status().code() == ErrorCode::kCorruption) << at;
  }
}

INSTANTIATE_TEST_SUITE_P(All, DecompressorTest,
                         ::testing::Values(Form{Compression::kGzip, arrow::Compression::GZIP},
                                           Form{Compression::kZstd, arrow::Compression::ZSTD},
                                           Form{Compression::kBzip2, arrow::Compression::BZ2},
                                           Form{Compression::kLz4, arrow::Compression::LZ4_FRAME}),
                         [](const auto& form) {
                           return std::string(CompressionName(form.param.compression));
                         });

}  // namespace
}  // namespace tarn::source::files
