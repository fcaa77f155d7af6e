#include "tarn/server/router.h"

#include <nlohmann/json.hpp>

#include "tarn/metastore/migrations.h"
#include "tarn/metastore/sqlite_database.h"
#include "test/support/matchers.h"
#include "test/support/temporary_directory.h"

namespace tarn::server {
namespace {

using nlohmann::json;

class RouterTest : public ::testing::Test {
 protected:
  RouterTest() : uuids_(clock_), router_(Options(), Dependencies(nullptr)) {}

  static RouterOptions Options() { return {.access_log = AccessLog::kOff}; }
  RouterDependencies Dependencies(IdempotencyKeys* keys) {
    return {.authenticate = [](std::string_view token) -> Result<access::Principal> {
              if (token == "all") {
                return access::Principal{
                    .user_id = "u1", .username = "ada", .scopes = access::ScopeSet::All()};
              }
              if (token == "other") {
                return access::Principal{
                    .user_id = "u2", .username = "bob", .scopes = access::ScopeSet::All()};
              }
              if (token == "reader") {
                return access::Principal{
                    .user_id = "u3",
                    .username = "eve",
                    .scopes = access::ScopeSet::Of({access::Scope::kDatasetsRead})};
              }
              return Status(ErrorCode::kUnauthenticated, "unknown token");
            },
            .uuids = uuids_,
            .metrics = metrics_,
            .idempotency = keys};
  }

  /// A route that answers its pattern and path parameters.
  static void AddEcho(Router& router, const std::string& method, const std::string& pattern,
                      std::vector<access::Scope> scopes = {}) {
    ASSERT_OK(router.Add({.method = method,
                          .pattern = pattern,
                          .scopes = std::move(scopes),
                          .handler = [pattern](RequestContext& context) -> Result<http::Response> {
                            json values = json::array();
                            for (const auto& [name, value] : context.path) {
                              values.push_back(name + "=" + value);
                            }
                            return JsonResponse({{"pattern", pattern}, {"path", values}});
                          }}));
  }

  static http::Response Call(Router& router, const std::string& method, const std::string& target,
                             http::Headers headers = {{"Authorization", "Bearer all"}},
                             std::string body = {}) {
    http::Request request{.method = method,
                          .target = target,
                          .headers = std::move(headers),
                          .body = std::make_unique<http::StringBodyReader>(std::move(body)),
                          .peer = "test",
                          .stop = {}};
    return router.Handle(request);
  }
  json Get(const std::string& target) {
    const http::Response response = Call(router_, "GET", target);
    json body = json::parse(response.body);
    body["status"] = response.status;
    return body;
  }

