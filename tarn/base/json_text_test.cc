#include "tarn/base/json_text.h"

#include "test/support/matchers.h"

namespace tarn {
namespace {

TEST(JsonTextTest, EscapesWhatJsonRequiresAndNothingElse) {
  EXPECT_EQ(JsonString(""), "\"\"");
  EXPECT_EQ(JsonString("a\"b\\c/d"), R"("a\"b\\c/d")");
  EXPECT_EQ(JsonString("\n\r\t\b\x1F"), R"("\n\r\t\u0008\u001f")");
  EXPECT_EQ(JsonString(std::string_view("\0", 1)), R"("\u0000")");
  EXPECT_EQ(JsonString("\x7F\xE2\x82\xAC\xF0\x9F\x98\x80"), "\"\x7F\xE2\x82\xAC\xF0\x9F\x98\x80\"");
}

TEST(JsonTextTest, InvalidBytesBecomeReplacementCharacters) {
  EXPECT_EQ(JsonString("a\xFF"
                       "b"),
            "\"a\xEF\xBF\xBD"
            "b\"");
}

TEST(JsonTextTest, Objects) {
  EXPECT_EQ(JsonObject({}), "{}");
  EXPECT_EQ(JsonObject({{"branch", "ma\"in"}, {"count", "3"}}),
            R"({"branch":"ma\"in","count":"3"})");
}

}  // namespace
}  // namespace tarn
