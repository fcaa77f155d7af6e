#include "tarn/server/http/response_head.h"

#include <array>

#include <fmt/core.h>

namespace tarn::server::http {

namespace {

bool IsFieldName(std::string_view name) {
  return !name.empty() &&
         name.find_first_of(" \t\r\n:()<>@,;\\\"/[]?={}") == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

bool IsFieldValue(std::string_view value) {
  return value.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

/// Fields that only the server decides.
bool IsFramingField(std::string_view name) {
  return EqualsIgnoringCase(name, "content-length") ||
         EqualsIgnoringCase(name, "transfer-encoding") || EqualsIgnoringCase(name, "connection") ||
         EqualsIgnoringCase(name, "date");
}

bool HasNoBody(int status) { return status == 204 || status == 304; }

std::optional<uint64_t> SizeOf(const Response& response) {
  if (response.producer) {
    return response.content_length;
  }
  if (response.body.empty() && response.content_length) {
    return response.content_length;
  }
  return response.body.size();
}

}  // namespace

Result<ResponseHead> PlanResponseHead(const Response& response, const ExchangeTraits& traits,
                                      Timestamp now) {
  if (response.status < 200 || response.status > 599) {
    return Status::Internal(fmt::format("answer a request: status {}", response.status));
  }
  ResponseHead head;
  head.keep_alive = traits.keep_alive;
  head.text = fmt::format("HTTP/1.1 {} {}\r\n", response.status, ReasonPhrase(response.status));
  for (const auto& [name, value] : response.headers.fields()) {
    if (!IsFieldName(name) || !IsFieldValue(value)) {
      return Status::Internal("answer a request: unsafe header field " + name);
    }
    if (!IsFramingField(name)) {
      head.text += name + ": " + value + "\r\n";
    }
  }
  const std::optional<uint64_t> size = SizeOf(response);
  if (HasNoBody(response.status)) {
    head.framing = Framing::kNoBody;
  } else if (size) {
    head.text += fmt::format("Content-Length: {}\r\n", *size);
    head.framing = Framing::kLength;
  } else if (!traits.is_http_1_0) {
    head.text += "Transfer-Encoding: chunked\r\n";
    head.framing = Framing::kChunked;
  } else {
    head.framing = Framing::kUntilClose;
    head.keep_alive = false;
  }
  if (traits.is_head) {
    head.framing = Framing::kNoBody;
    head.keep_alive = traits.keep_alive;
  }
  head.text += "Date: " + FormatHttpDate(now) + "\r\n";
  if (!head.keep_alive) {
    head.text += "Connection: close\r\n";
  } else if (traits.is_http_1_0) {
    head.text += "Connection: keep-alive\r\n";
  }
  head.text += "\r\n";
  return head;
}

std::string FormatHttpDate(Timestamp time) {
  static constexpr std::array<const char*, 7> kDays = {"Sun", "Mon", "Tue", "Wed",
                                                       "Thu", "Fri", "Sat"};
  static constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::seconds>(time - day));
  return fmt::format(
      "{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays[std::chrono::weekday(day).c_encoding()],
      static_cast<unsigned>(date.day()), kMonths[static_cast<unsigned>(date.month()) - 1],
      static_cast<int>(date.year()), clock.hours().count(), clock.minutes().count(),
      clock.seconds().count());
}

std::string ReasonPhrase(int status) {
  struct Phrase {
    int status;
    const char* text;
  };
  static constexpr Phrase kPhrases[] = {
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {204, "No Content"},
      {206, "Partial Content"},
      {301, "Moved Permanently"},
      {302, "Found"},
      {303, "See Other"},
      {304, "Not Modified"},
      {307, "Temporary Redirect"},
      {308, "Permanent Redirect"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {406, "Not Acceptable"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {410, "Gone"},
      {411, "Length Required"},
      {412, "Precondition Failed"},
      {413, "Content Too Large"},
      {414, "URI Too Long"},
      {415, "Unsupported Media Type"},
      {416, "Range Not Satisfiable"},
      {417, "Expectation Failed"},
      {419, "Authentication Timeout"},
      {422, "Unprocessable Content"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {499, "Client Closed Request"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
      {505, "HTTP Version Not Supported"},
  };
  for (const Phrase& phrase : kPhrases) {
    if (phrase.status == status) {
      return phrase.text;
    }
  }
  return fmt::format("Status {}", status);
}

}  // namespace tarn::server::http