  ManualClock clock_{FromMillis(1'800'000'000'000)};
  UuidGenerator uuids_;
  MetricRegistry metrics_;
  Router router_;
};

TEST_F(RouterTest, SegmentsAreDecodedExactlyOnce) {
  AddEcho(router_, "GET", "/api/v2/datasets/{rid}/files/{path}/content");
  const std::string base = "/api/v2/datasets/r/files/";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a%2Fb", "a/b"},       {"a%252Fb", "a%2Fb"},         {"a+b", "a+b"},
      {"content", "content"}, {"x%2Fcontent", "x/content"}, {"%F0%9F%98%80", "😀"},
      {"..", ".."},           {"a%2F..%2Fb", "a/../b"},     {"", ""},
      {"a:merge", "a:merge"}, {"%00", std::string(1, '\0')}};
  for (const auto& [raw, decoded] : cases) {
    const json answer = Get(base + raw + "/content?x=%2F");
    ASSERT_EQ(answer["status"], 200) << raw;
    EXPECT_EQ(answer["path"][1], "path=" + decoded) << raw;
  }
  const json broken = Get(base + "%zz/content");
  EXPECT_EQ(broken["status"], 400);
  EXPECT_EQ(broken["errorCode"], "INVALID_ARGUMENT");
}

TEST_F(RouterTest, LiteralsGoBeforeParametersAndFallBack) {
  AddEcho(router_, "GET", "/d/{rid}");
  AddEcho(router_, "GET", "/d/views/{view}");
  AddEcho(router_, "POST", "/d/getBatch");
  AddEcho(router_, "GET", "/d/{rid}/files/{path}");
  AddEcho(router_, "GET", "/d/{rid}/files/{path}/content");
  EXPECT_EQ(Get("/d/views/x")["pattern"], "/d/views/{view}");
  EXPECT_EQ(Get("/d/views")["pattern"], "/d/{rid}");
  EXPECT_EQ(Get("/d/getBatch")["pattern"], "/d/{rid}");  // GET has no literal route.
  EXPECT_EQ(Get("/d/views/files/x")["pattern"], "/d/{rid}/files/{path}");
  EXPECT_EQ(Get("/d/r/files/content")["pattern"], "/d/{rid}/files/{path}");
  EXPECT_EQ(Get("/d/r/files/content/content")["pattern"], "/d/{rid}/files/{path}/content");
}

TEST_F(RouterTest, VerbsBehindAColon) {
  AddEcho(router_, "POST", "/b/{name}:merge");
  AddEcho(router_, "POST", "/b/{name}");
  AddEcho(router_, "POST", "/b/{name}/files:register");
  const auto pattern = [&](const std::string& target) {
    return json::parse(Call(router_, "POST", target).body);
  };
  EXPECT_EQ(pattern("/b/a%2Fb:merge")["path"][0], "name=a/b");
  EXPECT_EQ(pattern("/b/a%3Amerge")["pattern"], "/b/{name}");
  EXPECT_EQ(pattern("/b/a:x:merge")["path"][0], "name=a:x");
  EXPECT_EQ(pattern("/b/a/files:register")["pattern"], "/b/{name}/files:register");
  EXPECT_EQ(pattern("/b/:merge")["pattern"], "/b/{name}");
}

TEST_F(RouterTest, ATrailingSlashIsAnotherPath) {
  AddEcho(router_, "DELETE", "/api/v2/datasets/{rid}");
  AddEcho(router_, "DELETE", "/api/v2/datasets/{rid}/branches/{name}");
  for (const std::string target :
       {"/api/v2/datasets/r/", "/api/v2/datasets/r/branches/", "/api/v2/datasets/", "//", "/",
        "/api/v2//datasets/r", "", "api/v2/datasets/r"}) {
    EXPECT_EQ(Call(router_, "DELETE", target).status, 404) << target;
  }
}

TEST_F(RouterTest, UnknownRoutesAndMethodsKeepTheFamilysEnvelope) {
  AddEcho(router_, "GET", "/api/v2/x");
  AddEcho(router_, "PUT", "/api/v2/x");
  const http::Response wrong = Call(router_, "POST", "/api/v2/x");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.headers.Find("Allow"), "GET, PUT");
  EXPECT_EQ(json::parse(wrong.body)["errorName"], "MethodNotAllowed");
  EXPECT_EQ(json::parse(Call(router_, "GET", "/iceberg/v1/x").body)["error"]["code"], 404);
  EXPECT_EQ(json::parse(Call(router_, "GET", "/tarn/v1/x").body)["error"]["name"], "RouteNotFound");
}

TEST_F(RouterTest, HeadIsAnsweredByGet) {
  AddEcho(router_, "GET", "/x");
  EXPECT_EQ(Call(router_, "HEAD", "/x").status, 200);
  AddEcho(router_, "POST", "/y");
  EXPECT_EQ(Call(router_, "HEAD", "/y").status, 405);
}

TEST_F(RouterTest, AbsoluteTargetsAreTaken) {
  AddEcho(router_, "GET", "/x/{y}");
  EXPECT_EQ(Get("http://host:80/x/1%2F2?a")["path"][0], "y=1/2");
  EXPECT_EQ(Call(router_, "GET", "http://host").status, 404);
}

