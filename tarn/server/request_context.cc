#include "tarn/server/request_context.h"

#include <charconv>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "tarn/base/json_text.h"

namespace tarn::server {

namespace {

Status InvalidParameter(std::string_view name, std::string_view found, std::string_view wanted) {
  return Status::InvalidArgument(
             fmt::format("query parameter {}: {} is needed, found \"{}\"", name, wanted, found))
      .WithReason("InvalidParameter", JsonObject({{"parameter", name}, {"found", found}}));
}

}  // namespace

const std::string& RequestContext::Path(std::string_view name) const {
  for (const auto& [key, value] : path) {
    if (key == name) {
      return value;
    }
  }
  internal::CheckFailed("the route has the path parameter", __FILE__, __LINE__, std::string(name));
}

Result<nlohmann::json> ReadJson(RequestContext& context, uint64_t body_bytes_max) {
  TARN_ASSIGN_OR_RETURN(const std::string text, http::ReadAll(*context.http.body, body_bytes_max));
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    return Status::InvalidArgument("read the request body: a JSON document is needed, found none")
        .WithReason("MissingPostBody");
  }
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    return Status::InvalidArgument(
               fmt::format("read the request body as JSON: byte {}: {}", error.byte, error.what()))
        .WithReason("MalformedJson", fmt::format("{{\"offsetBytes\":{}}}", error.byte));
  }
}

Result<std::optional<int64_t>> QueryInt(const RequestContext& context, std::string_view name) {
  const std::optional<std::string> text = context.query.Find(name);
  if (!text) {
    return std::optional<int64_t>();
  }
  int64_t value = 0;
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc() || stop != end) {
    return InvalidParameter(name, *text, "an integer");
  }
  return std::optional<int64_t>(value);
}

Result<std::optional<bool>> QueryBool(const RequestContext& context, std::string_view name) {
  const std::optional<std::string> text = context.query.Find(name);
  if (!text) {
    return std::optional<bool>();
  }
  if (*text != "true" && *text != "false") {
    return InvalidParameter(name, *text, "true or false");
  }
  return std::optional<bool>(*text == "true");
}

http::Response JsonResponse(const nlohmann::json& document, int status) {
  http::Response response;
  response.status = status;
  response.headers.Set("Content-Type", "application/json");
  response.body = document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return response;
}

http::Response NoContent() {
  http::Response response;
  response.status = 204;
  return response;
}

}  // namespace tarn::server
