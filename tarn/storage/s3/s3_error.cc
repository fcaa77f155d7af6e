#include "tarn/storage/s3/s3_error.h"

#include <array>
#include <utility>

#include "tarn/storage/s3/xml.h"

namespace tarn::storage::s3 {

namespace {

// Where the server's word says more than the HTTP status.
constexpr std::array<std::pair<std::string_view, ErrorCode>, 22> kCodes = {{
    {"NoSuchBucket", ErrorCode::kFailedPrecondition},
    {"InvalidAccessKeyId", ErrorCode::kUnauthenticated},
    {"SignatureDoesNotMatch", ErrorCode::kUnauthenticated},
    {"ExpiredToken", ErrorCode::kUnauthenticated},
    {"InvalidToken", ErrorCode::kUnauthenticated},
    {"TokenRefreshRequired", ErrorCode::kUnauthenticated},
    {"RequestTimeTooSkewed", ErrorCode::kUnauthenticated},
    {"AuthorizationHeaderMalformed", ErrorCode::kUnauthenticated},
    {"RequestTimeout", ErrorCode::kUnavailable},
    {"InternalError", ErrorCode::kUnavailable},
    {"ServiceUnavailable", ErrorCode::kUnavailable},
    {"SlowDown", ErrorCode::kResourceExhausted},
    {"TooManyRequests", ErrorCode::kResourceExhausted},
    {"QuotaExceeded", ErrorCode::kResourceExhausted},
    {"BucketAlreadyExists", ErrorCode::kAlreadyExists},
    {"BucketAlreadyOwnedByYou", ErrorCode::kAlreadyExists},
    {"OperationAborted", ErrorCode::kUnavailable},
    {"ConditionalRequestConflict", ErrorCode::kUnavailable},
    {"NotImplemented", ErrorCode::kUnimplemented},
    // versitygw says so too when another request removes the emptied folder at that moment.
    {"ExistingObjectIsDirectory", ErrorCode::kUnavailable},
    {"BadDigest", ErrorCode::kUnavailable},
    {"XAmzContentSHA256Mismatch", ErrorCode::kUnavailable},
}};

}  // namespace

ErrorBody ParseErrorBody(std::string_view body) {
  const Result<XmlElement> root = ParseXml(body);
  if (!root.ok()) {
    return {};
  }
  const XmlElement* error = root->name == "Error" ? &*root : root->Find("Error");
  if (error == nullptr) {
    return {};
  }
  return {.code = error->TextOf("Code"),
          .message = error->TextOf("Message"),
          .region = error->TextOf("Region"),
          .endpoint = error->TextOf("Endpoint")};
}

ErrorCode CodeOf(int http_status, std::string_view code) {
  for (const auto& [name, meaning] : kCodes) {
    if (code == name) {
      return meaning;
    }
  }
  switch (http_status) {
    case 401:
      return ErrorCode::kUnauthenticated;
    case 403:
      return ErrorCode::kPermissionDenied;
    case 404:
      return ErrorCode::kNotFound;
    case 405:
    case 501:
      return ErrorCode::kUnimplemented;
    case 409:
      return ErrorCode::kConflict;
    case 412:
      return ErrorCode::kFailedPrecondition;
    case 408:
      return ErrorCode::kUnavailable;
    case 429:
    case 507:
      return ErrorCode::kResourceExhausted;
    default:
      break;
  }
  if (http_status >= 500) {
    return ErrorCode::kUnavailable;
  }
  if (http_status >= 300 && http_status < 400) {
    return ErrorCode::kFailedPrecondition;
  }
  return http_status / 100 == 2 ? ErrorCode::kOk : ErrorCode::kInvalidArgument;
}

bool MayHaveActed(int http_status) {
  return http_status == 500 || http_status == 502 || http_status == 504;
}

}  // namespace tarn::storage::s3
