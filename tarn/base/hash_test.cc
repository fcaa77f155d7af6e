#include "tarn/base/hash.h"

#include "test/support/matchers.h"

namespace tarn {
namespace {

std::string HexSha1(std::string_view bytes) {
  const Sha1Digest digest = Sha1(bytes);
  return EncodeHex({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

TEST(HashTest, Sha1Vectors) {
  EXPECT_EQ(HexSha1(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(HexSha1("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
}

TEST(HashTest, Sha256Vectors) {
  EXPECT_EQ(EncodeHex(Sha256("")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(EncodeHex(Sha256("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(HashTest, Xxh3Vectors) {
  EXPECT_EQ(Xxh3(""), 0x2D06800538D394C2ULL);
  EXPECT_EQ(FormatXxh3(Xxh3("")), "xxh3:2d06800538d394c2");
  EXPECT_EQ(FormatXxh3(0x1F), "xxh3:000000000000001f");
}

TEST(HashTest, AStreamOfPiecesHashesAsTheWhole) {
  std::string bytes;
  for (int i = 0; i < 5'000; ++i) {
    bytes += static_cast<char>(i * 7);
  }
  for (const size_t piece : {1, 3, 64, 1'000, 5'000}) {
    Xxh3Stream stream;
    EXPECT_EQ(stream.Digest(), Xxh3(""));
    for (size_t at = 0; at < bytes.size(); at += piece) {
      stream.Update(std::string_view(bytes).substr(at, piece));
    }
    EXPECT_EQ(stream.Digest(), Xxh3(bytes)) << piece;
  }
}

TEST(HashTest, Hexadecimal) {
  const std::string bytes("\x00\x7F\x80\xFF", 4);
  EXPECT_EQ(EncodeHex(bytes), "007f80ff");
  EXPECT_THAT(DecodeHex("007F80ff"), IsOkAndHolds(bytes));
  EXPECT_THAT(DecodeHex(""), IsOkAndHolds(std::string()));
  EXPECT_THAT(DecodeHex("abc"), FailsWith(ErrorCode::kInvalidArgument, "odd"));
  EXPECT_THAT(DecodeHex("00g0"), FailsWith(ErrorCode::kInvalidArgument, "character 2"));
  EXPECT_THAT(DecodeHex("0x"), Fails(ErrorCode::kInvalidArgument));
}

TEST(HashTest, Base64Vectors) {
  const std::vector<std::pair<std::string, std::string>> vectors = {{"", ""},
                                                                    {"f", "Zg=="},
                                                                    {"fo", "Zm8="},
                                                                    {"foo", "Zm9v"},
                                                                    {"foob", "Zm9vYg=="},
                                                                    {"fooba", "Zm9vYmE="},
                                                                    {"foobar", "Zm9vYmFy"},
                                                                    {"\xFB\xEF\xFF", "++//"}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(EncodeBase64(bytes), text);
    EXPECT_THAT(DecodeBase64(text), IsOkAndHolds(bytes));
  }
}

TEST(HashTest, Base64RoundTripsAllBytes) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) {
    bytes += static_cast<char>(i);
    EXPECT_THAT(DecodeBase64(EncodeBase64(bytes)), IsOkAndHolds(bytes));
  }
}

TEST(HashTest, BadBase64IsRefused) {
  for (const char* text :
       {"Z", "Zg", "Zg=", "Zg===", "====", "=", "Z===", "Zm9v=", "Zm=v", "Z=9v", "Zm9\n", " Zm9v",
        "Zm9v\n", "QUJD----", "Zm9-", "Zm9_", "Zm 9", "Zm9\x80", "Zg==Zg=="}) {
    EXPECT_THAT(DecodeBase64(text), Fails(ErrorCode::kInvalidArgument)) << text;
  }
  EXPECT_THAT(DecodeBase64("Zm9vZm!v"), FailsWith(ErrorCode::kInvalidArgument, "character 6"));
}

}  // namespace
}  // namespace tarn
