#include "tarn/storage/s3/token_service.h"

#include <fmt/format.h>

#include "tarn/base/url.h"
#include "tarn/storage/aws/sigv4.h"
#include "tarn/storage/s3/s3_options.h"
#include "tarn/storage/s3/xml.h"

namespace tarn::storage::s3 {

namespace {

constexpr RetryOptions kRetry{.attempts_max = 3,
                              .wait_first = std::chrono::milliseconds(100),
                              .wait_max = std::chrono::milliseconds(1'000),
                              .elapsed_max = std::chrono::milliseconds(15'000)};
constexpr std::chrono::milliseconds kAnswerTimeout{10'000};

std::string FormOf(const AssumeRoleRequest& request) {
  std::string form = "Action=AssumeRole&Version=2011-06-15";
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) {
      form += fmt::format("&{}={}", name, EncodeUrl(value));
    }
  };
  add("RoleArn", request.role);
  add("RoleSessionName", request.session);
  add("DurationSeconds", std::to_string(request.lifetime.count()));
  add("Policy", request.policy);
  return form;
}

// "AccessDenied (not authorized)", of an answer that is no success.
std::string Said(const http::Answer& answer) {
  const Result<XmlElement> root = ParseXml(answer.body);
  const XmlElement* error = root.ok() ? &*root : nullptr;
  if (error != nullptr && error->name == "ErrorResponse") {
    error = error->Find("Error");
  }
  const std::string code = error == nullptr ? "" : error->TextOf("Code");
  return code.empty() ? fmt::format("HTTP status {}", answer.status)
                      : fmt::format("{} ({})", code, error->TextOf("Message"));
}

Result<aws::Credentials> KeysOf(const std::string& body) {
  TARN_ASSIGN_OR_RETURN(const XmlElement root, ParseXml(body));
  const XmlElement* result = root.Find("AssumeRoleResult");
  const XmlElement* given = result == nullptr ? nullptr : result->Find("Credentials");
  if (given == nullptr) {
    return Status::Corruption("the answer has no Credentials");
  }
  aws::Credentials keys{.access_key_id = given->TextOf("AccessKeyId"),
                        .secret_access_key = given->TextOf("SecretAccessKey"),
                        .session_token = given->TextOf("SessionToken")};
  if (keys.access_key_id.empty() || keys.secret_access_key.empty() || keys.session_token.empty()) {
    return Status::Corruption("the answer lacks a key or the session token");
  }
  TARN_ASSIGN_OR_RETURN(keys.expires, ParseTimestamp(given->TextOf("Expiration")));
  return keys;
}

}  // namespace

Result<aws::Credentials> AssumeRole(http::HttpClient& http, RetryWorld world,
                                    const aws::Credentials& signer,
                                    const AssumeRoleRequest& request) {
  TARN_ASSIGN_OR_RETURN(const Endpoint endpoint, ParseEndpoint(request.endpoint));
  const std::string body = FormOf(request);
  const std::string context = "token service " + endpoint.host;
  aws::SigningInput input{.method = "POST",
                          .host = endpoint.host,
                          .path = endpoint.path + "/",
                          .query = {},
                          .headers = {{"content-type", "application/x-www-form-urlencoded"}},
                          .payload_hash = aws::PayloadHash(body)};
  http::Answer answer;
  std::optional<Status> refused;
  const Status asked = Retry(kRetry, world, [&]() -> Status {
    http::Request post{.method = "POST",
                       .url = endpoint.scheme + "://" + endpoint.host + input.path,
                       .headers = input.headers,
                       .body = body};
    post.answer_timeout = kAnswerTimeout;
    for (auto& header : aws::SignHeaders(input, {.region = request.region, .service = "sts"},
                                         signer, world.clock.Now())) {
      post.headers.push_back(std::move(header));
    }
    answer = http.Send(post);
    if (!answer.transport.ok()) {
      return answer.transport;
    }
    if (answer.ok()) {
      return Status::Ok();
    }
    if (answer.status / 100 == 5 || answer.status == 429) {
      return Status::Unavailable(Said(answer));
    }
    refused = Status::Unavailable("it refused: " + Said(answer));
    return Status::Ok();
  });
  TARN_RETURN_IF_ERROR((refused ? *refused : asked).WithContext(context));
  Result<aws::Credentials> keys = KeysOf(answer.body);
  return keys.ok() ? std::move(keys)
                   : Status::Unavailable(keys.status().message()).WithContext(context);
}

}  // namespace tarn::storage::s3
