#include "tarn/storage/http/http_client.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include <curl/curl.h>
#include <fmt/core.h>
#include <strings.h>

namespace tarn::storage::http {

namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

struct HeaderList {
  HeaderList() = default;
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;
  ~HeaderList() { curl_slist_free_all(list); }
  void Add(const std::string& line) { list = curl_slist_append(list, line.c_str()); }
  curl_slist* list = nullptr;
};

// What the callbacks of one transfer share.
struct Exchange {
  const Request& request;
  const HttpClientOptions& options;
  std::chrono::milliseconds answer_timeout;
  CURL* curl;
  Answer answer;
  size_t body_sent = 0;
  bool body_ended = false;
  curl_off_t moved = 0;
  SteadyTime last_moved = std::chrono::steady_clock::now();
  bool stalled = false;
  bool head_ended = false;  // The blank line after the answer's fields has come.
  // Set once: the request's whole body has been handed to the system on some connection.
  bool whole = false;
};

size_t OnRead(char* out, size_t size, size_t count, void* context) {
  auto& exchange = *static_cast<Exchange*>(context);
  const std::string_view rest = exchange.request.body.substr(exchange.body_sent);
  const size_t take = std::min(rest.size(), size * count);
  std::memcpy(out, rest.data(), take);
  exchange.body_sent += take;
  exchange.whole = exchange.whole || exchange.body_sent == exchange.request.body.size();
  return take;
}

int OnSeek(void* context, curl_off_t offset, int origin) {
  auto& exchange = *static_cast<Exchange*>(context);
  if (origin != SEEK_SET || offset < 0 ||
      static_cast<size_t>(offset) > exchange.request.body.size()) {
    return CURL_SEEKFUNC_FAIL;
  }
  exchange.body_sent = static_cast<size_t>(offset);
  return CURL_SEEKFUNC_OK;
}

int StatusOfCurl(CURL* curl) {
  long status = 0;  // NOLINT(google-runtime-int): libcurl's type.
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  return static_cast<int>(status);
}

size_t OnWrite(char* bytes, size_t size, size_t count, void* context) {
  auto& exchange = *static_cast<Exchange*>(context);
  const std::string_view piece(bytes, size * count);
  if (exchange.request.sink && StatusOfCurl(exchange.curl) / 100 == 2) {
    exchange.answer.transport = exchange.request.sink(piece);
    return exchange.answer.transport.ok() ? piece.size() : 0;
  }
  if (exchange.answer.body.size() + piece.size() > exchange.options.body_bytes_max) {
    exchange.answer.transport =
        Status(ErrorCode::kResourceExhausted,
               fmt::format("the answer has more than {} bytes", exchange.options.body_bytes_max));
    return 0;
  }
  exchange.answer.body += piece;
  return piece.size();
}

size_t OnHeader(char* bytes, size_t size, size_t count, void* context) {
  auto& exchange = *static_cast<Exchange*>(context);
  const std::string_view line(bytes, size * count);
  if (line.starts_with("HTTP/")) {
    exchange.answer.headers.clear();  // Of an interim answer.
    exchange.head_ended = false;
    return line.size();
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) {
    exchange.head_ended = exchange.head_ended || line == "\r\n" || line == "\n";
    return line.size();
  }
  std::string name(line.substr(0, colon));
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const size_t first = line.find_first_not_of(" \t", colon + 1);
  const size_t last = line.find_last_not_of(" \t\r\n");
  const bool blank = first == std::string_view::npos || last < first;
  exchange.answer.headers.emplace_back(
      std::move(name), blank ? std::string() : std::string(line.substr(first, last - first + 1)));
  return line.size();
}

int OnProgress(void* context, curl_off_t /*down_total*/, curl_off_t down, curl_off_t /*up_total*/,
               curl_off_t up) {
  auto& exchange = *static_cast<Exchange*>(context);
  const SteadyTime now = std::chrono::steady_clock::now();
  if (down + up != exchange.moved) {
    exchange.moved = down + up;
    exchange.last_moved = now;
    return 0;
  }
  curl_off_t connected = 0;
  curl_easy_getinfo(exchange.curl, CURLINFO_PRETRANSFER_TIME_T, &connected);
  const bool waiting = connected == 0 || (down == 0 && exchange.whole);
  const auto limit = waiting ? exchange.answer_timeout : exchange.options.stall_timeout;
  exchange.stalled = now - exchange.last_moved > limit;
  return exchange.stalled ? 1 : 0;
}

void SetBody(CURL* curl, const Request& request) {
  const bool empty = request.body.empty();
  if (request.method == "HEAD") {
    curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  } else if (empty && (request.method == "GET" || request.method == "DELETE")) {
    curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
  } else {
    curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  }
  if (request.method != "GET" && request.method != "HEAD" && request.method != "PUT") {
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
}

void SetOptions(CURL* curl, Exchange& exchange, const HeaderList& headers) {
  const HttpClientOptions& options = exchange.options;
  curl_easy_setopt(curl, CURLOPT_URL, exchange.request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.list);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(options.connect_timeout.count()));
  if (!options.ca_file.empty()) {
    curl_easy_setopt(curl, CURLOPT_CAINFO, options.ca_file.c_str());
  }
  curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, 512L << 10);
  curl_easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, 512L << 10);
  curl_easy_setopt(curl, CURLOPT_READFUNCTION, OnRead);
  curl_easy_setopt(curl, CURLOPT_READDATA, &exchange);
  curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, OnSeek);
  curl_easy_setopt(curl, CURLOPT_SEEKDATA, &exchange);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, OnWrite);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, OnHeader);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, OnProgress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &exchange);
  SetBody(curl, exchange.request);
}

