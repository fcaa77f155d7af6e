// S3Client: the calls of the S3 protocol on one bucket, signed, retried and with errors as Status.
//
// Keys are whole keys of the bucket. What a call means for retrying is decided here: calls that may
// be repeated are; a call whose outcome stayed open says so (Reply::unknown), and S3Store looks.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/storage/aws/sigv4.h"
#include "tarn/storage/object_store.h"
#include "tarn/storage/s3/s3_options.h"
#include "tarn/storage/s3/xml.h"

namespace tarn::storage::s3 {

/// One call. `on_attempt` may change the headers of each attempt.
struct Call {
  std::string method = "GET";
  std::string key;  // Empty = the bucket.
  aws::NamedValues query;
  aws::NamedValues headers;
  std::string_view body;  // Must outlive the call.
  http::Sink sink;        // Of a 2xx answer.
  std::function<void(aws::NamedValues& headers)> on_attempt;
  std::optional<std::chrono::milliseconds> answer_timeout;
};

/// What became of a call, after all attempts. Value.
struct Reply {
  Status status;         // Mapped; the message names method, key and the server's words.
  bool unknown = false;  // A failed attempt may have had its effect.
  int http_status = 0;   // 0 without an answer.
  std::string code;      // The server's error code, e.g. "NoSuchKey".
  http::Headers headers;
  std::string body;

  [[nodiscard]] bool ok() const { return status.ok(); }
};

/// What an answer's headers say of an object.
ObjectMeta MetaOfHeaders(std::string key, const http::Headers& headers);
/// An entity tag without quotes.
std::string PlainEtag(std::string_view etag);

struct KeyRange {
  std::string prefix;
  std::string start_after;  // Empty = from the beginning.
  std::string token;        // Of the page before, instead of start_after.
  size_t limit = 1000;      // 1..1000
};
struct KeyPage {
  std::vector<ObjectMeta> objects;  // In the server's order.
  bool truncated = false;
  std::string token;  // For the next page.
};

struct ListedUpload {
  std::string key;
  std::string upload_id;
  Timestamp initiated{};
};

struct UploadedPart {
  int number = 0;  // From 1.
  std::string etag;
};

/// Threads: any. Clock and sleeper must outlive it.
class S3Client {
 public:
  /// No request is made. Errors: kInvalidArgument on options that cannot be; as OpenCredentials.
  static Result<std::unique_ptr<S3Client>> Open(const S3Options& options, RetryWorld world);
  S3Client(const S3Client&) = delete;
  S3Client& operator=(const S3Client&) = delete;

  [[nodiscard]] const S3Options& options() const { return options_; }

  Reply Send(const Call& call);

  /// Metadata and user headers of an object. Errors: kNotFound.
  Result<http::Headers> Head(const std::string& key);
  /// Reads [offset, offset + size) of the version `etag` into `out`; a transfer that breaks is
  /// taken up where it broke. Errors: kConflict when the object is another version now.
  Status Read(const std::string& key, const std::string& etag, uint64_t offset_bytes, size_t size,
              char* out);
  Result<KeyPage> List(const KeyRange& range);
  /// A missing object is success.
  Status Delete(const std::string& key);
  /// Up to 1000 keys in one call. Errors: the first that the server reports, naming the key.
  Status DeleteMany(const std::vector<std::string>& keys);
  /// Copies inside the bucket, up to 5 GiB. Errors: kNotFound.
  Result<std::string> Copy(const std::string& from, const std::string& to);

  /// Errors: kAlreadyExists.
  Status CreateBucket();
  /// Errors: kNotFound, kPermissionDenied: the bucket is checked without writing.
  Status CheckBucket();

  Result<std::string> StartUpload(const std::string& key, const aws::NamedValues& headers);
  Result<UploadedPart> UploadPart(const std::string& key, const std::string& upload_id, int number,
                                  std::string_view bytes);
  /// Reply::unknown also when the upload is gone: an earlier attempt may have completed it.
  Reply CompleteUpload(const std::string& key, const std::string& upload_id,
                       const std::vector<UploadedPart>& parts, const aws::NamedValues& headers);
  /// A missing upload is success.
  Status AbortUpload(const std::string& key, const std::string& upload_id);
  /// Unfinished uploads of keys with `prefix`, the first 1000.
  Result<std::vector<ListedUpload>> ListUploads(const std::string& prefix);

  /// A link to read the object, for 1 s to 7 days.
  Result<std::string> Presign(const std::string& key, std::chrono::seconds valid_for);

 private:
  struct Target {
    std::string scheme;
    std::string host;
    std::string path;
  };
  struct Attempt;

  S3Client(S3Options options, Endpoint endpoint, RetryWorld world);
  [[nodiscard]] Target TargetOf(const std::string& key) const;
  [[nodiscard]] aws::SigningScope Scope() const;
  Result<http::Request> BuildRequest(const Call& call, Attempt& attempt);
  // True when the answer says how to do better at once: region, time, place, credentials.
  bool Learn(const http::Answer& answer, const std::string& code, const std::string& body_region,
             Attempt& attempt);
  bool LearnPlace(const http::Answer& answer, Attempt& attempt);
  [[nodiscard]] Status Judge(const Call& call, const http::Answer& answer, Reply& reply) const;
  [[nodiscard]] std::string Name(const Call& call) const;

  const S3Options options_;
  const Endpoint endpoint_;
  const RetryWorld world_;
  http::HttpClient http_;
  std::unique_ptr<aws::CredentialSource> credentials_;
  std::atomic<int64_t> skew_seconds_{0};  // The server's clock minus ours.
  std::atomic<uint64_t> seed_;            // Of the jitter.
  mutable std::mutex mutex_;
  std::string region_;  // Guarded by mutex_; the server may know better than the configuration.
};

}  // namespace tarn::storage::s3
