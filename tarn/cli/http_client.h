// Client of a tarn server for the command line: JSON calls, streamed uploads and downloads, and
// the error envelopes of all three route families turned back into a Status.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tarn/base/status.h"

namespace tarn::cli {

struct HttpClientOptions {
  std::string url = "http://127.0.0.1:8080";  // Without a trailing slash.
  std::string token;                          // Empty = no Authorization header.
  int connect_timeout_seconds = 10;
  int stall_timeout_seconds = 120;  // Without a byte either way.
};

/// Fills up to `size` bytes; 0 = end. A failure aborts the transfer and is returned.
using UploadSource = std::function<Result<size_t>(char* out, size_t size)>;
/// Takes a piece of the answer. A failure aborts the transfer and is returned.
using DownloadSink = std::function<Status(std::string_view bytes)>;
/// Called as bytes move; `total` is 0 while unknown.
using ProgressCallback = std::function<void(uint64_t done, uint64_t total)>;

struct HttpCall {
  std::string method = "GET";
  std::string target;  // Encoded path and query, e.g. "/api/v2/datasets/ri...?x=%2F".
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  UploadSource upload;                        // Instead of `body`.
  std::optional<uint64_t> upload_size_bytes;  // Empty = chunked.
  bool only_asks = false;  // A method that could change something, but does not here.
  DownloadSink download;   // Takes the body of a 2xx answer instead of HttpAnswer::body.
  ProgressCallback progress;
};

struct HttpAnswer {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // Names in lower case.
  std::string body;  // Up to 1 GiB; use `download` for more.
};

/// One connection, kept alive between calls. One owner thread.
class HttpClient {
 public:
  static Result<std::unique_ptr<HttpClient>> Open(HttpClientOptions options);
  virtual ~HttpClient() = default;

  /// Errors: the server's (code by HTTP status, reason() = its error name, details() = its
  /// parameters); kUnavailable when the server cannot be reached, naming the URL;
  /// kCommitStateUnknown when the connection broke after a mutating request was sent.
  virtual Result<HttpAnswer> Send(const HttpCall& call) = 0;

  /// Sends and reads JSON; a null `body` sends none, an empty answer is null.
  Result<nlohmann::json> Json(std::string_view method, std::string_view target,
                              const nlohmann::json& body);
  Result<nlohmann::json> GetJson(std::string_view target);
};

/// The failure that an error answer means. `body` in any of the three envelopes, or anything.
Status StatusFromAnswer(int http_status, std::string_view body);

/// Token by precedence: `explicit_token`, the environment's TARN_TOKEN, `<home>/admin-token`.
/// Empty when there is none.
std::string FindToken(const std::string& explicit_token, const std::string& home);

}  // namespace tarn::cli
