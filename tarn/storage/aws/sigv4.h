// Signature version 4: how requests to S3, Kinesis and their likes prove who sends them.
//
// Pure: time, credentials and request come in, headers or a query come out. Used for requests, for
// links (presigned URLs) and for signing on behalf of clients.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/storage/aws/credentials.h"

namespace tarn::storage::aws {

using NamedValues = std::vector<std::pair<std::string, std::string>>;

/// Payload hash of a request whose body is not part of the signature. For TLS only.
constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";

/// Lower-case hexadecimal SHA-256: the payload hash of a body.
std::string PayloadHash(std::string_view body);

struct SigningScope {
  std::string region;
  std::string service;  // "s3" signs paths as they are sent, others encode them once more.
};

/// The parts of a request that a signature covers.
struct SigningInput {
  std::string method;
  std::string host;          // As in the Host header: with the port unless it is the scheme's.
  std::string path = "/";    // As sent: percent-encoded, without "." and ".." segments.
  NamedValues query;         // Decoded, in any order.
  NamedValues headers;       // All of them are signed; without host and x-amz-date.
  std::string payload_hash;  // PayloadHash or kUnsignedPayload; presigned URLs use the latter.
};

/// The headers to add to `input.headers`: x-amz-date, x-amz-security-token where the credentials
/// have one, x-amz-content-sha256 for S3, and authorization.
NamedValues SignHeaders(const SigningInput& input, const SigningScope& scope,
                        const Credentials& credentials, Timestamp now);

/// The whole query, encoded, of a link that is good for `valid_for` (1 s to 7 days).
std::string PresignQuery(const SigningInput& input, const SigningScope& scope,
                         const Credentials& credentials, Timestamp now,
                         std::chrono::seconds valid_for);

/// Encoded and sorted as signatures want it: "a=1&b=%2F". Also good to send.
std::string CanonicalQuery(const NamedValues& query);

/// "20150830T123600Z".
std::string FormatAmzDate(Timestamp time);

}  // namespace tarn::storage::aws
