// StoreOpener: from a URI to the store behind it, with what the configuration says of that place.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/retry.h"
#include "tarn/storage/object_store.h"
#include "tarn/storage/s3/s3_options.h"

namespace tarn::storage {

/// A place that the configuration describes. Its options hold for URIs at and below `uri`.
struct StoreSettings {
  std::string name;  // For messages.
  std::string uri;
  std::map<std::string, std::string> options;
  friend bool operator==(const StoreSettings&, const StoreSettings&) = default;
};

/// Value of an environment variable; empty optional when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// The options of a bucket. Keys: endpoint, region, addressing (path, virtual_host), access_key_env
/// and secret_key_env and session_token_env (names of environment variables), credentials_file,
/// profile, instance_metadata (true), anonymous (true), conditional_put (off), list_order (keys,
/// folders), payload (signed, unsigned), part_size, connections, ca_file; of what clients get:
/// vended_credentials (off, sts, static), sts_endpoint, sts_role, sts_duration, and with "static"
/// read_key_env, read_secret_env, write_key_env, write_secret_env.
/// Errors: kInvalidArgument naming store and key: unknown keys, values that cannot be, variables
/// that are not set.
Result<s3::S3Options> ReadS3Settings(const StoreSettings& settings, const Environment& environment);

enum class StoreAccess { kReadWrite, kReadOnly };

/// Threads: any. Clock and sleeper of `world` must outlive what it opens.
class StoreOpener {
 public:
  /// Errors: kInvalidArgument for settings that cannot be, also of stores nobody asks for.
  static Result<StoreOpener> Make(std::vector<StoreSettings> settings, Environment environment,
                                  RetryWorld world);

  /// Schemes: file (or a path), s3 (s3a, s3n), gs.
  /// Errors: kUnimplemented for other schemes; those of LocalStore::Open and S3Store::Open.
  [[nodiscard]] Result<std::unique_ptr<ObjectStore>> Open(std::string_view uri,
                                                          StoreAccess access) const;
  /// How the bucket behind `uri` is talked to. Errors: kInvalidArgument when it is none.
  [[nodiscard]] Result<s3::S3Options> BucketOptions(std::string_view uri) const;

 private:
  StoreOpener(std::vector<StoreSettings> settings, Environment environment, RetryWorld world)
      : settings_(std::move(settings)), environment_(std::move(environment)), world_(world) {}

  std::vector<StoreSettings> settings_;
  Environment environment_;
  RetryWorld world_;
};

}  // namespace tarn::storage
