#include "cmd/tarn/engine_store.h"

#include <filesystem>

#include <fmt/format.h>

#include "tarn/base/log.h"
#include "tarn/engine/quoting.h"
#include "tarn/storage/object_key.h"

namespace tarn {

namespace {

using storage::s3::Addressing;
using storage::s3::S3Options;

constexpr std::chrono::seconds kRenewEvery{60};

std::string BaseUri(const S3Options& bucket) {
  return fmt::format("{}://{}/{}", bucket.scheme, bucket.bucket,
                     bucket.prefix.empty() ? "" : bucket.prefix + "/");
}

Result<std::string> SecretSql(const S3Options& bucket,
                              const std::optional<storage::aws::Credentials>& credentials) {
  std::string sql =
      fmt::format("CREATE OR REPLACE SECRET tarn_warehouse (TYPE {}, SCOPE {}",
                  bucket.scheme == "gs" ? "gcs" : "s3", engine::QuoteText(BaseUri(bucket)));
  if (credentials) {
    sql += fmt::format(", KEY_ID {}, SECRET {}", engine::QuoteText(credentials->access_key_id),
                       engine::QuoteText(credentials->secret_access_key));
    if (!credentials->session_token.empty()) {
      sql += ", SESSION_TOKEN " + engine::QuoteText(credentials->session_token);
    }
  }
  if (bucket.scheme == "s3") {
    sql += ", REGION " + engine::QuoteText(bucket.region);
  }
  bool path_style = bucket.addressing == Addressing::kPath;
  if (!bucket.endpoint.empty()) {
    TARN_ASSIGN_OR_RETURN(const storage::s3::Endpoint endpoint,
                          storage::s3::ParseEndpoint(bucket.endpoint));
    sql +=
        fmt::format(", ENDPOINT {}, USE_SSL {}", engine::QuoteText(endpoint.host + endpoint.path),
                    endpoint.scheme == "https");
    path_style = path_style || bucket.addressing == Addressing::kAuto;
  }
  path_style = path_style || (bucket.addressing == Addressing::kAuto &&
                              bucket.bucket.find('.') != std::string::npos);
  return sql + fmt::format(", URL_STYLE '{}')", path_style ? "path" : "vhost");
}

// Beside the libraries of a package, else where the build found it.
std::string BucketExtension() {
  std::error_code ignored;
  const std::filesystem::path binary = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::filesystem::path packed =
      binary.parent_path().parent_path() / "lib/tarn/httpfs.duckdb_extension";
  return std::filesystem::exists(packed, ignored) ? packed.string() : TARN_BUCKET_EXTENSION;
}

}  // namespace

Status AllowStore(const storage::ObjectStore& store, engine::EngineOptions& options) {
  const std::string& base = store.base_uri();
  options.allowed_directories.push_back(base + "/");
  if (base.starts_with("file:")) {
    TARN_ASSIGN_OR_RETURN(const std::string path, storage::PathOfFileUri(base));
    options.allowed_directories.push_back(path.ends_with('/') ? path : path + "/");
    return Status::Ok();
  }
  const std::string extension = BucketExtension();
  if (!std::filesystem::exists(extension)) {
    return Status::FailedPrecondition(
        fmt::format("the warehouse {} cannot be queried: {} is missing; ./dev setup installs it",
                    base, extension));
  }
  options.extension_files.push_back(extension);
  return Status::Ok();
}

Result<std::unique_ptr<EngineStore>> EngineStore::Open(engine::Engine& engine,
                                                       const S3Options& bucket,
                                                       const Clock& clock) {
  std::unique_ptr<EngineStore> store(new EngineStore(engine, bucket));
  TARN_ASSIGN_OR_RETURN(store->credentials_,
                        storage::aws::OpenCredentials(bucket.credentials, store->http_, clock));
  TARN_RETURN_IF_ERROR(store->Renew());
  store->thread_ = std::thread([raw = store.get()] { raw->Run(); });
  return store;
}

EngineStore::~EngineStore() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

Status EngineStore::Renew() {
  TARN_ASSIGN_OR_RETURN(const std::optional<storage::aws::Credentials> fresh, credentials_->Get());
  TARN_ASSIGN_OR_RETURN(const std::string sql, SecretSql(bucket_, fresh));
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<engine::Session> session, engine_.OpenSession());
  const Status made = session->Execute(sql);
  if (!made.ok()) {
    // The engine's words could repeat the statement.
    return Status(made.code(),
                  "the SQL engine did not take the credentials of " + BaseUri(bucket_));
  }
  given_ = fresh;
  return Status::Ok();
}

void EngineStore::Run() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kRenewEvery, [this] { return stopping_; })) {
    lock.unlock();
    const Result<std::optional<storage::aws::Credentials>> fresh = credentials_->Get();
    const Status renewed = !fresh.ok() ? fresh.status() : *fresh == given_ ? Status::Ok() : Renew();
    if (!renewed.ok()) {
      Log(LogLevel::kWarning, "serve", "credentials of the warehouse: " + renewed.ToString());
    }
    lock.lock();
  }
}

}  // namespace tarn