TEST_F(RouterTest, CredentialsAndScopes) {
  AddEcho(router_, "GET", "/api/v2/x", {access::Scope::kDatasetsRead});
  AddEcho(router_, "POST", "/api/v2/x",
          {access::Scope::kDatasetsRead, access::Scope::kDatasetsWrite});
  const auto status_and_name = [&](const std::string& method, http::Headers headers) {
    const http::Response response = Call(router_, method, "/api/v2/x", std::move(headers));
    return std::to_string(response.status) + " " +
           json::parse(response.body).value("errorName", "");
  };
  EXPECT_EQ(status_and_name("GET", {}), "401 MissingCredentials");
  EXPECT_EQ(status_and_name("GET", {{"Authorization", "Basic YTpi"}}), "401 MissingCredentials");
  EXPECT_EQ(status_and_name("GET", {{"Authorization", "Bearer "}}), "401 MissingCredentials");
  EXPECT_EQ(status_and_name("GET", {{"Authorization", "Bearer    "}}), "401 MissingCredentials");
  EXPECT_THAT(status_and_name("GET", {{"Authorization", "Bearer nobody"}}),
              testing::StartsWith("401 "));
  EXPECT_EQ(status_and_name("GET", {{"authorization", "bearer reader"}}), "200 ");
  EXPECT_EQ(status_and_name("POST", {{"Authorization", "Bearer reader"}}), "403 ApiUsageDenied");
  EXPECT_EQ(status_and_name("POST", {{"Authorization", "Bearer all"}}), "200 ");
}

TEST_F(RouterTest, ASecretIsNeverEchoed) {
  AddEcho(router_, "GET", "/x");
  EXPECT_THAT(Call(router_, "GET", "/x", {{"Authorization", "Token hush"}}).body,
              testing::Not(testing::HasSubstr("hush")));
}

TEST_F(RouterTest, ExceptionsAreInternalErrorsInTheEnvelope) {
  ASSERT_OK(router_.Add({.method = "GET",
                         .pattern = "/iceberg/v1/x",
                         .scopes = {},
                         .handler = [](RequestContext&) -> Result<http::Response> {
                           return JsonResponse(json::parse("{"));
                         }}));
  const http::Response response = Call(router_, "GET", "/iceberg/v1/x");
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(json::parse(response.body)["error"]["code"], 500);
}

TEST_F(RouterTest, BadRoutesAreRefused) {
  const auto add = [&](std::string method, std::string pattern) {
    return router_.Add(
        {.method = std::move(method),
         .pattern = std::move(pattern),
         .scopes = {},
         .handler = [](RequestContext&) -> Result<http::Response> { return NoContent(); }});
  };
  EXPECT_OK(add("GET", "/a/{b}"));
  EXPECT_OK(add("PUT", "/a/{c}"));
  EXPECT_THAT(add("GET", "/a/{c}"), Fails(ErrorCode::kAlreadyExists));
  for (const std::string pattern : {"a", "/{", "/{}", "/x{y}", "/{y}x", "/{y}{z}", "/}"}) {
    EXPECT_THAT(add("GET", pattern), Fails(ErrorCode::kInvalidArgument)) << pattern;
  }
  EXPECT_THAT(add("", "/b"), Fails(ErrorCode::kInvalidArgument));
  EXPECT_EQ(router_.ListRoutes(), (std::vector<std::string>{"GET /a/{b}", "PUT /a/{c}"}));
}

TEST_F(RouterTest, QueriesAreParsedAndChecked) {
  ASSERT_OK(
      router_.Add({.method = "GET",
                   .pattern = "/q",
                   .scopes = {},
                   .handler = [](RequestContext& context) -> Result<http::Response> {
                     TARN_ASSIGN_OR_RETURN(const std::optional<int64_t> n, QueryInt(context, "n"));
                     TARN_ASSIGN_OR_RETURN(const std::optional<bool> b, QueryBool(context, "b"));
                     return JsonResponse({{"n", n.value_or(-1)}, {"b", b.value_or(false)}});
                   }}));
  EXPECT_EQ(Get("/q?n=7&b=true")["n"], 7);
  EXPECT_EQ(Get("/q")["n"], -1);
  for (const std::string query : {"n=", "n=1x", "n=99999999999999999999", "b=1", "b=", "n=%zz"}) {
    EXPECT_EQ(Get("/q?" + query)["status"], 400) << query;
  }
}

