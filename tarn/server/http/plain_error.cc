#include "tarn/server/http/plain_error.h"

#include "tarn/base/json_text.h"

namespace tarn::server::http {

namespace {

int StatusNumber(const Status& failure) {
  if (failure.reason() == "RequestEntityTooLarge") {
    return 413;
  }
  if (failure.reason() == "RequestHeaderFieldsTooLarge") {
    return 431;
  }
  switch (failure.code()) {
    case ErrorCode::kInvalidArgument:
      return 400;
    case ErrorCode::kDeadlineExceeded:
      return 408;
    case ErrorCode::kUnavailable:
    case ErrorCode::kResourceExhausted:
      return 503;
    case ErrorCode::kUnimplemented:
      return 501;
    default:
      return 500;
  }
}

}  // namespace

Response BareResponse(int status) {
  Response response;
  response.status = status;
  return response;
}

Response RenderErrorPlainly(const Status& failure, std::string_view /*target*/) {
  Response response = BareResponse(StatusNumber(failure));
  response.headers.Set("Content-Type", "application/json");
  const std::string name =
      failure.reason().empty() ? std::string(ErrorCodeName(failure.code())) : failure.reason();
  response.body =
      "{\"error\":" + JsonObject({{"name", name}, {"message", failure.message()}}) + "}";
  return response;
}

}  // namespace tarn::server::http
