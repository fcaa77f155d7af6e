#include "tarn/base/log.h"

#include "test/support/matchers.h"

namespace tarn {
namespace {

using ::testing::EndsWith;
using ::testing::MatchesRegex;

std::string LinesOf(LogLevel level, std::string_view message) {
  ::testing::internal::CaptureStderr();
  Log(level, "base", message);
  return ::testing::internal::GetCapturedStderr();
}

TEST(LogTest, WritesTimeLevelRoomAndMessage) {
  EXPECT_THAT(LinesOf(LogLevel::kError, "it {} broke"),
              MatchesRegex("....-..-..T..:..:..\\....Z error base: it \\{\\} broke\n"));
}

TEST(LogTest, LevelsBelowTheLimitAreDropped) {
  EXPECT_EQ(LinesOf(LogLevel::kDebug, "detail"), "");
  SetLogLevel(LogLevel::kDebug);
  EXPECT_THAT(LinesOf(LogLevel::kDebug, "detail"), EndsWith("debug base: detail\n"));
  SetLogLevel(LogLevel::kError);
  EXPECT_EQ(LinesOf(LogLevel::kWarning, "hm"), "");
  SetLogLevel(LogLevel::kNotice);
}

TEST(LogTest, AMessageIsOneLine) {
  EXPECT_THAT(LinesOf(LogLevel::kNotice, "a\nb\x1B[31m\r\xE2\x82\xAC"),
              EndsWith("base: a\\nb\\x1b[31m\\x0d\xE2\x82\xAC\n"));
}

}  // namespace
}  // namespace tarn