TEST_F(RouterTest, JsonBodies) {
  ASSERT_OK(router_.Add({.method = "POST",
                         .pattern = "/j",
                         .scopes = {},
                         .handler = [](RequestContext& context) -> Result<http::Response> {
                           TARN_ASSIGN_OR_RETURN(const json body, ReadJson(context, 100));
                           return JsonResponse(body);
                         }}));
  const auto post = [&](std::string body) {
    return Call(router_, "POST", "/j", {{"Authorization", "Bearer all"}}, std::move(body));
  };
  EXPECT_EQ(json::parse(post(R"({"a":"\u00e9\ud83d\ude00"})").body)["a"], "é😀");
  EXPECT_EQ(json::parse(post("{\"a\":\"é\"}").body)["a"], "é");
  EXPECT_EQ(json::parse(post("").body)["error"]["name"], "MissingPostBody");
  EXPECT_EQ(json::parse(post("{\"a\":").body)["error"]["name"], "MalformedJson");
  EXPECT_EQ(json::parse(post("{\"a\":\"\xff\"}").body)["error"]["name"], "MalformedJson");
  EXPECT_EQ(post("\"" + std::string(100, 'a') + "\"").status, 413);
}

TEST_F(RouterTest, CountsByRouteAndStatus) {
  AddEcho(router_, "GET", "/x/{y}");
  Get("/x/1");
  Get("/x/2");
  Call(router_, "GET", "/x/1", {});
  Get("/nowhere");
  const std::string text = metrics_.Render();
  EXPECT_THAT(text, testing::HasSubstr(
                        R"(tarn_http_requests_total{method="GET",route="/x/{y}",status="200"} 2)"));
  EXPECT_THAT(text, testing::HasSubstr(
                        R"(tarn_http_requests_total{method="GET",route="/x/{y}",status="401"} 1)"));
  EXPECT_THAT(text, testing::HasSubstr(
                        R"(tarn_http_requests_total{method="other",route="none",status="404"} 1)"));
  EXPECT_THAT(text, testing::HasSubstr(
                        R"(tarn_http_request_seconds_count{method="GET",route="/x/{y}"} 3)"));
}

TEST_F(RouterTest, EveryAnswerHasARequestId) {
  AddEcho(router_, "GET", "/x");
  const http::Response answer = Call(router_, "GET", "/x");
  EXPECT_THAT(Uuid::Parse(*answer.headers.Find("X-Request-Id")), IsOk());
  const http::Response failure = Call(router_, "GET", "/api/v2/nowhere");
  EXPECT_EQ(json::parse(failure.body)["errorInstanceId"], *failure.headers.Find("X-Request-Id"));
}

TEST_F(RouterTest, HealthRoutesNeedNoToken) {
  Status ready;
  ASSERT_OK(AddHealthRoutes(router_, metrics_, [&ready] { return ready; }));
  EXPECT_EQ(Call(router_, "GET", "/healthz", {}).status, 200);
  EXPECT_EQ(Call(router_, "GET", "/readyz", {}).status, 200);
  ready = Status::Unavailable("the metastore is read-only");
  const http::Response response = Call(router_, "GET", "/readyz", {});
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.body, testing::HasSubstr("read-only"));
  EXPECT_THAT(Call(router_, "GET", "/metrics", {}).body,
              testing::HasSubstr("tarn_http_requests_total"));
}

/// A router whose route "/p" counts its calls and answers as told.
class ReplayTest : public RouterTest {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(
        database_, metastore::SqliteDatabase::Open({.path = directory_.path() / "metastore.db"}));
    ASSERT_OK(database_->Migrate(metastore::Migrations()));
    keys_ = std::make_unique<IdempotencyKeys>(IdempotencyOptions{.body_bytes_max = 1000},
                                              *database_, clock_);
    replaying_ = std::make_unique<Router>(Options(), Dependencies(keys_.get()));
    for (const std::string method : {"POST", "GET"}) {
      ASSERT_OK(replaying_->Add(
          {.method = method,
           .pattern = "/p",
           .scopes = {},
           .handler = [this](RequestContext& context) { return Answer(context); }}));
    }
  }
  Result<http::Response> Answer(RequestContext& context) {
    ++calls_;
    TARN_RETURN_IF_ERROR(failure_);
    TARN_ASSIGN_OR_RETURN(const std::string body, http::ReadAll(*context.http.body, 1 << 20));
    return JsonResponse({{"call", calls_}, {"body", body}}, 201);
  }
  http::Response Send(const std::string& key, const std::string& body,
                      const std::string& token = "all", const std::string& method = "POST") {
    return Call(*replaying_, method, "/p",
                {{"Authorization", "Bearer " + token}, {"Idempotency-Key", key}}, body);
  }

  TemporaryDirectory directory_;
  std::unique_ptr<metastore::SqliteDatabase> database_;
  std::unique_ptr<IdempotencyKeys> keys_;
  std::unique_ptr<Router> replaying_;
  int calls_ = 0;
  Status failure_;
};

