// What a handler sees of HTTP: a request whose body is pulled, a response that is a whole body or
// a producer that pushes one. Nothing here knows the HTTP library behind http/server.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tarn/base/status.h"

namespace tarn::server::http {

/// Compares ASCII letters without case.
bool EqualsIgnoringCase(std::string_view a, std::string_view b);

/// Header fields in order of arrival; names compare without case. Value.
class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<std::pair<std::string, std::string>> fields) : fields_(fields) {}

  void Add(std::string name, std::string value);
  /// Replaces all fields of that name.
  void Set(std::string name, std::string value);
  void Remove(std::string_view name);
  /// The first field of that name.
  [[nodiscard]] std::optional<std::string_view> Find(std::string_view name) const;
  /// True where a comma-separated field holds `token`, without case: HasToken("connection",
  /// "close").
  [[nodiscard]] bool HasToken(std::string_view name, std::string_view token) const;
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& fields() const {
    return fields_;
  }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

/// Reads a request body piece by piece. One owner thread: the handler's.
class BodyReader {
 public:
  virtual ~BodyReader() = default;
  /// Reads 1..`size` bytes into `out`; 0 only at the end of the body. May block.
  /// Errors, each with a reason() that http_error.h maps: "RequestBodyIncomplete" (the client went
  /// away or broke the framing), "RequestBodyTimedOut", "RequestEntityTooLarge".
  virtual Result<size_t> Read(char* out, size_t size) = 0;
  /// As declared by Content-Length; empty for a chunked body.
  [[nodiscard]] virtual std::optional<uint64_t> content_length() const = 0;
};

/// A body that is already in memory.
class StringBodyReader final : public BodyReader {
 public:
  explicit StringBodyReader(std::string body) : body_(std::move(body)) {}
  Result<size_t> Read(char* out, size_t size) override;
  [[nodiscard]] std::optional<uint64_t> content_length() const override { return body_.size(); }

 private:
  std::string body_;
  size_t offset_bytes_ = 0;
};

/// Reads the whole rest of a body. Errors: as Read; "RequestEntityTooLarge" above
/// `size_bytes_max`, before more than that is held in memory.
Result<std::string> ReadAll(BodyReader& body, uint64_t size_bytes_max);

/// One request. `target` is what stood on the request line, never decoded and never normalised.
struct Request {
  std::string method;  // Upper case as sent, e.g. "GET".
  std::string target;  // E.g. "/api/v2/datasets/a%2Fb?x=%2F".
  Headers headers;
  std::unique_ptr<BodyReader> body;  // Never null.
  std::string peer;                  // "127.0.0.1:54321".
  std::stop_token stop;  // Stop requested: the client or the server is leaving, give up soon.
};

/// Where a producer pushes a response body. One owner thread.
class BodySink {
 public:
  virtual ~BodySink() = default;
  /// Blocks until the client took the bytes or a bounded buffer holds them.
  /// Errors: kCancelled when the client is gone or too slow; stop and return it.
  virtual Status Write(std::string_view bytes) = 0;
};

/// Pushes a whole body. A failure before the first byte becomes an error response; a later one
/// breaks the connection, so that the client never takes a part for the whole.
using BodyProducer = std::function<Status(BodySink&)>;

/// One response. The server adds Content-Length or Transfer-Encoding, Connection and Date.
struct Response {
  int status = 200;
  Headers headers;
  std::string body;  // The whole body, unless `producer` is set.
  /// What replays of the request get instead of `body`, which holds secrets: those are not stored.
  std::optional<std::string> kept_body{};
  BodyProducer producer;  // Runs on the handler's thread after the handler returned.
  /// Size of what `producer` writes, exactly; empty = unknown, sent chunked. Also honoured, with
  /// neither body nor producer, to state a size in the answer to HEAD.
  std::optional<uint64_t> content_length;
};

/// Answers one request. Runs on a worker thread and may block. Exceptions become 500.
using Handler = std::function<Response(Request&)>;

/// Makes the response for a failure that no handler saw (malformed request, limits, overload,
/// a producer that failed at once), so that each family of routes keeps its own envelope. `target`
/// is empty when it was not read.
using ErrorRenderer = std::function<Response(const Status& failure, std::string_view target)>;

}  // namespace tarn::server::http
