#include "tarn/base/url.h"

#include "test/support/matchers.h"

namespace tarn {
namespace {

TEST(UrlTest, EncodesAllButUnreserved) {
  EXPECT_EQ(EncodeUrl("a/b c+%2F~ü"), "a%2Fb%20c%2B%252F~%C3%BC");
  EXPECT_EQ(EncodeUrl("a/b c", "/"), "a/b%20c");
  EXPECT_EQ(EncodeUrl(std::string_view("\0\xff", 2)), "%00%FF");
}

TEST(UrlTest, DecodesExactlyOnce) {
  EXPECT_THAT(DecodeUrl("a%252Fb"), IsOkAndHolds(std::string("a%2Fb")));
  EXPECT_THAT(DecodeUrl("a+b%2b"), IsOkAndHolds(std::string("a+b+")));
  EXPECT_THAT(DecodeUrl("%00"), IsOkAndHolds(std::string(1, '\0')));
  EXPECT_THAT(DecodeUrl(""), IsOkAndHolds(std::string()));
}

TEST(UrlTest, EveryByteSurvivesARoundTrip) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    all += static_cast<char>(byte);
  }
  EXPECT_THAT(DecodeUrl(EncodeUrl(all)), IsOkAndHolds(all));
}

TEST(UrlTest, BrokenEscapesAreRefusedShowingThem) {
  for (const char* text : {"%", "a%2", "%zz", "%2", "%+1", "x%g0"}) {
    EXPECT_THAT(DecodeUrl(text), FailsWith(ErrorCode::kInvalidArgument, text));
    EXPECT_THAT(UrlQuery::Parse(std::string("a=") + text), Fails(ErrorCode::kInvalidArgument));
  }
}

TEST(UrlTest, QueryKeepsOrderRepeatsAndEmptyValues) {
  ASSERT_OK_AND_ASSIGN(const UrlQuery query, UrlQuery::Parse("a=1&b=x+y%2B&&b=%2F&c&d==&=e"));
  EXPECT_EQ(query.Find("a"), "1");
  EXPECT_EQ(query.FindAll("b"), (std::vector<std::string>{"x y+", "/"}));
  EXPECT_EQ(query.Find("c"), "");
  EXPECT_EQ(query.Find("d"), "=");
  EXPECT_EQ(query.Find(""), "e");
  EXPECT_EQ(query.Find("z"), std::nullopt);
  EXPECT_THAT(UrlQuery::Parse(query.ToString()), IsOkAndHolds(query));
}

}  // namespace
}  // namespace tarn
