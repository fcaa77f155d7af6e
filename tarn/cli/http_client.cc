#include "tarn/cli/http_client.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <mutex>

#include <curl/curl.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "tarn/base/url.h"

namespace tarn::cli {

namespace {

using nlohmann::json;

constexpr size_t kBodyBytesMax = size_t{1} << 30;

bool ChangesSomething(std::string_view method) { return method != "GET" && method != "HEAD"; }

bool IsLoopback(std::string_view url) {
  for (const std::string_view host : {"://127.", "://localhost", "://[::1]"}) {
    if (url.find(host) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

/// What the callbacks of one transfer share.
struct Exchange {
  const HttpCall& call;
  CURL* curl = nullptr;
  HttpAnswer answer;
  Status failure;  // Of the caller's source or sink.
  std::chrono::steady_clock::time_point last_moved = std::chrono::steady_clock::now();
  curl_off_t moved = 0;
  int stall_timeout_seconds = 0;
  bool stalled = false;

  int HttpStatus() const {
    long status = 0;  // NOLINT(google-runtime-int): libcurl's type.
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    return static_cast<int>(status);
  }
};

size_t OnRead(char* out, size_t size, size_t count, void* context) {
  auto& exchange = *static_cast<Exchange*>(context);
  Result<size_t> read = exchange.call.upload(out, size * count);
  if (!read.ok()) {
    exchange.failure = std::move(read).status();
    return CURL_READFUNC_ABORT;
  }
  return *read;
}

size_t OnWrite(char* bytes, size_t size, size_t count, void* context) {
  auto& exchange = *static_cast<Exchange*>(context);
  const std::string_view piece(bytes, size * count);
  if (exchange.call.download && exchange.HttpStatus() / 100 == 2) {
    exchange.failure = exchange.call.download(piece);
    return exchange.failure.ok() ? piece.size() : 0;
  }
  if (exchange.answer.body.size() + piece.size() > kBodyBytesMax) {
    exchange.failure = Status(ErrorCode::kResourceExhausted, "the answer is larger than 1 GiB");
    return 0;
  }
  exchange.answer.body += piece;
  return piece.size();
}

size_t OnHeader(char* bytes, size_t size, size_t count, void* context) {
  auto& exchange = *static_cast<Exchange*>(context);
  std::string_view line(bytes, size * count);
  if (line.starts_with("HTTP/")) {
    exchange.answer.headers.clear();  // Of an interim answer.
  }
  const size_t colon = line.find(':');
  if (colon != std::string_view::npos) {
    std::string name(line.substr(0, colon));
    std::ranges::transform(name, name.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const size_t first = line.find_first_not_of(" \t", colon + 1);
    const size_t last = line.find_last_not_of(" \t\r\n");
    exchange.answer.headers.emplace_back(std::move(name),
                                         first == std::string_view::npos || last < first
                                             ? std::string()
                                             : std::string(line.substr(first, last - first + 1)));
  }
  return size * count;
}

int OnProgress(void* context, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
               curl_off_t up) {
  auto& exchange = *static_cast<Exchange*>(context);
  const auto now = std::chrono::steady_clock::now();
  if (down + up != exchange.moved) {
    exchange.moved = down + up;
    exchange.last_moved = now;
  }
  if (exchange.call.progress) {
    const bool uploading = static_cast<bool>(exchange.call.upload);
    exchange.call.progress(static_cast<uint64_t>(uploading ? up : down),
                           static_cast<uint64_t>(uploading ? up_total : down_total));
  }
  // Waiting for the first byte of an answer is no stall: a query may think for long.
  const bool moving = down > 0 || (up > 0 && up < up_total);
  exchange.stalled =
      moving && exchange.stall_timeout_seconds > 0 &&
      now - exchange.last_moved > std::chrono::seconds(exchange.stall_timeout_seconds);
  return exchange.stalled ? 1 : 0;
}

class CurlClient final : public HttpClient {
 public:
  CurlClient(HttpClientOptions options, CURL* curl) : options_(std::move(options)), curl_(curl) {}
  ~CurlClient() override { curl_easy_cleanup(curl_); }
  CurlClient(const CurlClient&) = delete;
  CurlClient& operator=(const CurlClient&) = delete;

  Result<HttpAnswer> Send(const HttpCall& call) override;

 private:
  void SetConnection(const std::string& url);
  void SetBody(const HttpCall& call);
  Status TransferFailure(CURLcode code, const HttpCall& call, const Exchange& exchange) const;
  Status BrokenOff(const HttpCall& call, const Exchange& exchange, Status failure);

  const HttpClientOptions options_;
  CURL* const curl_;
};

void CurlClient::SetConnection(const std::string& url) {
  curl_easy_reset(curl_);  // Keeps the connection.
  curl_easy_setopt(curl_, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl_, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(curl_, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl_, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(curl_, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl_, CURLOPT_HTTP_VERSION,
                   static_cast<long>(CURL_HTTP_VERSION_1_1));  // NOLINT
  curl_easy_setopt(curl_, CURLOPT_CONNECTTIMEOUT,
                   static_cast<long>(options_.connect_timeout_seconds));  // NOLINT
  if (IsLoopback(url)) {
    curl_easy_setopt(curl_, CURLOPT_NOPROXY, "*");
  }
}

void CurlClient::SetBody(const HttpCall& call) {
  if (call.method == "HEAD") {
    curl_easy_setopt(curl_, CURLOPT_NOBODY, 1L);
    return;
  }
  if (call.upload) {
    curl_easy_setopt(curl_, CURLOPT_POST, 1L);
    curl_easy_setopt(curl_, CURLOPT_READFUNCTION, OnRead);
    if (call.upload_size_bytes) {
      curl_easy_setopt(curl_, CURLOPT_POSTFIELDSIZE_LARGE,
                       static_cast<curl_off_t>(*call.upload_size_bytes));
    }
  } else if (call.method == "POST" || call.method == "PUT" || !call.body.empty()) {
    curl_easy_setopt(curl_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call.body.size()));
    curl_easy_setopt(curl_, CURLOPT_POSTFIELDS, call.body.data());
  }
  curl_easy_setopt(curl_, CURLOPT_CUSTOMREQUEST, call.method.c_str());
}

Result<HttpAnswer> CurlClient::Send(const HttpCall& call) {
  const std::string url = options_.url + call.target;
  SetConnection(url);
  SetBody(call);
  Exchange exchange{.call = call, .curl = curl_};
  exchange.stall_timeout_seconds = options_.stall_timeout_seconds;
  curl_slist* fields = nullptr;
  for (const auto& [name, value] : call.headers) {
    fields = curl_slist_append(fields, (name + ": " + value).c_str());
  }
  if (!options_.token.empty()) {
    fields = curl_slist_append(fields, ("Authorization: Bearer " + options_.token).c_str());
  }
  if (call.upload && !call.upload_size_bytes) {
    fields = curl_slist_append(fields, "Transfer-Encoding: chunked");
  }
  curl_easy_setopt(curl_, CURLOPT_HTTPHEADER, fields);
  curl_easy_setopt(curl_, CURLOPT_READDATA, &exchange);
  curl_easy_setopt(curl_, CURLOPT_WRITEFUNCTION, OnWrite);
  curl_easy_setopt(curl_, CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(curl_, CURLOPT_HEADERFUNCTION, OnHeader);
  curl_easy_setopt(curl_, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(curl_, CURLOPT_XFERINFOFUNCTION, OnProgress);
  curl_easy_setopt(curl_, CURLOPT_XFERINFODATA, &exchange);
  curl_easy_setopt(curl_, CURLOPT_NOPROGRESS, 0L);
  const CURLcode code = curl_easy_perform(curl_);
  curl_slist_free_all(fields);
  exchange.answer.status = exchange.HttpStatus();
  const bool has_error_answer = exchange.answer.status >= 400 && code != CURLE_OK;
  if (code != CURLE_OK && !(has_error_answer && exchange.failure.ok() && !exchange.stalled)) {
    return BrokenOff(call, exchange, TransferFailure(code, call, exchange));
  }
  if (exchange.answer.status / 100 != 2 && exchange.answer.status != 304) {
    return StatusFromAnswer(exchange.answer.status, exchange.answer.body);
  }
  return std::move(exchange.answer);
}

Status CurlClient::TransferFailure(CURLcode code, const HttpCall& call,
                                   const Exchange& exchange) const {
  if (!exchange.failure.ok()) {
    return exchange.failure;
  }
  const std::string what =
      fmt::format("{} {}{}: {}", call.method, options_.url, call.target,
                  exchange.stalled ? "no byte moved for too long" : curl_easy_strerror(code));
  switch (code) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return Status::Unavailable(
          fmt::format("reach the server at {}: {}; is `tarn serve` running, and is --url right?",
                      options_.url, curl_easy_strerror(code)));
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return Status::InvalidArgument("the server's URL \"" + options_.url + "\" is malformed");
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_ABORTED_BY_CALLBACK:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
      if (call.only_asks && exchange.answer.status / 100 == 2) {
        return Status::Unavailable(what + "; the server broke the answer off, its log may say why");
      }
      return ChangesSomething(call.method) && !call.only_asks
                 ? Status(ErrorCode::kCommitStateUnknown, what + "; the change may have been made")
                 : Status::Unavailable(what);
    default:
      return Status::Internal(what);
  }
}

// What the server says of an answer that it began and broke off; else `failure`.
Status CurlClient::BrokenOff(const HttpCall& call, const Exchange& exchange, Status failure) {
  constexpr std::string_view kFailures = "/tarn/v1/failures/";
  if (exchange.answer.status / 100 != 2 || !exchange.failure.ok() ||
      (ChangesSomething(call.method) && !call.only_asks) || call.target.starts_with(kFailures)) {
    return failure;
  }
  for (const auto& [name, value] : exchange.answer.headers) {
    if (name != "x-request-id") {
      continue;
    }
    HttpCall ask;
    ask.target = std::string(kFailures) + EncodeUrl(value);
    ask.headers = {{"Accept", "application/json"}};
    const Status told = StatusOf(Send(ask));
    const bool known = !told.ok() && told.reason() != "FailureNotFound" &&
                       told.reason() != "RouteNotFound" && !told.reason().empty() &&
                       told.code() != ErrorCode::kUnauthenticated;
    return known ? told : failure;
  }
  return failure;
}

ErrorCode CodeOf(int http_status, std::string_view name) {
  if (name.starts_with("CommitStateUnknown")) {
    return ErrorCode::kCommitStateUnknown;
  }
  if (name.ends_with("AlreadyExists") || name.ends_with("AlreadyExistsException")) {
    return ErrorCode::kAlreadyExists;
  }
  switch (http_status) {
    case 401:
      return ErrorCode::kUnauthenticated;
    case 403:
      return ErrorCode::kPermissionDenied;
    case 404:
    case 410:
      return ErrorCode::kNotFound;
    case 408:
    case 504:
      return ErrorCode::kDeadlineExceeded;
    case 409:
      return ErrorCode::kConflict;
    case 412:
      return ErrorCode::kFailedPrecondition;
    case 429:
      return ErrorCode::kResourceExhausted;
    case 499:
      return ErrorCode::kCancelled;
    case 501:
      return ErrorCode::kUnimplemented;
    case 502:
    case 503:
      return ErrorCode::kUnavailable;
    default:
      return http_status >= 500 ? ErrorCode::kInternal : ErrorCode::kInvalidArgument;
  }
}

std::string TextOf(const json& object, const char* member) {
  const auto found = object.find(member);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

Result<std::unique_ptr<HttpClient>> HttpClient::Open(HttpClientOptions options) {
  static std::once_flag initialized;
  std::call_once(initialized, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  CURL* const curl = curl_easy_init();
  if (curl == nullptr) {
    return Status::Internal("start the HTTP client: libcurl does not start");
  }
  while (options.url.ends_with('/')) {
    options.url.pop_back();
  }
  if (options.url.find("://") == std::string::npos) {
    options.url = "http://" + options.url;
  }
  return std::unique_ptr<HttpClient>(std::make_unique<CurlClient>(std::move(options), curl));
}

Result<json> HttpClient::Json(std::string_view method, std::string_view target, const json& body) {
  HttpCall call;
  call.method = std::string(method);
  call.target = std::string(target);
  call.headers = {{"Accept", "application/json"}};
  if (!body.is_null()) {
    call.headers.emplace_back("Content-Type", "application/json");
    call.body = body.dump(-1, ' ', false, json::error_handler_t::replace);
  }
  TARN_ASSIGN_OR_RETURN(const HttpAnswer answer, Send(call));
  if (answer.body.empty()) {
    return json();
  }
  json document = json::parse(answer.body, nullptr, false);
  if (document.is_discarded()) {
    return Status::Internal(fmt::format("{} {}: the answer is no JSON: {}", method, target,
                                        answer.body.substr(0, 200)));
  }
  return document;
}

Result<json> HttpClient::GetJson(std::string_view target) { return Json("GET", target, json()); }

Status StatusFromAnswer(int http_status, std::string_view body) {
  const json document = json::parse(body, nullptr, false);
  std::string name;
  std::string message;
  json parameters = json::object();
  if (document.is_object() && document.contains("errorName")) {
    name = TextOf(document, "errorName");
    const auto found = document.find("parameters");
    parameters = found != document.end() && found->is_object() ? *found : json::object();
    message = TextOf(parameters, "message");
    if (message.empty()) {
      message = name + " " + parameters.dump(-1, ' ', false, json::error_handler_t::replace);
    }
  } else if (document.is_object() && document.contains("error") && document["error"].is_object()) {
    const json& error = document["error"];
    name = TextOf(error, "name").empty() ? TextOf(error, "type") : TextOf(error, "name");
    message = TextOf(error, "message");
    parameters = error;
    for (const char* member : {"name", "type", "message", "code"}) {
      parameters.erase(member);
    }
  } else {
    message = fmt::format("the server answered {}: {}", http_status, body.substr(0, 500));
  }
  return Status(CodeOf(http_status, name), message)
      .WithReason(name, parameters.dump(-1, ' ', false, json::error_handler_t::replace));
}

std::string FindToken(const std::string& explicit_token, const std::string& home) {
  if (!explicit_token.empty()) {
    return explicit_token;
  }
  const char* const from_environment = std::getenv("TARN_TOKEN");
  if (from_environment != nullptr && *from_environment != '\0') {
    return from_environment;
  }
  std::ifstream file(home + "/admin-token");
  std::string token;
  std::getline(file, token);
  while (!token.empty() && (token.back() == '\r' || token.back() == ' ')) {
    token.pop_back();
  }
  return token;
}

}  // namespace tarn::cli
