#include "tarn/cli/http_client.h"

#include <cstdlib>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tarn/cli/scripted_server.h"
#include "test/support/matchers.h"
#include "test/support/temporary_directory.h"

namespace tarn::cli {
namespace {

using nlohmann::json;

std::unique_ptr<HttpClient> Connect(const std::string& url) {
  auto client = HttpClient::Open({.url = url, .token = "secret"});
  TARN_CHECK(client.ok());
  return *std::move(client);
}

TEST(HttpClientTest, SendsTargetTokenAndBodyAsTheyAre) {
  ScriptedServer server([](const SeenRequest&) { return ScriptedAnswer{.body = R"({"a":1})"}; });
  const auto client = Connect(server.url() + "/");
  EXPECT_THAT(client->Json("PUT", "/a%2F../b/..?x=%2F", {{"é", 1}}),
              IsOkAndHolds(json({{"a", 1}})));
  ASSERT_EQ(server.seen().size(), 1U);
  const SeenRequest request = server.seen()[0];
  EXPECT_EQ(request.method, "PUT");
  EXPECT_EQ(request.target, "/a%2F../b/..?x=%2F");
  EXPECT_THAT(request.head, testing::HasSubstr("Authorization: Bearer secret"));
  EXPECT_EQ(request.body, R"({"é":1})");
}

TEST(HttpClientTest, EmptyPostsSayThatTheyAreEmpty) {
  ScriptedServer server([](const SeenRequest&) { return ScriptedAnswer{.status = 204}; });
  EXPECT_THAT(Connect(server.url())->Json("POST", "/commit", json()), IsOkAndHolds(json()));
  EXPECT_THAT(server.seen()[0].head, testing::HasSubstr("Content-Length: 0"));
  EXPECT_THAT(Connect(server.url())->Json("DELETE", "/x", json()), IsOkAndHolds(json()));
  EXPECT_EQ(server.seen()[1].method, "DELETE");
}

TEST(HttpClientTest, UploadsStreamWithAndWithoutALength) {
  ScriptedServer server([](const SeenRequest&) { return ScriptedAnswer{.body = "{}"}; });
  for (const bool stated : {true, false}) {
    std::string rest = "hello";
    HttpCall call;
    call.method = "POST";
    call.target = "/up";
    call.upload = [&rest](char* out, size_t size) -> Result<size_t> {
      const size_t count = std::min<size_t>({size, rest.size(), 2});
      rest.copy(out, count);
      rest.erase(0, count);
      return count;
    };
    if (stated) {
      call.upload_size_bytes = 5;
    }
    EXPECT_OK(Connect(server.url())->Send(call));
  }
  EXPECT_EQ(server.seen()[0].body, "hello");
  EXPECT_THAT(server.seen()[1].body, testing::EndsWith("0\r\n\r\n"));
}

TEST(HttpClientTest, FailuresOfSourceAndSinkComeBackAsTheyWere) {
  ScriptedServer server(
      [](const SeenRequest&) { return ScriptedAnswer{.body = std::string(100'000, 'a')}; });
  HttpCall upload;
  upload.method = "POST";
  upload.target = "/up";
  upload.upload = [](char*, size_t) -> Result<size_t> { return Status::Corruption("disk"); };
  EXPECT_THAT(Connect(server.url())->Send(upload), FailsWith(ErrorCode::kCorruption, "disk"));
  HttpCall download;
  download.target = "/down";
  download.download = [](std::string_view) { return Status::Unavailable("full"); };
  EXPECT_THAT(Connect(server.url())->Send(download), FailsWith(ErrorCode::kUnavailable, "full"));
}

TEST(HttpClientTest, DownloadsTakeTheBodyOfSuccessOnly) {
  ScriptedServer server([](const SeenRequest& request) {
    return request.target == "/good" ? ScriptedAnswer{.body = "content"}
                                     : ScriptedAnswer{.status = 404, .body = "no"};
  });
  std::string taken;
  HttpCall call;
  call.target = "/good";
  call.download = [&taken](std::string_view bytes) {
    taken += bytes;
    return Status::Ok();
  };
  EXPECT_OK(Connect(server.url())->Send(call));
  EXPECT_EQ(taken, "content");
  call.target = "/bad";
  EXPECT_THAT(Connect(server.url())->Send(call), FailsWith(ErrorCode::kNotFound, "no"));
  EXPECT_EQ(taken, "content");
}

TEST(HttpClientTest, ABrokenAnswerIsNoSuccess) {
  ScriptedServer server([](const SeenRequest&) {
    return ScriptedAnswer{.raw = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"};
  });
  HttpCall call;
  call.target = "/x";
  EXPECT_THAT(Connect(server.url())->Send(call), Fails(ErrorCode::kUnavailable));
  call.method = "POST";  // The server may have done it.
  EXPECT_THAT(Connect(server.url())->Send(call), Fails(ErrorCode::kCommitStateUnknown));
  call.only_asks = true;
  EXPECT_THAT(Connect(server.url())->Send(call),
              FailsWith(ErrorCode::kUnavailable, "the server broke the answer off"));
}

TEST(HttpClientTest, AnAbsentServerIsNamed) {
  const auto client = Connect("http://127.0.0.1:1");
  EXPECT_THAT(client->GetJson("/x"), FailsWith(ErrorCode::kUnavailable, "http://127.0.0.1:1"));
  EXPECT_THAT(Connect("ftp://x")->GetJson("/x"), Fails(ErrorCode::kInvalidArgument));
}

TEST(HttpClientTest, TheThreeEnvelopesBecomeStatuses) {
  const Status foundry = StatusFromAnswer(
      404, R"({"errorCode":"NOT_FOUND","errorName":"DatasetNotFound","errorInstanceId":"i",
               "parameters":{"datasetRid":"ri.x","message":"no such dataset"}})");
  EXPECT_EQ(foundry.code(), ErrorCode::kNotFound);
  EXPECT_EQ(foundry.reason(), "DatasetNotFound");
  EXPECT_EQ(foundry.message(), "no such dataset");
  EXPECT_EQ(json::parse(foundry.details())["datasetRid"], "ri.x");
  const Status iceberg = StatusFromAnswer(
      409,
      R"({"error":{"message":"Requirement failed","type":"CommitFailedException","code":409}})");
  EXPECT_EQ(iceberg.code(), ErrorCode::kConflict);
  EXPECT_EQ(iceberg.reason(), "CommitFailedException");
  const Status native = StatusFromAnswer(
      412, R"({"error":{"name":"TaskRunning","message":"busy","found":"RUNNING"}})");
  EXPECT_EQ(native.code(), ErrorCode::kFailedPrecondition);
  EXPECT_EQ(json::parse(native.details())["found"], "RUNNING");
  EXPECT_EQ(StatusFromAnswer(409, R"({"errorName":"BranchAlreadyExists"})").code(),
            ErrorCode::kAlreadyExists);
}

TEST(HttpClientTest, AnythingElseIsShownAsText) {
  for (const std::string body : {"", "<html>", "[]", "{}", "null", "{\"error\":\"x\"}"}) {
    const Status status = StatusFromAnswer(503, body);
    EXPECT_EQ(status.code(), ErrorCode::kUnavailable) << body;
    EXPECT_THAT(status.message(), testing::HasSubstr("503")) << body;
  }
  EXPECT_EQ(StatusFromAnswer(401, "").code(), ErrorCode::kUnauthenticated);
  EXPECT_EQ(StatusFromAnswer(403, "").code(), ErrorCode::kPermissionDenied);
  EXPECT_EQ(StatusFromAnswer(429, "").code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(StatusFromAnswer(500, "").code(), ErrorCode::kInternal);
  EXPECT_EQ(StatusFromAnswer(422, "").code(), ErrorCode::kInvalidArgument);
}

TEST(HttpClientTest, TokensByPrecedence) {
  const TemporaryDirectory home;
  ::unsetenv("TARN_TOKEN");
  EXPECT_EQ(FindToken("", home.path()), "");
  std::ofstream(home.path() / "admin-token") << "from-file\n";
  EXPECT_EQ(FindToken("", home.path()), "from-file");
  ::setenv("TARN_TOKEN", "from-environment", 1);
  EXPECT_EQ(FindToken("", home.path()), "from-environment");
  EXPECT_EQ(FindToken("explicit", home.path()), "explicit");
  ::unsetenv("TARN_TOKEN");
}

}  // namespace
}  // namespace tarn::cli
