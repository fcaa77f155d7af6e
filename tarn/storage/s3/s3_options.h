// S3Options: which bucket of which server, and how to talk to it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "tarn/base/retry.h"
#include "tarn/base/status.h"
#include "tarn/storage/aws/credentials.h"
#include "tarn/storage/http/http_client.h"

namespace tarn::storage::s3 {

enum class Addressing {
  kAuto,         // kPath with an endpoint or a bucket with dots, else kVirtualHost.
  kPath,         // https://host/bucket/key
  kVirtualHost,  // https://bucket.host/key
};

enum class PayloadSigning {
  kAuto,  // Signed over http, unsigned over https, which protects the body itself.
  kSigned,
  kUnsigned,
};

/// How a write is made to fail when the key exists.
enum class ConditionalPut {
  kIfNoneMatch,      // If-None-Match: *, probed when the store is opened for writing.
  kGenerationMatch,  // x-goog-if-generation-match: 0, which Google's servers understand.
  kUnavailable,      // The server has no such thing: WriteMode::kPutIfAbsent is refused.
};

/// In what order the server lists.
enum class ListOrder {
  kKeys,     // By the bytes of the keys, as the protocol says.
  kFolders,  // Folder by folder, as servers over file trees do ("a/x" before "a-b"): each page
             // reads and sorts the whole list behind its prefix.
};

/// Keys that clients of the warehouse get, so that they need none of their own.
enum class Vending {
  kOff,
  kSessions,  // Temporary ones for the folders of one table, from a token service (AssumeRole).
  kStatic,    // Those of the configuration: the server has no token service. They reach as far as
              // the server's own rules for them go, usually the whole bucket.
};

/// A pair that the operator made for clients.
struct StaticKeys {
  std::string access_key_id;  // Empty = none.
  std::string secret_access_key;
};

struct VendingOptions {
  Vending mode = Vending::kOff;
  std::string endpoint;  // Of the token service; empty = the bucket's, or Amazon's for the region.
  std::string role;      // ARN of the role that is assumed. Amazon needs one, others do not.
  std::chrono::seconds lifetime{3600};  // Of a session, 15 minutes to 12 hours.
  StaticKeys read;                      // kStatic: for those who may read a table.
  StaticKeys write;                     // kStatic: for those who may write to it.
};

struct S3Options {
  std::string scheme = "s3";  // Of base_uri(); "gs" for Google's servers.
  std::string bucket;
  std::string prefix;    // Keys begin behind "<prefix>/"; empty = the whole bucket.
  std::string endpoint;  // "http://127.0.0.1:9000"; empty = Amazon's for the region.
  std::string region = "us-east-1";
  Addressing addressing = Addressing::kAuto;
  PayloadSigning payload_signing = PayloadSigning::kAuto;
  ConditionalPut conditional_put = ConditionalPut::kIfNoneMatch;
  ListOrder list_order = ListOrder::kKeys;
  size_t folder_list_max = 1'000'000;  // Keys that kFolders sorts; more is an error.
  aws::CredentialOptions credentials;
  VendingOptions vending;
  http::HttpClientOptions http;
  RetryOptions retry{.attempts_max = 6,
                     .wait_first = std::chrono::milliseconds(100),
                     .wait_max = std::chrono::milliseconds(10'000),
                     .elapsed_max = std::chrono::milliseconds(120'000)};
  // A writer holds (parts_parallel + 1) parts in memory. Objects up to one part are put whole; the
  // size doubles every 1000 parts, so that 10,000 parts reach any size.
  uint64_t part_bytes = 16ULL << 20;
  size_t parts_parallel = 3;                    // Of one writer.
  size_t upload_threads = 4;                    // Of the store: parts that move at once.
  std::chrono::hours stale_upload_age{24 * 7};  // Older unfinished uploads are removed at opening.
};

/// Where requests go. Value.
struct Endpoint {
  std::string scheme;  // "http" or "https".
  std::string host;    // With the port unless it is the scheme's.
  std::string path;    // Before the bucket; empty or "/…" without trailing slash.
};

/// Errors: kInvalidArgument unless it is "http[s]://host[:port][/path]".
Result<Endpoint> ParseEndpoint(std::string_view text);

/// True when the bucket stands in the path of a URL, not in the name of the host.
bool IsPathStyle(const S3Options& options);

/// Bucket and prefix of "s3://bucket/prefix" (also s3a, s3n, gs) into `options`.
/// Errors: kInvalidArgument on another form, a bucket name that cannot be, or a bad prefix.
Result<S3Options> WithUri(S3Options options, std::string_view uri);

}  // namespace tarn::storage::s3
