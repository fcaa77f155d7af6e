// TokenService: temporary keys from a server that speaks AWS's Security Token Service.
#pragma once

#include <chrono>
#include <string>

#include "tarn/base/retry.h"
#include "tarn/base/status.h"
#include "tarn/storage/aws/credentials.h"
#include "tarn/storage/http/http_client.h"

namespace tarn::storage::s3 {

struct AssumeRoleRequest {
  std::string endpoint;  // "http[s]://host[:port]"
  std::string region;
  std::string role;     // ARN; may be empty where the server knows no roles.
  std::string session;  // Name in the server's logs: letters, digits and =,.@_-, 2 to 64 of them.
  std::string policy;   // Narrows what the role may do.
  std::chrono::seconds lifetime{3600};
};

/// Asks for keys, up to three times where the server or the network fails in passing.
///
/// Errors: kUnavailable, also when the service refuses or answers what makes no sense: whoever
/// waits for the keys did nothing wrong. No message has a key in it.
Result<aws::Credentials> AssumeRole(http::HttpClient& http, RetryWorld world,
                                    const aws::Credentials& signer,
                                    const AssumeRoleRequest& request);

}  // namespace tarn::storage::s3
