// What the errors of S3 servers mean for us.
#pragma once

#include <string>
#include <string_view>

#include "tarn/base/status.h"

namespace tarn::storage::s3 {

/// The body of an error answer, as far as it has one.
struct ErrorBody {
  std::string code;
  std::string message;
  std::string region;    // Where the bucket is, when the server says so.
  std::string endpoint;  // Where to ask instead.
};

/// Empty fields where the body is none of S3's.
ErrorBody ParseErrorBody(std::string_view body);

/// The code for an HTTP status and the server's error code. kOk for 2xx.
ErrorCode CodeOf(int http_status, std::string_view code);

/// True when a server that answered so may have done what was asked.
bool MayHaveActed(int http_status);

}  // namespace tarn::storage::s3
