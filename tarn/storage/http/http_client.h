// HttpClient: requests to servers outside (object stores, token services), over kept connections.
//
// A request is made once: whether it may be repeated depends on what it means, so callers decide.
// For that, an Answer says whether the server may have acted on a request that got no answer.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tarn/base/status.h"

namespace tarn::storage::http {

using Headers = std::vector<std::pair<std::string, std::string>>;

/// The first value of `name`, compared without case.
std::optional<std::string> FindHeader(const Headers& headers, std::string_view name);

/// Takes a piece of a body. A failure aborts the transfer and becomes Answer::transport.
using Sink = std::function<Status(std::string_view bytes)>;

struct Request {
  std::string method = "GET";
  std::string url;  // Encoded; sent as it is.
  Headers headers;
  std::string_view body;  // Must outlive the call.
  Sink sink;              // Takes the body of a 2xx answer instead of Answer::body.
  std::optional<std::chrono::milliseconds> answer_timeout;  // Instead of the client's.
};

/// What came of one request. Value.
struct Answer {
  Status transport;   // Not OK when no whole answer came: kUnavailable or kDeadlineExceeded, the
                      // sink's own failure, kResourceExhausted for an answer without end.
  bool sent = false;  // The whole request may have reached the server.
  int status = 0;     // 0 without an answer.
  Headers headers;    // Names in lower case.
  std::string body;

  [[nodiscard]] bool ok() const { return transport.ok() && status / 100 == 2; }
};

struct HttpClientOptions {
  size_t connections_max = 64;  // Requests at once; more wait. As many connections are kept.
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds answer_timeout{60'000};  // Until the answer begins, after the body.
  std::chrono::milliseconds stall_timeout{30'000};   // Without a byte while a body moves.
  uint64_t body_bytes_max = 64ULL << 20;             // Of an answer without a sink.
  std::string ca_file;                               // PEM; empty = the system's.
};

/// Threads: any; a call blocks its thread. Redirects are not followed, proxies of the environment
/// are not used, certificates are always checked.
class HttpClient {
 public:
  explicit HttpClient(HttpClientOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Makes the request once (a kept connection found dead before anything was sent is replaced).
  Answer Send(const Request& request);

 private:
  struct Pool;
  std::unique_ptr<Pool> pool_;
};

/// The instant of a date header, e.g. "Wed, 21 Oct 2015 07:28:00 GMT"; seconds since 1970.
std::optional<int64_t> ParseHttpDate(const std::string& text);

}  // namespace tarn::storage::http
