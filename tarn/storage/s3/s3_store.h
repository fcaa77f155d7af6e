// S3Store: an ObjectStore in a bucket of a server that speaks S3.
//
// An object is visible when its put, or the completion of its upload in parts, has succeeded. After
// a crash the worst that is left is an unfinished upload, which nobody sees and which opening the
// store removes when it is old. Differences from the protocol: keys that ObjectStore does not allow
// (folder markers such as "a/") are not listed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tarn/base/thread_pool.h"
#include "tarn/base/uuid.h"
#include "tarn/storage/object_store.h"
#include "tarn/storage/s3/s3_client.h"

namespace tarn::storage::s3 {

enum class S3Access {
  kReadWrite,  // Opening probes what the server can do by writing below "<prefix>/.tarn-probe/".
  kReadOnly,   // Nothing is written; writing fails with kPermissionDenied.
};

/// Threads: any; a call blocks its thread for as long as the retries take. Clock and sleeper of
/// `world` must outlive the store, and the store its readers and writers.
///
/// Etags are the server's. Costs: OpenReader one request that brings the last 64 KiB along; ReadAt
/// one request per 64 KiB to 8 MiB; Close one request for an object up to one part.
class S3Store final : public ObjectStore {
 public:
  /// Errors: kNotFound without the bucket; kUnauthenticated, kPermissionDenied;
  /// kFailedPrecondition when the server ignores conditions of writes (ConditionalPut).
  static Result<std::unique_ptr<S3Store>> Open(const S3Options& options, S3Access access,
                                               RetryWorld world);

  [[nodiscard]] Capabilities capabilities() const override;
  [[nodiscard]] const std::string& base_uri() const override { return base_uri_; }
  Result<ObjectMeta> Head(std::string_view key) override;
  /// Readers see one version: once the object is replaced, a read that needs the server fails with
  /// kConflict.
  Result<std::unique_ptr<ObjectReader>> OpenReader(std::string_view key) override;
  Result<std::unique_ptr<ObjectWriter>> OpenWriter(std::string_view key, WriteMode mode) override;
  /// Errors: also kFailedPrecondition when the server lists keys out of byte order, since pages
  /// would then skip some.
  Result<ListPage> List(const ListRequest& request) override;
  Status Delete(std::string_view key) override;
  Result<std::string> Presign(std::string_view key, std::chrono::seconds valid_for) override;

  /// Deletes many, 1000 a call. Errors: the first; those before it are deleted.
  Status DeleteMany(const std::vector<std::string>& keys);
  /// Copies on the server, up to 5 GiB. Errors: kNotFound.
  Status Copy(std::string_view from, std::string_view to);
  /// Removes unfinished uploads begun before `begun_before`; returns how many.
  Result<size_t> AbortStaleUploads(Timestamp begun_before);

 private:
  S3Store(std::unique_ptr<S3Client> client, S3Access access, RetryWorld world);
  [[nodiscard]] std::string FullKey(std::string_view key) const;
  [[nodiscard]] Status CheckWritable(std::string_view key) const;
  [[nodiscard]] std::string Root() const;  // Before every key.
  Result<ListPage> ListKeys(const ListRequest& request);
  Result<ListPage> ListFolders(const ListRequest& request);
  Status Probe();
  Status ProbeUpload(const std::string& key);

  const std::unique_ptr<S3Client> client_;
  const S3Access access_;
  const RetryWorld world_;
  const std::string base_uri_;
  UuidGenerator uuids_;
  ThreadPool pool_;
};

}  // namespace tarn::storage::s3