TEST_F(ReplayTest, TheSecondSendingGetsTheFirstAnswer) {
  const http::Response first = Send("k", "body");
  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(json::parse(first.body)["body"], "body");
  const http::Response second = Send("k", "body");
  EXPECT_EQ(second.status, 201);
  EXPECT_EQ(second.body, first.body);
  EXPECT_EQ(second.headers.Find("Content-Type"), "application/json");
  EXPECT_EQ(calls_, 1);
}

TEST_F(ReplayTest, KeysAreOfOneUserAndOneRequest) {
  Send("k", "body");
  EXPECT_EQ(Send("k", "other body").status, 400);
  EXPECT_EQ(Send("k", "body", "other").status, 201);
  EXPECT_EQ(Send("k2", "body").status, 201);
  EXPECT_EQ(calls_, 3);
}

TEST_F(ReplayTest, FinalFailuresAreReplayedAndOthersRunAgain) {
  failure_ = Status::Conflict("moved").WithReason("Moved");
  const http::Response first = Send("final", "");
  EXPECT_EQ(first.status, 409);
  failure_ = Status::Ok();
  EXPECT_EQ(Send("final", "").body, first.body);
  failure_ = Status::Unavailable("later");
  EXPECT_EQ(Send("transient", "").status, 503);
  failure_ = Status::Ok();
  EXPECT_EQ(Send("transient", "").status, 201);
}

TEST_F(ReplayTest, ReadsIgnoreKeysAndLargeAnswersAreNotKept) {
  Send("k", "", "all", "GET");
  Send("k", "", "all", "GET");
  EXPECT_EQ(calls_, 2);
  Send("large", std::string(2000, 'a'));
  Send("large", std::string(2000, 'a'));
  EXPECT_EQ(calls_, 4);
  EXPECT_EQ(Send("", "").status, 400);
  EXPECT_EQ(Send(std::string(300, 'k'), "").status, 400);
}

TEST_F(RouterTest, CallersAreHeldBack) {
  RateLimit limit({.requests_per_minute = 2});
  RouterDependencies dependencies = Dependencies(nullptr);
  dependencies.rate_limit = &limit;
  Router router(Options(), dependencies);
  AddEcho(router, "GET", "/api/v2/a");
  ASSERT_OK(AddHealthRoutes(router, metrics_, [] { return Status::Ok(); }));
  EXPECT_EQ(Call(router, "GET", "/api/v2/a").status, 200);
  EXPECT_EQ(Call(router, "GET", "/api/v2/a").status, 200);
  const http::Response refused = Call(router, "GET", "/api/v2/a");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(json::parse(refused.body)["errorName"], "TooManyRequests");
  EXPECT_EQ(refused.headers.Find("Retry-After"), "1");
  EXPECT_EQ(Call(router, "GET", "/api/v2/a", {{"Authorization", "Bearer other"}}).status, 200);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Call(router, "GET", "/healthz", {}).status, 200);
  }
}

TEST_F(RouterTest, ATailTakesTheRest) {
  AddEcho(router_, "GET", "/files/{path...}");
  AddEcho(router_, "GET", "/files/{id}/info");
  EXPECT_EQ(Get("/files/a/b%20c//d%2Fe")["path"], json({"path=a/b c//d/e"}));
  EXPECT_EQ(Get("/files/a")["path"], json({"path=a"}));
  EXPECT_EQ(Get("/files/a/info")["pattern"], "/files/{id}/info");
  EXPECT_EQ(Get("/files/a/info/b")["path"], json({"path=a/info/b"}));
  EXPECT_EQ(Get("/files/")["status"], 404);
}

}  // namespace
}  // namespace tarn::server
