#include "tarn/source/files/file_form.h"

#include <string>

#include "test/support/compressed_text.h"
#include "test/support/matchers.h"

namespace tarn::source::files {
namespace {

using std::string_literals::operator""s;

TEST(FileFormTest, TellsHowAFileIsPacked) {
  const std::string text = "{\"id\": 1}\n";
  EXPECT_EQ(RecogniseForm(Compress(arrow::Compression::GZIP, text)).compression,
            Compression::kGzip);
  EXPECT_EQ(RecogniseForm(Compress(arrow::Compression::ZSTD, text)).compression,
            Compression::kZstd);
  EXPECT_EQ(RecogniseForm(Compress(arrow::Compression::BZ2, text)).compression,
            Compression::kBzip2);
  EXPECT_EQ(RecogniseForm(Compress(arrow::Compression::BZ2, "")).compression, Compression::kBzip2);
  EXPECT_EQ(RecogniseForm(Compress(arrow::Compression::LZ4_FRAME, text)).compression,
            Compression::kLz4);
  EXPECT_EQ(RecogniseForm("\x50\x2a\x4d\x18\x04"s).compression, Compression::kZstd);
  EXPECT_EQ(RecogniseForm("BZh9").compression, Compression::kBzip2);  // Cut short.
}

TEST(FileFormTest, RefusesWhatNothingReads) {
  std::string tar(kFormBytes, '\0');
  tar.replace(257, 5, "ustar");
  for (const std::string& head :
       {"PK\x03\x04"s, "\xff\x06\x00\x00sNaPpY"s, "\xfd\x37zXZ\x00"s, "PAR1\x15"s, "ORC\x0a"s,
        "Obj\x01"s, "\x02\x21\x4c\x18"s, "7z\xbc\xaf\x27\x1c"s, tar}) {
    EXPECT_NE(RecogniseForm(head).refused, "") << head;
    EXPECT_EQ(RecogniseForm(head).compression, Compression::kNone) << head;
  }
}

TEST(FileFormTest, TextIsPlain) {
  for (const std::string_view head :
       {"", "{", "{\"a\": 1}", "[1]", "\xef\xbb\xbf{}", "BZhello", "ORCHID", "P", "null", " \n"}) {
    EXPECT_EQ(RecogniseForm(head), FileForm{}) << head;
  }
}

}  // namespace
}  // namespace tarn::source::files
