#include "tarn/server/http/response_head.h"

#include "test/support/matchers.h"

namespace tarn::server::http {
namespace {

const Timestamp kNow = FromMicros(784'111'777'000'000);

TEST(ResponseHeadTest, WholeBody) {
  Response response;
  response.headers = {{"Content-Type", "text/plain"}, {"Content-Length", "99"}};
  response.body = "abc";
  ASSERT_OK_AND_ASSIGN(const ResponseHead head, PlanResponseHead(response, {}, kNow));
  EXPECT_EQ(head.text,
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n"
            "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n");
  EXPECT_EQ(head.framing, Framing::kLength);
  EXPECT_TRUE(head.keep_alive);
}

TEST(ResponseHeadTest, FramingOfProducers) {
  Response response;
  response.producer = [](BodySink&) { return Status::Ok(); };
  EXPECT_EQ(PlanResponseHead(response, {}, kNow)->framing, Framing::kChunked);
  const Result<ResponseHead> old =
      PlanResponseHead(response, {.is_http_1_0 = true, .keep_alive = true}, kNow);
  EXPECT_EQ(old->framing, Framing::kUntilClose);
  EXPECT_FALSE(old->keep_alive);
  EXPECT_EQ(PlanResponseHead(response, {.is_head = true}, kNow)->framing, Framing::kNoBody);
  response.content_length = 0;
  EXPECT_EQ(PlanResponseHead(response, {}, kNow)->framing, Framing::kLength);
}

TEST(ResponseHeadTest, UnsafeFieldsAreRefused) {
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"a b", "c"}, {"", "c"}, {"a:", "c"}, {"a", "b\nc"}, {"a", std::string(1, '\0')}}) {
    Response response;
    response.headers.Add(name, value);
    EXPECT_THAT(PlanResponseHead(response, {}, kNow), Fails(ErrorCode::kInternal)) << name;
  }
  Response response;
  response.status = 42;
  EXPECT_THAT(PlanResponseHead(response, {}, kNow), Fails(ErrorCode::kInternal));
}

TEST(ResponseHeadTest, DatesBeforeTheEpochStayValid) {
  EXPECT_EQ(FormatHttpDate(FromMicros(-1)), "Wed, 31 Dec 1969 23:59:59 GMT");
  EXPECT_EQ(ReasonPhrase(404), "Not Found");
  EXPECT_EQ(ReasonPhrase(599), "Status 599");
}

}  // namespace
}  // namespace tarn::server::http
