// CredentialVendor: keys for clients of the warehouse, so that they need none of their own.
//
// With a token service each table and kind of access has a key of its own, good for some folders
// and some time. Without one, clients get the keys that the operator set apart for them.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "tarn/base/retry.h"
#include "tarn/storage/aws/credentials.h"
#include "tarn/storage/s3/s3_options.h"
#include "tarn/storage/s3/session_policy.h"

namespace tarn::storage::s3 {

struct VendingRequest {
  std::string session;  // See AssumeRoleRequest.
  KeyFolders folders;   // Whole keys of the bucket. With folders to write: keys for writers.
};

/// Value.
struct VendedKeys {
  aws::Credentials credentials;
  KeyFolders folders;  // Of those asked for, where they hold.
};

struct VendorOptions {
  size_t entries_max = 4096;  // Keys kept; then all are dropped.
};

/// Threads: any; those that want the same keys wait for each other. Clock and sleeper of `world`
/// outlive it.
class CredentialVendor {
 public:
  /// `bucket.vending.mode` is not kOff. No request is made. Errors: kInvalidArgument on options
  /// that cannot be; those of aws::OpenCredentials.
  static Result<std::unique_ptr<CredentialVendor>> Open(const S3Options& bucket, RetryWorld world,
                                                        VendorOptions options = {});
  CredentialVendor(const CredentialVendor&) = delete;
  CredentialVendor& operator=(const CredentialVendor&) = delete;

  /// Keys that last at least half as long as a session unless the token service fails meanwhile.
  /// Nothing when there are none for that: the folders cannot be said in a policy, or the operator
  /// set no keys apart for that access. Cost: a request to the token service, or none.
  /// Errors: kUnavailable, for two seconds without asking again; kUnauthenticated without keys of
  /// our own.
  Result<std::optional<VendedKeys>> Get(const VendingRequest& request);

  /// How clients reach the bucket.
  [[nodiscard]] const S3Options& bucket() const { return bucket_; }

 private:
  struct Entry;

  CredentialVendor(S3Options bucket, RetryWorld world, VendorOptions options);
  std::shared_ptr<Entry> EntryOf(const std::string& key);
  Result<aws::Credentials> Ask(const std::string& session, const std::string& policy);

  const S3Options bucket_;
  const RetryWorld world_;
  const VendorOptions options_;
  std::string endpoint_;
  http::HttpClient http_;
  std::unique_ptr<aws::CredentialSource> signer_;  // Null for static keys.
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_;  // Guarded by mutex_.
};

}  // namespace tarn::storage::s3
