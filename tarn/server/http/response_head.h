// The head of a response on the wire and how its body is framed: pure text, no sockets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tarn/base/clock.h"
#include "tarn/server/http/message.h"

namespace tarn::server::http {

enum class Framing {
  kNoBody,      // HEAD, 1xx, 204, 304.
  kLength,      // Content-Length.
  kChunked,     // Transfer-Encoding: chunked.
  kUntilClose,  // HTTP/1.0 without a length.
};

/// What of the request decides the form of its answer.
struct ExchangeTraits {
  bool is_head = false;
  bool is_http_1_0 = false;
  bool keep_alive = true;
};

struct ResponseHead {
  std::string text;  // Status line and fields, with the empty line.
  Framing framing = Framing::kLength;
  bool keep_alive = true;  // After this answer.
};

/// Lays out the head. Errors: kInternal on a status outside 200..599, or a field name or value
/// that would break the framing (CR, LF, NUL, separators in names).
Result<ResponseHead> PlanResponseHead(const Response& response, const ExchangeTraits& traits,
                                      Timestamp now);

/// "Sun, 06 Nov 1994 08:49:37 GMT".
std::string FormatHttpDate(Timestamp time);

/// "Not Found" for 404; "Status 599" for numbers without a name.
std::string ReasonPhrase(int status);

}  // namespace tarn::server::http
