#include "tarn/storage/store_opener.h"

#include <array>

#include <fmt/core.h>

#include "tarn/base/quantity.h"
#include "tarn/storage/local_store.h"
#include "tarn/storage/object_key.h"
#include "tarn/storage/s3/s3_store.h"

namespace tarn::storage {

namespace {

using s3::S3Options;

constexpr std::array<std::string_view, 4> kBucketSchemes = {"s3://", "s3a://", "s3n://", "gs://"};

bool IsBucketUri(std::string_view uri) {
  for (const std::string_view scheme : kBucketSchemes) {
    if (uri.starts_with(scheme)) {
      return true;
    }
  }
  return false;
}

// One name for the aliases of a scheme, without slashes at the end.
std::string Canonical(std::string_view uri) {
  std::string text(uri);
  if (text.starts_with("s3a://") || text.starts_with("s3n://")) {
    text.erase(2, 1);
  }
  while (text.ends_with('/')) {
    text.pop_back();
  }
  return text;
}

bool IsAtOrBelow(const std::string& uri, const std::string& base) {
  return uri == base || uri.starts_with(base + "/");
}

// Reads one store's keys, with its name in every error.
class SettingsReader {
 public:
  SettingsReader(const StoreSettings& settings, const Environment& environment)
      : settings_(settings), environment_(environment) {}

  [[nodiscard]] Status Bad(const std::string& key, std::string_view wanted) const {
    return Status::InvalidArgument(
        fmt::format("stores.{}.{}: expected {}", settings_.name, key, wanted));
  }

  Result<std::string> Secret(const std::string& key, const std::string& variable) const {
    const std::optional<std::string> value = environment_(variable);
    if (!value || value->empty()) {
      return Bad(key, "the name of an environment variable that is set; " + variable + " is not");
    }
    return *value;
  }

  Result<bool> Flag(const std::string& key, const std::string& text) const {
    if (text != "true" && text != "false") {
      return Bad(key, "true or false");
    }
    return text == "true";
  }

  // Index of `text` in `choices`.
  Result<size_t> Choice(const std::string& key, const std::string& text,
                        const std::vector<std::string>& choices) const {
    std::string wanted;
    for (size_t i = 0; i < choices.size(); ++i) {
      if (text == choices[i]) {
        return i;
      }
      wanted += (i > 0 ? " or " : "") + choices[i];
    }
    return Bad(key, wanted);
  }

