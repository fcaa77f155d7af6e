#include "tarn/base/utf8.h"

#include "test/support/matchers.h"

namespace tarn {
namespace {

using ::testing::Optional;

TEST(Utf8Test, FirstAndLastOfEachLengthAreValid) {
  for (const std::string_view text :
       {std::string_view("\x00", 1), std::string_view("\x7F"), std::string_view("\xC2\x80"),
        std::string_view("\xDF\xBF"), std::string_view("\xE0\xA0\x80"),
        std::string_view("\xED\x9F\xBF"), std::string_view("\xEE\x80\x80"),
        std::string_view("\xEF\xBF\xBF"), std::string_view("\xF0\x90\x80\x80"),
        std::string_view("\xF4\x8F\xBF\xBF"), std::string_view()}) {
    EXPECT_TRUE(IsValidUtf8(text));
  }
}

TEST(Utf8Test, OverlongSurrogateTooLargeAndLoneBytesAreNot) {
  for (const std::string_view text :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xED\xBF\xBF",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFE", "\xFF", "\xC3\x28",
        "\xC3", "\xE2\x82", "\xF0\x9F\x98"}) {
    EXPECT_THAT(FindInvalidUtf8(text), Optional(size_t{0}));
  }
}

TEST(Utf8Test, TheOffsetIsThatOfTheBadSequence) {
  for (size_t before = 0; before < 20; ++before) {
    const std::string text = std::string(before, 'a') + "\xC3\x28" + std::string(20, 'b');
    EXPECT_THAT(FindInvalidUtf8(text), Optional(before));
    const std::string wide = std::string(before, 'a') + "\xE2\x82\xAC" + std::string(before, 'b');
    EXPECT_EQ(FindInvalidUtf8(wide), std::nullopt);
    EXPECT_THAT(FindInvalidUtf8(wide + "\xFF"), Optional(wide.size()));
  }
}

TEST(Utf8Test, ReplacesEachMaximalPartOnce) {
  EXPECT_EQ(ReplaceInvalidUtf8("a\xE2\x82z"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(ReplaceInvalidUtf8("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(ReplaceInvalidUtf8("\xE2\x82\xAC"), "\xE2\x82\xAC");
}

}  // namespace
}  // namespace tarn
