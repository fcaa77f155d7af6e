#include "tarn/server/http/message.h"

#include "test/support/matchers.h"

namespace tarn::server::http {
namespace {

TEST(MessageTest, HeaderNamesCompareWithoutCase) {
  Headers headers{{"Content-Type", "a"}, {"X", "1"}, {"x", "2"}};
  EXPECT_EQ(headers.Find("content-TYPE"), "a");
  EXPECT_EQ(headers.Find("X"), "1");
  EXPECT_EQ(headers.Find("y"), std::nullopt);
  headers.Set("X", "3");
  EXPECT_EQ(headers.Find("x"), "3");
  headers.Remove("x");
  EXPECT_EQ(headers.Find("x"), std::nullopt);
}

TEST(MessageTest, TokensAreFoundInLists) {
  const Headers headers{{"Connection", "keep-alive, Upgrade"}, {"Connection", " Close "}};
  EXPECT_TRUE(headers.HasToken("connection", "upgrade"));
  EXPECT_TRUE(headers.HasToken("connection", "close"));
  EXPECT_FALSE(headers.HasToken("connection", "clos"));
  EXPECT_FALSE(headers.HasToken("te", "trailers"));
}

TEST(MessageTest, ReadAllTakesExactlyTheLimit) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4096}, size_t{5000}, size_t{100'000}}) {
    StringBodyReader body(std::string(size, 'a'));
    EXPECT_THAT(ReadAll(body, size), IsOkAndHolds(std::string(size, 'a')));
    if (size > 0) {
      StringBodyReader longer(std::string(size, 'a'));
      EXPECT_THAT(ReadAll(longer, size - 1), Fails(ErrorCode::kInvalidArgument));
    }
  }
}

}  // namespace
}  // namespace tarn::server::http