 private:
  const StoreSettings& settings_;
  const Environment& environment_;
};

// Keys about credentials; false when `key` is none of them.
Result<bool> ReadCredentialKey(const SettingsReader& reader, const std::string& key,
                               const std::string& text, aws::CredentialOptions& credentials) {
  if (key == "access_key_env") {
    TARN_ASSIGN_OR_RETURN(credentials.access_key_id, reader.Secret(key, text));
  } else if (key == "secret_key_env") {
    TARN_ASSIGN_OR_RETURN(credentials.secret_access_key, reader.Secret(key, text));
  } else if (key == "session_token_env") {
    TARN_ASSIGN_OR_RETURN(credentials.session_token, reader.Secret(key, text));
  } else if (key == "credentials_file") {
    credentials.file = text;
  } else if (key == "profile") {
    credentials.profile = text;
  } else if (key == "anonymous") {
    TARN_ASSIGN_OR_RETURN(credentials.anonymous, reader.Flag(key, text));
  } else if (key == "instance_metadata") {
    TARN_ASSIGN_OR_RETURN(const bool on, reader.Flag(key, text));
    credentials.instance_metadata = on ? aws::InstanceMetadata::kOn : aws::InstanceMetadata::kOff;
  } else {
    return false;
  }
  return true;
}

// Keys about what clients get; false when `key` is none of them.
Result<bool> ReadVendingKey(const SettingsReader& reader, const std::string& key,
                            const std::string& text, s3::VendingOptions& vending) {
  if (key == "vended_credentials") {
    TARN_ASSIGN_OR_RETURN(const size_t i, reader.Choice(key, text, {"off", "sts", "static"}));
    vending.mode = static_cast<s3::Vending>(i);
  } else if (key == "sts_endpoint") {
    vending.endpoint = text;
    TARN_RETURN_IF_ERROR(s3::ParseEndpoint(text));
  } else if (key == "sts_role") {
    vending.role = text;
  } else if (key == "sts_duration") {
    TARN_ASSIGN_OR_RETURN(const std::chrono::milliseconds lifetime, ParseDuration(text));
    vending.lifetime = std::chrono::floor<std::chrono::seconds>(lifetime);
    if (lifetime < std::chrono::minutes(15) || lifetime > std::chrono::hours(12)) {
      return reader.Bad(key, "15m to 12h");
    }
  } else if (key == "read_key_env") {
    TARN_ASSIGN_OR_RETURN(vending.read.access_key_id, reader.Secret(key, text));
  } else if (key == "read_secret_env") {
    TARN_ASSIGN_OR_RETURN(vending.read.secret_access_key, reader.Secret(key, text));
  } else if (key == "write_key_env") {
    TARN_ASSIGN_OR_RETURN(vending.write.access_key_id, reader.Secret(key, text));
  } else if (key == "write_secret_env") {
    TARN_ASSIGN_OR_RETURN(vending.write.secret_access_key, reader.Secret(key, text));
  } else {
    return false;
  }
  return true;
}

Status ReadKey(const SettingsReader& reader, const std::string& key, const std::string& text,
               S3Options& options) {
  TARN_ASSIGN_OR_RETURN(bool known, ReadCredentialKey(reader, key, text, options.credentials));
  if (!known) {
    TARN_ASSIGN_OR_RETURN(known, ReadVendingKey(reader, key, text, options.vending));
  }
  if (known) {
    return Status::Ok();
  }
  if (key == "endpoint") {
    options.endpoint = text;
    return StatusOf(s3::ParseEndpoint(text));
  }
  if (key == "region") {
    options.region = text;
  } else if (key == "ca_file") {
    options.http.ca_file = text;
  } else if (key == "addressing") {
    TARN_ASSIGN_OR_RETURN(const size_t i, reader.Choice(key, text, {"path", "virtual_host"}));
    options.addressing = i == 0 ? s3::Addressing::kPath : s3::Addressing::kVirtualHost;
  } else if (key == "conditional_put") {
    TARN_ASSIGN_OR_RETURN(const size_t i, reader.Choice(key, text, {"on", "off"}));
    options.conditional_put = i == 0 ? options.conditional_put : s3::ConditionalPut::kUnavailable;
  } else if (key == "list_order") {
    TARN_ASSIGN_OR_RETURN(const size_t i, reader.Choice(key, text, {"keys", "folders"}));
    options.list_order = i == 0 ? s3::ListOrder::kKeys : s3::ListOrder::kFolders;
  } else if (key == "payload") {
    TARN_ASSIGN_OR_RETURN(const size_t i, reader.Choice(key, text, {"signed", "unsigned"}));
    options.payload_signing = i == 0 ? s3::PayloadSigning::kSigned : s3::PayloadSigning::kUnsigned;
  } else if (key == "part_size") {
    TARN_ASSIGN_OR_RETURN(options.part_bytes, ParseSize(text));
  } else if (key == "connections") {
    TARN_ASSIGN_OR_RETURN(const int64_t count, ParseInteger(text));
    if (count < 1 || count > 1024) {
      return reader.Bad(key, "1 to 1024");
    }
    options.http.connections_max = static_cast<size_t>(count);
  } else {
    return reader.Bad(key, "no such key");
  }
  return Status::Ok();
}

// What one key alone does not tell.
Status CheckVending(const SettingsReader& reader, const S3Options& options) {
  using s3::Vending;
  const s3::VendingOptions& vending = options.vending;
  const bool read = !vending.read.access_key_id.empty();
  const bool write = !vending.write.access_key_id.empty();
  if (read == vending.read.secret_access_key.empty()) {
    return reader.Bad("read_key_env", "read_key_env and read_secret_env together");
  }
  if (write == vending.write.secret_access_key.empty()) {
    return reader.Bad("write_key_env", "write_key_env and write_secret_env together");
  }
  if ((read || write) && vending.mode != Vending::kStatic) {
    return reader.Bad(read ? "read_key_env" : "write_key_env",
                      "vended_credentials = \"static\" beside it");
  }
  if (vending.mode == Vending::kStatic && !read && !write) {
    return reader.Bad("vended_credentials",
                      "beside \"static\" the keys that clients get: read_key_env and "
                      "read_secret_env, write_key_env and write_secret_env, or all four");
  }
  if (vending.mode != Vending::kOff && options.scheme != "s3") {
    return reader.Bad("vended_credentials", "\"off\" for gs://: only s3:// hands out credentials");
  }
  if (vending.mode == Vending::kSessions && options.credentials.anonymous) {
    return reader.Bad("vended_credentials", "keys of its own for \"sts\", not anonymous = true");
  }
  if (vending.mode == Vending::kSessions && vending.role.empty() && vending.endpoint.empty() &&
      options.endpoint.empty()) {
    return reader.Bad("sts_role", "the ARN of a role, which Amazon's token service needs");
  }
  return Status::Ok();
}

}  // namespace

Result<S3Options> ReadS3Settings(const StoreSettings& settings, const Environment& environment) {
  S3Options options;
  TARN_ASSIGN_OR_RETURN(options, s3::WithUri(options, settings.uri));
  if (options.scheme == "gs") {
    options.conditional_put = s3::ConditionalPut::kGenerationMatch;
    options.region = "auto";
  }
  const SettingsReader reader(settings, environment);
  for (const auto& [key, text] : settings.options) {
    const Status read = ReadKey(reader, key, text, options);
    if (!read.ok()) {
      return read.message().starts_with("stores.")
                 ? read
                 : read.WithContext(fmt::format("stores.{}.{}", settings.name, key));
    }
  }
  TARN_RETURN_IF_ERROR(CheckVending(reader, options));
  return options;
}

Result<StoreOpener> StoreOpener::Make(std::vector<StoreSettings> settings, Environment environment,
                                      RetryWorld world) {
  for (StoreSettings& store : settings) {
    if (!IsBucketUri(store.uri)) {
      return Status::InvalidArgument(
          fmt::format("stores.{}.uri: expected s3://bucket[/prefix] or gs://bucket[/prefix], "
                      "found {}",
                      store.name, QuoteKey(store.uri)));
    }
    store.uri = Canonical(store.uri);
    TARN_RETURN_IF_ERROR(ReadS3Settings(store, environment));
  }
  return StoreOpener(std::move(settings), std::move(environment), world);
}

Result<S3Options> StoreOpener::BucketOptions(std::string_view uri) const {
  if (!IsBucketUri(uri)) {
    return Status::InvalidArgument(QuoteKey(uri) + " names no bucket");
  }
  const std::string wanted = Canonical(uri);
  StoreSettings best{.name = "default", .uri = {}, .options = {}};
  for (const StoreSettings& store : settings_) {
    if (IsAtOrBelow(wanted, store.uri) && store.uri.size() > best.uri.size()) {
      best = store;
    }
  }
  best.uri = wanted;
  return ReadS3Settings(best, environment_);
}

Result<std::unique_ptr<ObjectStore>> StoreOpener::Open(std::string_view uri,
                                                       StoreAccess access) const {
  const bool writable = access == StoreAccess::kReadWrite;
  if (IsBucketUri(uri)) {
    TARN_ASSIGN_OR_RETURN(const S3Options options, BucketOptions(uri));
    TARN_ASSIGN_OR_RETURN(
        std::unique_ptr<s3::S3Store> bucket,
        s3::S3Store::Open(options, writable ? s3::S3Access::kReadWrite : s3::S3Access::kReadOnly,
                          world_));
    return bucket;
  }
  const size_t colon = uri.find("://");
  if (colon != std::string_view::npos && !uri.starts_with("file:")) {
    return Status::Unimplemented(
        fmt::format("stores of scheme {} are not available in this version: {} (file, s3 and gs "
                    "are)",
                    uri.substr(0, colon), QuoteKey(uri)));
  }
  TARN_ASSIGN_OR_RETURN(const std::string root, PathOfFileUri(uri));
  TARN_ASSIGN_OR_RETURN(
      std::unique_ptr<LocalStore> folder,
      LocalStore::Open(
          {.root = root, .access = writable ? LocalAccess::kReadWrite : LocalAccess::kReadOnly}));
  return folder;
}

}  // namespace tarn::storage