// The server's name without path and query, which may hold a signature.
std::string ServerOf(std::string_view url) {
  const size_t scheme = url.find("://");
  const size_t end = url.find_first_of("/?", scheme == std::string_view::npos ? 0 : scheme + 3);
  return std::string(url.substr(0, end));
}

Status TransportStatus(CURLcode code, const Exchange& exchange, const char* detail) {
  const std::string what =
      fmt::format("{} {}: {}", exchange.request.method, ServerOf(exchange.request.url),
                  *detail != '\0' ? detail : curl_easy_strerror(code));
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return {ErrorCode::kDeadlineExceeded, what};
    case CURLE_ABORTED_BY_CALLBACK:
      return {ErrorCode::kDeadlineExceeded,
              fmt::format("{} {}: nothing moved for too long", exchange.request.method,
                          ServerOf(exchange.request.url))};
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return Status::InvalidArgument(what);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return Status::FailedPrecondition(what);
    default:
      return Status::Unavailable(what);
  }
}

void InitializeCurl() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

}  // namespace

// Handles, each with its own kept connections; the last one used is the next to be used.
struct HttpClient::Pool {
  explicit Pool(HttpClientOptions client_options) : options(std::move(client_options)) {}
  ~Pool() {
    for (CURL* curl : idle) {
      curl_easy_cleanup(curl);
    }
  }

  CURL* Take() {
    std::unique_lock lock(mutex);
    free.wait(lock, [this] { return busy < options.connections_max; });
    ++busy;
    if (idle.empty()) {
      return curl_easy_init();
    }
    CURL* curl = idle.back();
    idle.pop_back();
    return curl;
  }

  void Give(CURL* curl) {
    if (curl != nullptr) {
      curl_easy_reset(curl);
    }
    const std::lock_guard lock(mutex);
    --busy;
    if (curl != nullptr) {
      idle.push_back(curl);
    }
    free.notify_one();
  }

  const HttpClientOptions options;
  std::mutex mutex;
  std::condition_variable free;
  std::vector<CURL*> idle;  // Guarded by mutex, as all below.
  size_t busy = 0;
};

HttpClient::HttpClient(HttpClientOptions options) {
  InitializeCurl();
  options.connections_max = std::max<size_t>(1, options.connections_max);
  pool_ = std::make_unique<Pool>(std::move(options));
}

HttpClient::~HttpClient() = default;

Answer HttpClient::Send(const Request& request) {
  CURL* curl = pool_->Take();
  if (curl == nullptr) {
    pool_->Give(nullptr);
    Answer answer;
    answer.transport = Status(ErrorCode::kResourceExhausted, "libcurl has no memory for a request");
    return answer;
  }
  Exchange exchange{
      .request = request,
      .options = pool_->options,
      .answer_timeout = request.answer_timeout.value_or(pool_->options.answer_timeout),
      .curl = curl,
      .answer = {}};
  HeaderList headers;
  for (const auto& [name, value] : request.headers) {
    // libcurl drops "name:" but sends "name;" as an empty header.
    headers.Add(value.empty() ? name + ";" : name + ": " + value);
  }
  for (const char* unwanted : {"Expect:", "Content-Type:", "Accept:"}) {
    if (!FindHeader(request.headers, std::string_view(unwanted, std::strlen(unwanted) - 1))) {
      headers.Add(unwanted);
    }
  }
  SetOptions(curl, exchange, headers);
  char detail[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
  exchange.whole = request.body.empty();
  const CURLcode code = curl_easy_perform(curl);
  exchange.answer.status = StatusOfCurl(curl);
  curl_off_t connected = 0;
  curl_easy_getinfo(curl, CURLINFO_PRETRANSFER_TIME_T, &connected);
  exchange.answer.sent = connected > 0 && exchange.whole;
  if (code != CURLE_OK && exchange.answer.transport.ok()) {
    exchange.answer.transport = TransportStatus(code, exchange, detail);
  }
  // libcurl takes a connection that closed among the fields for an answer without a body.
  if (code == CURLE_OK && !exchange.head_ended) {
    exchange.answer.transport = Status::Unavailable(
        fmt::format("{} {}: the answer broke off", request.method, ServerOf(request.url)));
  }
  pool_->Give(curl);
  return std::move(exchange.answer);
}

std::optional<std::string> FindHeader(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (key.size() == name.size() && ::strncasecmp(key.data(), name.data(), name.size()) == 0) {
      return value;
    }
  }
  return std::nullopt;
}

std::optional<int64_t> ParseHttpDate(const std::string& text) {
  const time_t seconds = curl_getdate(text.c_str(), nullptr);
  return seconds < 0 ? std::nullopt : std::optional<int64_t>(seconds);
}

}  // namespace tarn::storage::http
