// EngineStore: lets the SQL engine read the warehouse where it is, in a folder or in a bucket.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "tarn/base/clock.h"
#include "tarn/engine/engine.h"
#include "tarn/storage/aws/credentials.h"
#include "tarn/storage/object_store.h"
#include "tarn/storage/s3/s3_options.h"

namespace tarn {

/// What the engine needs at its opening to read and write below the store's root.
/// Errors: kFailedPrecondition when the extension for buckets is not installed.
Status AllowStore(const storage::ObjectStore& store, engine::EngineOptions& options);

/// Keeps the credentials of a bucket in an engine, and renews those that expire.
///
/// They are held in the memory of the engine, for URIs below the store's root only; SQL can see
/// that they are there, but not the secret. Resource; a thread of its own.
class EngineStore {
 public:
  /// Errors: those of the credentials.
  static Result<std::unique_ptr<EngineStore>> Open(engine::Engine& engine,
                                                   const storage::s3::S3Options& bucket,
                                                   const Clock& clock);
  ~EngineStore();
  EngineStore(const EngineStore&) = delete;
  EngineStore& operator=(const EngineStore&) = delete;

 private:
  EngineStore(engine::Engine& engine, storage::s3::S3Options bucket)
      : engine_(engine), bucket_(std::move(bucket)), http_(bucket_.http) {}
  Status Renew();
  void Run();

  engine::Engine& engine_;
  const storage::s3::S3Options bucket_;
  storage::http::HttpClient http_;
  std::unique_ptr<storage::aws::CredentialSource> credentials_;
  std::optional<storage::aws::Credentials> given_;  // To the engine.
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // Guarded by mutex_.
  std::thread thread_;
};

}  // namespace tarn
