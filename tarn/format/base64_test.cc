#include "tarn/format/base64.h"

#include "test/support/matchers.h"

namespace tarn::format {
namespace {

TEST(Base64Test, RoundTripsEveryLength) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    std::string out = "kept";
    ASSERT_TRUE(DecodeBase64(EncodeBase64(bytes), out));
    ASSERT_EQ(out, "kept" + bytes);
    bytes.push_back(static_cast<char>(i * 7));
  }
}

TEST(Base64Test, KnownTexts) {
  EXPECT_EQ(EncodeBase64("\xde\xad\xbe\xef"), "3q2+7w==");
  EXPECT_EQ(EncodeBase64("foobar"), "Zm9vYmFy");
  std::string out;
  EXPECT_TRUE(DecodeBase64("3q2+7w", out));
  EXPECT_EQ(out, "\xde\xad\xbe\xef");
}

TEST(Base64Test, RefusesOtherText) {
  for (const char* bad : {"!", "a", "abcde", "ab-_", "a b=", "=", "ab=c"}) {
    std::string out = "kept";
    EXPECT_FALSE(DecodeBase64(bad, out)) << bad;
    EXPECT_EQ(out, "kept");
  }
}

}  // namespace
}  // namespace tarn::format
